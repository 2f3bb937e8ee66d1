// SPDX-License-Identifier: Apache-2.0
/* What a sandbox's rules remember, and when that makes one fire. Time is the event's own, so a replay
 * of a session says the same as the session did. */
#include "rules/state.h"

struct rule_memory {
	uint64_t evicted;
	size_t size;
	size_t off_at; /* bitmap in mem: rules that are not for this sandbox */
	bool has_off;
	char mem[] __attribute__((aligned(16)));
};

/* One value of `by`: key 0 = unused. What follows depends on the mode. */
struct slot {
	uint64_t key;
	uint64_t used; /* time of the last hit */
	uint32_t n;    /* entries in use */
	uint32_t head; /* STATE_COUNT: oldest */
	uint64_t v[];
};

size_t stateful_slot_size(const struct stateful *s)
{
	size_t words = s->mode == STATE_COUNT	   ? s->count
		       : s->mode == STATE_DISTINCT ? 2 * s->count
		       : s->mode == STATE_SUM	   ? 2 * STATE_BUCKETS
						   : s->steps_n;

	return sizeof(struct slot) + words * sizeof(uint64_t);
}

int rule_memory_new(struct rule_memory **ret, const struct ruleset *rs)
{
	size_t size = rs->state_size + (rs->rule_n + 63) / 64 * sizeof(uint64_t);
	/* calloc of a large block costs address space only, until a rule's part is used. */
	struct rule_memory *st = calloc(1, sizeof(*st) + size);

	if (!st)
		return -ENOMEM;
	st->size = size;
	st->off_at = rs->state_size;
	*ret = st;
	return 0;
}

void rule_memory_free(struct rule_memory *st)
{
	free(st);
}

uint64_t rule_memory_evicted(struct rule_memory *st)
{
	uint64_t n = st ? st->evicted : 0;

	if (st)
		st->evicted = 0;
	return n;
}

void *stateful_mem(struct rule_memory *st, const struct stateful *s)
{
	return st->mem + s->off;
}

/* ---- which rules are for this sandbox ---- */

static uint64_t *off_bits(struct rule_memory *st)
{
	return (uint64_t *)(void *)(st->mem + st->off_at);
}

bool rule_memory_has(const struct rule_memory *st, uint32_t rule)
{
	const uint64_t *off;

	if (!st || !st->has_off)
		return true;
	off = (const uint64_t *)(const void *)(st->mem + st->off_at);
	return !(off[rule / 64] >> (rule % 64) & 1);
}

/* Patterns, or the beginning of a hash as people write it. */
static bool is_for(const struct str *v, size_t n, enum rule_for key, const char *is)
{
	struct str s = str_from(is ? is : "");

	for (size_t i = 0; i < n; i++)
		if (s.n &&
		    (str_glob(v[i], s, false) || (key == RULE_FOR_POLICY && str_starts(s, v[i]))))
			return true;
	return n == 0;
}

bool rule_applies_to(const struct rule_info *r, enum rule_for key, const char *is)
{
	return is_for(r->only[key].v, r->only[key].n, key, is);
}

bool rule_applies(const struct rule_info *r, const struct rule_session *s)
{
	const char *const is[RULE_FOR_KEYS] = { s->backend, s->tier, s->tenant, s->policy };

	for (int k = 0; k < RULE_FOR_KEYS; k++)
		if (!rule_applies_to(r, (enum rule_for)k, is[k]))
			return false;
	return true;
}

void rule_memory_set_session(struct rule_memory *st, const struct ruleset *rs,
			     const struct rule_session *s)
{
	st->has_off = false;
	for (size_t i = 0; i < rs->rule_n; i++) {
		uint64_t bit = 1ull << (i % 64);

		off_bits(st)[i / 64] &= ~bit;
		if (rule_applies(&rs->rule[i]->info, s))
			continue;
		off_bits(st)[i / 64] |= bit;
		st->has_off = true;
	}
}

/* ---- values as hashes ---- */

