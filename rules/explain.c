// SPDX-License-Identifier: Apache-2.0
/* What a loaded rule will do, in words. */
#include "rules/explain.h"
#include "rules/state.h"

#define KINDS_SHOWN 12

struct field_set {
	const struct access *v[64];
	size_t n;
};

static void add_field(struct field_set *f, const struct access *a)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->v[i]->row == a->row && f->v[i]->arg == a->arg)
			return;
	if (f->n < ARRAY_SIZE(f->v))
		f->v[f->n++] = a;
}

static void collect(struct field_set *f, const struct pred *p)
{
	if (p->type == P_ATOM) {
		add_field(f, p->atom->a);
		if (p->atom->rhs)
			add_field(f, p->atom->rhs);
	}
	for (size_t i = 0; i < p->n; i++)
		collect(f, p->kid[i]);
}

static void put_kinds(struct buf *out, uint64_t kinds, bool enabled)
{
	int n = __builtin_popcountll(kinds);
	bool any = false;

	buf_addz(out, "kinds: ");
	if (!n)
		buf_addz(out, enabled ? "none, it can never fire" : "none, it is disabled");
	for (size_t i = 0; n <= KINDS_SHOWN && i < event_kinds_n; i++) {
		if (!(kinds >> i & 1))
			continue;
		buf_printf(out, "%s%s", any ? ", " : "", event_kinds[i].name);
		any = true;
	}
	if (n > KINDS_SHOWN)
		buf_printf(out, "%d of them: name a kind to make it cheaper", n);
	buf_addc(out, '\n');
}

static void put_fields(struct buf *out, const struct rule *r)
{
	struct field_set f = { .n = 0 };

	collect(&f, r->pred);
	for (size_t i = 0; r->st && i < r->st->steps_n; i++)
		collect(&f, r->st->step[i]);
	buf_addz(out, "fields: ");
	for (size_t i = 0; i < f.n; i++) {
		buf_printf(out, "%s%s", i ? ", " : "", f.v[i]->row->name);
		if (f.v[i]->arg >= 0)
			buf_printf(out, "[%ld]", f.v[i]->arg);
	}
	buf_printf(out, "\nchecks: %u\n", r->pred->terms);
}

static void put_state(struct buf *out, const struct rule *r)
{
	static const char *const modes[] = { [STATE_COUNT] = "matches",
					     [STATE_DISTINCT] = "different values",
					     [STATE_SUM] = "in sum",
					     [STATE_SEQUENCE] = "steps in order" };
	const struct stateful *s = r->st;

	if (!s)
		return;
	buf_printf(out, "remembers: %llu %s within %.3g s, %zu bytes a sandbox\n",
		   (unsigned long long)(s->mode == STATE_SEQUENCE ? s->steps_n + 1 : s->count),
		   modes[s->mode], (double)s->window_ns / 1e9, s->slots * s->slot_size);
}

/* What it reads is not there by itself. */
static void put_needs(struct buf *out, const struct rule *r)
{
	struct field_set f = { .n = 0 };

	collect(&f, r->pred);
	for (size_t i = 0; i < f.n; i++) {
		if (str_starts(str_from(f.v[i]->row->name), STR("baseline."))) {
			buf_addz(
				out,
				"needs: what is usual, by run --baseline FILE; without it nothing is new\n");
			return;
		}
	}
}

static void put_for(struct buf *out, const struct rule *r)
{
	const char *sep = "for: ";

	for (int k = 0; k < RULE_FOR_KEYS; k++) {
		const struct str *v = r->info.only[k].v;

		if (!r->info.only[k].n)
			continue;
		buf_printf(out, "%s%s ", sep, rule_for_names[k]);
		for (size_t i = 0; i < r->info.only[k].n; i++)
			buf_printf(out, "%s%.*s", i ? " or " : "", (int)v[i].n, v[i].p);
		sep = "; ";
	}
	if (r->has_for)
		buf_addc(out, '\n');
}

static void put_types(struct buf *out, uint64_t types)
{
	for (uint32_t t = 1, any = 0; t < 64; t++)
		if (types >> t & 1)
			buf_printf(out, "%s%s", any++ ? ", " : "", event_escape_name(t));
}

/* ---- where, and what that means ---- */

static void put_kind_ids(struct buf *out, uint64_t kinds)
{
	bool any = false;

	for (size_t i = 0; i < event_kinds_n; i++) {
		if (event_kinds[i].id >= ENFORCE_KINDS || !(kinds >> event_kinds[i].id & 1))
			continue;
		buf_printf(out, "%s%s", any ? ", " : "", event_kinds[i].name);
		any = true;
	}
}

static void put_measured(struct buf *out, const struct explain_host *h)
{
	if (h->kill_p50_ns)
		buf_printf(out, ", %.2f ms after it (median on this host, worst %.2f ms)",
			   (double)h->kill_p50_ns / 1e6, (double)h->kill_max_ns / 1e6);
	else
		buf_addz(out, ", some milliseconds after it (not measured here: warder doctor "
			      "--measure)");
}

static void put_target(struct buf *out, const struct rule *r)
{
	buf_addz(out, r->info.scope == RULE_SCOPE_PROCESS ? "the process" : "the whole sandbox");
}

/* What user space decides. */
static void put_after(struct buf *out, const struct rule *r, const struct explain_host *h)
{
	switch (r->info.action) {
	case RULE_ACT_FREEZE:
		buf_addz(out, "frozen after the act: the whole sandbox stands still");
		break;
	case RULE_ACT_HOLD:
		buf_addz(out, "held after the act: the whole sandbox stands still until warder "
			      "approve or deny");
		break;
	default:
		buf_addz(out, "killed after the act: ");
		put_target(out, r);
	}
	put_measured(out, h);
}

