/* SPDX-License-Identifier: Apache-2.0 */
/* --workspace name:NAME: a directory <state>/workspaces/<tenant>/<NAME> that outlives its sandboxes, for one of them
 * at a time. */
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
	uint64_t changed_s; /* CLOCK_REALTIME */
};

/* Make it if need be, lock it until named_workspace_release, and say where it is (4096 bytes). -EBUSY: another has it. */
int named_workspace_take(char *ret_path, const char *tenant, const char *name, struct err *err);
void named_workspace_release(void);
/* Each there is. Stops when `fn` returns less than 0. */
int named_workspace_each(int (*fn)(void *arg, const struct named_workspace *w), void *arg,
			 struct err *err);
/* -EBUSY: it is in use; -ENOENT. */
int named_workspace_remove(const char *tenant, const char *name, struct err *err);

#endif
