// SPDX-License-Identifier: Apache-2.0
/* From one rule set to the next: what a sandbox's rules remember goes along for each rule that means
 * the same in both, whatever else changed and wherever it stands. */
#include "rules/state.h"

static uint64_t mix_str(struct str s, uint64_t h)
{
	uint64_t n = s.n;

	return hash_bytes(s.p, s.n, hash_bytes(&n, sizeof(n), h));
}

static uint64_t mix_u64(uint64_t v, uint64_t h)
{
	return hash_bytes(&v, sizeof(v), h);
}

/* Fields by name: numbers are given in the order of the set. */
static uint64_t access_print(const struct access *a)
{
	uint64_t h;

	if (!a)
		return 1;
	/* proc.args is two rows of one name, with two types or readers. */
	h = mix_str(str_from(a->row->name), HASH_START);
	h = mix_u64((uint64_t)(a->row->slot + 1) << 8 | a->row->type, h);
	h = mix_u64((uint64_t)a->arg, h);
	return hash_bytes(a->tr, a->tr_n, h);
}

static uint64_t atom_print(const struct atom *a)
{
	uint64_t h = mix_u64(a->op, access_print(a->a)), sum = 0;

	h = mix_u64(access_print(a->rhs), h);
	h = mix_str(a->s, h);
	h = hash_bytes(a->num, a->num_n * sizeof(*a->num), h);
	h = hash_bytes(a->net, a->net_n * sizeof(*a->net), h);
	for (size_t i = 0; a->set && i < strset_count(a->set); i++)
		sum += mix_str(strset_at(a->set, i), HASH_START); /* in no order */
	return mix_u64(sum, h);
}

/* Kids are summed: their order has no meaning and depends on what else is in the set. */
static uint64_t pred_print(const struct pred *p)
{
	uint64_t sum = 0;

	if (p->type == P_ATOM)
		return atom_print(p->atom);
	for (size_t i = 0; i < p->n; i++)
		sum += mix_u64(pred_print(p->kid[i]), HASH_START);
	return mix_u64(sum, mix_u64((uint64_t)p->type << 1 | p->value, HASH_START));
}

uint64_t stateful_print(const struct rule *r)
{
	const struct stateful *s = r->st;
	uint64_t h = mix_u64(pred_print(r->pred), HASH_START);

	h = mix_u64(s->mode, h);
	h = mix_u64(s->count, h);
	h = mix_u64(s->window_ns, h);
	h = mix_u64(access_print(s->of), h);
	for (size_t i = 0; i < s->by_n; i++)
		h = mix_u64(access_print(s->by[i]), h);
	for (size_t i = 0; i < s->steps_n; i++)
		h = mix_u64(pred_print(s->step[i]), h);
	return h;
}

static bool is_live(const struct rule *r)
{
	return r->info.state == RULE_LOADED || r->info.state == RULE_DEGRADED;
}

size_t rule_memory_carry(struct rule_memory *to, const struct ruleset *to_rs,
			 struct rule_memory *from, const struct ruleset *from_rs)
{
	size_t kept = 0;

	for (size_t i = 0; i < to_rs->rule_n; i++) {
		const struct rule *n = to_rs->rule[i];
		const struct rule *o = ruleset_rule(from_rs, str_from(n->info.name));

		if (!o || !is_live(n) || !is_live(o))
			continue;
		/* How long an alert stays quiet is the alert's, whatever its condition says now. */
		if (n->info.throttle_ns && n->info.throttle_ns == o->info.throttle_ns)
			*throttle_slot(to, n) = *throttle_slot(from, o);
		if (!n->st || !o->st || n->print != o->print || n->st->slots != o->st->slots ||
		    n->st->slot_size != o->st->slot_size)
			continue;
		memcpy(stateful_mem(to, n->st), stateful_mem(from, o->st),
		       n->st->slots * n->st->slot_size);
		kept++;
	}
	return kept;
}