/* Kinds that are prevented, and those whose call does not return. */
static void put_kernel(struct buf *out, const struct rule *r, const struct push_result *p,
		       const struct explain_host *h)
{
	uint64_t all = (p->whole | p->part) & ~ENFORCE_KIND(WIRE_ESCAPE);
	uint64_t denied = all & h->means->deny, killed = all & ~h->means->deny;
	bool kills = r->info.action == RULE_ACT_KILL || r->info.deny_fallback;
	uint64_t types = p->escapes | r->kill_escapes, no = types & h->means->deny_escapes;
	const char *sep = "";

	if (denied || no) {
		buf_addz(out, "prevented (");
		put_kind_ids(out, denied);
		buf_addz(out, denied && no ? ", " : "");
		put_types(out, no);
		buf_addz(out, r->info.action == RULE_ACT_KILL ? "), and the process killed" : ")");
		sep = "; ";
	}
	types &= ~no;
	if ((killed || types) && kills) {
		buf_printf(out, "%skilled before the call returns to the program (", sep);
		put_kind_ids(out, killed);
		buf_addz(out, killed && types ? ", " : "");
		put_types(out, types);
		buf_addz(out, ")");
	}
	if (kills && r->info.scope == RULE_SCOPE_SANDBOX) {
		buf_addz(out, "; then the whole sandbox");
		put_measured(out, h);
	}
}

static bool is_in_kernel(const struct rule *r, const struct push_result *p)
{
	return p->taken &&
	       ((p->whole | p->part) & ~ENFORCE_KIND(WIRE_ESCAPE) || p->escapes || r->kill_escapes);
}

static void put_action(struct buf *out, const struct rule *r, const struct push_result *p,
		       const struct explain_host *h)
{
	bool kernel = is_in_kernel(r, p), deny = r->info.action == RULE_ACT_DENY;

	if (deny && !p->complete && !r->info.deny_fallback) {
		buf_printf(out,
			   "where: nowhere\nguarantee: none, a run with it fails in the %s "
			   "tier: %s\n",
			   h->means->tier, p->why);
		return;
	}
	buf_printf(out, "where: %s\nguarantee: ",
		   !kernel	 ? "user space"
		   : p->complete ? "kernel"
				 : "kernel, and user space for what it cannot decide");
	if (kernel)
		put_kernel(out, r, p, h);
	if (kernel && !p->complete)
		buf_addz(out, "; else ");
	if (!kernel || !p->complete)
		put_after(out, r, h);
	buf_addc(out, '\n');
	if (p->taken && !p->complete && p->why[0])
		buf_printf(out, "left to user space: %s\n", p->why);
}

static void put_where(struct buf *out, const struct rule *r, const struct explain_host *h)
{
	static const struct push_result none;
	const struct push_result *p = h->plan ? &h->plan->rule[r->at] : &none;

	if (!r->enabled) {
		buf_addz(out, "effect: none, it is disabled\n");
		return;
	}
	buf_printf(out, "tier: %s\n", h->means->tier);
	if (!r->kinds)
		buf_addz(out, "where: nowhere\nguarantee: none, it can never fire\n");
	else if (!rule_applies_to(&r->info, RULE_FOR_TIER, h->means->tier))
		buf_printf(out,
			   "where: nowhere\nguarantee: none, it can never fire here: it is for "
			   "another tier than %s\n",
			   h->means->tier);
	else if (r->info.action == RULE_ACT_ALERT)
		buf_addz(out, "where: user space\nguarantee: an alert, after the event\n");
	else if (r->info.dry_run)
		buf_printf(out,
			   "where: nowhere\nguarantee: none, an alert says what '%s' would have "
			   "done (dry_run)\n",
			   rule_action_name(r->info.action));
	else
		put_action(out, r, p, h);
}

/* ---- cost ---- */

static uint64_t cost_of(const struct rule *r)
{
	return r->pred && r->enabled
		       ? (uint64_t)(r->pred->cost + 1) * (uint64_t)__builtin_popcountll(r->kinds)
		       : 0;
}

static void put_cost(struct buf *out, const struct rule *r)
{
	const struct ruleset *rs = r->rs;
	size_t rank = 1;

	for (size_t i = 0; i < rs->rule_n; i++)
		rank += cost_of(rs->rule[i]) > cost_of(r);
	buf_printf(out, "cost: rank %zu of %zu, 1 is the dearest (checks weighed, times kinds)\n",
		   rank, rs->rule_n);
}

int rule_explain(const struct rule_info *info, const struct explain_host *h, struct buf *out)
{
	const struct rule *r = (const struct rule *)info;

	if (info->state == RULE_REFUSED || !r->pred) {
		buf_printf(out, "refused: %s\n", info->why ? info->why : "has errors");
		return out->failed ? -EMSGSIZE : 0;
	}
	if (info->why)
		buf_printf(out, "degraded: %s\n", info->why);
	put_kinds(out, r->kinds, r->enabled);
	put_fields(out, r);
	put_state(out, r);
	put_needs(out, r);
	put_for(out, r);
	if (r->info.throttle_ns && r->info.action == RULE_ACT_ALERT)
		buf_printf(out, "throttle: an alert in %.3g s at most\n",
			   (double)r->info.throttle_ns / 1e9);
	buf_printf(out, "language: %s\n", r->falco ? "Falco" : "Warder");
	put_cost(out, r);
	put_where(out, r, h);
	return out->failed ? -EMSGSIZE : 0;
}
