// SPDX-License-Identifier: Apache-2.0
/* Predicates to programs. For each event kind every rule's condition is folded with what the kind
 * alone decides (kind and evt.type comparisons, fields the kind never has). What is left becomes a
 * list of checks with two jumps each, so that evaluation is a loop without recursion. */
#include "rules/field_get.h"
#include "rules/state.h"

struct fold {
	struct event *ev; /* only the kind is set, and what `known` says */
	const struct kind_def *kind;
	uint32_t stamp;
	bool escape_known; /* escape.type is set in ev */
};

size_t kind_index(uint16_t kind)
{
	static uint8_t low[128], run[64], own[64];
	static bool ready;

	if (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE)) {
		for (size_t i = 0; i < event_kinds_n && i < RULE_KINDS_MAX; i++) {
			uint16_t id = event_kinds[i].id;

			if (id < 128)
				low[id] = (uint8_t)(i + 1);
			else if (id >= 0x4000 && id < 0x4040)
				run[id - 0x4000] = (uint8_t)(i + 1);
			else if (id >= 0x8000 && id < 0x8040)
				own[id - 0x8000] = (uint8_t)(i + 1);
		}
		__atomic_store_n(&ready, true, __ATOMIC_RELEASE);
	}
	if (kind < 128)
		return low[kind] ? low[kind] - 1u : SIZE_MAX;
	if (kind >= 0x4000 && kind < 0x4040)
		return run[kind - 0x4000] ? run[kind - 0x4000] - 1u : SIZE_MAX;
	if (kind >= 0x8000 && kind < 0x8040)
		return own[kind - 0x8000] ? own[kind - 0x8000] - 1u : SIZE_MAX;
	return SIZE_MAX;
}

/* ---- folding ---- */

static int run_atom(const struct fold *f, const struct atom *a)
{
	struct eval e;

	eval_init(&e, f->ev);
	return atom_eval(&e, a);
}

/* The result when it is the same for every system call that the kind can come from. */
static int fold_calls(const struct fold *f, const struct atom *a)
{
	const struct kind_calls *c = kind_calls_of(f->kind->id);
	int first = -1;

	if (!c)
		return 0;
	for (size_t i = 0; i < c->n; i++) {
		int r;

		event_set_strz(f->ev, F_SYSCALL, c->call[i]);
		r = run_atom(f, a);
		event_unset(f->ev, F_SYSCALL);
		if (first >= 0 && r != first)
			return -1;
		first = r;
	}
	/* An escape may also be named by its type. */
	for (uint32_t t = 1; f->kind->id == WIRE_ESCAPE && t < 64; t++) {
		if (!event_escape_name(t))
			continue;
		event_set_strz(f->ev, F_ESCAPE_TYPE, event_escape_name(t));
		if (run_atom(f, a) != first)
			first = -1;
		event_unset(f->ev, F_ESCAPE_TYPE);
		if (first < 0)
			return -1;
	}
	return first;
}

/* A task's name is never one of these. */
static bool is_beyond_comm(const struct atom *a)
{
	size_t n = a->set ? strset_count(a->set) : 1;

	if (a->a->slot != F_PROC_COMM || a->a->tr_n ||
	    (a->op != OP_EQ && a->op != OP_IN && a->op != OP_INTERSECTS))
		return false;
	for (size_t i = 0; i < n; i++)
		if ((a->set ? strset_at(a->set, i) : a->s).n <= RULE_COMM_MAX)
			return false;
	return n > 0;
}

static int fold_atom(const struct fold *f, const struct atom *a)
{
	const struct field_row *row = a->a->row;

	if (!(row->fams & f->kind->family) || (a->rhs && !(a->rhs->row->fams & f->kind->family)))
		return 0;
	if (a->rhs)
		return -1;
	if (is_beyond_comm(a))
		return 0;
	if (row->get == get_evt_type)
		return f->escape_known ? -1 : fold_calls(f, a);
	if (row->flags & FR_CONST)
		return run_atom(f, a);
	if (f->escape_known && row->slot == F_ESCAPE_TYPE)
		return run_atom(f, a);
	return -1;
}

int atom_fold(struct event *ev, const struct kind_def *kind, uint32_t escape, const struct atom *a)
{
	struct fold f = { .ev = ev, .kind = kind, .escape_known = escape != 0 };
	int r;

	if (escape)
		event_set_strz(ev, F_ESCAPE_TYPE, event_escape_name(escape));
	r = fold_atom(&f, a);
	if (escape)
		event_unset(ev, F_ESCAPE_TYPE);
	return r;
}

