// SPDX-License-Identifier: Apache-2.0
/* Expressions to predicates: fields are found, macros resolved, equal checks made one. */
#include "rules/internal.h"

#include "userspace/base/option.h"

struct binder {
	struct ruleset *rs;
	struct rule *r;	  /* NULL for a filter's text outside a rule */
	struct macro *in; /* macro whose body is bound; NULL: the rule itself */
	bool falco;
	int depth;
};

#define SHOW(s) (int)MIN((s).n, (size_t)80), (s).p

/* ---- fields ---- */

static bool parse_index(struct str s, long *ret)
{
	long v = 0;

	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9' || v > 100000)
			return false;
		v = v * 10 + (s.p[i] - '0');
	}
	*ret = v;
	return s.n > 0;
}

static bool same_access(const struct access *a, const struct access *b)
{
	return a->row == b->row && a->arg == b->arg && a->tr_n == b->tr_n &&
	       !memcmp(a->tr, b->tr, a->tr_n);
}

static const struct access *access_intern(struct ruleset *rs, struct access *want)
{
	struct access *a;

	for (size_t i = 0; i < rs->access_n; i++)
		if (same_access(rs->access[i], want))
			return rs->access[i];
	if (rs->access_n >= RULE_ACCESS_MAX)
		return NULL;
	a = rs_alloc(rs, sizeof(*a));
	if (!a || rs_grow(rs, &rs->access, &rs->access_cap, rs->access_n, sizeof(*rs->access)) < 0)
		return NULL;
	*a = *want;
	a->idx = (uint32_t)rs->access_n;
	a->memo = -1;
	if ((a->tr_n || (a->row->flags & FR_MEMO)) && rs->memo_n < RULE_MEMO_MAX)
		a->memo = rs->memo_n++;
	else if (a->tr_n || (a->row->flags & FR_MEMO))
		return NULL;
	rs->access[rs->access_n++] = a;
	return a;
}

static bool check_transformers(struct ruleset *rs, const struct text *t, const struct lhs *l,
			       struct access *a)
{
	for (uint8_t i = 0; i < l->tr_n; i++) {
		if (l->tr[i] != TR_LEN && a->type != RT_STR) {
			rule_error(rs, text_pos(t, l->pos),
				   "field '%.*s' is not text: it cannot be transformed",
				   SHOW(l->name));
			return false;
		}
		if (l->tr[i] == TR_LEN) {
			a->type = RT_U64;
			a->list = false;
		} else if (a->list) {
			rule_error(rs, text_pos(t, l->pos),
				   "field '%.*s' has several values: only len() applies",
				   SHOW(l->name));
			return false;
		}
	}
	a->tr_n = l->tr_n;
	memcpy(a->tr, l->tr, sizeof(a->tr));
	return true;
}

static const struct field_row *find_row(struct ruleset *rs, struct rule *r, const struct text *t,
					const struct lhs *l, bool falco)
{
	const struct field_row *row = field_find(l->name, falco);
	char hint[128];

	if (row)
		return row;
	field_hint(hint, sizeof(hint), l->name);
	if (r && r->skip_unknown) {
		rule_warn(rs, text_pos(t, l->pos), "unknown field '%.*s'%s: rule '%s' is skipped",
			  SHOW(l->name), hint, r->info.name);
		r->info.state = RULE_REFUSED;
		r->info.why = arena_printf(&rs->arena, "unknown field '%.*s'", SHOW(l->name)).p;
	} else {
		rule_error(rs, text_pos(t, l->pos), "unknown field '%.*s'%s", SHOW(l->name), hint);
	}
	return NULL;
}

