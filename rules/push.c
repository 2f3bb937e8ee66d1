// SPDX-License-Identifier: Apache-2.0
#include "rules/push_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- asking ---- */

struct push_known push_known(struct push *p, uint16_t kind)
{
	event_init(&p->ev, (enum wire_kind)kind, NULL);
	return (struct push_known){ .ev = &p->ev,
				    .kind = event_kind_by_id(kind),
				    .exe = kind != WIRE_EXEC && p->at_class
						   ? &p->class[p->at_class].t
						   : NULL,
				    .net.port = -1 };
}

/* Who acts is not known. Who forbids something to some program forbids it to this one. */
static int ask_unknown_program(struct push *p, const struct push_rule *r, struct push_known *k)
{
	int v = TRI_UNKNOWN;

	for (size_t i = 1; i <= p->classes_n && v != TRI_TRUE; i++) {
		struct push_known of = *k;

		of.exe = &p->class[i].t;
		p->folds += r->r->pred->terms + 1;
		v = push_fold(&of, r->r->pred);
	}
	return v == TRI_TRUE ? v : TRI_UNKNOWN;
}

int push_ask(struct push *p, const struct push_rule *r, struct push_known *k)
{
	int v;

	p->folds += r->r->pred->terms + 1;
	if (p->folds > PUSH_FOLDS_MAX)
		return TRI_UNKNOWN;
	v = push_fold(k, r->r->pred);
	if (v == TRI_UNKNOWN && !p->at_class && !k->exe && r->verdict == ENFORCE_DENY &&
	    k->kind->id != WIRE_EXEC)
		v = ask_unknown_program(p, r, k);
	return v;
}

void push_choose(struct push_choice *c, const struct push_rule *r)
{
	if (r->verdict > c->verdict)
		*c = (struct push_choice){ (uint16_t)(r->at + 1), r->verdict };
}

void push_short(struct push_rule *r, uint16_t kind, const char *fmt, ...)
{
	const struct kind_def *k = event_kind_by_id(kind);
	va_list ap;
	int n;

	r->out->complete = false;
	if (r->out->why[0])
		return;
	n = snprintf(r->out->why, sizeof(r->out->why), "%s: ", k ? k->name : "?");
	va_start(ap, fmt);
	vsnprintf(r->out->why + n, sizeof(r->out->why) - (size_t)n, fmt, ap);
	va_end(ap);
}

int push_add(struct push *p, const struct enforce_entry *e)
{
	struct enforce_entry *v;

	p->paths_n += e->by == ENFORCE_BY_PATH;
	p->addrs_n += e->by == ENFORCE_BY_ADDR;
	p->exes_n += e->by == ENFORCE_BY_EXE;
	if (p->classes_n && (p->paths_n > PUSH_PATHS_FIT || p->addrs_n > PUSH_ADDRS_FIT ||
			     p->exes_n > PUSH_EXES_FIT))
		return -E2BIG;
	if (p->plan->n == p->cap) {
		size_t cap = p->cap ? 2 * p->cap : 64;

		v = reallocarray(p->plan->v, cap, sizeof(*v));
		if (!v)
			return -ENOMEM;
		p->plan->v = v;
		p->cap = cap;
	}
	p->plan->v[p->plan->n] = *e;
	if (e->by != ENFORCE_BY_NAME)
		p->plan->v[p->plan->n].class = (uint16_t)p->at_class;
	p->plan->n++;
	if (e->verdict != ENFORCE_PASS)
		p->plan->kinds |= e->by == ENFORCE_BY_ESCAPE ? ENFORCE_KIND(WIRE_ESCAPE) : e->kinds;
	return 0;
}

size_t push_kinds(uint64_t set, uint16_t *ret)
{
	size_t n = 0;

	for (uint16_t k = 0; k < ENFORCE_KINDS && n < PUSH_KINDS_MAX; k++)
		if (set >> k & 1)
			ret[n++] = k;
	return n;
}

/* ---- which rules ---- */