static int fold(const struct fold *f, struct pred *p)
{
	int r;

	if (p->stamp == f->stamp)
		return p->fold;
	switch (p->type) {
	case P_CONST:
		r = p->value;
		break;
	case P_ATOM:
		r = fold_atom(f, p->atom);
		break;
	case P_NOT:
		r = fold(f, p->kid[0]);
		r = r < 0 ? -1 : !r;
		break;
	default: {
		int ends = p->type == P_OR; /* the value that decides the chain */

		r = !ends;
		for (size_t i = 0; i < p->n; i++) {
			int k = fold(f, p->kid[i]);

			if (k == ends) {
				r = ends;
			} else if (k < 0 && r != ends) {
				r = -1;
			}
		}
	}
	}
	p->stamp = f->stamp;
	p->fold = (int8_t)r;
	return r;
}

/* ---- code ---- */

struct coder {
	struct ruleset *rs;
	struct bucket *b;
	uint32_t *local;	  /* atom -> number in the bucket + 1 */
	const struct atom **atom; /* bucket's atoms */
	size_t cap, n;
	size_t progs_cap;
	bool failed;
};

static uint32_t local_atom(struct coder *c, const struct atom *a)
{
	if (!c->local[a->idx]) {
		if (c->n >= RULE_ATOMS_MAX ||
		    rs_grow(c->rs, &c->atom, &c->cap, c->n, sizeof(*c->atom)) < 0) {
			c->failed = true;
			return 0;
		}
		c->atom[c->n++] = a;
		c->local[a->idx] = (uint32_t)c->n;
	}
	return c->local[a->idx] - 1;
}

/* Code is made from its end: where to go on is known before a check is written. Returns the entry. */
static uint32_t emit(struct coder *c, const struct pred *p, uint32_t t, uint32_t f)
{
	struct ruleset *rs = c->rs;
	uint32_t next;

	if (c->failed)
		return f;
	if (p->fold >= 0)
		return p->fold ? t : f;
	switch (p->type) {
	case P_NOT:
		return emit(c, p->kid[0], f, t);
	case P_AND:
		next = t;
		for (size_t i = p->n; i-- > 0;)
			next = emit(c, p->kid[i], next, f);
		return next;
	case P_OR:
		next = f;
		for (size_t i = p->n; i-- > 0;)
			next = emit(c, p->kid[i], t, next);
		return next;
	default:
		break;
	}
	if (rs->code_n >= RULE_CODE_MAX ||
	    rs_grow(rs, &rs->code, &rs->code_cap, rs->code_n, sizeof(*rs->code)) < 0) {
		c->failed = true;
		return f;
	}
	rs->code[rs->code_n] = (struct insn){ local_atom(c, p->atom), t, f };
	return (uint32_t)rs->code_n++;
}

static bool runs(const struct rule *r)
{
	return r->pred && !r->failed && r->enabled && r->info.state != RULE_REFUSED;
}

static void compile_pred(struct coder *c, const struct fold *f, size_t k, size_t rule,
			 uint32_t step, struct pred *p)
{
	struct prog prog = { .rule = (uint32_t)rule, .step = step, .pred = p };

	if (c->failed || !fold(f, p))
		return;
	prog.entry = emit(c, p, PC_TRUE, PC_FALSE);
	if (c->b->progs_n >= RULE_PROGS_MAX ||
	    rs_grow(c->rs, &c->b->prog, &c->progs_cap, c->b->progs_n, sizeof(*c->b->prog)) < 0) {
		c->failed = true;
		return;
	}
	c->b->prog[c->b->progs_n++] = prog;
	if (!step)
		c->rs->rule[rule]->kinds |= 1ull << k;
}

/* The last step of a sequence comes first: one event is one step. */
static void compile_rule(struct coder *c, const struct fold *f, size_t k, size_t rule)
{
	const struct rule *r = c->rs->rule[rule];

	compile_pred(c, f, k, rule, 0, r->pred);
	for (size_t i = r->st ? r->st->steps_n : 0; i > 0; i--)
		compile_pred(c, f, k, rule, (uint32_t)i, r->st->step[i - 1]);
}

