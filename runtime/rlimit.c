// SPDX-License-Identifier: Apache-2.0
/* Per-process limits: what no cgroup counts, and what stands in where a controller is absent. */
#include "runtime/setup.h"

#include <errno.h>
#include <sys/resource.h>

#include "userspace/base/auto.h"

#define MEMLOCK_BYTES  (8u << 20)
#define MSGQUEUE_BYTES (800u << 10)
#define SIGPENDING_MAX 1024

/* Lowering only: raising a hard limit needs a right we may not have, and is never meant. */
static int set(int which, rlim_t value)
{
	struct rlimit lim;

	if (getrlimit(which, &lim) < 0)
		return -errno;
	if (value < lim.rlim_max)
		lim.rlim_max = value;
	lim.rlim_cur = MIN(value, lim.rlim_max);
	return setrlimit(which, &lim) < 0 ? -errno : 0;
}

/* What was asked for, as far as it is less. */
static int set_given(struct setup *s)
{
	const struct sandbox_container *c = s->plan->container;

	for (size_t i = 0; c && i < c->rlimits_n; i++) {
		struct rlimit lim;

		setup_at(s, "of the container");
		if (getrlimit((__rlimit_resource_t)c->rlimits[i].which, &lim) < 0)
			return -errno;
		lim.rlim_max = MIN(lim.rlim_max, (rlim_t)c->rlimits[i].hard);
		lim.rlim_cur = MIN(lim.rlim_max, (rlim_t)c->rlimits[i].soft);
		if (setrlimit((__rlimit_resource_t)c->rlimits[i].which, &lim) < 0)
			return -errno;
	}
	return 0;
}

int setup_rlimits(struct setup *s)
{
	const struct sandbox_plan *p = s->plan;
	const struct sandbox_limits *l = &p->limits;
	bool no_memory = p->host.controller[CONTROLLER_MEMORY] == CONTROLLER_ABSENT;
	bool no_pids = p->host.controller[CONTROLLER_PIDS] == CONTROLLER_ABSENT;
	const struct {
		const char *name;
		int which;
		rlim_t value;
		bool on;
	} rows[] = {
		{ "RLIMIT_CORE", RLIMIT_CORE, 0, true },
		{ "RLIMIT_NOFILE", RLIMIT_NOFILE, l->nofile, l->nofile != 0 },
		{ "RLIMIT_FSIZE", RLIMIT_FSIZE, l->fsize, l->fsize != 0 },
		{ "RLIMIT_MEMLOCK", RLIMIT_MEMLOCK, MEMLOCK_BYTES, true },
		{ "RLIMIT_MSGQUEUE", RLIMIT_MSGQUEUE, MSGQUEUE_BYTES, true },
		{ "RLIMIT_SIGPENDING", RLIMIT_SIGPENDING, SIGPENDING_MAX, true },
		{ "RLIMIT_NICE", RLIMIT_NICE, 0, true },
		{ "RLIMIT_RTPRIO", RLIMIT_RTPRIO, 0, true },
		/* Only where pids.max cannot count: this one would refuse first, and nobody would be
		 * told. The id is this sandbox's alone, so its count is the sandbox's, init included. */
		{ "RLIMIT_NPROC", RLIMIT_NPROC, l->pids + 1, no_pids && l->pids != 0 },
		{ "RLIMIT_DATA", RLIMIT_DATA, l->memory, no_memory && l->memory != 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int r;

		if (!rows[i].on)
			continue;
		setup_at(s, rows[i].name);
		r = set(rows[i].which, rows[i].value);
		if (r < 0)
			return r;
	}
	return set_given(s);
}
