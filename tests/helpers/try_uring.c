/* SPDX-License-Identifier: Apache-2.0 */
/* File operations through io_uring, without a library.
 *   try_uring plain|sqpoll|worker OP...
 * where OP is open:PATH, mkdir:PATH, unlink:PATH, rename:OLD:NEW, link:OLD:NEW, symlink:TEXT:NEW,
 * write:PATH:TEXT (opened by open, closed by the ring), truncate:PATH:LENGTH, fsetxattr:PATH:NAME,
 * setxattr:PATH:NAME or connect:PORT (127.0.0.1). Prints the
 * result of each on a line. sqpoll: the kernel's own thread takes the work; worker: a worker thread does
 * it. Exit code 77: this kernel has no io_uring for us. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
	int fd;
	unsigned int *sq_tail, *sq_mask, *sq_array, *sq_flags, *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
} ring;

static void setup(unsigned int flags)
{
	struct io_uring_params p = { .flags = flags, .sq_thread_idle = 1000 };
	char *sq, *cq;

	ring.fd = (int)syscall(__NR_io_uring_setup, 8, &p);
	if (ring.fd < 0) {
		fprintf(stderr, "io_uring_setup: %s\n", strerror(errno));
		exit(77);
	}
	sq = mmap(NULL, p.sq_off.array + p.sq_entries * 4, PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQ_RING);
	cq = mmap(NULL, p.cq_off.cqes + p.cq_entries * sizeof(*ring.cqes), PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_CQ_RING);
	ring.sqes = mmap(NULL, p.sq_entries * sizeof(*ring.sqes), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQES);
	if (sq == MAP_FAILED || cq == MAP_FAILED || ring.sqes == MAP_FAILED)
		exit(77);
	ring.sq_tail = (unsigned int *)(void *)(sq + p.sq_off.tail);
	ring.sq_mask = (unsigned int *)(void *)(sq + p.sq_off.ring_mask);
	ring.sq_array = (unsigned int *)(void *)(sq + p.sq_off.array);
	ring.sq_flags = (unsigned int *)(void *)(sq + p.sq_off.flags);
	ring.cq_head = (unsigned int *)(void *)(cq + p.cq_off.head);
	ring.cq_tail = (unsigned int *)(void *)(cq + p.cq_off.tail);
	ring.cq_mask = (unsigned int *)(void *)(cq + p.cq_off.ring_mask);
	ring.cqes = (struct io_uring_cqe *)(void *)(cq + p.cq_off.cqes);
}

static int submit(const struct io_uring_sqe *sqe)
{
	unsigned int tail = *ring.sq_tail, at = tail & *ring.sq_mask,
		     flags = IORING_ENTER_GETEVENTS;
	int res;

	ring.sqes[at] = *sqe;
	ring.sq_array[at] = at;
	__atomic_store_n(ring.sq_tail, tail + 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(ring.sq_flags, __ATOMIC_SEQ_CST) & IORING_SQ_NEED_WAKEUP)
		flags |= IORING_ENTER_SQ_WAKEUP;
	while (__atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE) == *ring.cq_head)
		if (syscall(__NR_io_uring_enter, ring.fd, 1, 1, flags, NULL, 0) < 0 &&
		    errno != EINTR)
			return -errno;
	res = ring.cqes[*ring.cq_head & *ring.cq_mask].res;
	__atomic_store_n(ring.cq_head, *ring.cq_head + 1, __ATOMIC_RELEASE);
	return res;
}

/* Two words: a name and what to do with it. */
static int run_second(struct io_uring_sqe *e, const char *op, char *first, char *second)
{
	struct io_uring_sqe close_it = { .opcode = IORING_OP_CLOSE };
	int r;

	if (strcmp(op, "rename") == 0 || strcmp(op, "link") == 0) {
		e->opcode = op[0] == 'r' ? IORING_OP_RENAMEAT : IORING_OP_LINKAT;
		e->len = (unsigned int)AT_FDCWD;
		e->off = (unsigned long)second;
		return submit(e);
	}
	if (strcmp(op, "symlink") == 0) {
		e->opcode = IORING_OP_SYMLINKAT;
		e->addr2 = (unsigned long)second;
		return submit(e);
	}
	if (strcmp(op, "setxattr") == 0) {
		e->opcode = IORING_OP_SETXATTR;
		e->addr = (unsigned long)second;
		e->addr2 = (unsigned long)"value";
		e->len = 5;
		e->addr3 = (unsigned long)first;
		return submit(e);
	}
	e->fd = open(first, O_CREAT | O_WRONLY | O_CLOEXEC, 0640);
	e->addr = 0;
	if (strcmp(op, "write") == 0) {
		e->opcode = IORING_OP_WRITE;
		e->addr = (unsigned long)second;
		e->len = (unsigned int)strlen(second);
	} else if (strcmp(op, "truncate") == 0) {
		e->opcode = 55; /* IORING_OP_FTRUNCATE, 6.9 */
		e->off = strtoul(second, NULL, 0);
	} else {
		e->opcode = IORING_OP_FSETXATTR;
		e->addr = (unsigned long)second;
		e->addr2 = (unsigned long)"value";
		e->len = 5;
	}
	r = submit(e);
	close_it.fd = e->fd;
	submit(&close_it);
	return r;
}

static int run(char *op, unsigned int sqe_flags)
{
	struct io_uring_sqe e = { .fd = AT_FDCWD, .flags = (unsigned char)sqe_flags };
	struct sockaddr_in sa = { .sin_family = AF_INET };
	char *arg = strchr(op, ':'), *second;

	if (!arg)
		return -EINVAL;
	*arg++ = '\0';
	e.addr = (unsigned long)arg;
	if (strcmp(op, "open") == 0) {
		e.opcode = IORING_OP_OPENAT;
		e.open_flags = O_CREAT | O_WRONLY;
		e.len = 0640;
	} else if (strcmp(op, "mkdir") == 0) {
		e.opcode = IORING_OP_MKDIRAT;
		e.len = 0750;
	} else if (strcmp(op, "unlink") == 0) {
		e.opcode = IORING_OP_UNLINKAT;
	} else if (strcmp(op, "connect") != 0) {
		second = strchr(arg, ':');
		if (!second)
			return -EINVAL;
		*second++ = '\0';
		return run_second(&e, op, arg, second);
	} else {
		inet_aton("127.0.0.1", &sa.sin_addr);
		sa.sin_port = htons((unsigned short)atoi(arg));
		e.fd = socket(AF_INET, SOCK_STREAM, 0);
		e.opcode = IORING_OP_CONNECT;
		e.addr = (unsigned long)&sa;
		e.off = sizeof(sa);
	}
	return submit(&e);
}

int main(int argc, char **argv)
{
	unsigned int sqe_flags = 0;

	if (argc < 3)
		return 2;
	setup(strcmp(argv[1], "sqpoll") == 0 ? IORING_SETUP_SQPOLL : 0);
	if (strcmp(argv[1], "worker") == 0)
		sqe_flags = IOSQE_ASYNC;
	for (int i = 2; i < argc; i++)
		fprintf(stderr, "%d\n", run(argv[i], sqe_flags));
	return 0;
}
