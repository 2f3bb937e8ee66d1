/* SPDX-License-Identifier: Apache-2.0 */
/* Acknowledgements come in any order; the cursor may only move over the part without holes. */
#ifndef WARDER_EXPORTERS_PREFIX_H
#define WARDER_EXPORTERS_PREFIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct prefix_slot {
	uint64_t seq;
	uint8_t left; /* acknowledgements still missing */
};

struct prefix {
	struct prefix_slot *slots; /* ring */
	size_t cap;
	uint64_t head; /* ticket of the oldest outstanding record */
	uint64_t tail; /* ticket of the next record */
	uint64_t acked;
};

int prefix_init(struct prefix *p, size_t cap);
void prefix_done(struct prefix *p);

static inline size_t prefix_outstanding(const struct prefix *p)
{
	return (size_t)(p->tail - p->head);
}

static inline bool prefix_is_full(const struct prefix *p)
{
	return prefix_outstanding(p) == p->cap;
}

/* A record was sent in `parts` messages (1..255). Its ticket goes with each. -ENOBUFS when full. */
int prefix_add(struct prefix *p, uint64_t seq, uint8_t parts, uint64_t *ret_ticket);
/* Take back the newest ticket: nothing was sent after all. */
void prefix_cancel(struct prefix *p, uint64_t ticket);
/* One message of the ticket is safe. Tickets from before a reset, and marks beyond the number of
 * parts, change nothing: returns false. */
bool prefix_mark(struct prefix *p, uint64_t ticket);
/* The seq of an outstanding ticket, 0 when it is not outstanding (any more). */
uint64_t prefix_seq(const struct prefix *p, uint64_t ticket);
/* Forget what is outstanding; `acked` stays. */
void prefix_reset(struct prefix *p);

#endif
