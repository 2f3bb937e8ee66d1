/* SPDX-License-Identifier: Apache-2.0 */
/* The cgroups of one sandbox: a v2 leaf <v2>/warder/<session>, which is its identity, and on hybrid
 * hosts one directory warder-<session> under our own path of each v1 hierarchy that holds a
 * controller. No state file: a lock on the leaf says that its warder lives, an attribute on it says
 * where the v1 directories are. All of it goes away with the leaf. */
#ifndef WARDER_RUNTIME_CGROUP_H
#define WARDER_RUNTIME_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/host.h"
#include "userspace/base/err.h"

#define CGROUP_PATH_MAX	 (HOST_PATH_MAX + 320)
#define CGROUP_PARENT	 "warder"
#define CGROUP_V1_PREFIX "warder-"
#define CGROUP_ATTR_V1	 "trusted.warder.v1" /* paths of the v1 directories, a line each */

struct sandbox_limits;

struct cgroup {
	const char *v2; /* mount point; borrowed from the plan */
	int leaf;	/* O_DIRECTORY, flock()ed */
	int kill, freeze, events;
	uint64_t id;
	char path[CGROUP_PATH_MAX];
	enum controller_where where[CONTROLLER_COUNT]; /* as it turned out */
	char v1[CONTROLLER_COUNT][CGROUP_PATH_MAX];
	int v1_fd[CONTROLLER_COUNT];	/* directory; -1 */
	int v1_tasks[CONTROLLER_COUNT]; /* for the set-up task to join; -1 */
};

struct cgroup_usage {
	uint64_t mem_now, pids_now;
	uint64_t cpu_usec, mem_peak, pids_peak, oom_kills, pids_denied;
	uint64_t cpu_throttled; /* periods in which it was held back */
	uint64_t cpu_throttled_usec;
};

/* A cgroup whose descriptors are all -1: cgroup_remove accepts it. */
void cgroup_none(struct cgroup *c);
/* Makes the directories and sets the limits. On failure nothing is left. A limit whose controller
 * cannot be had is left out and shows in c->where. */
int cgroup_create(struct cgroup *c, const struct host *h, const char *session,
		  const struct sandbox_limits *l, struct err *err);
/* Kills all members and waits until none is left. `leader`: pidfd whose end takes the others along, or
 * -1. -ETIMEDOUT, -errno. */
int cgroup_kill(struct cgroup *c, int leader, int timeout_ms);
/* Kills only. */
int cgroup_kill_now(struct cgroup *c);
bool cgroup_is_populated(const struct cgroup *c);
/* Files that poll as POLLPRI when a limit of memory or pids was hit; -1 = there is none. */
void cgroup_hit_fds(const struct cgroup *c, int ret_fds[2]);
void cgroup_usage(const struct cgroup *c, struct cgroup_usage *ret);
/* Removes the directories and closes everything. -errno when one had to stay. */
int cgroup_remove(struct cgroup *c);
/* Closes everything and leaves the directories. */
void cgroup_close(struct cgroup *c);
/* Our directory in the v2 hierarchy, if nobody is left in it. */
void cgroup_remove_parent(const char *v2);
/* rmdir that waits for dying tasks until `end` (CLOCK_MONOTONIC ns). Gone already is fine. */
int cgroup_remove_dir(int dirfd, const char *path, uint64_t end);
/* See sandbox_sweep. */
int cgroup_sweep(const struct host *h, struct err *err);

#endif
