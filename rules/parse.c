// SPDX-License-Identifier: Apache-2.0
/* Condition text to an expression, by recursive descent:
 *   or    = and { "or" and }
 *   and   = not { "and" not }
 *   not   = { "not" } check
 *   check = "(" or ")" | macro | field op value
 *   field = name [ "[" arg "]" ] | transformer "(" field ")"
 * What a token is depends on where it stands (a bare value may hold almost anything), so there is no
 * lexer apart; parse_words.c reads what this file asks for. */
#include "rules/parse.h"

#include "userspace/base/option.h"

/* Falco's, which are refused by name. */
static const char *const tr_unsupported[] = { "join", "concat", "getopt" };

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
	w = parser_name(p);
	for (int i = 0; i < OP_COUNT; i++)
		if (is_alpha(op_name((enum rule_op)i)[0]) && str_eqz(w, op_name((enum rule_op)i))) {
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
		if (!parser_keyword(p, names[q]))
			continue;
		parser_blanks(p);
		if (parser_cur(p) == '(') {
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

	parser_blanks(p);
	name = parser_name(p);
	if (name.n && parser_transformer(p, name) >= 0) {
		e->rhs_field = rs_alloc(p->rs, sizeof(*e->rhs_field));
		if (!e->rhs_field) {
			p->failed = true;
			return false;
		}
		return parse_field(p, e->rhs_field);
	}
	if (!is_list_op(e->op) && parse_quant(p, e))
		return parse_list(p, e);
	if (is_list_op(e->op) && parser_cur(p) == '(')
		return parse_list(p, e);
	if (!parse_value(p, e->op, &w))
		return false;
	if (is_list_op(e->op) && !w.quoted) {
		parser_blanks(p);
		if (parser_cur(p) == ',') {
			parser_fail(p, w.pos,
				    "operator '%s' needs its values in parentheses: (%.*s, ...)",
				    op_name(e->op), (int)MIN(w.s.n, (size_t)60), w.s.p);
			return false;
		}
	}
	e->is_list = is_list_op(e->op);
	return parser_add_value(p, e, &cap, &w);
}

static void fail_no_op(struct parser *p, const struct lhs *l)
{
	char hint[64], tok[48], word[48];
	struct str w = parser_name(p);

	if (str_eqz(w, "not")) {
		parser_fail(p, p->i, "'not' stands before the field: 'not %.*s ...'",
			    (int)MIN(l->name.n, (size_t)80), l->name.p);
		return;
	}
	if (w.n && w.n < sizeof(word) && !str_eqz(w, "and") && !str_eqz(w, "or")) {
		memcpy(word, w.p, w.n);
		word[w.n] = 0;
		rule_hint(hint, sizeof(hint), word, op_names, OP_COUNT);
		parser_fail(p, p->i, "unknown operator '%s' after field '%.*s'%s", word,
			    (int)MIN(l->name.n, (size_t)80), l->name.p, hint);
		return;
	}
	parser_fail(p, p->i,
		    "expected an operator after field '%.*s', found %s (for yes/no fields write "
		    "'= true')",
		    (int)MIN(l->name.n, (size_t)80), l->name.p, parser_token(p, p->i, tok));
}

static struct expr *parse_check(struct parser *p)
{
	struct expr *e = parser_expr(p, E_CHECK, p->i);
	size_t n = 0;
	int op;

	if (!e || !parse_field(p, &e->lhs))
		return NULL;
	parser_blanks(p);
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
	parser_blanks(p);
	if (parser_cur(p) == ')') {
		p->i++;
		return e;
	}
	if (p->i >= p->n)
		parser_fail(p, open, "this '(' has no ')'");
	else
		parser_fail(p, p->i, "expected 'and', 'or' or ')', found %s",
			    parser_token(p, p->i, tok));
	return NULL;
}

/* A name without a dot is a field when an operator or [ follows, else a macro. */
static bool is_field_here(const struct parser *p, struct str name)
{
	struct parser q = *p;
	size_t n;

	if (memchr(name.p, '.', name.n) || parser_transformer(p, name) >= 0)
		return true;
	q.i += name.n;
	if (parser_cur(&q) == '[')
		return true;
	parser_blanks(&q);
	return peek_op(&q, &n) >= 0;
}

static struct expr *parse_primary(struct parser *p)
{
	struct str name;
	struct expr *e;
	char tok[48];

	parser_blanks(p);
	if (parser_cur(p) == '(')
		return parse_paren(p);
	name = parser_name(p);
	if (!name.n || str_eqz(name, "and") || str_eqz(name, "or")) {
		parser_fail(p, p->i, "expected a field, a macro or '(', found %s",
			    parser_token(p, p->i, tok));
		return NULL;
	}
	for (size_t i = 0; i < ARRAY_SIZE(tr_unsupported); i++)
		if (str_eqz(name, tr_unsupported[i]) && p->i + name.n < p->n &&
		    p->s[p->i + name.n] == '(') {
			parser_fail(p, p->i, "transformer '%s' is not supported",
				    tr_unsupported[i]);
			return NULL;
		}
	if (is_field_here(p, name))
		return parse_check(p);
	e = parser_expr(p, E_MACRO, p->i);
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

	parser_blanks(p);
	at = p->i;
	while (parser_keyword(p, "not")) {
		negate = !negate;
		parser_blanks(p);
	}
	kid = parse_primary(p);
	if (!kid || !negate)
		return kid;
	e = parser_expr(p, E_NOT, at);
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
	parser_blanks(p);
	if (!str_eqz(parser_name(p), type == E_AND ? "and" : "or"))
		return kid;
	e = parser_expr(p, type, kid->pos);
	if (!e)
		return NULL;
	for (;;) {
		if (rs_grow(p->rs, &e->kid, &cap, e->n, sizeof(*e->kid)) < 0) {
			p->failed = true;
			return NULL;
		}
		e->kid[e->n++] = kid;
		parser_blanks(p);
		if (!parser_keyword(p, type == E_AND ? "and" : "or"))
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
		parser_fail(p, p->i, "parentheses nested deeper than %d", RULE_DEPTH_MAX);
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
	parser_blanks(&p);
	if (p.i >= p.n) {
		parser_fail(&p, 0, "condition is empty");
		return NULL;
	}
	e = parse_or(&p);
	if (!e)
		return NULL;
	parser_blanks(&p);
	if (p.i < p.n) {
		if (parser_cur(&p) == ')')
			parser_fail(&p, p.i, "this ')' closes nothing");
		else
			parser_fail(&p, p.i, "expected 'and' or 'or', found %s",
				    parser_token(&p, p.i, tok));
		return NULL;
	}
	return e;
}

bool field_parse(struct ruleset *rs, const struct text *t, struct lhs *ret)
{
	struct parser p = { .rs = rs, .t = t, .s = t->s.p, .n = t->s.n };
	char tok[48];

	parser_blanks(&p);
	if (!parse_field(&p, ret))
		return false;
	parser_blanks(&p);
	if (p.i < p.n)
		parser_fail(&p, p.i, "expected a field alone, found %s",
			    parser_token(&p, p.i, tok));
	return !p.failed;
}
