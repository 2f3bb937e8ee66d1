/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on files and sockets through io_uring, without a library.
 *   try_uring plain|sqpoll|worker OP...
 * where OP is open:PATH, read:PATH (opened only), mkdir:PATH, unlink:PATH, rename:OLD:NEW, link:OLD:NEW, symlink:TEXT:NEW,
 * write:PATH:TEXT (opened by open, closed by the ring), truncate:PATH:LENGTH, fsetxattr:PATH:NAME,
 * setxattr:PATH:NAME, connect:PORT (127.0.0.1), or
 *   accept:HOW   of HOW (fd, direct = into slot 3, any = into a free slot, multi, skip = no completion when
 *                it works, unix), with a listener and a client of its own. Prints its port, the client's
 *                and the result.
 *   send:PORT, sendmsg:PORT   a datagram of 4 bytes from a new socket; PORT,FD: from that one
 *   sendto:PORT,FD            the same, with an address and no message (it has to be the last one)
 *   fixed:PORT,FD             sendmsg from a file of the ring's own
 * Prints the result of each on a line. sqpoll: the kernel's own thread takes the work; worker: a worker thread does
 * it. Exit code 77: this kernel has no io_uring for us. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
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

static void put(const struct io_uring_sqe *sqe)
{
	unsigned int tail = *ring.sq_tail, at = tail & *ring.sq_mask;

	ring.sqes[at] = *sqe;
	ring.sq_array[at] = at;
	__atomic_store_n(ring.sq_tail, tail + 1, __ATOMIC_SEQ_CST);
}

static int submit(const struct io_uring_sqe *sqe)
{
	unsigned int flags = IORING_ENTER_GETEVENTS;
	int res;

	put(sqe);
	if (__atomic_load_n(ring.sq_flags, __ATOMIC_SEQ_CST) & IORING_SQ_NEED_WAKEUP)
		flags |= IORING_ENTER_SQ_WAKEUP;
	while (__atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE) == *ring.cq_head)
		if (syscall(__NR_io_uring_enter, ring.fd, 8, 1, flags, NULL, 0) < 0 &&
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

static int files[8] = { -1, -1, -1, -1, -1, -1, -1, -1 }; /* direct descriptors, all free */

/* A client that waits in the queue of a new listener. */
static int waiting(int *ret_port, int *ret_client_port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	socklen_t len = sizeof(sa);
	int l = socket(AF_INET, SOCK_STREAM, 0), c = socket(AF_INET, SOCK_STREAM, 0);

	inet_aton("127.0.0.1", &sa.sin_addr);
	if (bind(l, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(l, 5) < 0 ||
	    getsockname(l, (struct sockaddr *)&sa, &len) < 0 ||
	    connect(c, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		exit(1);
	*ret_port = ntohs(sa.sin_port);
	getsockname(c, (struct sockaddr *)&sa, &len);
	*ret_client_port = ntohs(sa.sin_port);
	return l;
}

static int waiting_unix(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX, .sun_path = "uring.sock" };
	int l = socket(AF_UNIX, SOCK_STREAM, 0), c = socket(AF_UNIX, SOCK_STREAM, 0);

	if (bind(l, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(l, 5) < 0 ||
	    connect(c, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		exit(1);
	return l;
}

static int do_accept(const char *how, unsigned int sqe_flags)
{
	struct io_uring_sqe e = { .opcode = IORING_OP_ACCEPT, .user_data = 77 };
	struct io_uring_sqe nop = { .opcode = IORING_OP_NOP };
	int port = 0, client = 0;

	e.flags = (unsigned char)sqe_flags;
	e.fd = strcmp(how, "unix") == 0 ? waiting_unix() : waiting(&port, &client);
	if (strcmp(how, "direct") == 0)
		e.file_index = 3 + 1;
	if (strcmp(how, "any") == 0)
		e.file_index = IORING_FILE_INDEX_ALLOC;
	if (strcmp(how, "multi") == 0)
		e.ioprio = IORING_ACCEPT_MULTISHOT;
	if (e.file_index)
		syscall(__NR_io_uring_register, ring.fd, IORING_REGISTER_FILES, files, 8);
	fprintf(stderr, "%d\n%d\n", port, client);
	if (strcmp(how, "skip"))
		return submit(&e);
	e.flags |= IOSQE_CQE_SKIP_SUCCESS | IOSQE_IO_LINK;
	put(&e);
	return submit(&nop);
}

/* arg: PORT, or PORT,DESCRIPTOR of a socket that is there. */
static int send_datagram(const char *how, const char *arg, unsigned int sqe_flags)
{
	const char *comma = strchr(arg, ',');
	int port = atoi(arg);
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port) };
	struct iovec iov = { "abcd", 4 };
	struct msghdr m = {
		.msg_name = &sa, .msg_namelen = sizeof(sa), .msg_iov = &iov, .msg_iovlen = 1
	};
	bool by_message = !strcmp(how, "sendmsg") || !strcmp(how, "fixed");
	struct io_uring_sqe e = { .opcode = by_message ? IORING_OP_SENDMSG : IORING_OP_SEND };

	inet_aton("127.0.0.1", &sa.sin_addr);
	e.flags = (unsigned char)sqe_flags;
	e.fd = comma ? atoi(comma + 1) : socket(AF_INET, SOCK_DGRAM, 0);
	if (by_message) {
		e.addr = (unsigned long)&m;
		e.len = 1;
	} else {
		e.addr = (unsigned long)iov.iov_base;
		e.len = 4;
	}
	if (!strcmp(how, "sendto")) { /* a plain one takes no address before 6.10 */
		e.opcode = IORING_OP_SEND_ZC;
		e.addr2 = (unsigned long)&sa;
		e.addr_len = sizeof(sa);
	} else if (!strcmp(how, "send") && connect(e.fd, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
		return -errno;
	}
	if (!strcmp(how, "fixed")) {
		files[3] = e.fd;
		if (syscall(__NR_io_uring_register, ring.fd, IORING_REGISTER_FILES, files, 8) < 0)
			return -errno;
		e.fd = 3;
		e.flags |= IOSQE_FIXED_FILE;
	}
	return submit(&e);
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
	} else if (strcmp(op, "read") == 0) {
		e.opcode = IORING_OP_OPENAT;
		e.open_flags = O_RDONLY;
	} else if (strcmp(op, "mkdir") == 0) {
		e.opcode = IORING_OP_MKDIRAT;
		e.len = 0750;
	} else if (strcmp(op, "unlink") == 0) {
		e.opcode = IORING_OP_UNLINKAT;
	} else if (strcmp(op, "accept") == 0) {
		return do_accept(arg, sqe_flags);
	} else if (strncmp(op, "send", 4) == 0 || strcmp(op, "fixed") == 0) {
		return send_datagram(op, arg, sqe_flags);
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
