// SPDX-License-Identifier: Apache-2.0
/* The payload of the self-test. Nothing here reaches beyond the process, a network namespace of its own and
 * what was handed to it. Between clone and exit: system calls only. */
#include "userspace/capture/selftest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "userspace/capture/selftest_uring.h"

#define ANSWER_MS 500 /* over a loopback of our own it is there at once */
#define OOM_BYTES (16u << 20)

static int fail(int fd)
{
	int e = errno ? errno : EIO;

	if (fd >= 0)
		close(fd);
	return -e;
}

static int wait_child(pid_t pid)
{
	int status;

	if (pid < 0)
		return -errno;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
}

/* ---- processes ---- */

static int do_fork(const struct selftest_job *job)
{
	pid_t pid = fork();

	(void)job;
	if (pid == 0)
		_exit(0);
	return wait_child(pid);
}

static int do_exec(const struct selftest_job *job)
{
	char *const argv[] = { (char *)"warder-selftest", (char *)"version", NULL };
	char *const envp[] = { NULL };
	pid_t pid = fork();
	int null;

	if (pid == 0) {
		if (job->program >= 0)
			syscall(SYS_execveat, job->program, "", argv, envp, AT_EMPTY_PATH);
		null = open("/dev/null", O_WRONLY | O_CLOEXEC);
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		execve("/proc/self/exe", argv, envp);
		_exit(errno);
	}
	return wait_child(pid);
}

static int do_exec_fails(const struct selftest_job *job)
{
	char *const none[] = { NULL };

	(void)job;
	execve("/proc/self/comm", none, none); /* no execute permission, for root either */
	return errno == EACCES ? 0 : -errno;
}

static int do_signal(const struct selftest_job *job)
{
	(void)job;
	signal(SIGTERM, SIG_IGN);
	return kill(getpid(), SIGTERM) < 0 ? -errno : 0;
}

/* ---- files ---- */

static int open_file(const struct selftest_job *job, const char *name)
{
	return openat(job->dir, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static int do_open(const struct selftest_job *job)
{
	int fd = open_file(job, "open");

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int do_write(const struct selftest_job *job)
{
	int fd = open_file(job, "write");

	/* The one was opened here, the other comes from outside: the one is told when it is closed, the
	 * other at once. */
	if (fd < 0 || write(fd, "self-test", 9) != 9 || write(job->file, "self-test", 9) != 9)
		return fail(fd);
	close(fd);
	return 0;
}

static int do_mmap(const struct selftest_job *job)
{
	int fd = open_file(job, "map");
	void *p;

	if (fd < 0)
		return -errno;
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return fail(fd);
	munmap(p, 4096);
	close(fd);
	return 0;
}

static int do_names(const struct selftest_job *job)
{
	if (mkdirat(job->dir, "old", 0700) < 0 || renameat(job->dir, "old", job->dir, "new") < 0 ||
	    unlinkat(job->dir, "new", AT_REMOVEDIR) < 0)
		return -errno;
	return 0;
}

static int do_limit(const struct selftest_job *job)
{
	struct rlimit old, none = { 0 };
	int fd, e;

	(void)job;
	if (getrlimit(RLIMIT_NOFILE, &old) < 0)
		return -errno;
	none.rlim_max = old.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &none) < 0)
		return -errno;
	fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
	e = errno;
	setrlimit(RLIMIT_NOFILE, &old);
	if (fd >= 0) {
		close(fd);
		return -EIO;
	}
	return e == EMFILE ? 0 : -e;
}

/* ---- escapes ---- */

static int do_setns(const struct selftest_job *job)
{
	(void)job;
	return setns(-1, 0) < 0 && errno == EBADF ? 0 : -errno;
}

/* Calls that a filter refuses. In a child: the filter stays for good. */
static int do_seccomp(const struct selftest_job *job)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_chroot, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = sizeof(code) / sizeof(*code), .filter = code };
	pid_t pid = fork();

	(void)job;
	if (pid == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) < 0)
			_exit(errno);
		if (chroot("/proc/self/warder-selftest") == 0 || errno != EPERM)
			_exit(EIO);
		_exit(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) < 0 && errno == EPERM ? 0
											  : EIO);
	}
	return wait_child(pid);
}

/* In a child: where 32-bit calls are switched off one is the end. */
static int do_int80(const struct selftest_job *job)
{
#if defined(__x86_64__)
	pid_t pid = fork();
	long r = 20; /* getpid */

	(void)job;
	if (pid == 0) {
		prctl(PR_SET_DUMPABLE, 0);
		__asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
		_exit(r > 0 ? 0 : ENOSYS);
	}
	return wait_child(pid) == 0 ? 0 : -ENOSYS;
#else
	(void)job;
	return -ENOSYS;
#endif
}

static int do_mount(const struct selftest_job *job)
{
	(void)job;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -errno;
	return 0;
}

static int do_leave(const struct selftest_job *job)
{
	if (job->outside < 0)
		return -ENOENT;
	return write(job->outside, "0", 1) < 0 ? -errno : 0;
}

