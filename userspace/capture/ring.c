/* SPDX-License-Identifier: Apache-2.0 */
#include "userspace/capture/ring.h"

#include <linux/bpf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RING_HDR 8

int ring_map(struct ring *r, int fd, size_t size, struct err *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *cons, *prod;

	memset(r, 0, sizeof(*r));
	cons = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (cons == MAP_FAILED)
		return err_set(err, errno, "map ring: %m");
	prod = mmap(NULL, page + 2 * size, PROT_READ, MAP_SHARED, fd, (off_t)page);
	if (prod == MAP_FAILED) {
		int e = errno;

		munmap(cons, page);
		return err_set(err, e, "map ring of %zu bytes: %s", size, strerror(e));
	}
	r->page = page;
	r->size = size;
	r->map_cons = cons;
	r->map_prod = prod;
	r->consumer = cons;
	r->producer = prod;
	r->data = (const uint8_t *)prod + page;
	return 0;
}

void ring_unmap(struct ring *r)
{
	if (r->map_cons)
		munmap(r->map_cons, r->page);
	if (r->map_prod)
		munmap(r->map_prod, r->page + 2 * r->size);
	memset(r, 0, sizeof(*r));
}

uint64_t ring_begin(const struct ring *r)
{
	return __atomic_load_n(r->consumer, __ATOMIC_RELAXED); /* only we write it */
}

int ring_peek(const struct ring *r, uint64_t *pos, const uint8_t **ret_rec, uint32_t *ret_len)
{
	const uint8_t *p = r->data + (*pos & (r->size - 1));
	uint32_t word, len;

	if (*pos >= __atomic_load_n(r->producer, __ATOMIC_ACQUIRE))
		return 0;
	word = __atomic_load_n((const uint32_t *)(const void *)p, __ATOMIC_ACQUIRE);
	if (word & BPF_RINGBUF_BUSY_BIT)
		return 0;
	len = word & ~BPF_RINGBUF_DISCARD_BIT;
	*ret_rec = word & BPF_RINGBUF_DISCARD_BIT ? NULL : p + RING_HDR;
	*ret_len = len;
	*pos += (len + RING_HDR + 7) & ~7ull;
	return 1;
}

void ring_release(struct ring *r, uint64_t pos)
{
	/* The kernel wakes us for a record only if it sees that all before it were taken: the store
	 * must be out before we look at the producer again. */
	__atomic_store_n(r->consumer, pos, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

uint64_t ring_used(const struct ring *r)
{
	if (!r->consumer)
		return 0;
	return __atomic_load_n(r->producer, __ATOMIC_ACQUIRE) -
	       __atomic_load_n(r->consumer, __ATOMIC_ACQUIRE);
}
