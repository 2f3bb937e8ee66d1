// SPDX-License-Identifier: Apache-2.0
/* Exceptions become text behind the condition, as Falco builds it:
 * (condition) and not ((f1 op v1 and f2 op v2) or ...), one block an exception. */
#include "rules/load.h"

/* By the table of names, where it stands as "rule name\nexception name" with the place in r->ex, from 1: one that a
 * replaced rule left there is another's place, or none. */
static struct str full_name(struct ruleset *rs, const struct rule *r, struct str name)
{
	return arena_printf(&rs->arena, "%s\n%.*s", r->info.name, (int)name.n, name.p);
}

static struct exception *find(struct ruleset *rs, struct rule *r, struct str full, struct str name)
{
	uintptr_t at = (uintptr_t)ruleset_name_get(rs, 'e', full);

	return at && at <= r->ex_n && str_eq(r->ex[at - 1].name, name) ? &r->ex[at - 1] : NULL;
}

static bool add_values(struct ruleset *rs, struct exception *x, const struct ynode *v)
{
	const struct ynode **both;

	if (!v || (v->type == Y_SCALAR && !v->text.n))
		return true;
	if (v->type != Y_SEQ) {
		rule_error(rs, ynode_pos(v), "'values' of an exception must be a list");
		return false;
	}
	if (x->values_n + v->n > RULE_LIST_MAX) {
		rule_error(rs, ynode_pos(v), "exception '%s' has more than %d values", x->name.p,
			   RULE_LIST_MAX);
		return false;
	}
	both = rs_extend(rs, x->values, &x->values_cap, x->values_n, v->n, sizeof(*both));
	if (!both)
		return false;
	x->values = both;
	for (size_t i = 0; i < v->n; i++)
		x->values[x->values_n++] = v->kid[i];
	return true;
}

static void add_one(struct ruleset *rs, struct rule *r, const struct ynode *n)
{
	const struct ynode *name = ynode_get(n, "name");
	const struct ynode *fields = ynode_get(n, "fields"), *comps = ynode_get(n, "comps");
	struct exception *x;
	struct str s, full;

	if (n->type != Y_MAP || !name) {
		rule_error(rs, ynode_pos(n), "an exception is a mapping with 'name' and 'fields'");
		return;
	}
	if (!load_scalar(rs, name, "name", &s))
		return;
	full = full_name(rs, r, s);
	if (!full.p) {
		rs->oom = true;
		return;
	}
	x = find(rs, r, full, s);
	if (!x) {
		if (!fields) {
			rule_error(rs, ynode_pos(n), "exception '%s' has no 'fields'", s.p);
			return;
		}
		if (rs_grow(rs, &r->ex, &r->ex_cap, r->ex_n, sizeof(*r->ex)) < 0 ||
		    ruleset_name_add(rs, 'e', full, (void *)(uintptr_t)(r->ex_n + 1)) < 0)
			return;
		x = &r->ex[r->ex_n++];
		*x = (struct exception){ .name = s, .node = n };
	}
	if (fields)
		x->fields = fields;
	if (comps)
		x->comps = comps;
	add_values(rs, x, ynode_get(n, "values"));
}

void exceptions_add(struct ruleset *rs, struct rule *r, const struct ynode *n)
{
	if (n->type != Y_SEQ) {
		rule_error(rs, ynode_pos(n), "'exceptions' must be a list");
		return;
	}
	for (size_t i = 0; i < n->n; i++)
		add_one(rs, r, n->kid[i]);
}

static bool is_list_op(struct str op)
{
	return str_eqz(op, "in") || str_eqz(op, "intersects") || str_eqz(op, "pmatch");
}

/* A value as Falco writes it: quoted when it has blanks and no quotes of its own; and when it has what would end it,
 * which in Falco is an error. */
static void put_value(struct buf *b, struct str v)
{
	bool special = !v.n;

	for (size_t i = 0; i < v.n && !special; i++)
		special = strchr(" \t()\"'=,", v.p[i]) != NULL;
	if (!special || (v.n && strchr("\"'(", v.p[0]))) {
		buf_add(b, v.p, v.n);
		return;
	}
	buf_addc(b, '"');
	for (size_t i = 0; i < v.n; i++) {
		if (v.p[i] == '"' && (i == 0 || v.p[i - 1] != '\\'))
			buf_addc(b, '\\');
		buf_addc(b, v.p[i]);
	}
	buf_addc(b, '"');
}

static bool scalar(struct ruleset *rs, const struct ynode *n, const char *what, struct str *ret)
{
	if (n->type == Y_SCALAR) {
		*ret = n->text;
		return true;
	}
	rule_error(rs, ynode_pos(n), "%s of an exception must be a single value here", what);
	return false;
}