/* In a child, which does not live through it. */
static int do_oom(const struct selftest_job *job)
{
	pid_t pid;
	char *p;

	if (job->tasks < 0)
		return -ENOTSUP;
	pid = fork();
	if (pid == 0) {
		if (write(job->tasks, "0", 1) < 0)
			_exit(errno);
		p = mmap(NULL, OOM_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0);
		for (size_t i = 0; p != MAP_FAILED && i < OOM_BYTES; i += 4096)
			((volatile char *)p)[i] = 1;
		_exit(EIO); /* it did not happen */
	}
	return wait_child(pid) == -ECHILD ? 0 : -EIO;
}

/* ---- network ---- */

static int do_netns(const struct selftest_job *job)
{
	struct ifreq ifr = { .ifr_flags = IFF_UP };
	int fd;

	(void)job;
	if (unshare(CLONE_NEWNET) < 0)
		return -errno;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	memcpy(ifr.ifr_name, "lo", 3);
	if (ioctl(fd, SIOCSIFFLAGS, &ifr) < 0)
		return fail(fd);
	close(fd);
	return 0;
}

union address {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

static socklen_t address_of(union address *a, int family, const char *text, uint16_t port)
{
	memset(a, 0, sizeof(*a));
	a->sa.sa_family = (sa_family_t)family;
	if (family == AF_INET) {
		a->in.sin_port = htons(port);
		inet_pton(AF_INET, text, &a->in.sin_addr);
		return sizeof(a->in);
	}
	a->in6.sin6_port = htons(port);
	inet_pton(AF_INET6, text, &a->in6.sin6_addr);
	return sizeof(a->in6);
}

static int new_socket(int family, int type)
{
	const struct timeval limit = { .tv_usec = ANSWER_MS * 1000 };
	int fd = socket(family, type | SOCK_CLOEXEC, 0);

	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return fd;
}

/* Nobody listens any more. */
static int do_refused(int family, const union address *a, socklen_t len)
{
	int fd = new_socket(family, SOCK_STREAM), r;

	if (fd < 0)
		return -errno;
	r = connect(fd, &a->sa, len) < 0 && errno == ECONNREFUSED ? 0 : -EIO;
	close(fd);
	return r;
}

static int do_tcp(int family, const char *loopback)
{
	int listener = new_socket(family, SOCK_STREAM), client = -1, server = -1, r = 0;
	union address a;
	socklen_t len = address_of(&a, family, loopback, 0);

	if (listener < 0)
		return -errno;
	client = new_socket(family, SOCK_STREAM);
	if (client < 0 || bind(listener, &a.sa, len) < 0 || listen(listener, 1) < 0 ||
	    getsockname(listener, &a.sa, &len) < 0 || connect(client, &a.sa, len) < 0 ||
	    (server = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) < 0)
		r = errno ? -errno : -EIO;
	if (server >= 0)
		close(server);
	if (client >= 0)
		close(client);
	close(listener);
	return r < 0 ? r : do_refused(family, &a, len);
}

static int do_tcp4(const struct selftest_job *job)
{
	(void)job;
	return do_tcp(AF_INET, "127.0.0.1");
}

static int do_tcp6(const struct selftest_job *job)
{
	(void)job;
	return do_tcp(AF_INET6, "::1");
}

static int do_udp(int family, const char *to, uint16_t port)
{
	int fd = new_socket(family, SOCK_DGRAM);
	union address a;
	socklen_t len = address_of(&a, family, to, port);

	if (fd < 0)
		return -errno;
	/* Where it leads nowhere it was tried all the same, and that is what is to be seen. */
	if (sendto(fd, "self-test", 9, MSG_DONTWAIT, &a.sa, len) < 0 && errno != ENETUNREACH &&
	    errno != EPERM)
		return fail(fd);
	close(fd);
	return 0;
}

static int do_udp4(const struct selftest_job *job)
{
	(void)job;
	return do_udp(AF_INET, "127.0.0.1", 9);
}

static int do_udp6(const struct selftest_job *job)
{
	(void)job;
	return do_udp(AF_INET6, "::1", 9);
}

static int do_passed(const struct selftest_job *job)
{
	union address a;
	socklen_t len = address_of(&a, AF_INET, "127.0.0.1", SELFTEST_PASSED_PORT);

	return sendto(job->passed, "self-test", 9, MSG_DONTWAIT, &a.sa, len) < 0 ? -errno : 0;
}

/* "selftest.warder.invalid A?", and the same as an answer without records. */
static int do_dns(const struct selftest_job *job)
{
	static const uint8_t ask[] = "\x57\x41\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
				     "\x08selftest\x06warder\x07invalid\x00\x00\x01\x00\x01";
	const size_t n = sizeof(ask) - 1;
	int server = new_socket(AF_INET, SOCK_DGRAM), client, r = 0;
	union address a, from;
	socklen_t len = address_of(&a, AF_INET, "127.0.0.1", 53), from_len = sizeof(from);
	uint8_t got[128];
	ssize_t k;

	(void)job;
	if (server < 0)
		return -errno;
	client = new_socket(AF_INET, SOCK_DGRAM);
	if (client < 0 || bind(server, &a.sa, len) < 0 ||
	    sendto(client, ask, n, 0, &a.sa, len) < 0 ||
	    (k = recvfrom(server, got, sizeof(got), 0, &from.sa, &from_len)) < 12) {
		r = errno ? -errno : -EIO;
	} else {
		got[2] |= 0x80; /* an answer */
		got[3] |= 3;	/* NXDOMAIN */
		if (sendto(server, got, (size_t)k, 0, &from.sa, from_len) < 0 ||
		    recv(client, got, sizeof(got), 0) < 12)
			r = -errno;
	}
	if (client >= 0)
		close(client);
	close(server);
	return r;
}

/* Of a datagram socket: asks nobody anything. */
static int do_metadata(int family, const char *address)
{
	int fd = new_socket(family, SOCK_DGRAM);
	union address a;
	socklen_t len = address_of(&a, family, address, 80);

	if (fd < 0)
		return -errno;
	(void)!connect(fd, &a.sa, len); /* there is no route, and no matter */
	close(fd);
	return 0;
}

static int do_metadata4(const struct selftest_job *job)
{
	(void)job;
	return do_metadata(AF_INET, "169.254.169.254");
}

static int do_metadata6(const struct selftest_job *job)
{
	(void)job;
	return do_metadata(AF_INET6, "fd00:ec2::254");
}

static int do_metadata_send(const struct selftest_job *job)
{
	(void)job;
	return do_udp(AF_INET, "169.254.169.254", 81);
}

/* ---- what is refused ---- */

static int do_deny_connect(const struct selftest_job *job)
{
	union address a;
	socklen_t len = address_of(&a, AF_INET, SELFTEST_DENIED_IP, 9);
	int fd, r;

	if (!job->denies)
		return -ENOTSUP;
	fd = new_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK);
	if (fd < 0)
		return -errno;
	r = connect(fd, &a.sa, len) < 0 && errno == EPERM ? 0 : -EBADE;
	close(fd);
	return r;
}

