/* SPDX-License-Identifier: Apache-2.0 */
/* What this host gives to a launcher, asked from the kernel. A plan is made from a spec and this, so
 * tests can hand in a host of their own. */
#ifndef WARDER_RUNTIME_HOST_H
#define WARDER_RUNTIME_HOST_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include "userspace/base/err.h"

enum controller { CONTROLLER_MEMORY, CONTROLLER_PIDS, CONTROLLER_CPU, CONTROLLER_COUNT };

extern const char *const controller_names[CONTROLLER_COUNT];

/* Where a limit can be set. */
enum controller_where {
	CONTROLLER_ABSENT, /* nowhere: a fallback or none */
	CONTROLLER_V2,
	CONTROLLER_V1, /* in a directory of ours under our own path of that hierarchy */
};

#define HOST_PATH_MAX 512

struct host {
	char root[HOST_PATH_MAX]; /* where the host's files are seen; "" = / */
	char v2[HOST_PATH_MAX];	  /* mount point of cgroup v2; "" = none */
	enum controller_where controller[CONTROLLER_COUNT];
	char v1[CONTROLLER_COUNT][HOST_PATH_MAX]; /* our own directory in that hierarchy */
	bool userns;
	int landlock_abi; /* 0 = none */
	bool seccomp;
	bool seccomp_notify;  /* SECCOMP_RET_USER_NOTIF, since 5.0 */
	unsigned long fd_max; /* hard limit of open files here */
};

/* Fills `ret` from /proc and the kernel. Never fails: what cannot be found is absent. */
void host_probe(struct host *ret);

/* `text` is /proc/self/mountinfo; the cgroup part of host_probe, for tests. `self` is
 * /proc/self/cgroup. Paths that do not fit are left out. */
void host_cgroups_parse(struct host *h, const char *mountinfo, const char *self);

#endif
