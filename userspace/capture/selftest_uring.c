// SPDX-License-Identifier: Apache-2.0
/* io_uring without a library: three requests, one after the other. */
#include "userspace/capture/selftest_uring.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENTRIES	  4
#define WAITS_MAX 100 /* interrupted calls */

struct small_ring {
	int fd;
	unsigned int *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
};

static void *map(int fd, size_t n, off_t at)
{
	return mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, at);
}

/* The mappings end with the process. */
static int set_up(struct small_ring *r)
{
	struct io_uring_params p = { 0 };
	char *sq, *cq;

	r->fd = (int)syscall(__NR_io_uring_setup, ENTRIES, &p);
	if (r->fd < 0)
		return errno == EPERM ? -ENOSYS : -errno;
	sq = map(r->fd, p.sq_off.array + p.sq_entries * sizeof(unsigned int), IORING_OFF_SQ_RING);
	cq = map(r->fd, p.cq_off.cqes + p.cq_entries * sizeof(*r->cqes), IORING_OFF_CQ_RING);
	r->sqes = map(r->fd, p.sq_entries * sizeof(*r->sqes), IORING_OFF_SQES);
	if (sq == MAP_FAILED || cq == MAP_FAILED || r->sqes == MAP_FAILED) {
		close(r->fd);
		return -ENOMEM;
	}
	r->sq_tail = (unsigned int *)(void *)(sq + p.sq_off.tail);
	r->sq_mask = (unsigned int *)(void *)(sq + p.sq_off.ring_mask);
	r->sq_array = (unsigned int *)(void *)(sq + p.sq_off.array);
	r->cq_head = (unsigned int *)(void *)(cq + p.cq_off.head);
	r->cq_tail = (unsigned int *)(void *)(cq + p.cq_off.tail);
	r->cq_mask = (unsigned int *)(void *)(cq + p.cq_off.ring_mask);
	r->cqes = (struct io_uring_cqe *)(void *)(cq + p.cq_off.cqes);
	return 0;
}

static int submit(struct small_ring *r, const struct io_uring_sqe *sqe)
{
	unsigned int tail = *r->sq_tail, at = tail & *r->sq_mask;
	int res;

	r->sqes[at] = *sqe;
	r->sq_array[at] = at;
	__atomic_store_n(r->sq_tail, tail + 1, __ATOMIC_RELEASE);
	for (int i = 0; __atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE) == *r->cq_head; i++)
		if (i == WAITS_MAX || (syscall(__NR_io_uring_enter, r->fd, i == 0, 1,
					       IORING_ENTER_GETEVENTS, NULL, 0) < 0 &&
				       errno != EINTR))
			return -errno;
	res = r->cqes[*r->cq_head & *r->cq_mask].res;
	__atomic_store_n(r->cq_head, *r->cq_head + 1, __ATOMIC_RELEASE);
	return res;
}

int selftest_uring(int dir, const char *name, int socket, const void *to, uint32_t to_len)
{
	struct iovec part = { "self-test", 9 };
	struct msghdr message = { .msg_name = (void *)(uintptr_t)to,
				  .msg_namelen = to_len,
				  .msg_iov = &part,
				  .msg_iovlen = 1 };
	struct io_uring_sqe open_it = { .opcode = IORING_OP_OPENAT,
					.fd = dir,
					.addr = (unsigned long)name,
					.len = 0600,
					.open_flags = O_CREAT | O_WRONLY | O_CLOEXEC };
	struct io_uring_sqe write_it = { .opcode = IORING_OP_WRITE,
					 .addr = (unsigned long)"self-test",
					 .len = 9 };
	struct io_uring_sqe send_it = { .opcode = IORING_OP_SENDMSG,
					.fd = socket,
					.addr = (unsigned long)&message,
					.len = 1,
					.msg_flags = MSG_DONTWAIT };
	struct small_ring ring;
	int r;

	r = set_up(&ring);
	if (r < 0)
		return r;
	submit(&ring, &send_it); /* refused by the network or not: what counts is that it is seen */
	write_it.fd = submit(&ring, &open_it);
	r = write_it.fd < 0 ? write_it.fd : submit(&ring, &write_it);
	if (write_it.fd >= 0)
		close(write_it.fd); /* what was written is told now */
	close(ring.fd);
	return r < 0 ? r : 0;
}