const struct access *bind_access(struct ruleset *rs, struct rule *r, const struct text *t,
				 const struct lhs *l, bool falco)
{
	const struct field_row *row = find_row(rs, r, t, l, falco);
	struct access want = { .arg = -1 };
	const struct access *a;

	if (!row)
		return NULL;
	want.row = row;
	want.get = row->get;
	want.slot = row->slot;
	want.type = row->type;
	if (l->has_arg && !(row->flags & FR_ARG)) {
		rule_error(rs, text_pos(t, l->pos), "field '%.*s' takes no argument",
			   SHOW(l->name));
		return NULL;
	}
	if (l->has_arg && !(row->flags & FR_ABSENT) && !parse_index(l->arg, &want.arg)) {
		rule_error(rs, text_pos(t, l->pos),
			   "argument of field '%.*s' must be a number, not '%.*s'", SHOW(l->name),
			   SHOW(l->arg));
		return NULL;
	}
	want.list = want.arg < 0 && (row->flags & (FR_LIST | FR_ANY));
	if (!check_transformers(rs, t, l, &want))
		return NULL;
	if (row->flags & FR_OLD)
		rule_warn(rs, text_pos(t, l->pos), "field '%.*s' is obsolete and always the same",
			  SHOW(l->name));
	a = access_intern(rs, &want);
	if (!a && !rs->oom)
		rule_error(rs, text_pos(t, l->pos), "too many different fields (%d, computed: %d)",
			   RULE_ACCESS_MAX, RULE_MEMO_MAX);
	return a;
}

/* ---- atoms ---- */

static uint64_t atom_hash(const struct atom *a)
{
	uint64_t h = HASH_START;
	uint64_t id[4] = { a->op, a->a->idx, a->rhs ? a->rhs->idx + 1 : 0,
			   a->set ? strset_count(a->set) : 0 };

	h = hash_bytes(id, sizeof(id), h);
	h = hash_bytes(a->s.p, a->s.n, h);
	h = hash_bytes(a->num, a->num_n * sizeof(*a->num), h);
	h = hash_bytes(a->net, a->net_n * sizeof(*a->net), h);
	for (size_t i = 0; a->set && i < strset_count(a->set); i++)
		h = hash_bytes(strset_at(a->set, i).p, strset_at(a->set, i).n, h);
	return h;
}

static bool atom_same(const struct atom *a, const struct atom *b)
{
	if (a->op != b->op || a->a != b->a || a->rhs != b->rhs || !str_eq(a->s, b->s) ||
	    a->num_n != b->num_n || a->net_n != b->net_n || !a->set != !b->set)
		return false;
	if ((a->num_n && memcmp(a->num, b->num, a->num_n * sizeof(*a->num))) ||
	    (a->net_n && memcmp(a->net, b->net, a->net_n * sizeof(*a->net))))
		return false;
	if (!a->set)
		return true;
	if (strset_count(a->set) != strset_count(b->set))
		return false;
	for (size_t i = 0; i < strset_count(a->set); i++)
		if (!str_eq(strset_at(a->set, i), strset_at(b->set, i)))
			return false;
	return true;
}

/* Rough price of a check, so that a chain begins with its cheap ones. */
static uint8_t atom_cost(const struct atom *a)
{
	unsigned c = a->a->memo >= 0 || (a->rhs && a->rhs->memo >= 0) ? 40 : 0;

	if (a->a->type != RT_STR)
		return (uint8_t)(c + 1);
	switch (a->op) {
	case OP_EXISTS:
		return (uint8_t)(c + 1);
	case OP_EQ:
	case OP_NE:
	case OP_STARTSWITH:
	case OP_BSTARTSWITH:
	case OP_ENDSWITH:
		c += 2;
		break;
	case OP_IN:
	case OP_INTERSECTS:
		c += 6;
		break;
	case OP_PMATCH:
		c += 12;
		break;
	case OP_REGEX:
		c += 100;
		break;
	default:
		c += 20;
	}
	return (uint8_t)MIN(c + (a->a->list ? 10 : 0), 255u);
}

static int atom_table_grow(struct ruleset *rs)
{
	size_t want = rs->atom_tab_n ? rs->atom_tab_n * 4 : 1024;
	struct atom **tab;

	if (rs->atom_n < rs->atom_tab_n)
		return 0;
	tab = rs_alloc(rs, want * sizeof(*tab));
	if (!tab)
		return -ENOMEM;
	for (size_t i = 0; i < rs->atom_n; i++) {
		struct atom *a = rs->atom[i];

		a->next = tab[a->hash & (want - 1)];
		tab[a->hash & (want - 1)] = a;
	}
	rs->atom_tab = tab;
	rs->atom_tab_n = want;
	return 0;
}

