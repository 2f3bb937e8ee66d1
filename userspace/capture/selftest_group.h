/* SPDX-License-Identifier: Apache-2.0 */
/* Control groups of the self-test. */
#ifndef WARDER_CAPTURE_SELFTEST_GROUP_H
#define WARDER_CAPTURE_SELFTEST_GROUP_H

#include <stdbool.h>
#include <limits.h>

#include "userspace/base/err.h"

struct selftest_group {
	int leaf;	   /* the scratch sandbox, a v2 directory */
	int outside;	   /* cgroup.procs of the hierarchy's root; -1 = none */
	int limited_tasks; /* tasks or cgroup.procs of one with a limit of memory; -1 = none */
	char path[PATH_MAX], limited[PATH_MAX];
};

/* What a self-test left that was killed goes, too. `limited`: with the group that has little memory, where
 * the host can have one. */
int selftest_group_open(struct selftest_group *ret, bool limited, struct err *err);
void selftest_group_close(struct selftest_group *g);

#endif