/* By ids of kinds; what the agent makes itself has ids beyond those of the kernel. */
static uint64_t rule_kinds(struct push_rule *r)
{
	uint64_t kinds = 0;

	for (size_t i = 0; i < event_kinds_n && i < RULE_KINDS_MAX; i++) {
		if (!(r->r->kinds >> i & 1))
			continue;
		if (event_kinds[i].id < ENFORCE_KINDS)
			kinds |= ENFORCE_KIND(event_kinds[i].id);
		else
			push_short(r, event_kinds[i].id, "no act of a program");
	}
	return kinds;
}

static void take_rule(struct push *p, size_t at)
{
	struct rule *r = p->rs->rule[at];
	struct push_rule *pr = &p->rule[p->rules_n];

	if (!r->pred || r->failed || !r->enabled || r->info.state == RULE_REFUSED ||
	    (r->info.action != RULE_ACT_DENY && r->info.action != RULE_ACT_KILL) ||
	    (p->session ? !rule_applies(&r->info, p->session)
			: !rule_applies_to(&r->info, RULE_FOR_TIER, p->means->tier)))
		return;
	*pr = (struct push_rule){
		.at = (uint32_t)at,
		.r = r,
		.out = &p->plan->rule[at],
		.verdict = r->info.action == RULE_ACT_KILL ? ENFORCE_KILL : ENFORCE_DENY,
	};
	pr->out->taken = pr->out->complete = true;
	pr->kinds = rule_kinds(pr);
	if (r->info.dry_run || r->st || r->pred->terms > PUSH_TERMS_MAX ||
	    p->rules_n >= PUSH_RULES_MAX - 2) {
		pr->out->complete = false;
		snprintf(pr->out->why, sizeof(pr->out->why), "%s",
			 r->info.dry_run ? "it is tried only (dry_run)"
			 : r->st	 ? "the kernel does not count or remember"
					 : "too large for the kernel's part");
		return;
	}
	p->rules_n++;
	if (pr->verdict != ENFORCE_DENY || !r->info.deny_fallback)
		return;
	/* What cannot be denied is killed for, by the kernel too: as a rule of its own. */
	pr[1] = pr[0];
	pr[1].verdict = ENFORCE_KILL;
	pr[0].kinds &= p->means->deny | ENFORCE_KIND(WIRE_ESCAPE);
	pr[1].kinds &= ~p->means->deny | ENFORCE_KIND(WIRE_ESCAPE);
	p->rules_n++;
}

/* ---- by kind alone, by escape type ---- */

