// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/limits.h"

#include <fcntl.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"

#define STEP_MIN_NS (1000 * NSEC_PER_MSEC)
#define STEP_MAX_NS (60 * NSEC_PER_SEC)

void limits_init(struct limits *l, struct sandbox *sandbox, const struct sandbox_limits *set)
{
	*l = (struct limits){ .sandbox = sandbox, .set = set, .step_ns = STEP_MIN_NS };
	sandbox_hit_fds(sandbox, l->fds);
	/* The first read takes the edge away. */
	for (int i = 0; i < LIMITS_FDS; i++) {
		char text[512];

		if (l->fds[i] >= 0)
			(void)!pread(l->fds[i], text, sizeof(text), 0);
	}
	if (set->cpu_milli)
		l->next_ns = clock_ns(CLOCK_MONOTONIC) + l->step_ns;
}

void limits_done(struct limits *l)
{
	for (int i = 0; i < LIMITS_FDS; i++)
		if (l->fds[i] >= 0)
			close(take_fd(l->fds[i]));
}

void limits_poll(const struct limits *l, struct pollfd *fds)
{
	for (int i = 0; i < LIMITS_FDS; i++)
		fds[i] = (struct pollfd){ .fd = l->fds[i], .events = POLLPRI };
}

int limits_timeout(const struct limits *l)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (!l->next_ns)
		return -1;
	return l->next_ns > now ? (int)MIN((l->next_ns - now) / NSEC_PER_MSEC + 1, (uint64_t)60000)
				: 0;
}

static void tell_cpu(struct limits *l, const struct sandbox_result *now, limits_tell_fn *tell,
		     void *arg)
{
	struct limit_hit hit = {
		.type = WIRE_LIMIT_CPU,
		.value = l->set->cpu_milli,
		.used = now->cpu_throttled_usec - l->seen.cpu_throttled_usec,
		.count = now->cpu_throttled - l->seen.cpu_throttled,
	};

	if (now->cpu_throttled <= l->seen.cpu_throttled)
		return;
	tell(arg, &hit);
	/* A build that is held back for an hour is one fact, not one a second. */
	l->step_ns = MIN(l->step_ns * 2, (uint64_t)STEP_MAX_NS);
}

void limits_look(struct limits *l, limits_tell_fn *tell, void *arg)
{
	struct sandbox_result now;

	/* The counter files' next change is a new edge only after they were read. */
	for (int i = 0; i < LIMITS_FDS; i++) {
		char text[512];

		if (l->fds[i] >= 0)
			(void)!pread(l->fds[i], text, sizeof(text), 0);
	}
	sandbox_result(l->sandbox, &now);
	if (now.pids_denied > l->seen.pids_denied)
		tell(arg, &(struct limit_hit){ .type = WIRE_LIMIT_PIDS,
					       .value = l->set->pids,
					       .used = now.pids_peak,
					       .count = now.pids_denied - l->seen.pids_denied });
	if (now.oom_kills > l->seen.oom_kills)
		tell(arg, &(struct limit_hit){ .type = WIRE_LIMIT_MEMORY,
					       .value = l->set->memory,
					       .used = now.mem_peak,
					       .count = now.oom_kills - l->seen.oom_kills });
	tell_cpu(l, &now, tell, arg);
	l->seen = now;
	if (l->set->cpu_milli)
		l->next_ns = clock_ns(CLOCK_MONOTONIC) + l->step_ns;
}
