// SPDX-License-Identifier: Apache-2.0
#include "userspace/base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ARENA_BLOCK (64 * 1024)

struct arena_block {
	struct arena_block *next;
	size_t size;
	char data[] __attribute__((aligned(16)));
};

void arena_init(struct arena *a, size_t limit)
{
	*a = (struct arena){ .limit = limit };
}

static void free_blocks(struct arena_block *b)
{
	while (b) {
		struct arena_block *next = b->next;

		free(b);
		b = next;
	}
}

void arena_done(struct arena *a)
{
	free_blocks(a->head);
	*a = (struct arena){ .limit = a->limit };
}

void arena_reset(struct arena *a)
{
	if (a->head) {
		struct arena_block *keep = a->head;

		/* An oversized block is given back: one huge argv must not pin memory. */
		while (keep->next && keep->size > ARENA_BLOCK) {
			struct arena_block *next = keep->next;

			free(keep);
			keep = next;
		}
		free_blocks(keep->next);
		keep->next = NULL;
		if (keep->size > ARENA_BLOCK) {
			free(keep);
			keep = NULL;
		}
		a->head = keep;
	}
	a->used = 0;
	a->total = 0;
	a->full = false;
}

void *arena_alloc(struct arena *a, size_t n)
{
	struct arena_block *b = a->head;
	void *p;

	if (n > SIZE_MAX / 2)
		return NULL;
	n = (n + 7) & ~(size_t)7;
	if (a->limit && (n > a->limit || a->total > a->limit - n)) {
		a->full = true;
		return NULL;
	}
	if (!b || b->size - a->used < n) {
		size_t size = n > ARENA_BLOCK ? n : ARENA_BLOCK;

		b = malloc(sizeof(*b) + size);
		if (!b)
			return NULL;
		b->size = size;
		b->next = a->head;
		a->head = b;
		a->used = 0;
	}
	p = b->data + a->used;
	a->used += n;
	a->total += n;
	return p;
}

void *arena_zalloc(struct arena *a, size_t n)
{
	void *p = arena_alloc(a, n);

	if (p)
		memset(p, 0, n);
	return p;
}

struct str arena_strndup(struct arena *a, const char *p, size_t n)
{
	char *d = n < SIZE_MAX ? arena_alloc(a, n + 1) : NULL;

	if (!d)
		return (struct str){ 0 };
	if (n)
		memcpy(d, p, n);
	d[n] = 0;
	return (struct str){ d, n };
}

struct str arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap;
	char *d;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return (struct str){ 0 };
	d = arena_alloc(a, (size_t)n + 1);
	if (!d)
		return (struct str){ 0 };
	va_start(ap, fmt);
	vsnprintf(d, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return (struct str){ d, (size_t)n };
}