/* True whatever else the event says. */
static int push_by_kind(struct push *p)
{
	uint16_t kinds[PUSH_KINDS_MAX];

	for (size_t i = 0; i < p->rules_n; i++) {
		struct push_rule *r = &p->rule[i];
		uint64_t can = r->verdict == ENFORCE_KILL ? p->means->kill : p->means->deny;
		/* Sockets of other families pass by the hooks for connections. */
		size_t n = push_kinds(r->kinds & can & ~ENFORCE_NET_KINDS, kinds);

		for (size_t k = 0; k < n; k++) {
			struct push_known known = push_known(p, kinds[k]);
			const struct enforce_entry e = { .id = (uint16_t)(r->at + 1),
							 .verdict = r->verdict,
							 .by = ENFORCE_BY_KIND,
							 .kinds = ENFORCE_KIND(kinds[k]) };
			int v = push_ask(p, r, &known), rc;

			if (v == TRI_FALSE)
				r->out->whole |= e.kinds;
			/* Not all of what counts as attr can be denied. */
			if (v != TRI_TRUE ||
			    (r->verdict == ENFORCE_DENY && kinds[k] == WIRE_FILE_ATTR))
				continue;
			r->out->whole |= e.kinds;
			rc = push_add(p, &e);
			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

static int push_escape(struct push *p, struct push_rule *r, uint32_t type)
{
	struct push_known known = push_known(p, WIRE_ESCAPE);
	const struct enforce_entry e = { .id = (uint16_t)(r->at + 1),
					 .verdict = r->verdict,
					 .by = ENFORCE_BY_ESCAPE,
					 .escape = type };
	bool deny = r->verdict == ENFORCE_DENY;
	int v;

	if (r->r->info.deny_fallback && deny != (p->means->deny_escapes >> type & 1))
		return 0; /* the other half's */
	known.escape = type;
	v = push_ask(p, r, &known);
	if (v == TRI_FALSE)
		return 0;
	if (v == TRI_UNKNOWN)
		push_short(r, WIRE_ESCAPE, "the kernel does not know '%s'", known.unknown);
	else if (deny && !(p->means->deny_escapes >> type & 1))
		push_short(r, WIRE_ESCAPE, "'%s' can be denied %s", event_escape_name(type),
			   p->means->deny_some >> type & 1 ? "in some of its forms only"
							   : "by the sandbox's own walls only");
	if (v != TRI_TRUE)
		return 0;
	if (deny && !((p->means->deny_escapes | p->means->deny_some) >> type & 1))
		return 0;
	r->out->escapes |= 1ull << type;
	/* The mask of the sandbox kills for these, and stops the others of it as well. */
	return r->r->kill_escapes >> type & 1 ? 0 : push_add(p, &e);
}

static int push_escapes(struct push *p)
{
	for (size_t i = 0; i < p->rules_n; i++) {
		struct push_rule *r = &p->rule[i];

		if (!(r->kinds & ENFORCE_KIND(WIRE_ESCAPE)))
			continue;
		r->out->whole |= ENFORCE_KIND(WIRE_ESCAPE);
		for (uint32_t t = 1; t < 64; t++)
			if (event_escape_name(t)) {
				int rc = push_escape(p, r, t);

				if (rc < 0)
					return rc;
			}
	}
	return 0;
}

/* ---- the whole ---- */

static void note_other_kinds(struct push *p)
{
	for (size_t i = 0; i < p->rules_n; i++) {
		struct push_rule *r = &p->rule[i];
		bool deny = r->verdict == ENFORCE_DENY;
		uint64_t can = (deny ? p->means->deny : p->means->kill) | ENFORCE_KIND(WIRE_ESCAPE);

		for (uint16_t k = 0; k < ENFORCE_KINDS; k++)
			if (r->kinds & ~can & ENFORCE_KIND(k))
				push_short(r, k, "cannot be %s in the %s tier",
					   deny ? "denied" : "decided by the kernel",
					   p->means->tier);
		for (uint16_t k = 0; k < ENFORCE_KINDS; k++)
			if (r->kinds & can & ~r->out->whole & ENFORCE_KIND(k))
				push_short(r, k, "not decided by what the kernel knows");
	}
}

/* The entries of one class of programs. */
static int push_pass(struct push *p, size_t class)
{
	int r;

	p->at_class = class;
	for (size_t i = 0; i < p->rules_n; i++) {
		p->rule[i].out_of_room = false;
		p->rule[i].out->whole = p->rule[i].out->part = 0;
	}
	r = push_by_kind(p);
	if (r == 0)
		r = push_escapes(p);
	if (r == 0)
		r = push_files(p);
	if (r == 0)
		r = push_paths(p);
	if (r == 0)
		r = push_nets(p);
	return r;
}

/* What was found of the rules with a program that is not known is no part of what is promised: it does not happen but
 * for paths beyond 4096 bytes. A deny holds for it all the same, if there is room. */
static void forget_unknown(struct push *p)
{
	for (size_t i = 0; i < p->rules_n; i++) {
		struct push_result *out = p->rule[i].out;

		if (p->rule[i].out_of_room && p->rule[i].verdict == ENFORCE_DENY)
			continue;
		out->complete = true;
		out->why[0] = 0;
		out->escapes = 0;
	}
}

static int push_each_class(struct push *p)
{
	auto_free struct push_result *sum = NULL;
	int r = push_pass(p, 0);

	if (r < 0 || !p->classes_n)
		return r;
	forget_unknown(p);
	sum = calloc(p->rules_n, sizeof(*sum));
	if (!sum)
		return -ENOMEM;
	for (size_t c = 1; c <= p->classes_n && r == 0; c++) {
		r = push_pass(p, c);
		for (size_t i = 0; i < p->rules_n; i++) {
			const struct push_result *out = p->rule[i].out;

			sum[i].part |= out->whole | out->part;
			sum[i].whole = c == 1 ? out->whole : sum[i].whole & out->whole;
		}
	}
	for (size_t i = 0; i < p->rules_n; i++) {
		p->rule[i].out->whole = sum[i].whole;
		p->rule[i].out->part = sum[i].part & ~sum[i].whole;
	}
	return r;
}

static void take_rules(struct push *p)
{
	memset(p->plan->rule, 0, p->rs->rule_n * sizeof(*p->plan->rule));
	p->plan->n = p->rules_n = p->paths_n = p->addrs_n = p->exes_n = 0;
	p->plan->kinds = p->folds = 0;
	for (size_t i = 0; i < p->rs->rule_n; i++)
		take_rule(p, i);
}

/* Without telling programs apart, which was too much. */
static int push_without_classes(struct push *p)
{
	int r;

	push_classes_done(p);
	take_rules(p);
	r = push_pass(p, 0);
	for (size_t i = 0; r == 0 && i < p->rules_n; i++) {
		struct push_result *out = p->rule[i].out;
		size_t n = strlen(out->why);

		if (!out->complete && push_tells_programs(&p->rule[i]) && !strchr(out->why, '('))
			snprintf(out->why + n, sizeof(out->why) - n,
				 " (all rules together tell too many programs apart)");
	}
	return r;
}

static int push_all(struct push *p)
{
	auto_free struct push_ranges *programs = calloc(1, sizeof(*programs));
	auto_free uint16_t *class_of = calloc(PUSH_RANGES_MAX, sizeof(*class_of));
	int r;

	if (!programs || !class_of)
		return -ENOMEM;
	take_rules(p);
	r = push_classes(p, programs, class_of);
	if (r == 0)
		r = push_each_class(p);
	if (r == -E2BIG || (r == 0 && p->classes_n && p->folds > PUSH_FOLDS_MAX))
		r = push_without_classes(p);
	p->at_class = 0;
	if (r == 0 && p->plan->n)
		r = push_names(p, programs, class_of);
	if (r < 0)
		return r;
	note_other_kinds(p);
	return 0;
}

int ruleset_push(struct push_plan **ret, const struct ruleset *rs,
		 const struct rule_session *session, const struct push_means *m, struct err *err)
{
	struct push *p = calloc(1, sizeof(*p));
	int r = -ENOMEM;

	if (!p)
		return err_set(err, ENOMEM, "rules: out of memory");
	p->rs = rs;
	p->session = session;
	p->means = m;
	p->plan = calloc(1, sizeof(*p->plan));
	if (p->plan) {
		p->plan->rs = rs;
		arena_init(&p->plan->arena, PUSH_ARENA_MAX);
		p->plan->rules_n = rs->rule_n;
		p->plan->rule = calloc(rs->rule_n + 1, sizeof(*p->plan->rule));
	}
	p->grid = calloc((size_t)PUSH_RANGES_MAX * PUSH_KINDS_MAX, sizeof(*p->grid));
	if (p->plan && p->plan->rule && p->grid)
		r = push_all(p);
	if (r == 0)
		*ret = p->plan;
	else
		push_plan_free(p->plan);
	push_classes_done(p);
	free(p->grid);
	free(p);
	return r == -ENOMEM ? err_set(err, ENOMEM, "rules: out of memory") : r;
}

void push_plan_free(struct push_plan *p)
{
	if (!p)
		return;
	arena_done(&p->arena);
	free(p->v);
	free(p->rule);
	free(p);
}

int push_check_deny_of(const struct push_plan *p, size_t at, const struct push_means *m,
		       struct err *err)
{
	const struct rule *r = p->rs->rule[at];

	if (r->info.action != RULE_ACT_DENY || !p->rule[at].taken || r->info.dry_run ||
	    r->info.deny_fallback || p->rule[at].complete)
		return 0;
	return err_set(err, ENOTSUP,
		       "%s:%d: rule '%s': 'action: deny' cannot be kept in the %s tier: "
		       "%s; 'deny_fallback: kill' would kill instead",
		       r->info.file, r->info.line, r->info.name, m->tier, p->rule[at].why);
}

int push_check_deny(const struct push_plan *p, const struct push_means *m, struct err *err)
{
	for (size_t i = 0; i < p->rules_n; i++) {
		int r = push_check_deny_of(p, i, m, err);

		if (r < 0)
			return r;
	}
	return 0;
}