static uint64_t mix(uint64_t h, const struct val *v)
{
	uint64_t t = (uint64_t)v->t;

	h = hash_bytes(&t, sizeof(t), h);
	switch (v->t) {
	case V_STR:
		return hash_bytes(v->s.p, v->s.n, h);
	case V_U64:
	case V_I64:
		return hash_bytes(&v->u, sizeof(v->u), h);
	case V_IP:
		h = hash_bytes(&v->ip->family, 1, h);
		return hash_bytes(v->ip->b, v->ip->family == 4 ? 4 : 16, h);
	case V_LIST:
		for (uint32_t i = 0; i < v->list.n; i++) {
			struct val one;

			if (val_list_at(v, i, &one))
				h = mix(h, &one);
		}
		return h;
	default:
		return h;
	}
}

/* Never 0: that is an unused slot. */
static uint64_t key_of(const struct stateful *s, struct eval *e)
{
	uint64_t h = HASH_START;

	for (size_t i = 0; i < s->by_n; i++) {
		struct val tmp;

		h = mix(h, eval_value(e, s->by[i], &tmp));
	}
	return h | 1;
}

static struct slot *slot_at(struct rule_memory *st, const struct stateful *s, uint32_t i)
{
	return (struct slot *)(void *)(st->mem + s->off + i * s->slot_size);
}

static uint64_t time_of(const struct event *ev)
{
	return event_has(ev, F_MONO) ? ev->v[F_MONO].u
	       : ev->hdr.ts	     ? ev->hdr.ts
				     : event_u64(ev, F_TIME);
}

/* Events of two CPUs may come a little out of order: what is younger than now is now. */
static bool is_over(uint64_t then, uint64_t now, uint64_t window)
{
	return now > then && now - then > window;
}

static struct slot *find_slot(struct rule_memory *st, const struct stateful *s, uint64_t key,
			      uint64_t now)
{
	struct slot *oldest = NULL;

	for (uint32_t i = 0; i < s->slots; i++) {
		struct slot *at = slot_at(st, s, i);

		if (at->key == key)
			return at;
		if (!oldest || !at->key || (oldest->key && at->used < oldest->used))
			oldest = at;
	}
	if (oldest->key && !is_over(oldest->used, now, s->window_ns))
		st->evicted++;
	memset(oldest, 0, s->slot_size);
	oldest->key = key;
	return oldest;
}

/* ---- the four ways ---- */

/* The last `count` times, in a ring: it fires when the oldest of them is within the window. */
static bool hit_count(const struct stateful *s, struct slot *at, uint64_t now)
{
	uint32_t count = (uint32_t)s->count;

	if (at->n == count) {
		at->head = (at->head + 1) % count;
		at->n--;
	}
	at->v[(at->head + at->n++) % count] = now;
	if (at->n < count || is_over(at->v[at->head], now, s->window_ns))
		return false;
	at->n = at->head = 0;
	return true;
}

/* Pairs of value and time; a value seen again is only made younger. */
static bool hit_distinct(const struct stateful *s, struct slot *at, uint64_t now,
			 const struct val *v)
{
	uint64_t h = mix(HASH_START, v);
	uint32_t k = 0;
	bool seen = false;

	if (v->t == V_NONE)
		return false;
	for (uint32_t i = 0; i < at->n; i++) {
		if (is_over(at->v[2 * i + 1], now, s->window_ns))
			continue;
		at->v[2 * k] = at->v[2 * i];
		at->v[2 * k + 1] = at->v[2 * i + 1];
		if (at->v[2 * k] == h) {
			at->v[2 * k + 1] = now;
			seen = true;
		}
		k++;
	}
	at->n = k;
	if (seen)
		return false;
	at->v[2 * at->n] = h;
	at->v[2 * at->n + 1] = now;
	if (++at->n < s->count)
		return false;
	at->n = 0;
	return true;
}

