// SPDX-License-Identifier: Apache-2.0
#include "runtime/init/process1.h"

#include <linux/mman.h>
#include <linux/prctl.h>
#include <asm/signal.h>

long process1_begin(void)
{
	uint64_t set = 1ull << (SIGCHLD - 1);

	/* The program's file is not readable for us, which made us undumpable from the first
	 * instruction; this is the belt to those braces. */
	SYS(prctl, PR_SET_DUMPABLE, 0, 0, 0, 0, 0);
	/* A session of its own: the operator's terminal is not even the controlling one. */
	SYS(setsid, 0, 0, 0, 0, 0, 0);
	SYS(fcntl, INIT_CONTROL_FD, F_SETFD, FD_CLOEXEC, 0, 0, 0);
	SYS(rt_sigprocmask, SIG_BLOCK, &set, 0, SIGSET_SIZE, 0, 0);
	return SYS(signalfd4, -1, &set, SIGSET_SIZE, O_CLOEXEC | O_NONBLOCK, 0, 0);
}

char *process1_map(size_t n, int flags, int fd)
{
	long p = SYS(mmap, 0, n, PROT_READ | PROT_WRITE, flags, fd, 0);

	return p < 0 && p > -4096 ? NULL : (char *)p;
}

void process1_let_go_of_stdio(void)
{
	long null = SYS(openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0, 0, 0);

	for (int fd = 0; fd < 3; fd++)
		if (null < 0 || SYS(dup3, null, fd, O_CLOEXEC, 0, 0, 0) < 0)
			SYS(close, fd, 0, 0, 0, 0, 0);
	if (null > 2)
		SYS(close, null, 0, 0, 0, 0, 0);
}

long process1_receive(struct init_frame *f, struct cmsg_fds *fds, int flags)
{
	struct iovec iov = { .iov_base = f, .iov_len = sizeof(*f) };
	struct msghdr m = { .iov = &iov, .iov_n = 1, .control = fds, .control_len = sizeof(*fds) };

	fds->len = 0;
	return SYS(recvmsg, INIT_CONTROL_FD, &m, flags | MSG_CMSG_CLOEXEC, 0, 0, 0);
}

long process1_send_to(int sock, const void *p, size_t n, int fd)
{
	struct iovec iov = { .iov_base = (void *)p, .iov_len = n };
	struct cmsg_fd c = {
		.len = CMSG_FD_LEN, .level = SOL_SOCKET, .type = SCM_RIGHTS, .fd = fd
	};
	struct msghdr m = { .iov = &iov,
			    .iov_n = 1,
			    .control = fd < 0 ? NULL : &c,
			    .control_len = fd < 0 ? 0 : sizeof(c) };

	return SYS(sendmsg, sock, &m, MSG_NOSIGNAL, 0, 0, 0);
}

long process1_send(const struct init_frame *f, int fd)
{
	return process1_send_to(INIT_CONTROL_FD, f, sizeof(*f), fd);
}

/* The kernel's stack pointer is aligned; nothing on it is of interest. */
#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tcall process1_main\n\thlt\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start:\n\tmov x29, #0\n\tbl process1_main\n\tbrk #1\n");
#endif

/* The compiler may ask for these however the code is written. */
void *memcpy(void *to, const void *from, size_t n);
void *memset(void *to, int c, size_t n);

__attribute__((used)) void *memcpy(void *to, const void *from, size_t n)
{
	char *t = to;
	const char *f = from;

	while (n--)
		*t++ = *f++;
	return to;
}

__attribute__((used)) void *memset(void *to, int c, size_t n)
{
	char *t = to;

	while (n--)
		*t++ = (char)c;
	return to;
}
