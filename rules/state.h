/* SPDX-License-Identifier: Apache-2.0 */
/* Rules that remember: so many times, so many different values, so much in sum within a time, or steps
 * in an order. The memory of a sandbox is one block whose size is known when the rules are compiled. */
#ifndef WARDER_RULES_STATE_H
#define WARDER_RULES_STATE_H

#include "rules/internal.h"

#define STATE_COUNT_MAX 1024		   /* `count` of events or of different values */
#define STATE_STEPS_MAX 8		   /* steps of a sequence before the last */
#define STATE_BY_MAX	64		   /* values of `by` remembered a rule; the oldest goes */
#define STATE_BYTES_MAX ((size_t)16 << 20) /* of one sandbox */
#define STATE_TIME_MAX	(24ull * 3600 * 1000000000) /* longest `window` or `within` */
#define STATE_BUCKETS	16			    /* parts of a window that a sum is kept in */
#define STATE_FIELDS	4			    /* fields in `by` */

enum state_mode { STATE_COUNT, STATE_DISTINCT, STATE_SUM, STATE_SEQUENCE };

struct stateful {
	enum state_mode mode;
	uint64_t count;
	uint64_t window_ns;	 /* or `within` */
	const struct access *of; /* distinct, sum */
	const struct access *by[STATE_FIELDS];
	size_t by_n;
	struct pred *step[STATE_STEPS_MAX];
	size_t steps_n;
	/* where it lies in the sandbox's block */
	size_t off, slot_size;
	uint32_t slots;
};

/* A rule's `throttle` in one sandbox. */
struct throttle {
	uint64_t until; /* alerts before are held back; 0 = none yet */
	uint64_t held;	/* and not told yet */
};

/* Where a rule's part lies in a sandbox's memory. */
struct throttle *throttle_slot(struct rule_memory *st, const struct rule *r);
void *stateful_mem(struct rule_memory *st, const struct stateful *s);
/* Gives a throttled rule its place in the block. */
void throttle_bind(struct ruleset *rs, struct rule *r);
/* False: `for` keeps the rule out of this sandbox. */
bool rule_memory_has(const struct rule_memory *st, uint32_t rule);
/* carry.c: of two rules with state in two sets: equal, when they remember the same things. */
uint64_t stateful_print(const struct rule *r);

size_t stateful_slot_size(const struct stateful *s);
/* Reads the rule's keys and lays its memory out. Without such keys r->st stays NULL. False when it was
 * an error. */
bool stateful_bind(struct ruleset *rs, struct rule *r);
/* The rule's condition (step 0) or a step matched. True when the rule fires. */
bool stateful_hit(struct rule_memory *st, const struct rule *r, uint32_t step, struct eval *e);

#endif
