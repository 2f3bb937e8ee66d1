/* SPDX-License-Identifier: Apache-2.0 */
/* What is in the writable places of a sandbox, before and after. A hostile tree is walked by descriptors:
 * openat2 beneath the place, without links and other file systems; only what fstat calls a regular file is
 * ever opened for reading. Every cost has a limit, and what is left out for it is told.
 *
 * Runs in a process of its own, without privileges but that to read; its results are bytes in a memory
 * file, taken like any other input. */
#ifndef WARDER_WORKSPACE_WORKSPACE_H
#define WARDER_WORKSPACE_WORKSPACE_H

#include <stdbool.h>
#include <stdint.h>
#include "bpf/abi/wire.h"
#include "userspace/base/buf.h"
#include "userspace/base/err.h"

#define WORKSPACE_PLACES_MAX 64
#define WORKSPACE_PATH_MAX   4095
#define WORKSPACE_WHY_MAX    16

struct workspace_place {
	const char *inside; /* path in the sandbox */
	int fd;		    /* O_PATH is enough */
};

/* 0 = none of it. */
struct workspace_limits {
	uint64_t files;	     /* entries remembered, over all places */
	uint32_t depth;	     /* of directories below a place */
	uint64_t file_bytes; /* larger files are not hashed */
	uint64_t bytes;	     /* hashed in all */
	uint64_t time_ns;
	uint64_t changes;   /* told one by one; more are counted */
	uint64_t text_file; /* texts of at most this are kept; 0 = none are */
	uint64_t text_bytes;
};

/* Before: it delays the start. After: the sandbox is dead. */
extern const struct workspace_limits workspace_limits_before, workspace_limits_after;
#define WORKSPACE_TEXT_FILE  (64u << 10)
#define WORKSPACE_TEXT_BYTES (8u << 20)

/* The state now, to `out_fd`, for workspace_compare. -errno. */
int workspace_snapshot(const struct workspace_place *places, size_t n,
		       const struct workspace_limits *limits, int out_fd);

/* What differs from the state in `before_fd` (-1: there was nothing), to `out_fd` as items: records
 * WORKSPACE_CHANGE by place and path, each behind its texts, then one WORKSPACE_SCAN. -errno. */
int workspace_compare(const struct workspace_place *places, size_t n,
		      const struct workspace_limits *limits, int before_fd,
		      enum wire_scan_when when, int out_fd);

/* ---- items.c ---- */

enum workspace_item_type {
	WORKSPACE_RECORD = 1, /* wire record; its sandbox is for the reader to say */
	WORKSPACE_TEXT,	      /* of the record that follows */
	WORKSPACE_TEXT_BEFORE,
};

struct workspace_item {
	uint32_t type;
	uint32_t n;
};

#define WORKSPACE_ITEM_MAX (128u << 10)

/* Buffered; one write to the file when it is full. */
int workspace_item_add(struct buf *out, int fd, enum workspace_item_type type, const void *p,
		       size_t n);
int workspace_items_flush(struct buf *out, int fd);
/* 1: *ret_type and `ret` (reset before); 0: the end; -EBADMSG: no such file; -errno. */
int workspace_item_next(int fd, enum workspace_item_type *ret_type, struct buf *ret);

#endif