static void compile_bucket(struct ruleset *rs, const struct fold *f, size_t k, uint32_t *local)
{
	struct coder c = { .rs = rs, .b = &rs->bucket[k], .local = local };

	/* Rules with an action first: a result that is full of alerts must not lack the kill. */
	for (size_t i = 0; i < 2 * rs->rule_n && !c.failed; i++) {
		const struct rule *r = rs->rule[i % rs->rule_n];

		if ((r->info.action == RULE_ACT_ALERT) == (i >= rs->rule_n) && runs(r))
			compile_rule(&c, f, k, i % rs->rule_n);
	}
	c.b->atom = c.atom;
	c.b->atoms_n = (uint32_t)c.n;
	if (c.b->progs_n && !c.failed) {
		bucket_index(rs, c.b, local);
		rs->kinds |= 1ull << k;
	}
	for (size_t i = 0; i < c.n; i++)
		local[c.atom[i]->idx] = 0;
	if (c.failed && !rs->oom)
		rule_error(rs, (struct pos){ 0 },
			   "rule set too large: %d checks or %d rules a kind, %zu instructions",
			   RULE_ATOMS_MAX, RULE_PROGS_MAX, RULE_CODE_MAX);
}

/* What the sandbox is killed for in the kernel: types for which the condition is true whatever the
 * rest of the event says (three-valued: a check on anything else is unknown). */
static void pushdown(struct ruleset *rs, struct event *ev, uint32_t *stamp)
{
	struct fold f = { .ev = ev, .kind = event_kind_by_id(WIRE_ESCAPE), .escape_known = true };

	event_init(ev, WIRE_ESCAPE, NULL);
	for (uint32_t t = 1; t < 64; t++) {
		if (!event_escape_name(t))
			continue;
		event_set_strz(ev, F_ESCAPE_TYPE, event_escape_name(t));
		f.stamp = ++*stamp;
		for (size_t i = 0; i < rs->rule_n; i++) {
			struct rule *r = rs->rule[i];

			/* What is for some sandboxes only is decided where they are told apart. */
			if (runs(r) && !r->st && !r->has_for && r->info.action == RULE_ACT_KILL &&
			    r->info.scope == RULE_SCOPE_SANDBOX && !r->info.dry_run &&
			    fold(&f, r->pred) == 1)
				r->kill_escapes |= 1ull << t;
		}
	}
}

static void report(struct ruleset *rs, struct rule *r)
{
	if (!runs(r))
		return;
	if (!r->kinds) {
		r->info.state = RULE_DEGRADED;
		r->info.why =
			r->absent ? arena_printf(&rs->arena, "can never fire: no %s", r->absent).p
				  : "can never fire: no event kind satisfies the condition";
		rule_warn(rs, ynode_pos(r->node), "rule '%s' %s", r->info.name, r->info.why);
	} else if (r->absent) {
		r->info.state = RULE_DEGRADED;
		r->info.why = arena_printf(&rs->arena, "field '%s' is not known here", r->absent).p;
	} else if (r->output_absent) {
		r->info.state = RULE_DEGRADED;
		r->info.why = arena_printf(&rs->arena, "its output prints <NA> for '%s'",
					   r->output_absent)
				      .p;
	}
	if (!(r->kinds & (r->kinds - 1)) || r->info.state == RULE_DEGRADED)
		return;
	if (!r->any_kind && __builtin_popcountll(r->kinds) > 20)
		rule_warn(rs, ynode_pos(r->node),
			  "rule '%s' names no event kind: it is checked on every event",
			  r->info.name);
}

int compile_buckets(struct ruleset *rs)
{
	auto_free struct event *ev = calloc(1, sizeof(*ev));
	uint32_t *local = rs_alloc(rs, (rs->atom_n + 1) * sizeof(*local));
	uint32_t stamp = 0;

	if (!ev || !local) {
		rs->oom = true;
		return -ENOMEM;
	}
	for (size_t i = 0; i < event_kinds_n && i < RULE_KINDS_MAX; i++) {
		struct fold f = { .ev = ev, .kind = &event_kinds[i], .stamp = ++stamp };

		/* Rules never judge what rules have said: that would not end. Nor what a comparison of the
		 * workspace found: each of its writes was judged when it was made. */
		if (f.kind->family & (FAM_RULE | FAM_WORK) && !rs->is_filter)
			continue;
		event_init(ev, (enum wire_kind)f.kind->id, NULL);
		compile_bucket(rs, &f, i, local);
	}
	pushdown(rs, ev, &stamp);
	for (size_t i = 0; i < rs->rule_n; i++) {
		rs->rule[i]->at = (uint32_t)i;
		rs->kill_escapes |= rs->rule[i]->kill_escapes;
	}
	for (size_t i = 0; i < rs->rule_n && !rs->is_filter; i++)
		report(rs, rs->rule[i]);
	return rs->oom ? -ENOMEM : 0;
}
