// SPDX-License-Identifier: Apache-2.0
/* Words of a condition: names, values, lists of them, fields with arguments and transformers. */
#include "rules/parse.h"

#include <stdarg.h>
#include "userspace/base/option.h"

const char *const op_names[OP_COUNT] = {
	[OP_EXISTS] = "exists",
	[OP_EQ] = "=",
	[OP_NE] = "!=",
	[OP_LT] = "<",
	[OP_LE] = "<=",
	[OP_GT] = ">",
	[OP_GE] = ">=",
	[OP_CONTAINS] = "contains",
	[OP_ICONTAINS] = "icontains",
	[OP_BCONTAINS] = "bcontains",
	[OP_STARTSWITH] = "startswith",
	[OP_BSTARTSWITH] = "bstartswith",
	[OP_ENDSWITH] = "endswith",
	[OP_GLOB] = "glob",
	[OP_IGLOB] = "iglob",
	[OP_REGEX] = "regex",
	[OP_IN] = "in",
	[OP_INTERSECTS] = "intersects",
	[OP_PMATCH] = "pmatch",
};

static const char *const tr_names[TR_COUNT] = {
	[TR_VAL] = "val", [TR_TOLOWER] = "tolower",   [TR_TOUPPER] = "toupper",
	[TR_B64] = "b64", [TR_BASENAME] = "basename", [TR_LEN] = "len",
};

const char *op_name(enum rule_op op)
{
	return (size_t)op < OP_COUNT ? op_names[op] : "?";
}

const char *transformer_name(enum transformer t)
{
	return (size_t)t < TR_COUNT ? tr_names[t] : "?";
}

void parser_blanks(struct parser *p)
{
	while (p->i < p->n && is_blank(p->s[p->i]))
		p->i++;
}

char parser_cur(const struct parser *p)
{
	return p->i < p->n ? p->s[p->i] : 0;
}

void parser_fail(struct parser *p, size_t at, const char *fmt, ...)
{
	struct pos where;
	char text[400];
	size_t end = p->n;
	va_list ap;

	if (p->failed)
		return;
	p->failed = true;
	while (end && is_blank(p->s[end - 1]))
		end--;
	where = text_pos(p->t, at < end || !end ? at : end - 1);
	/* Behind the last word, not on the line after it. */
	if (at >= end && end)
		where.col++;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	rule_error(p->rs, where, "%s", text);
}

/* What stands at `at`, for a message. */
const char *parser_token(const struct parser *p, size_t at, char out[48])
{
	size_t n = 0;

	while (at < p->n && is_blank(p->s[at]))
		at++;
	if (at >= p->n)
		return "the end of the condition";
	while (at + n < p->n && n < 40 && !is_blank(p->s[at + n]) &&
	       (n == 0 || !strchr("(),=\"'", p->s[at + n])))
		n++;
	snprintf(out, 48, "'%.*s'", (int)n, p->s + at);
	return out;
}

struct expr *parser_expr(struct parser *p, enum expr_type type, size_t pos)
{
	struct expr *e = rs_alloc(p->rs, sizeof(*e));

	if (!e) {
		p->failed = true;
		return NULL;
	}
	e->type = type;
	e->pos = (uint32_t)pos;
	e->text = p->t;
	return e;
}

/* An identifier at the cursor, dots included; n == 0 when there is none. */
struct str parser_name(const struct parser *p)
{
	size_t i = p->i;

	if (i >= p->n || !is_alpha(p->s[i]))
		return (struct str){ 0 };
	while (i < p->n &&
	       (is_word(p->s[i]) || (p->s[i] == '.' && i + 1 < p->n && is_word(p->s[i + 1]))))
		i++;
	return (struct str){ p->s + p->i, i - p->i };
}

bool parser_keyword(struct parser *p, const char *word)
{
	struct str w = parser_name(p);

	if (!str_eqz(w, word))
		return false;
	p->i += w.n;
	return true;
}

/* ---- values ---- */

static bool unescape(struct parser *p, size_t start, char quote, struct str raw, struct str *ret)
{
	char *out = rs_alloc(p->rs, raw.n + 1);
	size_t n = 0;

	if (!out) {
		p->failed = true;
		return false;
	}
	for (size_t i = 0; i < raw.n; i++) {
		char c = raw.p[i];

		if (c != '\\' || i + 1 >= raw.n) {
			out[n++] = c;
			continue;
		}
		c = raw.p[++i];
		switch (c) {
		case 'b':
			c = '\b';
			break;
		case 'f':
			c = '\f';
			break;
		case 'n':
			c = '\n';
			break;
		case 'r':
			c = '\r';
			break;
		case 't':
			c = '\t';
			break;
		case ' ':
		case '\\':
			c = '\\';
			break;
		case '/':
			break;
		case '"':
		case '\'':
			if (c == quote)
				break;
			parser_fail(p, start + i,
				    "escape '\\%c' inside a string quoted with %c: it needs "
				    "no backslash",
				    c, quote);
			return false;
		default:
			parser_fail(
				p, start + i,
				"unknown escape '\\%c' in a string: for a backslash write '\\\\'",
				c);
			return false;
		}
		out[n++] = c;
	}
	*ret = (struct str){ out, n };
	return true;
}

