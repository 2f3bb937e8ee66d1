/* SPDX-License-Identifier: Apache-2.0 */
/* The little of a C library that init needs. Without libc its start is half as long, and there is
 * nothing in process 1 that is not in this folder. Calls return -errno, as the kernel does. */
#ifndef WARDER_RUNTIME_INIT_SYS_H
#define WARDER_RUNTIME_INIT_SYS_H

#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/types.h>
#include <linux/uio.h>
#include <stddef.h>
#include <stdint.h>

typedef int pid_t;

/* As the kernel has them; its own headers give them to itself only. */
struct msghdr {
	void *name;
	int name_len;
	struct iovec *iov;
	size_t iov_n;
	void *control;
	size_t control_len;
	unsigned flags;
};

struct cmsg_fds {
	size_t len;
	int level, type;
	int fd[4];
};

struct cmsg_fd {
	size_t len;
	int level, type;
	int fd, pad;
};

#define CMSG_FD_LEN 20 /* without the padding */
#define SOL_SOCKET  1
#define SCM_RIGHTS  1

#define MSG_CTRUNC	 0x8
#define MSG_DONTWAIT	 0x40
#define MSG_NOSIGNAL	 0x4000
#define MSG_CMSG_CLOEXEC 0x40000000

#define SIGINFO_SIZE 128 /* struct signalfd_siginfo */
#define SIG_BLOCK    0
#define SIG_SETMASK  2
#define SIGSET_SIZE  8

static inline long sys6(long nr, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
#else
#error "how are system calls made here?"
#endif
}

#define SYS(nr, a, b, c, d, e, f) \
	sys6(__NR_##nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

static inline void exit_now(int code)
{
	for (;;)
		SYS(exit_group, code, 0, 0, 0, 0, 0);
}

static inline size_t length(const char *s, size_t max)
{
	size_t n = 0;

	while (n < max && s[n])
		n++;
	return n;
}

static inline void copy(char *to, const char *from, size_t n)
{
	while (n--)
		*to++ = *from++;
}

static inline int starts(const char *s, const char *prefix)
{
	while (*prefix)
		if (*s++ != *prefix++)
			return 0;
	return 1;
}

#endif