/* The rule set's atom equal to *want. Takes over its regex. */
static struct atom *atom_intern(struct ruleset *rs, struct atom *want)
{
	struct atom *a;

	want->hash = atom_hash(want);
	if (atom_table_grow(rs) < 0)
		goto oom;
	for (a = rs->atom_tab[want->hash & (rs->atom_tab_n - 1)]; a; a = a->next) {
		if (a->hash != want->hash || !atom_same(a, want))
			continue;
		if (want->re)
			pcre2_code_free(want->re);
		return a;
	}
	a = rs_alloc(rs, sizeof(*a));
	if (!a || rs_grow(rs, &rs->atom, &rs->atom_cap, rs->atom_n, sizeof(*rs->atom)) < 0)
		goto oom;
	*a = *want;
	a->idx = (uint32_t)rs->atom_n;
	a->cost = atom_cost(a);
	a->next = rs->atom_tab[a->hash & (rs->atom_tab_n - 1)];
	rs->atom_tab[a->hash & (rs->atom_tab_n - 1)] = a;
	rs->atom[rs->atom_n++] = a;
	return a;
oom:
	if (want->re)
		pcre2_code_free(want->re);
	return NULL;
}

/* ---- predicates ---- */

static struct pred *pred_new(struct ruleset *rs, enum pred_type type, size_t kids)
{
	struct pred *p = rs_alloc(rs, sizeof(*p));

	if (!p)
		return NULL;
	p->type = type;
	p->terms = 1;
	p->depth = 1;
	if (kids) {
		p->kid = rs_alloc(rs, kids * sizeof(*p->kid));
		if (!p->kid)
			return NULL;
	}
	return p;
}

static struct pred *pred_const(struct ruleset *rs, bool value)
{
	struct pred *p = pred_new(rs, P_CONST, 0);

	if (p)
		p->value = value;
	return p;
}

static void pred_add(struct pred *p, struct pred *kid)
{
	p->kid[p->n++] = kid;
	if (__builtin_add_overflow(p->terms, kid->terms, &p->terms))
		p->terms = UINT32_MAX;
	if (__builtin_add_overflow(p->cost, kid->cost, &p->cost))
		p->cost = UINT32_MAX;
	p->depth = MAX(p->depth, kid->depth + 1);
}

static int by_cost(const void *a, const void *b)
{
	const struct pred *x = *(struct pred *const *)a, *y = *(struct pred *const *)b;

	return (x->cost > y->cost) - (x->cost < y->cost);
}

static struct pred *bind(struct binder *b, const struct expr *e);

static struct pred *bind_kids(struct binder *b, const struct expr *e)
{
	enum pred_type type = e->type == E_AND ? P_AND : e->type == E_OR ? P_OR : P_NOT;
	struct pred *p = pred_new(b->rs, type, e->n);
	bool ok = p != NULL;

	for (size_t i = 0; i < e->n && !b->rs->oom; i++) {
		struct pred *kid = b->rs->errors < RULE_DIAGS_MAX ? bind(b, e->kid[i]) : NULL;

		/* Go on after an error: the next one is as interesting. */
		if (!kid)
			ok = false;
		else if (ok)
			pred_add(p, kid);
	}
	if (!ok)
		return NULL;
	qsort(p->kid, p->n, sizeof(*p->kid), by_cost);
	return p;
}

static void note_absent(struct binder *b, const struct access *a)
{
	const char **at = b->in ? &b->in->absent[b->falco] : b->r ? &b->r->absent : NULL;

	if (at && !*at)
		*at = a->row->name;
}

static struct pred *pred_atom(struct binder *b, struct atom *want)
{
	struct pred *p = pred_new(b->rs, P_ATOM, 0);
	struct atom *a = atom_intern(b->rs, want);

