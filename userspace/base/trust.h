/* SPDX-License-Identifier: Apache-2.0 */
/* Files that decide what a root process does (rules, policies, baselines): only who may be root anyway may change
 * them, as sshd asks of its files (StrictModes). */
#ifndef WARDER_BASE_TRUST_H
#define WARDER_BASE_TRUST_H

#include <stdbool.h>
#include <sys/types.h>
#include "userspace/base/err.h"

/* Whose files are gone by. */
struct trust {
	uid_t uid[4];
	gid_t gid[2]; /* groups whose members may write */
	size_t uids, gids;
};

/* Root, the effective and the real user, who called by sudo; the groups of root and of who called by sudo (by default
 * their files are writable by a group that has nobody else in it). */
void trust_init(struct trust *t);
bool trust_uid(const struct trust *t, uid_t uid);

/* May `path`, open as fd, be gone by? Its owner, its mode and access list, and those of every directory above it, of the
 * name and of what a link leads to. Directories with the sticky bit and read-only mounts may be writable. What lies in
 * /dev (/dev/fd/63, /dev/stdin) was handed over and is taken as it is. -EPERM with what is wrong. */
int trust_check(const struct trust *t, int fd, const char *path, struct err *err);
/* The same with trust_init, when we are root; others risk nothing of others'. */
int file_trusted(int fd, const char *path, struct err *err);
/* file_read_at by path, of a file that is trusted; `what` is its name in the message: "policy". */
int file_read_trusted(const char *path, size_t max, char **ret_text, size_t *ret_n,
		      const char *what, struct err *err);

#endif
