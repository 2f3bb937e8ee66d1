// SPDX-License-Identifier: Apache-2.0
/* YAML to nodes that know where they stand. libyaml's parser, not its document loader: the loader
 * expands aliases without a limit. */
#include "rules/internal.h"

#include <yaml.h>

#define ANCHORS_MAX 256

struct reader {
	struct ruleset *rs;
	const struct source *src;
	yaml_parser_t p;
	size_t nodes;
	struct {
		struct str name;
		struct ynode *node;
	} anchor[ANCHORS_MAX];
	size_t anchors_n;
};

static struct pos mark_pos(const struct reader *y, const yaml_mark_t *m)
{
	return (struct pos){ y->src, (int)m->line + 1, (int)m->column + 1 };
}

/* Not a single plain "control characters are not allowed" for what a person can name. */
static bool check_bytes(struct ruleset *rs, const struct source *src)
{
	const unsigned char *p = (const unsigned char *)src->raw.p;
	int line = 1, col = 1;

	if (src->raw.n >= 2 && ((p[0] == 0xff && p[1] == 0xfe) || (p[0] == 0xfe && p[1] == 0xff))) {
		rule_error(rs, (struct pos){ src, 1, 1 }, "file is UTF-16: save it as UTF-8");
		return false;
	}
	for (size_t i = 0; i < src->raw.n; i++) {
		unsigned char c = p[i];

		if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f) {
			rule_error(rs, (struct pos){ src, line, col },
				   "byte 0x%02x: not a text file", c);
			return false;
		}
		col++;
		if (c == '\n') {
			line++;
			col = 1;
		}
	}
	return true;
}

static int find_lines(struct ruleset *rs, struct source *src)
{
	size_t n = 1;

	for (size_t i = 0; i < src->raw.n; i++)
		n += src->raw.p[i] == '\n';
	src->line = rs_alloc(rs, n * sizeof(*src->line));
	if (!src->line)
		return -ENOMEM;
	src->lines = 1;
	for (size_t i = 0; i < src->raw.n; i++)
		if (src->raw.p[i] == '\n')
			src->line[src->lines++] = i + 1;
	return 0;
}

/* What stands at the mark, whose column counts characters; "" at the end. */
static const char *token_at(const struct reader *y, const yaml_mark_t *m, char out[48])
{
	struct str raw = y->src->raw;
	size_t i = m->line < y->src->lines ? y->src->line[m->line] : raw.n, n = 0;

	for (size_t col = 0; col < m->column && i < raw.n; col++)
		for (i++; i < raw.n && ((unsigned char)raw.p[i] & 0xc0) == 0x80;)
			i++;
	while (i + n < raw.n && n < 32 && (unsigned char)raw.p[i + n] > ' ')
		n++;
	snprintf(out, 48, n ? ", found '%.*s'" : "%.*s", (int)n, raw.p ? raw.p + i : "");
	return out;
}

/* libyaml's words, and what people usually did. */
static const char *yaml_hint(const struct reader *y)
{
	const char *p = y->p.problem ? y->p.problem : "", *context = y->p.context;
	size_t i = y->p.problem_mark.line < y->src->lines ? y->src->line[y->p.problem_mark.line]
							  : y->src->raw.n;

	while (i < y->src->raw.n && y->src->raw.p[i] == ' ')
		i++;
	if (i < y->src->raw.n && y->src->raw.p[i] == '\t')
		return ": indent with blanks, not tabs";
	if (context && strstr(context, "flow sequence"))
		return ": a '[' before this has no ']', or a ',' is missing";
	if (context && strstr(context, "flow mapping"))
		return ": a '{' before this has no '}', or a ',' is missing";
	if (context && strstr(context, "quoted scalar"))
		return ": a quote before this has no end";
	if (strstr(p, "mapping values are not allowed"))
		return ": a value with ': ' in it needs quotes";
	if (strstr(p, "cannot start any token"))
		return ": a value that begins so needs quotes";
	if (strstr(p, "did not find expected key") || strstr(p, "expected '-' indicator") ||
	    strstr(p, "could not find expected ':'"))
		return ": is the indentation right?";
	return "";
}

static void parser_error(struct reader *y)
{
	const yaml_parser_t *p = &y->p;
	struct pos at = mark_pos(y, &p->problem_mark);
	char token[48];

	switch (p->error) {
	case YAML_MEMORY_ERROR:
		y->rs->oom = true;
		return;
	case YAML_READER_ERROR: {
		size_t off = MIN(p->problem_offset, y->src->raw.n);

		/* The reader knows only a byte offset: of a broken sequence the byte that breaks it. */
		if (strstr(p->problem, "trailing"))
			do
				off -= off > 0;
			while (off && ((unsigned char)y->src->raw.p[off] & 0xc0) == 0x80);
		at = (struct pos){ y->src, 1, 1 };
		for (size_t i = 0; i < off; i++) {
			at.col++;
			if (y->src->raw.p[i] == '\n') {
				at.line++;
				at.col = 1;
			}
		}
		rule_error(y->rs, at, "byte 0x%02x: %s: the file must be UTF-8 text",
			   off < y->src->raw.n ? (unsigned char)y->src->raw.p[off] : 0, p->problem);
		return;
	}
	default:
		rule_error(y->rs, at, "YAML: %s%s%s%s%s", p->problem ? p->problem : "syntax error",
			   p->context ? ", " : "", p->context ? p->context : "",
			   token_at(y, &p->problem_mark, token), yaml_hint(y));
	}
}

