/* SPDX-License-Identifier: Apache-2.0 */
/* <state>/KIND/TENANT/NAME: what stays of a tenant's sandboxes ("workspaces", "snapshots"). Root's alone. */
#ifndef WARDER_PIPELINE_TENANT_DIR_H
#define WARDER_PIPELINE_TENANT_DIR_H

#include <fcntl.h>
#include <stdbool.h>

#include "userspace/base/err.h"

#define TENANT_DIR_NAME_MAX 63
#define TENANT_DIR_FLAGS    (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)

/* Of a tenant or of what is theirs: letters, digits, '.', '_' and '-', the first a letter or a digit. */
bool tenant_dir_name_is_good(const char *z);
/* Is `tenant` one that can have such? -EINVAL. */
int tenant_dir_check(const char *kind, const char *tenant, struct err *err);
/* Of all tenants, and of one. `make`: makes what is not there; else -ENOENT. */
int tenant_dir_open_all(int *ret_fd, const char *kind, bool make, struct err *err);
int tenant_dir_open(int *ret_fd, const char *kind, const char *tenant, bool make, struct err *err);
/* `fn` for the directory of each tenant, by name, or of this one; until it returns other than 0, which is returned. Nothing
 * there is 0. */
int tenant_dir_each(const char *kind, const char *tenant,
		    int (*fn)(void *arg, const char *tenant, int dir), void *arg, struct err *err);

#endif
