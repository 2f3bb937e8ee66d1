/* SPDX-License-Identifier: Apache-2.0 */
/* What a consumer of our events must do, and can check: drop what comes twice (equal ids), notice what is
 * missing (seq is contiguous within a session) and what comes late. Bounded: sessions and ids that were not
 * seen for longest are forgotten. */
#ifndef WARDER_CLI_CONSUME_CHECK_H
#define WARDER_CLI_CONSUME_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include "userspace/base/auto.h"
#include "userspace/base/str.h"

#define CONSUME_SESSIONS_MAX 65536
#define CONSUME_IDS_MAX	     524288
#define CONSUME_HOLES_MAX    16 /* of one session; more count as missing for good */

enum consume_verdict {
	CONSUME_NEW,
	CONSUME_LATE,	   /* new, but it had been missed: out of order */
	CONSUME_DUPLICATE, /* drop it */
};

struct consume_counts {
	uint64_t records, events, duplicates;
	uint64_t late;	  /* events that came after a later one of their session */
	uint64_t missing; /* events that never came, so far */
	uint64_t altered; /* duplicates whose bytes were others: not ours, or not all ours */
	uint64_t sessions;
};

struct consume_check;

/* `whole`: every event of a session is expected, from seq 1 on (no filter at the sink, nothing aged out
 * of the topic); else only what comes twice is looked for. */
int consume_check_new(struct consume_check **ret, bool whole);
void consume_check_free(struct consume_check *c);
DEFINE_AUTO(consume_check, consume_check_free)

/* `seq` 0 = unknown. *ret_missed: events missed just before this one. */
enum consume_verdict consume_check_record(struct consume_check *c, struct str session,
					  struct str id, uint64_t seq, struct str body,
					  uint64_t *ret_missed);
void consume_check_counts(const struct consume_check *c, struct consume_counts *ret);

#endif
