/* SPDX-License-Identifier: Apache-2.0 */
/* Limits that the kernel counts in the sandbox's cgroups: forks refused, time throttled, tasks killed for
 * memory. The root part looks when the kernel says that a count changed; the CPU's count says nothing, so
 * with a CPU limit it is looked at by time, seldom when it goes on for long. */
#ifndef WARDER_PIPELINE_LIMITS_H
#define WARDER_PIPELINE_LIMITS_H

#include <poll.h>
#include "runtime/sandbox.h"
#include "userspace/pipeline/record.h"

#define LIMITS_FDS 2

struct limits {
	struct sandbox *sandbox;
	const struct sandbox_limits *set;
	struct sandbox_result seen; /* counts that were told */
	int fds[LIMITS_FDS];
	uint64_t next_ns; /* CLOCK_MONOTONIC: not to be looked at before; 0 = not by time */
	uint64_t step_ns;
};

typedef void limits_tell_fn(void *arg, const struct limit_hit *hit);

void limits_init(struct limits *l, struct sandbox *sandbox, const struct sandbox_limits *set);
void limits_done(struct limits *l);
/* LIMITS_FDS rows for poll. */
void limits_poll(const struct limits *l, struct pollfd *fds);
/* Milliseconds until limits_look has something to do by time; -1: never. */
int limits_timeout(const struct limits *l);
/* Tell what was hit since the last look. */
void limits_look(struct limits *l, limits_tell_fn *tell, void *arg);

#endif
