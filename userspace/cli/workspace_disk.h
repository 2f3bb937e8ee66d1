/* SPDX-License-Identifier: Apache-2.0 */
/* The disk of a named workspace: an ext4 file system in a sparse file, mounted by a loop device in a mount namespace of
 * this process's own. When the last process of that namespace has ended, however it did, the kernel unmounts it and
 * lets the device go: nothing is left on the host but the file. */
#ifndef WARDER_CLI_WORKSPACE_DISK_H
#define WARDER_CLI_WORKSPACE_DISK_H

#include <stdbool.h>
#include <stdint.h>
#include "userspace/base/err.h"

#define WORKSPACE_DISK_MIN (4ull << 20)

/* Make the file `name` in `dir`, of `size` bytes, with an empty file system; it appears whole or not at all.
 * -EOPNOTSUPP: this host has no mke2fs or no loop devices. */
int workspace_disk_make(int dir, const char *name, uint64_t size, struct err *err);
/* Mount it on `path`; `size` larger than it is: it grows to that. The caller has the workspace's lock. -EBUSY: it is
 * mounted, by what somebody who died has left for a moment. */
int workspace_disk_mount(int dir, const char *name, const char *path, uint64_t size,
			 struct err *err);
/* What is free on the disk that is mounted on `path` is the host's again. */
void workspace_disk_trim(const char *path);
/* There need not be one. -EBUSY: it is mounted. */
int workspace_disk_remove(int dir, const char *name, struct err *err);
/* Its size as the payload's limit, and what it takes of the host's disk; false: there is none. */
bool workspace_disk_size(int dir, const char *name, uint64_t *ret_size, uint64_t *ret_used);

#endif