static int do_deny_file(const struct selftest_job *job)
{
	if (!job->denies_files)
		return -ENOTSUP;
	return symlinkat("nothing", job->dir, "denied") < 0 && errno == EPERM ? 0 : -EBADE;
}

/* ---- all of it ---- */

static int do_uring(const struct selftest_job *job)
{
	union address a;
	socklen_t len = address_of(&a, AF_INET, "127.0.0.1", SELFTEST_URING_PORT);

	return selftest_uring(job->dir, "uring", job->passed, &a.sa, len);
}

static int (*const steps[STEP_COUNT])(const struct selftest_job *job) = {
	[STEP_NETNS] = do_netns,
	[STEP_FORK] = do_fork,
	[STEP_EXEC] = do_exec,
	[STEP_EXEC_FAILS] = do_exec_fails,
	[STEP_OPEN] = do_open,
	[STEP_WRITE] = do_write,
	[STEP_MMAP] = do_mmap,
	[STEP_NAMES] = do_names,
	[STEP_LIMIT] = do_limit,
	[STEP_SIGNAL] = do_signal,
	[STEP_SETNS] = do_setns,
	[STEP_SECCOMP] = do_seccomp,
	[STEP_INT80] = do_int80,
	[STEP_TCP4] = do_tcp4,
	[STEP_TCP6] = do_tcp6,
	[STEP_UDP4] = do_udp4,
	[STEP_UDP6] = do_udp6,
	[STEP_PASSED] = do_passed,
	[STEP_DNS] = do_dns,
	[STEP_METADATA4] = do_metadata4,
	[STEP_METADATA6] = do_metadata6,
	[STEP_METADATA_SEND] = do_metadata_send,
	[STEP_URING] = do_uring,
	[STEP_DENY_CONNECT] = do_deny_connect,
	[STEP_DENY_FILE] = do_deny_file,
	[STEP_MOUNT] = do_mount,
	[STEP_LEAVE] = do_leave,
	[STEP_OOM] = do_oom,
};

_Noreturn void selftest_act(const struct selftest_job *job)
{
	static const bool on_network[STEP_COUNT] = {
		[STEP_TCP4] = true,	 [STEP_TCP6] = true,	      [STEP_UDP4] = true,
		[STEP_UDP6] = true,	 [STEP_DNS] = true,	      [STEP_METADATA4] = true,
		[STEP_METADATA6] = true, [STEP_METADATA_SEND] = true, [STEP_DENY_CONNECT] = true,
	};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < STEP_COUNT; i++) {
		int r;

		if (i >= STEP_FIRST_SLOW && !job->all)
			break;
		errno = 0;
		/* Nothing may reach the host's own network. */
		r = on_network[i] && job->page->done[STEP_NETNS] != 1 ? job->page->done[STEP_NETNS]
								      : steps[i](job);
		job->page->done[i] = r < 0 ? r : 1;
	}
	_exit(0);
}