static bool next(struct reader *y, yaml_event_t *ev)
{
	if (yaml_parser_parse(&y->p, ev))
		return true;
	parser_error(y);
	return false;
}

static struct ynode *node_new(struct reader *y, enum ytype type, const yaml_mark_t *m)
{
	struct ynode *n;

	if (++y->nodes > RULE_YAML_NODES_MAX) {
		rule_error(y->rs, mark_pos(y, m), "more than %d YAML values in one file",
			   RULE_YAML_NODES_MAX);
		return NULL;
	}
	n = rs_alloc(y->rs, sizeof(*n));
	if (!n)
		return NULL;
	n->type = type;
	n->src = y->src;
	n->line = (int)m->line + 1;
	n->col = (int)m->column + 1;
	return n;
}

static void anchor_set(struct reader *y, const yaml_char_t *name, struct ynode *n)
{
	if (!name || !n)
		return;
	if (y->anchors_n == ANCHORS_MAX) {
		rule_error(y->rs, ynode_pos(n), "more than %d YAML anchors", ANCHORS_MAX);
		return;
	}
	y->anchor[y->anchors_n].name = rs_dup(y->rs, str_from((const char *)name));
	y->anchor[y->anchors_n++].node = n;
}

static struct ynode *anchor_get(struct reader *y, const yaml_event_t *ev)
{
	const char *name = (const char *)ev->data.alias.anchor;

	for (size_t i = y->anchors_n; i-- > 0;)
		if (str_eqz(y->anchor[i].name, name))
			return y->anchor[i].node;
	rule_error(y->rs, mark_pos(y, &ev->start_mark), "YAML: no anchor named '%s' before this",
		   name);
	return NULL;
}

static struct ynode *read_scalar(struct reader *y, const yaml_event_t *ev)
{
	struct ynode *n = node_new(y, Y_SCALAR, &ev->start_mark);

	if (!n)
		return NULL;
	n->text = rs_dup(
		y->rs, (struct str){ (const char *)ev->data.scalar.value, ev->data.scalar.length });
	switch (ev->data.scalar.style) {
	case YAML_SINGLE_QUOTED_SCALAR_STYLE:
		n->style = Y_SINGLE;
		break;
	case YAML_DOUBLE_QUOTED_SCALAR_STYLE:
		n->style = Y_DOUBLE;
		break;
	case YAML_LITERAL_SCALAR_STYLE:
	case YAML_FOLDED_SCALAR_STYLE:
		n->style = Y_BLOCK;
		break;
	default:
		n->style = Y_PLAIN;
	}
	return n->text.p ? n : NULL;
}

static struct ynode *read_node(struct reader *y, const yaml_event_t *ev, int depth);

static bool read_kids(struct reader *y, struct ynode *n, yaml_event_type_t end, int depth)
{
	size_t cap = 0, key_cap = 0;

	for (;;) {
		yaml_event_t ev;
		struct ynode *key = NULL, *kid;
		bool done;

		if (!next(y, &ev))
			return false;
		done = ev.type == end;
		if (!done && n->type == Y_MAP) {
			key = read_node(y, &ev, depth + 1);
			yaml_event_delete(&ev);
			if (!key || !next(y, &ev))
				return false;
		}
		kid = done ? NULL : read_node(y, &ev, depth + 1);
		yaml_event_delete(&ev);
		if (done)
			return true;
		if (!kid || rs_grow(y->rs, &n->kid, &cap, n->n, sizeof(*n->kid)) < 0 ||
		    (key && rs_grow(y->rs, &n->key, &key_cap, n->n, sizeof(*n->key)) < 0))
			return false;
		if (key)
			n->key[n->n] = key;
		n->kid[n->n++] = kid;
	}
}

static struct ynode *read_node(struct reader *y, const yaml_event_t *ev, int depth)
{
	struct ynode *n;

