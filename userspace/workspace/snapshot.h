/* SPDX-License-Identifier: Apache-2.0 */
/* The state before, kept in a memory file from one short-lived process to the next. */
#ifndef WARDER_WORKSPACE_SNAPSHOT_H
#define WARDER_WORKSPACE_SNAPSHOT_H

#include "userspace/workspace/tree.h"

struct snapshot {
	uint64_t real_ns; /* when it was begun */
	bool complete;
	char *bytes; /* the entries' strings */
	struct entry *v;
	size_t n;
};

int snapshot_write(const struct tree *t, uint64_t real_ns, int fd);
/* -EBADMSG when it is none. */
int snapshot_read(struct snapshot *ret, int fd, size_t places_n);
void snapshot_done(struct snapshot *s);

#endif
