/* SPDX-License-Identifier: Apache-2.0 */
/* Consumer side of one BPF ring buffer (include/uapi/linux/bpf.h, kernel/bpf/ringbuf.c), done by hand
 * because libbpf's consumer frees each record before the next: ordering two rings by time without
 * copying needs to look ahead. Works without any privilege once mapped. */
#ifndef WARDER_CAPTURE_RING_H
#define WARDER_CAPTURE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "userspace/base/err.h"

struct ring {
	const uint8_t *data; /* mapped twice in a row: a record never wraps */
	size_t size;	     /* power of two */
	uint64_t *consumer;  /* shared with the kernel, we write */
	const uint64_t *producer;
	void *map_cons;
	void *map_prod;
	size_t page;
};

/* Map the ring behind a BPF_MAP_TYPE_RINGBUF descriptor. */
int ring_map(struct ring *r, int fd, size_t size, struct err *err);
void ring_unmap(struct ring *r);

/* Look at the record at `*pos` (start with ring_begin). Returns 1 and moves *pos behind it, setting
 * *ret_rec = NULL for one that its producer gave up; 0 when there is none, or it isn't finished. */
int ring_peek(const struct ring *r, uint64_t *pos, const uint8_t **ret_rec, uint32_t *ret_len);
uint64_t ring_begin(const struct ring *r);
/* Everything before `pos` may be overwritten. */
void ring_release(struct ring *r, uint64_t pos);
/* Bytes waiting, unfinished ones included. */
uint64_t ring_used(const struct ring *r);

#endif
