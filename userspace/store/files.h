/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a bundle (FORMAT.md section 1), for those who count or remove it and do not read it. Whatever lies in
 * the directory is hostile: nothing is opened but directories, no link is followed. */
#ifndef WARDER_STORE_FILES_H
#define WARDER_STORE_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include "userspace/base/err.h"

/* `dir` and `name`: for unlinkat. Return other than 0 to stop. */
typedef int (*store_file_fn)(void *arg, int dir, const char *name, const struct stat *st);

/* Each regular file that belongs to a bundle: kept texts first, then what a writer left half made, then segments from
 * the last to the first, and what tells of them at the end: who removes them in this order and is stopped leaves a
 * record that was cut, and not one that begins later or looks whole. Other names are passed over. -errno, or what `fn` returned. */
int store_files(int bundle_fd, store_file_fn fn, void *arg);

/* What the bundle takes, in bytes, and a number that changes with any of its files. */
int store_size(int bundle_fd, uint64_t *ret_bytes, uint64_t *ret_mark);

struct manifest_info;

/* Does a process write it? It holds the directory's lock. */
bool store_has_writer(int bundle_fd);
/* Are the segments of a sealed bundle, of both kinds or (`tty_only`) its terminal's, as many and as long as its manifest
 * tells? By their names and sizes alone, so that it costs nothing: what was cut off or added is told, what was altered
 * is for verify. -EBADMSG. */
int store_check_sizes(int bundle_fd, const struct manifest_info *m, bool tty_only, struct err *err);

/* Remove the bundle `name` in `parent_fd`: what a bundle consists of and nothing else. A directory with more in it
 * stays, with -ENOTEMPTY. A bundle that is gone is no error. */
int store_remove(int parent_fd, const char *name, struct err *err);

#endif