	if (depth > RULE_YAML_DEPTH_MAX) {
		rule_error(y->rs, mark_pos(y, &ev->start_mark), "YAML nested deeper than %d levels",
			   RULE_YAML_DEPTH_MAX);
		return NULL;
	}
	switch (ev->type) {
	case YAML_ALIAS_EVENT:
		return anchor_get(y, ev);
	case YAML_SCALAR_EVENT:
		n = read_scalar(y, ev);
		anchor_set(y, ev->data.scalar.anchor, n);
		return n;
	case YAML_SEQUENCE_START_EVENT:
		n = node_new(y, Y_SEQ, &ev->start_mark);
		if (!n || !read_kids(y, n, YAML_SEQUENCE_END_EVENT, depth))
			return NULL;
		anchor_set(y, ev->data.sequence_start.anchor, n);
		return n;
	case YAML_MAPPING_START_EVENT:
		n = node_new(y, Y_MAP, &ev->start_mark);
		if (!n || !read_kids(y, n, YAML_MAPPING_END_EVENT, depth))
			return NULL;
		anchor_set(y, ev->data.mapping_start.anchor, n);
		return n;
	default:
		rule_error(y->rs, mark_pos(y, &ev->start_mark), "YAML: unexpected token");
		return NULL;
	}
}

static int read_all(struct reader *y, struct ynode ***ret_docs, size_t *ret_n)
{
	struct ynode **doc = NULL;
	size_t n = 0, cap = 0;

	for (;;) {
		yaml_event_t ev;
		struct ynode *node = NULL;
		yaml_event_type_t type;

		if (!next(y, &ev))
			return -EINVAL;
		type = ev.type;
		if (type == YAML_DOCUMENT_START_EVENT)
			y->anchors_n = 0;
		if (type != YAML_STREAM_START_EVENT && type != YAML_STREAM_END_EVENT &&
		    type != YAML_DOCUMENT_START_EVENT && type != YAML_DOCUMENT_END_EVENT) {
			node = read_node(y, &ev, 0);
			if (!node) {
				yaml_event_delete(&ev);
				return -EINVAL;
			}
		}
		yaml_event_delete(&ev);
		if (type == YAML_STREAM_END_EVENT)
			break;
		if (node) {
			if (rs_grow(y->rs, &doc, &cap, n, sizeof(*doc)) < 0)
				return -ENOMEM;
			doc[n++] = node;
		}
	}
	*ret_docs = doc;
	*ret_n = n;
	return 0;
}

int yaml_read(struct ruleset *rs, struct source *src, struct ynode ***ret_docs, size_t *ret_n)
{
	auto_free struct reader *y = NULL;
	int r;

	if (!check_bytes(rs, src))
		return -EINVAL;
	r = find_lines(rs, src);
	if (r < 0)
		return r;
	y = calloc(1, sizeof(*y));
	if (!y || !yaml_parser_initialize(&y->p)) {
		rs->oom = true;
		return -ENOMEM;
	}
	y->rs = rs;
	y->src = src;
	yaml_parser_set_encoding(&y->p, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&y->p, (const unsigned char *)src->raw.p, src->raw.n);
	r = read_all(y, ret_docs, ret_n);
	yaml_parser_delete(&y->p);
	return r;
}

struct ynode *ynode_get(const struct ynode *map, const char *key)
{
	if (map->type != Y_MAP)
		return NULL;
	for (size_t i = 0; i < map->n; i++)
		if (map->key[i]->type == Y_SCALAR && str_eqz(map->key[i]->text, key))
			return map->kid[i];
	return NULL;
}

struct pos ynode_pos(const struct ynode *n)
{
	return n ? (struct pos){ n->src, n->line, n->col } : (struct pos){ 0 };
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Folding and quoting change blanks and escapes only: the value's other bytes stand in the file in
 * the same order, so counting them finds the place. */
struct pos ynode_pos_at(const struct ynode *n, size_t off)
{
	struct str raw = n->src->raw;
	struct pos at = { n->src, n->line, 1 };
	size_t i = 0, want = 0;

	if ((size_t)n->line > n->src->lines)
		return ynode_pos(n);
	i = n->src->line[n->line - 1];
	for (size_t k = 0; k < off && k < n->text.n; k++)
		want += !is_blank(n->text.p[k]);
	for (; i < raw.n && at.col < n->col && raw.p[i] != '\n'; i++)
		at.col += ((unsigned char)raw.p[i] & 0xc0) != 0x80;
	if (n->style == Y_BLOCK) {
		while (i < raw.n && raw.p[i] != '\n')
			i++;
	} else if (n->style != Y_PLAIN && i < raw.n) {
		i++;
		at.col++;
	}
	for (; i < raw.n; i++) {
		if (raw.p[i] == '\n') {
			at.line++;
			at.col = 1;
			continue;
		}
		if (!is_blank(raw.p[i])) {
			if (!want)
				break;
			want--;
			if (i + 1 < raw.n && ((n->style == Y_DOUBLE && raw.p[i] == '\\') ||
					      (n->style == Y_SINGLE && raw.p[i] == '\''))) {
				i++;
				at.col++;
			}
		}
		at.col += ((unsigned char)raw.p[i] & 0xc0) != 0x80;
	}
	return at;
}
