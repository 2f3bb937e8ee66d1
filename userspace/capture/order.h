/* SPDX-License-Identifier: Apache-2.0 */
/* Records of several rings in one order of time. Within a ring they are nearly sorted (CPUs race
 * between taking the time and taking the space), between rings not at all. */
#ifndef WARDER_CAPTURE_ORDER_H
#define WARDER_CAPTURE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "userspace/capture/capture.h"
#include "userspace/capture/ring.h"

#define ORDER_WINDOW_NS	 500000	   /* within a ring no record is out of order by more */
#define ORDER_BATCH	 4096	   /* records looked at in one ring at a time */
#define ORDER_HELD_MAX	 4096	   /* records kept back as copies ... */
#define ORDER_HELD_BYTES (4 << 20) /* ... and their bytes; beyond, they go out early */

struct order_ref {
	uint64_t ts;
	const uint8_t *p;
	uint32_t len;
	bool held; /* lies in a copy, not in a ring */
};

struct order {
	struct order_ref *refs; /* working set of one pass */
	struct order_ref *tmp;
	struct order_ref *held;
	size_t held_n;
	uint8_t *copy[2]; /* copies: the pass reads one and fills the other */
	size_t copy_n;
	int side;
	uint64_t last_ts;
	uint64_t records, bytes, late, bad;
};

int order_init(struct order *o);
void order_done(struct order *o);

/* Hand out what is not younger than `cutoff`, CLOCK_BOOTTIME ns. Returns the count or the
 * first negative result of fn; what was not handed out then stays for the next call. *ret_more: records
 * kept back or not looked at yet. */
int order_drain(struct order *o, struct ring *rings, size_t rings_n, uint64_t cutoff, capture_fn fn,
		void *arg, size_t *ret_more);

#endif
