/* SPDX-License-Identifier: Apache-2.0 */
/* Growable byte buffer with a hard maximum. A failed append sets `failed` and changes nothing, so a
 * long run of appends needs one check at its end. */
#ifndef WARDER_BASE_BUF_H
#define WARDER_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

struct buf {
	char *p;
	size_t n;
	size_t cap;
	size_t max; /* 0 = BUF_MAX_DEFAULT */
	bool failed;
};

#define BUF_MAX_DEFAULT ((size_t)64 << 20)

void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b);
static inline void buf_reset(struct buf *b)
{
	b->n = 0;
	b->failed = false;
}

/* Make room for n more bytes. 0, -ENOMEM, or -EMSGSIZE past the maximum. */
int buf_reserve(struct buf *b, size_t n);
int buf_add(struct buf *b, const void *p, size_t n);
int buf_addz(struct buf *b, const char *z);
int buf_addc(struct buf *b, char c);
int buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Drop the first n bytes. */
void buf_consume(struct buf *b, size_t n);

#define auto_buf __attribute__((cleanup(buf_done)))

#endif
