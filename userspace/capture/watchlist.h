/* SPDX-License-Identifier: Apache-2.0 */
/* Files whose reading the operator wants to see. */
#ifndef WARDER_CAPTURE_WATCHLIST_H
#define WARDER_CAPTURE_WATCHLIST_H

#include <stddef.h>
#include <stdint.h>
#include "bpf/abi/maps.h"
#include "userspace/base/err.h"

/* One entry, as the operator writes it: "/path" only this, "/dir/" it and all below, "/path*" all that
 * begins so. Ids are places in the list, from 1 on. */
struct watch_entry {
	const char *text;
	/* Where the file lies on this host, to know it by its inode; NULL: by its path only. Tried: what
	 * is not there is watched by path. */
	const char *host_path;
};

struct watchlist_key {
	struct enforce_path_key key;
	uint32_t id;
};

struct watchlist_row {
	struct watchlist_inode key;
	uint32_t id;
};

struct watchlist_tables {
	struct watchlist_key paths[WATCHLIST_PATHS_MAX];
	struct watchlist_row inodes[WATCHLIST_INODES_MAX];
	size_t paths_n, inodes_n;
	uint32_t mode; /* WATCHLIST_* */
};

/* -EINVAL: not an absolute, clean path, or too long; -E2BIG: too many. err names the entry. */
int watchlist_compile(struct watchlist_tables *t, const struct watch_entry *v, size_t n,
		      struct err *err);
/* Root only: into the kernel's maps. */
int watchlist_load(const struct watchlist_tables *t, int paths_fd, int inodes_fd, struct err *err);
/* Is it an entry that can be compiled? */
int watchlist_check(const char *text, struct err *err);

#endif
