/* SPDX-License-Identifier: Apache-2.0 */
/* Whole reads and writes, and files that appear complete or not at all. */
#ifndef WARDER_BASE_FD_H
#define WARDER_BASE_FD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "userspace/base/buf.h"

/* All n bytes or an error; restarts on EINTR and short writes. */
int fd_write_all(int fd, const void *p, size_t n);
/* Up to n bytes, fewer only at end of file. Returns the count. */
ssize_t fd_read_full(int fd, void *p, size_t n);
/* The rest of a file, at most b->max bytes (-EFBIG beyond). */
int fd_read_rest(int fd, struct buf *b);
/* A whole file of at most `max` bytes; a NUL is put behind it, not counted. -EFBIG beyond. */
int file_read_at(int dirfd, const char *path, size_t max, char **ret_text, size_t *ret_n);
/* The rest of what is open, likewise. */
int fd_read_text(int fd, size_t max, char **ret_text, size_t *ret_n);
/* One value written to a kernel file (cgroup, sysctl). */
int file_write_at(int dirfd, const char *path, const char *text);
/* Write temporary, fsync, rename, fsync the directory. */
int file_replace_at(int dirfd, const char *name, const void *p, size_t n, mode_t mode);
#define FD_SEND_MAX 8
/* One sendmsg of n bytes with `count` descriptors, at most FD_SEND_MAX, 0 too (SCM_RIGHTS, unix(7)); never a signal.
 * Bytes or -errno. */
ssize_t fd_send(int sock, const void *p, size_t n, const int *fds, size_t count, int flags);
/* One recvmsg of up to n bytes. With exactly `count` descriptors, ret_fds has them, close-on-exec; with fewer or more it
 * has -1 and all that came are closed. Bytes (with MSG_TRUNC: of the whole packet) or -errno. */
ssize_t fd_recv(int sock, void *p, size_t n, int *ret_fds, size_t count, int flags);
/* Close every descriptor from 3 on that is not in `keep` (sorted in place; -1 means none). -errno. */
int fd_keep_only(int *keep, size_t n);
/* mkdir -p; existing directories are fine. */
int dir_make_all(const char *path, mode_t mode);

#endif
