/* SPDX-License-Identifier: Apache-2.0 */
/* How a session ended: one answer from what the launcher saw and what the pipeline decided. */
#ifndef WARDER_PIPELINE_OUTCOME_H
#define WARDER_PIPELINE_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>
#include "userspace/pipeline/pipeline.h"

/* What the root part saw. */
struct run_facts {
	int32_t exit_code;
	int32_t signal;
	bool timed_out;
	bool ttl_over, idle; /* its life was over; nothing ran and nobody was there */
	bool hung_up;	     /* whom it ran for has gone */
	bool internal;	     /* the sandbox could not be set up, or warder failed */
	bool output_killed;  /* more output than allowed, and that was to end it */
	/* What ran the payload ended first (sandbox_result.died), and how. */
	bool died;
	int32_t death_code, death_signal;
	bool truncated; /* some of the output was dropped */
	uint64_t cpu_usec, mem_peak, pids_peak, oom_kills, pids_denied;
	uint64_t stdout_bytes,
		stderr_bytes; /* written by the payload; WIRE_UNKNOWN = not counted */
};

struct outcome {
	const char *reason; /* exit signal timeout oom rule output_limit internal ...; a literal */
	int exit_code;	    /* of `warder run` */
};

/* Graver causes win: a rule's kill, then our own failure, the time limit, the output limit,
 * the memory limit. */
struct outcome outcome_of(const struct run_facts *facts, enum session_verdict verdict);
/* The literal for a reason that came over a socket; "internal" for anything unknown. */
const char *outcome_reason(const char *text);

#endif