	if (!p || !a)
		return NULL;
	p->atom = a;
	p->cost = a->cost;
	return p;
}

static struct pred *bind_one(struct binder *b, const struct expr *e)
{
	struct ruleset *rs = b->rs;
	struct atom want = { .op = e->op };

	want.a = bind_access(rs, b->r, e->text, &e->lhs, b->falco);
	if (e->rhs_field)
		want.rhs = bind_access(rs, b->r, e->text, e->rhs_field, b->falco);
	if (!want.a || (e->rhs_field && !want.rhs))
		return NULL;
	if (!bind_values(rs, e, &want)) {
		if (want.re)
			pcre2_code_free(want.re);
		return NULL;
	}
	/* Nothing is in an empty list, whatever the field. */
	if (e->is_list && !e->rhs_field && !e->val_n)
		return pred_const(rs, false);
	if ((want.a->row->flags & FR_ABSENT) || (want.rhs && (want.rhs->row->flags & FR_ABSENT))) {
		note_absent(b, want.a->row->flags & FR_ABSENT ? want.a : want.rhs);
		if (want.re)
			pcre2_code_free(want.re);
		return pred_const(rs, false);
	}
	if (want.a->row->flags & FR_PARTIAL)
		note_absent(b, want.a);
	return pred_atom(b, &want);
}

/* `contains anyof (a, b)`: one check a value. */
static struct pred *bind_quant(struct binder *b, const struct expr *e)
{
	struct pred *all[2] = { pred_new(b->rs, e->quant == Q_ALL ? P_AND : P_OR, e->val_n), NULL };
	struct expr one = *e;

	if (!all[0])
		return NULL;
	one.quant = Q_NONE;
	one.is_list = false;
	one.val_n = 1;
	for (size_t i = 0; i < e->val_n; i++) {
		struct pred *kid;

		one.val = &e->val[i];
		kid = bind_one(b, &one);
		if (!kid)
			return NULL;
		pred_add(all[0], kid);
	}
	if (e->quant != Q_ONE || e->val_n < 2)
		return e->val_n ? all[0] : pred_const(b->rs, false);
	/* Exactly one: one of (k and not any other). */
	if (e->val_n > 64) {
		rule_error(b->rs, text_pos(e->text, e->op_pos), "'oneof' takes at most 64 values");
		return NULL;
	}
	all[1] = pred_new(b->rs, P_OR, e->val_n);
	for (size_t i = 0; all[1] && i < e->val_n; i++) {
		struct pred *and = pred_new(b->rs, P_AND, e->val_n);

		for (size_t k = 0; and&&k < e->val_n; k++) {
			struct pred *kid = all[0]->kid[k], *not ;

			if (k != i) {
				not = pred_new(b->rs, P_NOT, 1);
				if (!not )
					return NULL;
				pred_add(not, kid);
				kid = not ;
			}
			pred_add(and, kid);
		}
		if (!and)
			return NULL;
		pred_add(all[1], and);
	}
	return all[1];
}

/* ---- macros ---- */

static bool macro_parse(struct ruleset *rs, struct macro *m)
{
	struct text t;

	if (m->parsed)
		return m->expr != NULL;
	m->parsed = true;
	if (text_subst_lists(rs, &m->cond, &t) < 0)
		return false;
	m->expr = expr_parse(rs, &t);
	return m->expr != NULL;
}

static struct macro *find_macro(struct binder *b, const struct expr *e)
{
	struct macro *m = ruleset_macro(b->rs, e->name);
	struct pos at;
	const char **names;
	char hint[96], word[96];

