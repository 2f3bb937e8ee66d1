// SPDX-License-Identifier: Apache-2.0
#include "userspace/event/json_tree.h"

#include <errno.h>
#include <string.h>

#include "userspace/event/json_read.h"

const char *const json_type_names[] = {
	[JSON_NULL] = "null",	  [JSON_BOOL] = "true or false", [JSON_NUMBER] = "a number",
	[JSON_STRING] = "a text", [JSON_ARRAY] = "a list",	 [JSON_OBJECT] = "an object",
};

struct tree_reader {
	struct json_reader in;
	const char *start;
	size_t nodes;
};

static struct json_node *value(struct tree_reader *t, unsigned depth);

static struct json_node *node_new(struct tree_reader *t, enum json_type type)
{
	struct json_node *node = NULL;

	if (++t->nodes > JSON_TREE_NODES) {
		json_problem(&t->in, "too many values");
		return NULL;
	}
	node = arena_zalloc(t->in.arena, sizeof(*node));
	if (!node) {
		t->in.no_memory = true;
		return NULL;
	}
	node->type = type;
	node->at = (uint32_t)(t->in.p - t->start);
	return node;
}

static size_t digits(const char *p)
{
	size_t n = 0;

	while (p[n] >= '0' && p[n] <= '9')
		n++;
	return n;
}

static struct json_node *number(struct tree_reader *t)
{
	struct json_node *node = node_new(t, JSON_NUMBER);
	char *p = t->in.p;
	size_t n;

	if (!node)
		return NULL;
	p += *p == '-';
	n = digits(p);
	if (n == 0 || (n > 1 && *p == '0')) {
		json_problem(&t->in, "not a value");
		return NULL;
	}
	p += n;
	if (*p == '.') {
		n = digits(p + 1);
		p += n + 1;
	}
	if (n && (*p == 'e' || *p == 'E')) {
		p++;
		p += *p == '+' || *p == '-';
		n = digits(p);
		p += n;
	}
	if (!n) {
		json_problem(&t->in, "unfinished number");
		return NULL;
	}
	node->text = arena_strndup(t->in.arena, t->in.p, (size_t)(p - t->in.p));
	t->in.p = p;
	return node;
}

static struct json_node *word(struct tree_reader *t, const char *text, enum json_type type)
{
	struct json_node *node = node_new(t, type);
	size_t n = strlen(text);

	if (!node)
		return NULL;
	if (strncmp(t->in.p, text, n)) {
		json_problem(&t->in, "not a value");
		return NULL;
	}
	t->in.p += n;
	node->truth = text[0] == 't';
	return node;
}

/* Who reads a file of others keeps its words as C strings: two that differ behind a NUL would be one there. */
static bool read_text(struct tree_reader *t, struct str *ret)
{
	if (!json_read_string(&t->in, ret))
		return false;
	return !memchr(ret->p, 0, ret->n) || json_problem(&t->in, "a NUL in a string");
}

static struct json_node *string(struct tree_reader *t)
{
	struct json_node *node = node_new(t, JSON_STRING);

	return node && read_text(t, &node->text) ? node : NULL;
}

/* A key twice would mean one thing to us and another to the next reader. */
static bool is_new(const struct json_node *parent, struct str key)
{
	for (const struct json_node *m = parent->first; m; m = m->next)
		if (str_eq(m->key, key))
			return false;
	return true;
}

static struct json_node *member(struct tree_reader *t, const struct json_node *parent,
				unsigned depth)
{
	struct json_node *node;
	struct str key;

	if (json_peek(&t->in) != '"') {
		json_problem(&t->in, "expected a key");
		return NULL;
	}
	if (parent->n >= JSON_TREE_MEMBERS) {
		json_problem(&t->in, "too many keys in an object");
		return NULL;
	}
	if (!read_text(t, &key))
		return NULL;
	if (!is_new(parent, key)) {
		json_problem(&t->in, "a key for the second time");
		return NULL;
	}
	if (!json_expect(&t->in, ':', "expected ':'"))
		return NULL;
	node = value(t, depth);
	if (node)
		node->key = key;
	return node;
}

static struct json_node *container(struct tree_reader *t, bool object, unsigned depth)
{
	struct json_node *node = node_new(t, object ? JSON_OBJECT : JSON_ARRAY), *child;
	struct json_node *last = NULL;
	char end = object ? '}' : ']';

