/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is written piece by piece and appears whole or not at all. */
#ifndef WARDER_BASE_FD_NEW_H
#define WARDER_BASE_FD_NEW_H

#include <limits.h>
#include <sys/types.h>
#include "userspace/base/err.h"

struct fd_new {
	int fd, dirfd;
	char name[NAME_MAX + 1], tmp[NAME_MAX + 1];
};

/* NULL or "-": stdout. What is there and is no regular file (/dev/null, a pipe) is written to as it is. A link is
 * not followed: the file takes its place. 0, or -errno with the path in err. */
int fd_new_open(struct fd_new *ret, const char *path, mode_t mode, struct err *err);
int fd_new_write(void *file, const void *p, size_t n);
/* Who called us by sudo gets the file that he asked for; others keep what they have. */
void fd_new_give_to_caller(const struct fd_new *f);
/* All of it is there: the name appears. */
int fd_new_commit(struct fd_new *f, struct err *err);
/* Without a commit before: nothing was written. Does nothing twice. */
void fd_new_done(struct fd_new *f);

#endif
