/* SPDX-License-Identifier: Apache-2.0 */
/* Bump allocator: everything an event points to lives here and ends with arena_reset. */
#ifndef WARDER_BASE_ARENA_H
#define WARDER_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include "userspace/base/str.h"

struct arena_block;

struct arena {
	struct arena_block *head; /* block in use, older ones behind it */
	size_t used;		  /* bytes used in head */
	size_t total;		  /* bytes handed out since the last reset */
	size_t limit;		  /* never hand out more than this; 0 = no limit */
	bool full;		  /* since the last reset, the limit was why there was nothing */
};

/* `limit`: the most bytes that may live in the arena at once. */
void arena_init(struct arena *a, size_t limit);
void arena_done(struct arena *a);

/* Forget everything; keeps one block so that the steady state allocates nothing. */
void arena_reset(struct arena *a);

/* 8-byte aligned, uninitialised. NULL when the limit or memory is exhausted. */
void *arena_alloc(struct arena *a, size_t n);
void *arena_zalloc(struct arena *a, size_t n);

/* Copy with a NUL behind it (the NUL is not counted). p == NULL on failure. */
struct str arena_strndup(struct arena *a, const char *p, size_t n);
struct str arena_printf(struct arena *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