	if (!node)
		return NULL;
	t->in.p++;
	if (depth >= JSON_TREE_DEPTH) {
		json_problem(&t->in, "too deep");
		return NULL;
	}
	if (json_take(&t->in, end))
		return node;
	do {
		child = object ? member(t, node, depth + 1) : value(t, depth + 1);
		if (!child)
			return NULL;
		if (last)
			last->next = child;
		else
			node->first = child;
		last = child;
		node->n++;
	} while (json_take(&t->in, ','));
	return json_expect(&t->in, end, object ? "expected ',' or '}'" : "expected ',' or ']'")
		       ? node
		       : NULL;
}

static struct json_node *any(struct tree_reader *t, unsigned depth)
{
	switch (json_peek(&t->in)) {
	case '{':
		return container(t, true, depth);
	case '[':
		return container(t, false, depth);
	case '"':
		return string(t);
	case 't':
		return word(t, "true", JSON_BOOL);
	case 'f':
		return word(t, "false", JSON_BOOL);
	case 'n':
		return word(t, "null", JSON_NULL);
	default:
		return number(t);
	}
}

static struct json_node *value(struct tree_reader *t, unsigned depth)
{
	struct json_node *node = any(t, depth);

	if (node)
		node->end = (uint32_t)(t->in.p - t->start);
	return node;
}

void json_line_col(struct str text, size_t at, unsigned *ret_line, unsigned *ret_col)
{
	unsigned line = 1, col = 1;

	for (size_t i = 0; i < at && i < text.n; i++) {
		col++;
		if (text.p[i] == '\n') {
			line++;
			col = 1;
		}
	}
	*ret_line = line;
	*ret_col = col;
}

int json_tree_parse(struct json_node **ret, struct arena *mem, const char *name, struct str text,
		    struct err *err)
{
	struct tree_reader t = { 0 };
	struct json_node *root;
	unsigned line, col;

	if (text.n > UINT32_MAX || json_reader_init(&t.in, mem, text) < 0)
		return err_set(err, ENOMEM, "%s: %m", name);
	t.start = t.in.p;
	root = value(&t, 0);
	if (root && (json_peek(&t.in) || t.in.p != t.in.end)) {
		json_problem(&t.in, "something behind the value");
		root = NULL;
	}
	if (root) {
		*ret = root;
		return 0;
	}
	if (t.in.no_memory)
		return err_set(err, ENOMEM, "%s: %m", name);
	json_line_col(text, (size_t)(t.in.p - t.start), &line, &col);
	return err_set(err, EBADMSG, "%s:%u:%u: %s", name, line, col,
		       t.in.problem ? t.in.problem : "not JSON");
}

const struct json_node *json_member(const struct json_node *node, const char *key)
{
	if (!node || node->type != JSON_OBJECT)
		return NULL;
	for (const struct json_node *m = node->first; m; m = m->next)
		if (str_eqz(m->key, key))
			return m;
	return NULL;
}

const struct json_node *json_given(const struct json_node *node, const char *key)
{
	const struct json_node *m = json_member(node, key);

	return m && m->type != JSON_NULL ? m : NULL;
}

bool json_text_of(const struct json_node *node, const char *key, struct str *ret)
{
	const struct json_node *m = json_given(node, key);

	if (m && m->type != JSON_STRING)
		return false;
	*ret = m ? m->text : STR("");
	return true;
}

static bool magnitude(struct str s, uint64_t *ret)
{
	uint64_t v = 0;

	for (size_t i = 0; i < s.n; i++) {
		unsigned d = (unsigned)(s.p[i] - '0');

		if (d > 9 || v > (UINT64_MAX - d) / 10)
			return false;
		v = v * 10 + d;
	}
	*ret = v;
	return s.n > 0;
}

bool json_u64_of(const struct json_node *n, uint64_t *ret)
{
	return n && n->type == JSON_NUMBER && magnitude(n->text, ret);
}

bool json_i64_of(const struct json_node *n, int64_t *ret)
{
	bool negative = n && n->type == JSON_NUMBER && n->text.p[0] == '-';
	struct str s = n ? n->text : STR("");
	uint64_t v;

	if (!n || n->type != JSON_NUMBER)
		return false;
	if (!magnitude((struct str){ s.p + negative, s.n - negative }, &v) || v > INT64_MAX)
		return false;
	*ret = negative ? -(int64_t)v : (int64_t)v;
	return true;
}