/* Sums of the window's parts: at most one part too much is counted, never too little. */
static bool hit_sum(const struct stateful *s, struct slot *at, uint64_t now, const struct val *v)
{
	uint64_t part = s->window_ns / STATE_BUCKETS + 1, index = now / part + 1, sum = 0;
	uint64_t *mine = &at->v[2 * (index % STATE_BUCKETS)];

	if (v->t != V_U64 && v->t != V_I64)
		return false;
	if (mine[0] != index) {
		mine[0] = index;
		mine[1] = 0;
	}
	if (v->t == V_U64 || v->i > 0)
		if (__builtin_add_overflow(mine[1], v->u, &mine[1]))
			mine[1] = UINT64_MAX;
	for (int i = 0; i < STATE_BUCKETS; i++)
		if (at->v[2 * i] && at->v[2 * i] + STATE_BUCKETS > index &&
		    __builtin_add_overflow(sum, at->v[2 * i + 1], &sum))
			sum = UINT64_MAX;
	if (sum < s->count)
		return false;
	memset(at->v, 0, 2 * STATE_BUCKETS * sizeof(*at->v));
	return true;
}

/* v[i]: start of the youngest chain whose first i + 1 steps happened in order. A youngest chain has the
 * most time left, so no other has to be kept. */
static bool hit_sequence(const struct stateful *s, struct slot *at, uint64_t now, uint32_t step)
{
	size_t before = step ? step - 1 : s->steps_n;
	uint64_t start = now ? now : 1;

	if (before) {
		start = at->v[before - 1];
		if (!start || is_over(start, now, s->window_ns))
			return false;
	}
	if (step) {
		at->v[step - 1] = MAX(at->v[step - 1], start);
		return false;
	}
	memset(at->v, 0, s->steps_n * sizeof(*at->v));
	return true;
}

bool stateful_hit(struct rule_memory *st, const struct rule *r, uint32_t step, struct eval *e)
{
	const struct stateful *s = r->st;
	uint64_t now = time_of(e->ev);
	struct val tmp = { 0 };
	const struct val *v = &tmp;
	struct slot *at;

	if (!st)
		return false;
	if (s->of)
		v = eval_value(e, s->of, &tmp);
	at = find_slot(st, s, key_of(s, e), now);
	at->used = now;
	switch (s->mode) {
	case STATE_COUNT:
		return hit_count(s, at, now);
	case STATE_DISTINCT:
		return hit_distinct(s, at, now, v);
	case STATE_SUM:
		return hit_sum(s, at, now, v);
	default:
		return hit_sequence(s, at, now, step);
	}
}

/* ---- throttle ---- */

void throttle_bind(struct ruleset *rs, struct rule *r)
{
	if (!r->info.throttle_ns)
		return;
	r->throttle_off = rs->state_size;
	rs->state_size += sizeof(struct throttle);
}

struct throttle *throttle_slot(struct rule_memory *st, const struct rule *r)
{
	return (struct throttle *)(void *)(st->mem + r->throttle_off);
}

bool rule_memory_throttle(struct rule_memory *st, const struct rule_info *info,
			  const struct event *ev, uint64_t *ret_held)
{
	const struct rule *r = (const struct rule *)info;
	uint64_t now = time_of(ev);
	struct throttle *t;

	*ret_held = 0;
	/* What was done to a sandbox is told each time. */
	if (!st || !info->throttle_ns || info->action != RULE_ACT_ALERT)
		return false;
	t = throttle_slot(st, r);
	if (t->until && now < t->until) {
		t->held++;
		return true;
	}
	*ret_held = t->held;
	t->held = 0;
	t->until = now + info->throttle_ns;
	return false;
}

void rule_memory_untold(struct rule_memory *st, const struct ruleset *rs, rule_untold_fn fn,
			void *arg)
{
	for (size_t i = 0; st && i < rs->rule_n; i++) {
		const struct rule *r = rs->rule[i];
		struct throttle *t = r->info.throttle_ns ? throttle_slot(st, r) : NULL;
		uint64_t held = t ? t->held : 0;

		if (!held)
			continue;
		t->held = 0;
		fn(arg, &r->info, held);
	}
}
