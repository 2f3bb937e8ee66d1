// SPDX-License-Identifier: Apache-2.0
/* What a loaded rule will do, in words. */
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

static void put_kinds(struct buf *out, uint64_t kinds)
{
	int n = __builtin_popcountll(kinds);
	bool any = false;

	buf_addz(out, "kinds: ");
	if (!n)
		buf_addz(out, "none, it can never fire");
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
		buf_addz(out, "; decided in user space\n");
}

static void put_types(struct buf *out, uint64_t types)
{
	for (uint32_t t = 1, any = 0; t < 64; t++)
		if (types >> t & 1)
			buf_printf(out, "%s%s", any++ ? ", " : "", event_escape_name(t));
}

static void put_where(struct buf *out, const struct rule *r)
{
	if (!r->enabled) {
		buf_addz(out, "effect: none, it is disabled\n");
		return;
	}
	if (r->info.action == RULE_ACT_ALERT) {
		buf_addz(out, "effect: an alert, after the event\n");
		return;
	}
	if (r->kill_escapes) {
		buf_addz(out,
			 "effect: in the kernel, the process is killed before its call returns (");
		put_types(out, r->kill_escapes);
		buf_printf(out, "), then the %s\n",
			   r->info.scope == RULE_SCOPE_SANDBOX ? "sandbox" : "process");
		return;
	}
	buf_printf(out, "effect: %s from user space, after the event\n",
		   rule_action_name(r->info.action));
}

int rule_explain(const struct rule_info *info, struct buf *out)
{
	const struct rule *r = (const struct rule *)info;

	if (info->state == RULE_REFUSED || !r->pred) {
		buf_printf(out, "refused: %s\n", info->why ? info->why : "has errors");
		return out->failed ? -EMSGSIZE : 0;
	}
	if (info->why)
		buf_printf(out, "degraded: %s\n", info->why);
	put_kinds(out, r->kinds);
	put_fields(out, r);
	put_state(out, r);
	put_for(out, r);
	if (r->info.throttle_ns)
		buf_printf(out, "throttle: an alert in %.3g s at most\n",
			   (double)r->info.throttle_ns / 1e9);
	buf_printf(out, "language: %s\n", r->falco ? "Falco" : "Warder");
	put_where(out, r);
	return out->failed ? -EMSGSIZE : 0;
}