static bool parse_quoted(struct parser *p, struct word *w)
{
	size_t start = p->i, i = start + 1;
	char q = parser_cur(p);

	for (; i < p->n && p->s[i] != q; i++)
		i += p->s[i] == '\\' && i + 1 < p->n;
	if (i >= p->n) {
		parser_fail(p, start, "string that starts with %c has no end", q);
		return false;
	}
	w->pos = (uint32_t)start;
	w->quoted = true;
	p->i = i + 1;
	return unescape(p, start, q, (struct str){ p->s + start + 1, i - start - 1 }, &w->s);
}

static bool is_bare(char c)
{
	return !is_blank(c) && c != '(' && c != ')' && c != '"' && c != '\'' && c != '=' &&
	       c != ',';
}

bool parse_value(struct parser *p, enum rule_op op, struct word *w)
{
	char tok[48];
	size_t start;

	parser_blanks(p);
	start = p->i;
	if (parser_cur(p) == '"' || parser_cur(p) == '\'')
		return parse_quoted(p, w);
	while (p->i < p->n && is_bare(p->s[p->i]))
		p->i++;
	if (p->i == start) {
		parser_fail(p, start, "operator '%s' needs a value, found %s%s", op_name(op),
			    parser_token(p, start, tok),
			    parser_cur(p) == '('
				    ? ": a list goes with 'in', 'intersects' or 'pmatch'"
				    : "");
		return false;
	}
	*w = (struct word){ { p->s + start, p->i - start }, (uint32_t)start, false };
	return true;
}

bool parser_add_value(struct parser *p, struct expr *e, size_t *cap, const struct word *w)
{
	if (e->val_n >= RULE_LIST_MAX) {
		parser_fail(p, w->pos, "more than %d values in one list", RULE_LIST_MAX);
		return false;
	}
	if (rs_grow(p->rs, &e->val, cap, e->val_n, sizeof(*e->val)) < 0) {
		p->failed = true;
		return false;
	}
	e->val[e->val_n++] = *w;
	return true;
}

bool parse_list(struct parser *p, struct expr *e)
{
	size_t cap = 0, open = p->i++;
	char tok[48];

	e->is_list = true;
	parser_blanks(p);
	if (parser_cur(p) == ')') {
		p->i++;
		return true;
	}
	for (;;) {
		struct word w = { 0 };

		if (!parse_value(p, e->op, &w) || !parser_add_value(p, e, &cap, &w))
			return false;
		parser_blanks(p);
		if (parser_cur(p) == ')') {
			p->i++;
			return true;
		}
		if (p->i >= p->n) {
			parser_fail(p, open, "list that starts here has no ')'");
			return false;
		}
		if (parser_cur(p) != ',') {
			parser_fail(p, p->i, "expected ',' or ')' in a list, found %s",
				    parser_token(p, p->i, tok));
			return false;
		}
		p->i++;
	}
}

/* ---- fields ---- */

int parser_transformer(const struct parser *p, struct str name)
{
	if (p->i + name.n >= p->n || p->s[p->i + name.n] != '(')
		return -1;
	for (int i = 0; i < TR_COUNT; i++)
		if (str_eqz(name, tr_names[i]))
			return i;
	return -1;
}

static bool parse_arg(struct parser *p, struct lhs *l)
{
	size_t open = p->i++, start;
	struct word w = { 0 };

	if (parser_cur(p) == '"' || parser_cur(p) == '\'') {
		if (!parse_quoted(p, &w))
			return false;
	} else {
		start = p->i;
		while (p->i < p->n && !is_blank(p->s[p->i]) && !strchr("[]\"'", p->s[p->i]))
			p->i++;
		w.s = (struct str){ p->s + start, p->i - start };
	}
	if (!w.s.n) {
		parser_fail(p, open, "field argument is empty");
		return false;
	}
	if (parser_cur(p) != ']') {
		parser_fail(p, open, "field argument that starts here has no ']'");
		return false;
	}
	p->i++;
	l->arg = w.s;
	l->has_arg = true;
	return true;
}

bool parse_field(struct parser *p, struct lhs *l)
{
	struct str name;
	char tok[48];
	uint8_t outer[TRANSFORMERS_MAX];
	size_t n = 0;
	int tr;

	l->pos = (uint32_t)p->i;
	for (;;) {
		name = parser_name(p);
		tr = name.n ? parser_transformer(p, name) : -1;
		if (tr < 0)
			break;
		if (n == TRANSFORMERS_MAX) {
			parser_fail(p, p->i, "more than %d transformers around one field",
				    TRANSFORMERS_MAX);
			return false;
		}
		outer[n++] = (uint8_t)tr;
		p->i += name.n + 1;
		parser_blanks(p);
	}
	if (!name.n) {
		parser_fail(p, p->i, "expected a field, found %s", parser_token(p, p->i, tok));
		return false;
	}
	l->pos = (uint32_t)p->i;
	l->name = name;
	p->i += name.n;
	if (parser_cur(p) == '[' && !parse_arg(p, l))
		return false;
	for (size_t i = 0; i < n; i++) {
		parser_blanks(p);
		if (parser_cur(p) != ')') {
			parser_fail(p, p->i,
				    "expected ')' after the field of a transformer, found %s",
				    parser_token(p, p->i, tok));
			return false;
		}
		p->i++;
		if (outer[n - 1 - i] != TR_VAL)
			l->tr[l->tr_n++] = outer[n - 1 - i];
	}
	return true;
}