	if (m && (!b->in || m->index < b->in->visible))
		return m;
	if (!m && ruleset_is_broken(b->rs, e->name))
		return NULL;
	at = text_pos(e->text, e->pos);
	if (m) {
		rule_error(b->rs, at,
			   "macro '%s' is defined later (line %d): macro '%s' cannot use it yet",
			   m->name.p, m->node->line, b->in->name.p);
		return NULL;
	}
	snprintf(word, sizeof(word), "%.*s", SHOW(e->name));
	if (field_find(e->name, b->falco)) {
		rule_error(b->rs, at, "field '%s' needs an operator, as in '%s exists'", word,
			   word);
		return NULL;
	}
	names = calloc(b->rs->macro_n + 1, sizeof(*names));
	for (size_t i = 0; names && i < b->rs->macro_n; i++)
		names[i] = b->rs->macro[i]->name.p;
	rule_hint(hint, sizeof(hint), word, names, names ? b->rs->macro_n : 0);
	free(names);
	if (ruleset_list(b->rs, e->name))
		snprintf(hint, sizeof(hint), ": it is a list, which goes behind 'in'");
	rule_error(b->rs, at, "undefined macro '%s'%s", word, hint);
	return NULL;
}

static struct pred *bind_macro(struct binder *b, const struct expr *e)
{
	struct macro *m = find_macro(b, e);
	struct binder inner = *b;

	if (!m)
		return NULL;
	m->used = true;
	if (m->resolving) {
		rule_error(b->rs, text_pos(e->text, e->pos), "macro '%s' refers to itself",
			   m->name.p);
		return NULL;
	}
	if (b->depth >= RULE_MACRO_DEPTH) {
		rule_error(b->rs, text_pos(e->text, e->pos), "macros nested deeper than %d",
			   RULE_MACRO_DEPTH);
		return NULL;
	}
	if (!m->bound[b->falco]) {
		m->bound[b->falco] = true;
		m->resolving = true;
		inner.in = m;
		inner.depth++;
		if (macro_parse(b->rs, m))
			m->pred[b->falco] = bind(&inner, m->expr);
		m->resolving = false;
	}
	if (m->absent[b->falco]) {
		const char **at = b->in ? &b->in->absent[b->falco] : b->r ? &b->r->absent : NULL;

		if (at && !*at)
			*at = m->absent[b->falco];
	}
	if (!m->pred[b->falco] && b->r && !b->r->info.why)
		b->r->info.why = arena_printf(&b->rs->arena, "macro '%s' has errors", m->name.p).p;
	return m->pred[b->falco];
}

static struct pred *bind(struct binder *b, const struct expr *e)
{
	struct pred *p;

	switch (e->type) {
	case E_MACRO:
		p = bind_macro(b, e);
		break;
	case E_CHECK:
		p = e->quant != Q_NONE ? bind_quant(b, e) : bind_one(b, e);
		break;
	default:
		p = bind_kids(b, e);
	}
	if (p && (p->terms > RULE_TERMS_MAX || p->depth > RULE_PRED_DEPTH)) {
		rule_error(b->rs, text_pos(e->text, e->pos),
			   "condition has more than %d checks or %d levels, macros included",
			   RULE_TERMS_MAX, RULE_PRED_DEPTH);
		return NULL;
	}
	return p;
}

/* ---- which language does it speak? ---- */

static bool name_is_evt(struct str s)
{
	return str_starts(s, STR("evt.")) || str_starts(s, STR("syscall."));
}

bool expr_uses_evt(struct ruleset *rs, const struct expr *e, int depth)
{
	struct macro *m;

	if (e->type == E_CHECK)
		return name_is_evt(e->lhs.name) ||
		       (e->rhs_field && name_is_evt(e->rhs_field->name));
	if (e->type == E_MACRO) {
		m = ruleset_macro(rs, e->name);
		if (!m || depth > RULE_MACRO_DEPTH || m->uses_evt == 1)
			return false;
		if (!m->uses_evt) {
			m->uses_evt = 1; /* also ends a cycle */
			if (macro_parse(rs, m) && expr_uses_evt(rs, m->expr, depth + 1))
				m->uses_evt = 2;
		}
		return m->uses_evt == 2;
	}
	for (size_t i = 0; i < e->n; i++)
		if (expr_uses_evt(rs, e->kid[i], depth))
			return true;
	return false;
}

struct pred *bind_expr(struct ruleset *rs, struct rule *r, const struct expr *e, bool falco)
{
	struct binder b = { .rs = rs, .r = r, .falco = falco };

	return bind(&b, e);
}
