// SPDX-License-Identifier: Apache-2.0
/* Condition text to an expression, by recursive descent:
 *   or    = and { "or" and }
 *   and   = not { "and" not }
 *   not   = { "not" } check
 *   check = "(" or ")" | macro | field op value
 *   field = name [ "[" arg "]" ] | transformer "(" field ")"
 * What a token is depends on where it stands (a bare value may hold almost anything), so there is no
 * lexer apart. */
#include "rules/internal.h"

#include <stdarg.h>
#include "userspace/base/option.h"

struct parser {
	struct ruleset *rs;
	const struct text *t;
	const char *s;
	size_t n, i;
	int depth;
	bool failed;
};

static const char *const op_names[OP_COUNT] = {
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

static const char *const tr_unsupported[] = { "join", "concat", "getopt" };

const char *op_name(enum rule_op op)
{
	return (size_t)op < OP_COUNT ? op_names[op] : "?";
}

const char *transformer_name(enum transformer t)
{
	return (size_t)t < TR_COUNT ? tr_names[t] : "?";
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\b';
}

static bool is_alpha(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_word(char c)
{
	return is_alpha(c) || (c >= '0' && c <= '9') || c == '_';
}

static void blanks(struct parser *p)
{
	while (p->i < p->n && is_blank(p->s[p->i]))
		p->i++;
}

static char cur(const struct parser *p)
{
	return p->i < p->n ? p->s[p->i] : 0;
}

static void fail(struct parser *p, size_t at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void fail(struct parser *p, size_t at, const char *fmt, ...)
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
static const char *token(const struct parser *p, size_t at, char out[48])
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

static struct expr *expr_new(struct parser *p, enum expr_type type, size_t pos)
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
static struct str peek_name(const struct parser *p)
{
	size_t i = p->i;

	if (i >= p->n || !is_alpha(p->s[i]))
		return (struct str){ 0 };
	while (i < p->n &&
	       (is_word(p->s[i]) || (p->s[i] == '.' && i + 1 < p->n && is_word(p->s[i + 1]))))
		i++;
	return (struct str){ p->s + p->i, i - p->i };
}

static bool take_keyword(struct parser *p, const char *word)
{
	struct str w = peek_name(p);

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
			fail(p, start + i,
			     "escape '\\%c' inside a string quoted with %c: it needs "
			     "no backslash",
			     c, quote);
			return false;
		default:
			fail(p, start + i,
			     "unknown escape '\\%c' in a string: for a backslash write '\\\\'", c);
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
	char q = cur(p);

	for (; i < p->n && p->s[i] != q; i++)
		i += p->s[i] == '\\' && i + 1 < p->n;
	if (i >= p->n) {
		fail(p, start, "string that starts with %c has no end", q);
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

static bool parse_value(struct parser *p, enum rule_op op, struct word *w)
{
	char tok[48];
	size_t start;

	blanks(p);
	start = p->i;
	if (cur(p) == '"' || cur(p) == '\'')
		return parse_quoted(p, w);
	while (p->i < p->n && is_bare(p->s[p->i]))
		p->i++;
	if (p->i == start) {
		fail(p, start, "operator '%s' needs a value, found %s%s", op_name(op),
		     token(p, start, tok),
		     cur(p) == '(' ? ": a list goes with 'in', 'intersects' or 'pmatch'" : "");
		return false;
	}
	*w = (struct word){ { p->s + start, p->i - start }, (uint32_t)start, false };
	return true;
}

static bool add_value(struct parser *p, struct expr *e, size_t *cap, const struct word *w)
{
	if (e->val_n >= RULE_LIST_MAX) {
		fail(p, w->pos, "more than %d values in one list", RULE_LIST_MAX);
		return false;
	}
	if (rs_grow(p->rs, &e->val, cap, e->val_n, sizeof(*e->val)) < 0) {
		p->failed = true;
		return false;
	}
	e->val[e->val_n++] = *w;
	return true;
}

static bool parse_list(struct parser *p, struct expr *e)
{
	size_t cap = 0, open = p->i++;
	char tok[48];

	e->is_list = true;
	blanks(p);
	if (cur(p) == ')') {
		p->i++;
		return true;
	}
	for (;;) {
		struct word w = { 0 };

		if (!parse_value(p, e->op, &w) || !add_value(p, e, &cap, &w))
			return false;
		blanks(p);
		if (cur(p) == ')') {
			p->i++;
			return true;
		}
		if (p->i >= p->n) {
			fail(p, open, "list that starts here has no ')'");
			return false;
		}
		if (cur(p) != ',') {
			fail(p, p->i, "expected ',' or ')' in a list, found %s",
			     token(p, p->i, tok));
			return false;
		}
		p->i++;
	}
}

/* ---- fields ---- */

static int transformer_at(const struct parser *p, struct str name)
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

	if (cur(p) == '"' || cur(p) == '\'') {
		if (!parse_quoted(p, &w))
			return false;
	} else {
		start = p->i;
		while (p->i < p->n && !is_blank(p->s[p->i]) && !strchr("[]\"'", p->s[p->i]))
			p->i++;
		w.s = (struct str){ p->s + start, p->i - start };
	}
	if (!w.s.n) {
		fail(p, open, "field argument is empty");
		return false;
	}
	if (cur(p) != ']') {
		fail(p, open, "field argument that starts here has no ']'");
		return false;
	}
	p->i++;
	l->arg = w.s;
	l->has_arg = true;
	return true;
}

static bool parse_field(struct parser *p, struct lhs *l)
{
	struct str name;
	char tok[48];
	uint8_t outer[TRANSFORMERS_MAX];
	size_t n = 0;
	int tr;

	l->pos = (uint32_t)p->i;
	for (;;) {
		name = peek_name(p);
		tr = name.n ? transformer_at(p, name) : -1;
		if (tr < 0)
			break;
		if (n == TRANSFORMERS_MAX) {
			fail(p, p->i, "more than %d transformers around one field",
			     TRANSFORMERS_MAX);
			return false;
		}
		outer[n++] = (uint8_t)tr;
		p->i += name.n + 1;
		blanks(p);
	}
	if (!name.n) {
		fail(p, p->i, "expected a field, found %s", token(p, p->i, tok));
		return false;
	}
	l->pos = (uint32_t)p->i;
	l->name = name;
	p->i += name.n;
	if (cur(p) == '[' && !parse_arg(p, l))
		return false;
	for (size_t i = 0; i < n; i++) {
		blanks(p);
		if (cur(p) != ')') {
			fail(p, p->i, "expected ')' after the field of a transformer, found %s",
			     token(p, p->i, tok));
			return false;
		}
		p->i++;
		if (outer[n - 1 - i] != TR_VAL)
			l->tr[l->tr_n++] = outer[n - 1 - i];
	}
	return true;
}

/* ---- checks ---- */

/* Operator at the cursor; length through *ret_n. -1 when there is none. */
static int peek_op(const struct parser *p, size_t *ret_n)
{
	static const struct {
		const char *s;
		enum rule_op op;
	} signs[] = { { "<=", OP_LE }, { "<", OP_LT }, { ">=", OP_GE }, { ">", OP_GT },
		      { "==", OP_EQ }, { "=", OP_EQ }, { "!=", OP_NE } };
	struct str left = { p->s + p->i, p->n - p->i };
	struct str w;

	for (size_t i = 0; i < ARRAY_SIZE(signs); i++)
		if (str_starts(left, str_from(signs[i].s))) {
			*ret_n = strlen(signs[i].s);
			return signs[i].op;
		}
	w = peek_name(p);
	for (int i = 0; i < OP_COUNT; i++)
		if (is_alpha(op_names[i][0]) && str_eqz(w, op_names[i])) {
			*ret_n = w.n;
			return i;
		}
	return -1;
}

static bool is_list_op(enum rule_op op)
{
	return op == OP_IN || op == OP_INTERSECTS || op == OP_PMATCH;
}

static bool parse_quant(struct parser *p, struct expr *e)
{
	static const char *const names[] = {
		[Q_ANY] = "anyof", [Q_ALL] = "allof", [Q_ONE] = "oneof"
	};
	size_t at = p->i;

	for (int q = Q_ANY; q <= Q_ONE; q++) {
		if (!take_keyword(p, names[q]))
			continue;
		blanks(p);
		if (cur(p) == '(') {
			e->quant = (enum quant)q;
			return true;
		}
		p->i = at;
	}
	return false;
}

static bool parse_rhs(struct parser *p, struct expr *e)
{
	struct str name;
	struct word w = { 0 };
	size_t cap = 0;

	blanks(p);
	name = peek_name(p);
	if (name.n && transformer_at(p, name) >= 0) {
		e->rhs_field = rs_alloc(p->rs, sizeof(*e->rhs_field));
		if (!e->rhs_field) {
			p->failed = true;
			return false;
		}
		return parse_field(p, e->rhs_field);
	}
	if (!is_list_op(e->op) && parse_quant(p, e))
		return parse_list(p, e);
	if (is_list_op(e->op) && cur(p) == '(')
		return parse_list(p, e);
	if (!parse_value(p, e->op, &w))
		return false;
	if (is_list_op(e->op) && !w.quoted) {
		blanks(p);
		if (cur(p) == ',') {
			fail(p, w.pos, "operator '%s' needs its values in parentheses: (%.*s, ...)",
			     op_name(e->op), (int)MIN(w.s.n, (size_t)60), w.s.p);
			return false;
		}
	}
	e->is_list = is_list_op(e->op);
	return add_value(p, e, &cap, &w);
}

static void fail_no_op(struct parser *p, const struct lhs *l)
{
	char hint[64], tok[48], word[48];
	struct str w = peek_name(p);

	if (str_eqz(w, "not")) {
		fail(p, p->i, "'not' stands before the field: 'not %.*s ...'",
		     (int)MIN(l->name.n, (size_t)80), l->name.p);
		return;
	}
	if (w.n && w.n < sizeof(word) && !str_eqz(w, "and") && !str_eqz(w, "or")) {
		memcpy(word, w.p, w.n);
		word[w.n] = 0;
		rule_hint(hint, sizeof(hint), word, op_names, OP_COUNT);
		fail(p, p->i, "unknown operator '%s' after field '%.*s'%s", word,
		     (int)MIN(l->name.n, (size_t)80), l->name.p, hint);
		return;
	}
	fail(p, p->i,
	     "expected an operator after field '%.*s', found %s (for yes/no fields write "
	     "'= true')",
	     (int)MIN(l->name.n, (size_t)80), l->name.p, token(p, p->i, tok));
}

static struct expr *parse_check(struct parser *p)
{
	struct expr *e = expr_new(p, E_CHECK, p->i);
	size_t n = 0;
	int op;

	if (!e || !parse_field(p, &e->lhs))
		return NULL;
	blanks(p);
	op = peek_op(p, &n);
	if (op < 0) {
		fail_no_op(p, &e->lhs);
		return NULL;
	}
	e->op = (enum rule_op)op;
	e->op_pos = (uint32_t)p->i;
	p->i += n;
	if (e->op == OP_EXISTS)
		return e;
	return parse_rhs(p, e) ? e : NULL;
}

static struct expr *parse_or(struct parser *p);

static struct expr *parse_paren(struct parser *p)
{
	size_t open = p->i++;
	struct expr *e = parse_or(p);
	char tok[48];

	if (!e)
		return NULL;
	blanks(p);
	if (cur(p) == ')') {
		p->i++;
		return e;
	}
	if (p->i >= p->n)
		fail(p, open, "this '(' has no ')'");
	else
		fail(p, p->i, "expected 'and', 'or' or ')', found %s", token(p, p->i, tok));
	return NULL;
}

/* A name without a dot is a field when an operator or [ follows, else a macro. */
static bool is_field_here(const struct parser *p, struct str name)
{
	struct parser q = *p;
	size_t n;

	if (memchr(name.p, '.', name.n) || transformer_at(p, name) >= 0)
		return true;
	q.i += name.n;
	if (cur(&q) == '[')
		return true;
	blanks(&q);
	return peek_op(&q, &n) >= 0;
}

static struct expr *parse_primary(struct parser *p)
{
	struct str name;
	struct expr *e;
	char tok[48];

	blanks(p);
	if (cur(p) == '(')
		return parse_paren(p);
	name = peek_name(p);
	if (!name.n || str_eqz(name, "and") || str_eqz(name, "or")) {
		fail(p, p->i, "expected a field, a macro or '(', found %s", token(p, p->i, tok));
		return NULL;
	}
	for (size_t i = 0; i < ARRAY_SIZE(tr_unsupported); i++)
		if (str_eqz(name, tr_unsupported[i]) && p->i + name.n < p->n &&
		    p->s[p->i + name.n] == '(') {
			fail(p, p->i, "transformer '%s' is not supported", tr_unsupported[i]);
			return NULL;
		}
	if (is_field_here(p, name))
		return parse_check(p);
	e = expr_new(p, E_MACRO, p->i);
	if (!e)
		return NULL;
	e->name = name;
	p->i += name.n;
	return e;
}

static struct expr *parse_not(struct parser *p)
{
	bool negate = false;
	size_t at;
	struct expr *e, *kid;

	blanks(p);
	at = p->i;
	while (take_keyword(p, "not")) {
		negate = !negate;
		blanks(p);
	}
	kid = parse_primary(p);
	if (!kid || !negate)
		return kid;
	e = expr_new(p, E_NOT, at);
	if (!e)
		return NULL;
	e->kid = rs_alloc(p->rs, sizeof(*e->kid));
	if (!e->kid)
		return NULL;
	e->kid[e->n++] = kid;
	return e;
}

static struct expr *parse_chain(struct parser *p, enum expr_type type)
{
	struct expr *kid = type == E_AND ? parse_not(p) : parse_chain(p, E_AND);
	struct expr *e;
	size_t cap = 0;

	if (!kid)
		return NULL;
	blanks(p);
	if (!str_eqz(peek_name(p), type == E_AND ? "and" : "or"))
		return kid;
	e = expr_new(p, type, kid->pos);
	if (!e)
		return NULL;
	for (;;) {
		if (rs_grow(p->rs, &e->kid, &cap, e->n, sizeof(*e->kid)) < 0) {
			p->failed = true;
			return NULL;
		}
		e->kid[e->n++] = kid;
		blanks(p);
		if (!take_keyword(p, type == E_AND ? "and" : "or"))
			return e;
		kid = type == E_AND ? parse_not(p) : parse_chain(p, E_AND);
		if (!kid)
			return NULL;
	}
}

static struct expr *parse_or(struct parser *p)
{
	struct expr *e;

	if (++p->depth > RULE_DEPTH_MAX) {
		fail(p, p->i, "parentheses nested deeper than %d", RULE_DEPTH_MAX);
		return NULL;
	}
	e = parse_chain(p, E_OR);
	p->depth--;
	return e;
}

struct expr *expr_parse(struct ruleset *rs, const struct text *t)
{
	struct text *keep = rs_alloc(rs, sizeof(*keep));
	struct parser p = { .rs = rs, .t = keep, .s = t->s.p, .n = t->s.n };
	struct expr *e;
	char tok[48];

	if (!keep)
		return NULL;
	*keep = *t;
	blanks(&p);
	if (p.i >= p.n) {
		fail(&p, 0, "condition is empty");
		return NULL;
	}
	e = parse_or(&p);
	if (!e)
		return NULL;
	blanks(&p);
	if (p.i < p.n) {
		if (cur(&p) == ')')
			fail(&p, p.i, "this ')' closes nothing");
		else
			fail(&p, p.i, "expected 'and' or 'or', found %s", token(&p, p.i, tok));
		return NULL;
	}
	return e;
}

bool field_parse(struct ruleset *rs, const struct text *t, struct lhs *ret)
{
	struct parser p = { .rs = rs, .t = t, .s = t->s.p, .n = t->s.n };
	char tok[48];

	blanks(&p);
	if (!parse_field(&p, ret))
		return false;
	blanks(&p);
	if (p.i < p.n)
		fail(&p, p.i, "expected a field alone, found %s", token(&p, p.i, tok));
	return !p.failed;
}
