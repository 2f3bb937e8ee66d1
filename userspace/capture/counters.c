/* SPDX-License-Identifier: Apache-2.0 */
/* Losses and failures, read from the mapped counters: no privilege needed. */
#include <string.h>
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/capture/internal.h"

static uint64_t load(const __u64 *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

/* Records that were numbered, not counted as lost and never came: the proof that nothing is missing does
 * not rest on the drop counters alone. Only with empty rings and nothing held back can it be said, and
 * a producer may stand between its number and the ring: the same result twice in a row counts. */
static uint64_t unexplained(struct capture *c)
{
	uint64_t made = 0, lost = 0, got = c->order.records + c->order.bad, missing;
	size_t i, r;

	for (r = 0; r < WIRE_RING_COUNT; r++)
		if (ring_used(&c->rings[r]))
			return 0;
	if (c->order.held_n)
		return 0;
	for (i = 0; i < c->cpus; i++) {
		for (r = 0; r < WIRE_RING_COUNT; r++) {
			made += load(&c->counters->cpu[i].seq[r]);
			lost += load(&c->counters->cpu[i].lost[r]);
		}
	}
	missing = made - lost - got;
	if (made != c->made || missing <= c->missing_told || missing > made) {
		c->made = made;
		return 0;
	}
	missing -= c->missing_told;
	c->missing_told += missing;
	return missing;
}

/* The event that a record would have been. What a gVisor guest did may have been of any kind. */
static uint16_t kind_lost(uint16_t kind)
{
	if (kind == WIRE_CHUNK)
		return WIRE_EXEC;
	return kind == WIRE_MIRROR ? 0 : kind;
}

size_t capture_gaps(struct capture *c, struct capture_gap *rows, size_t max)
{
	size_t i, n = 0;

	for (i = 0; i < DROP_ROWS && n < max; i++) {
		const struct drop_row *row = &c->counters->drops[i];
		uint64_t count = load(&row->count), key;

		if (count == c->drops_seen[i])
			continue;
		key = load(&row->key);
		rows[n++] = (struct capture_gap){
			.sandbox = (uint32_t)(key >> 32),
			.kind = kind_lost((uint16_t)key),
			.rate = key & DROP_RATE,
			.count = count - c->drops_seen[i],
			.first_ts = MAX(load(&row->first_ts), c->drops_last[i]),
			.last_ts = load(&row->last_ts),
		};
		c->drops_seen[i] = count;
		c->drops_last[i] = rows[n - 1].last_ts;
	}
	if (n < max) {
		uint64_t all = load(&c->counters->missed), now = clock_boot_ns();

		if (all > c->missed_told)
			rows[n++] = (struct capture_gap){ .count = all - c->missed_told,
							  .last_ts = now,
							  .missed = true };
		c->missed_told = all;
	}
	if (n < max) {
		uint64_t missing = unexplained(c), now = clock_boot_ns();

		if (missing)
			rows[n++] = (struct capture_gap){ .count = missing, .last_ts = now };
	}
	return n;
}

void capture_stats(struct capture *c, struct capture_stats *ret)
{
	size_t i, j;

	memset(ret, 0, sizeof(*ret));
	ret->records = c->order.records;
	ret->bytes = c->order.bytes;
	ret->late = c->order.late;
	for (i = 0; i < WIRE_RING_COUNT; i++) {
		ret->ring_used[i] = ring_used(&c->rings[i]);
		ret->ring_size[i] = c->rings[i].size;
	}
	for (i = 0; i < c->cpus; i++)
		for (j = 0; j < FAIL_SITE_COUNT; j++)
			ret->fails[j] +=
				load(&(c->common ? c->common : c->counters)->cpu[i].fails[j]);
}
