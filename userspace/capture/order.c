/* SPDX-License-Identifier: Apache-2.0 */
#include "userspace/capture/order.h"

#include <stdlib.h>
#include <string.h>
#include "userspace/base/auto.h"

#define RUN	   16
#define PASSES_MAX 16
#define REFS_MAX   (ORDER_HELD_MAX + WIRE_RING_COUNT * ORDER_BATCH)

int order_init(struct order *o)
{
	memset(o, 0, sizeof(*o));
	o->refs = malloc(REFS_MAX * sizeof(*o->refs));
	o->tmp = malloc(REFS_MAX * sizeof(*o->tmp));
	o->held = malloc(ORDER_HELD_MAX * sizeof(*o->held));
	o->copy[0] = malloc(ORDER_HELD_BYTES);
	o->copy[1] = malloc(ORDER_HELD_BYTES);
	if (!o->refs || !o->tmp || !o->held || !o->copy[0] || !o->copy[1]) {
		order_done(o);
		return -ENOMEM;
	}
	return 0;
}

void order_done(struct order *o)
{
	free(o->refs);
	free(o->tmp);
	free(o->held);
	free(o->copy[0]);
	free(o->copy[1]);
	memset(o, 0, sizeof(*o));
}

/* Stable merge sort: insertion in short runs, then merges that cost nothing where order holds. */
static void sort_refs(struct order_ref *a, struct order_ref *tmp, size_t n)
{
	size_t i, j, w;

	for (i = 1; i < n; i++) {
		struct order_ref x = a[i];

		for (j = i; j % RUN && a[j - 1].ts > x.ts; j--)
			a[j] = a[j - 1];
		a[j] = x;
	}
	for (w = RUN; w < n; w *= 2) {
		for (i = 0; i + w < n; i += 2 * w) {
			size_t l = 0, r = i + w, end = MIN(i + 2 * w, n), k = i;

			if (a[r - 1].ts <= a[r].ts)
				continue;
			memcpy(tmp, a + i, w * sizeof(*a));
			while (l < w && r < end)
				a[k++] = tmp[l].ts <= a[r].ts ? tmp[l++] : a[r++];
			memcpy(a + k, tmp + l, (w - l) * sizeof(*a));
		}
	}
}

static uint64_t rec_ts(const uint8_t *p)
{
	struct wire_hdr h;

	memcpy(&h, p, sizeof(h));
	return h.ts;
}

/* What a ring has: references behind `at`, the position behind each. */
struct look {
	size_t n;
	uint64_t pos[ORDER_BATCH];
	bool full; /* there may be more than was looked at */
};

static void look_at(struct order *o, const struct ring *r, struct order_ref *at, struct look *l)
{
	uint64_t pos = ring_begin(r);
	const uint8_t *rec;
	uint32_t len;

	l->n = 0;
	while (l->n < ORDER_BATCH && ring_peek(r, &pos, &rec, &len)) {
		struct order_ref *ref = &at[l->n];

		if (rec && len < sizeof(struct wire_hdr)) {
			o->bad++;
			rec = NULL;
		}
		ref->p = rec;
		ref->len = len;
		ref->held = false;
		ref->ts = rec ? rec_ts(rec) : 0;
		l->pos[l->n++] = pos;
	}
	l->full = l->n == ORDER_BATCH;
}

/* Keep a reference for the next pass, as a copy. False when there is no room. */
static bool hold(struct order *o, const struct order_ref *ref)
{
	uint8_t *to = o->copy[!o->side] + o->copy_n;
	size_t need = (ref->len + 7u) & ~7u;

	if (o->held_n == ORDER_HELD_MAX || need > ORDER_HELD_BYTES - o->copy_n)
		return false;
	memcpy(to, ref->p, ref->len);
	o->copy_n += need;
	o->held[o->held_n] = *ref;
	o->held[o->held_n].p = to;
	o->held[o->held_n++].held = true;
	return true;
}

static int give(struct order *o, const struct order_ref *ref, capture_fn fn, void *arg)
{
	if (ref->ts < o->last_ts)
		o->late++;
	else
		o->last_ts = ref->ts;
	o->records++;
	o->bytes += ref->len;
	return fn(arg, ref->p, ref->len);
}

