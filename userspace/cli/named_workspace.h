/* SPDX-License-Identifier: Apache-2.0 */
/* --workspace name:NAME: a directory <state>/workspaces/<tenant>/<NAME> that outlives its sandboxes, for one of them
 * at a time. On it a disk of limited size is mounted (workspace_disk.h), its file lies beside it. */
#ifndef WARDER_CLI_NAMED_WORKSPACE_H
#define WARDER_CLI_NAMED_WORKSPACE_H

#include <stdbool.h>
#include <stdint.h>
#include "userspace/base/err.h"
#include "userspace/pipeline/tenant_dir.h"

#define WORKSPACE_PREFIX   "name:"
#define WORKSPACE_NAME_MAX TENANT_DIR_NAME_MAX

struct named_workspace {
	char tenant[WORKSPACE_NAME_MAX + 1], name[WORKSPACE_NAME_MAX + 1];
	bool in_use;
	uint64_t changed_s;  /* CLOCK_REALTIME */
	uint64_t size, used; /* bytes: its limit, and of the host's disk; size 0 = no limit */
};

/* Make it if need be, with a disk of `size` bytes; one that is smaller grows to that. Lock it until
 * named_workspace_release, and say where it is (4096 bytes). *ret_limited: false where the host gives no disk of its
 * own. -EBUSY: another has it. */
int named_workspace_take(char *ret_path, bool *ret_limited, const char *tenant, const char *name,
			 uint64_t size, struct err *err);
void named_workspace_release(void);
/* What it may hold, in use or not; 0: there is none, or it has no limit. */
uint64_t named_workspace_size(const char *tenant, const char *name);
/* Each there is, of `tenant`, NULL = of all. Stops when `fn` returns less than 0. */
int named_workspace_each(const char *tenant, int (*fn)(void *arg, const struct named_workspace *w),
			 void *arg, struct err *err);
/* -EBUSY: it is in use; -ENOENT. */
int named_workspace_remove(const char *tenant, const char *name, struct err *err);

#endif
