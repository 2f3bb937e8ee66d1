/* SPDX-License-Identifier: Apache-2.0 */
/* What a session's record covers, and what it does not: part of the summary that the seal is about. */
#ifndef WARDER_PIPELINE_STATEMENT_H
#define WARDER_PIPELINE_STATEMENT_H

#include <stdbool.h>
#include <stdint.h>
#include "userspace/base/json.h"
#include "userspace/event/event.h"

#define STATEMENT_GAPS_MAX     64
#define STATEMENT_DEGRADED_MAX 48
#define STATEMENT_RULES_MAX    16

/* How far the host's clock could be trusted when the session began. */
struct clock_state {
	char source[32]; /* "tsc" ..., empty = unknown */
	bool is_synced;	 /* by NTP or the like, as the kernel knows (adjtimex) */
};

void clock_state_read(struct clock_state *ret);

struct statement {
	struct {
		char kind[24], reason[24];
		uint64_t count, first_ns, last_ns; /* since 1970 */
	} gaps[STATEMENT_GAPS_MAX];
	char degraded[STATEMENT_DEGRADED_MAX][64];
	char rules[STATEMENT_RULES_MAX][72]; /* hashes of the sets that judged, in order */
	uint32_t gaps_n, degraded_n, rules_n;
	uint32_t more; /* that did not fit */
};

void statement_note(struct statement *s, const struct event *ev);
/* Members "rules", "degraded" and "gaps" of an object that is open. */
void statement_json(const struct statement *s, struct json *j);

#endif