static bool put_operand(struct ruleset *rs, struct buf *b, const struct ynode *v, struct str op)
{
	struct str s;

	if (v->type == Y_SEQ) {
		buf_addc(b, '(');
		for (size_t i = 0; i < v->n; i++) {
			if (!scalar(rs, v->kid[i], "value", &s))
				return false;
			if (i)
				buf_addz(b, ", ");
			put_value(b, s);
		}
		buf_addc(b, ')');
		return true;
	}
	if (!scalar(rs, v, "value", &s))
		return false;
	if (!is_list_op(op)) {
		put_value(b, s);
	} else if (s.n && s.p[0] == '(') {
		buf_add(b, s.p, s.n);
	} else {
		buf_addc(b, '(');
		buf_add(b, s.p, s.n);
		buf_addc(b, ')');
	}
	return true;
}

static bool put_row(struct ruleset *rs, struct buf *b, const struct exception *x,
		    const struct ynode *row)
{
	if (row->type != Y_SEQ || row->n != x->fields->n) {
		rule_error(rs, ynode_pos(row),
			   "exception '%s' has %zu fields: each row of values needs as many",
			   x->name.p, x->fields->n);
		return false;
	}
	buf_addc(b, '(');
	for (size_t k = 0; k < row->n; k++) {
		struct str field, op = STR("=");

		if (!scalar(rs, x->fields->kid[k], "field", &field) ||
		    (x->comps && !scalar(rs, x->comps->kid[k], "operator", &op)))
			return false;
		buf_printf(b, "%s%s %s ", k ? " and " : "", field.p, op.p);
		if (!put_operand(rs, b, row->kid[k], op))
			return false;
	}
	return buf_addc(b, ')') == 0;
}

static bool put_rows(struct ruleset *rs, struct buf *b, const struct exception *x)
{
	if (x->comps && (x->comps->type != Y_SEQ || x->comps->n != x->fields->n)) {
		rule_error(rs, ynode_pos(x->comps),
			   "exception '%s' has %zu fields: 'comps' needs as many", x->name.p,
			   x->fields->n);
		return false;
	}
	buf_addz(b, " and not (");
	for (size_t i = 0; i < x->values_n; i++) {
		if (i)
			buf_addz(b, " or ");
		if (!put_row(rs, b, x, x->values[i]))
			return false;
	}
	return buf_addc(b, ')') == 0;
}

static bool put_scalar_form(struct ruleset *rs, struct buf *b, const struct exception *x)
{
	struct str op = STR("in"), s;

	if (x->comps && !scalar(rs, x->comps, "operator", &op))
		return false;
	buf_printf(b, " and not (%s %s (", x->fields->text.p, op.p);
	for (size_t i = 0; i < x->values_n; i++) {
		if (!scalar(rs, x->values[i], "value", &s))
			return false;
		if (i)
			buf_addz(b, ", ");
		put_value(b, s);
	}
	return buf_addz(b, "))") == 0;
}

static bool put_exception(struct ruleset *rs, struct buf *b, const struct exception *x)
{
	if (!x->values_n)
		return true;
	return x->fields->type == Y_SEQ ? put_rows(rs, b, x) : put_scalar_form(rs, b, x);
}

static struct text made_text(struct ruleset *rs, struct str s, struct pos at)
{
	struct piece *p = rs_alloc(rs, sizeof(*p));

	if (!p)
		return (struct text){ 0 };
	*p = (struct piece){ .at = at, .fixed = true };
	return (struct text){ .s = rs_dup(rs, s), .piece = p, .n = 1 };
}

int rule_full_condition(struct ruleset *rs, struct rule *r, struct text *ret)
{
	auto_buf struct buf b = { 0 };
	struct text t = r->cond, part;
	bool any = false;

	buf_init(&b, RULE_COND_MAX / 2);
	for (size_t i = 0; i < r->ex_n; i++)
		any = any || r->ex[i].values_n;
	if (any) {
		t = made_text(rs, STR("("), ynode_pos(r->node));
		text_append(rs, &t, &r->cond);
		part = made_text(rs, STR(")"), ynode_pos(r->node));
		text_append(rs, &t, &part);
	}
	for (size_t i = 0; i < r->ex_n; i++) {
		buf_reset(&b);
		if (!put_exception(rs, &b, &r->ex[i]))
			return -EINVAL;
		if (b.failed) {
			rule_error(rs, ynode_pos(r->ex[i].node), "exception '%s' is too large",
				   r->ex[i].name.p);
			return -EINVAL;
		}
		if (!b.n)
			continue;
		part = made_text(rs, (struct str){ b.p, b.n }, ynode_pos(r->ex[i].node));
		if (rs->oom || text_append(rs, &t, &part) < 0)
			return -EINVAL;
	}
	return rs->oom ? -ENOMEM : text_subst_lists(rs, &t, ret);
}