/* Hand out refs up to the cutoff, keep the rest. */
static int give_all(struct order *o, size_t n, uint64_t cutoff, capture_fn fn, void *arg)
{
	int r, failed = 0, count = 0;
	size_t i;

	o->held_n = 0;
	o->copy_n = 0;
	for (i = 0; i < n; i++) {
		const struct order_ref *ref = &o->refs[i];

		if ((failed || ref->ts > cutoff) && hold(o, ref))
			continue;
		r = give(o, ref, fn, arg);
		if (r < 0 && !failed)
			failed = r;
		else if (!failed)
			count++;
	}
	o->side = !o->side;
	return failed ? failed : count;
}

static uint64_t choose_cutoff(const struct order_ref *refs, const struct look *looks,
			      size_t rings_n, size_t held_n, uint64_t cutoff)
{
	const struct order_ref *at = refs + held_n;
	uint64_t oldest = UINT64_MAX, limit = cutoff;
	size_t i, j;

	for (i = 0; i < rings_n; i++) {
		for (j = 0; j < looks[i].n; j++)
			if (at[j].p && at[j].ts < oldest)
				oldest = at[j].ts;
		/* More records follow that we could not look at: they are not much older than the
		 * last one seen. */
		if (looks[i].full && at[looks[i].n - 1].ts > ORDER_WINDOW_NS)
			limit = MIN(limit, at[looks[i].n - 1].ts - ORDER_WINDOW_NS);
		at += looks[i].n;
	}
	/* A whole batch within one window: no progress unless we let it go. */
	return limit < oldest && oldest != UINT64_MAX ? cutoff : limit;
}

/* One batch of each ring. Sets *ret_left to what stays in the rings. */
static int pass(struct order *o, struct ring *rings, size_t rings_n, uint64_t cutoff, capture_fn fn,
		void *arg, struct look *looks, size_t *ret_left)
{
	size_t i, j, n = o->held_n, from, take;
	uint64_t release[WIRE_RING_COUNT];
	int r;

	memcpy(o->refs, o->held, n * sizeof(*o->held));
	*ret_left = 0;
	for (i = 0, from = n; i < rings_n; i++) {
		look_at(o, &rings[i], o->refs + from, &looks[i]);
		from += looks[i].n;
	}
	cutoff = choose_cutoff(o->refs, looks, rings_n, n, cutoff);
	for (i = 0, from = n; i < rings_n; i++) {
		struct order_ref *at = o->refs + from;

		/* Up to the last one that goes out; younger ones behind it stay in the ring. */
		for (take = looks[i].n; take > 0; take--)
			if (!at[take - 1].p || at[take - 1].ts <= cutoff)
				break;
		from += looks[i].n;
		release[i] = take ? looks[i].pos[take - 1] : ring_begin(&rings[i]);
		*ret_left += looks[i].n - take;
		for (j = 0; j < take; j++)
			if (at[j].p)
				o->refs[n++] = at[j];
	}
	sort_refs(o->refs, o->tmp, n);
	r = give_all(o, n, cutoff, fn, arg);
	for (i = 0; i < rings_n; i++)
		ring_release(&rings[i], release[i]);
	return r;
}

int order_drain(struct order *o, struct ring *rings, size_t rings_n, uint64_t cutoff, capture_fn fn,
		void *arg, size_t *ret_more)
{
	static _Thread_local struct look looks[WIRE_RING_COUNT];
	size_t left = 0, passes, i;
	int r, count = 0;
	bool again;

	if (rings_n > WIRE_RING_COUNT)
		return -EINVAL;
	/* About what the rings can hold at once: a flood must not keep us from all else. */
	for (passes = 0;; passes++) {
		r = pass(o, rings, rings_n, cutoff, fn, arg, looks, &left);
		if (r < 0)
			return r;
		count += r;
		again = false;
		for (i = 0; i < rings_n; i++)
			again |= looks[i].full;
		if (!again || (passes == PASSES_MAX && cutoff != UINT64_MAX))
			break;
	}
	/* Records that came meanwhile made no wake-up if they found older ones waiting. */
	for (i = 0; i < rings_n; i++)
		left += ring_used(&rings[i]) > 0;
	*ret_more = o->held_n + left;
	return count;
}
