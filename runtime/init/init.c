// SPDX-License-Identifier: Apache-2.0
/* Process 1 of a sandbox. Runs as the payload's user without any right, starts the payload, reaps,
 * forwards signals and says how it ended. Trusted only until the payload runs: the launcher believes
 * nothing that it could not check. */
#include <linux/errno.h>
#include <linux/filter.h>
#include <linux/mman.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <linux/socket.h>
#include <linux/stat.h>
#include <linux/wait.h>
#include <asm/ioctls.h>
#include <asm/signal.h>
#include <asm/termios.h>

#include "runtime/init/filter.h"
#include "runtime/init/frame.h"
#include "runtime/init/sys.h"

#define PATH_LOOKUP_MAX 4096
#define EXIT_INTERNAL	125
#define SIGNALS_MAX	64
#define MSG_DONTWAIT	0x40
#define MSG_NOSIGNAL	0x4000
#define SIGINFO_SIZE	128 /* struct signalfd_siginfo */

struct block {
	const struct init_config *head;
	char **argv;
	char **envp;
	const char *cwd;
	struct sock_fprog filter;
};

static void tell(uint32_t type, long code, int sig, uint32_t alone, const char *text)
{
	struct init_frame f = { .magic = INIT_FRAME_MAGIC,
				.type = type,
				.code = (int32_t)code,
				.signal = sig,
				.alone = alone };

	if (text)
		copy(f.text, text, length(text, sizeof(f.text) - 1));
	SYS(sendto, INIT_CONTROL_FD, &f, sizeof(f), MSG_NOSIGNAL, 0, 0);
}

static void give_up(long r, const char *text)
{
	tell(FRAME_FAILED, -r, 0, 0, text);
	exit_now(EXIT_INTERNAL);
}

static char *map(size_t n, int flags, int fd)
{
	long p = SYS(mmap, 0, n, PROT_READ | PROT_WRITE, flags, fd, 0);

	return p < 0 && p > -4096 ? NULL : (char *)p;
}

/* Pointers to n strings that lie behind each other; returns what follows them. */
static char *pointers(char **v, char *s, const char *end, uint32_t n)
{
	for (uint32_t i = 0; i < n && s < end; i++) {
		v[i] = s;
		s += length(s, (size_t)(end - s)) + 1;
	}
	v[n] = NULL;
	return s;
}

/* The block comes from the launcher through a sealed memfd; private, since exec wants char *. */
static int block_open(struct block *b)
{
	long size = SYS(lseek, INIT_CONFIG_FD, 0, 2, 0, 0, 0);
	char *base, *end;

	if (size < (long)sizeof(struct init_config))
		return -1;
	base = map((size_t)size, MAP_PRIVATE, INIT_CONFIG_FD);
	if (!base)
		return -1;
	SYS(close, INIT_CONFIG_FD, 0, 0, 0, 0, 0);
	b->head = (const struct init_config *)base;
	if (b->head->magic != INIT_CONFIG_MAGIC || b->head->size != size || b->head->argc == 0)
		return -1;
	b->argv = (char **)map(((size_t)b->head->argc + b->head->envc + 2) * sizeof(char *),
			       MAP_PRIVATE | MAP_ANONYMOUS, -1);
	if (!b->argv)
		return -1;
	b->envp = b->argv + b->head->argc + 1;
	end = base + b->head->size;
	pointers(b->envp, pointers(b->argv, base + b->head->strings_off, end, b->head->argc), end,
		 b->head->envc);
	b->cwd = base + b->head->cwd_off;
	b->filter.len = (unsigned short)b->head->filter_n;
	b->filter.filter = (struct sock_filter *)(base + b->head->filter_off);
	return 0;
}

static const char *path_of(char **envp)
{
	for (; *envp; envp++)
		if (starts(*envp, "PATH="))
			return *envp + 5;
	return NULL;
}

static int exec(const struct block *b, const char *file)
{
	return (int)-SYS(execve, file, b->argv, b->envp, 0, 0, 0);
}

/* execvpe without its habit of handing anything unknown to a shell: that hides what is wrong.
 * Returns the errno that tells most. */
static int exec_lookup(const struct block *b)
{
	const char *name = b->argv[0], *path = path_of(b->envp);
	size_t len = length(name, PATH_LOOKUP_MAX);
	int found = ENOENT;

	for (const char *c = name; *c; c++)
		if (*c == '/')
			return exec(b, name);
	while (path) {
		char full[PATH_LOOKUP_MAX];
		size_t n = 0;
		int e;

		while (path[n] && path[n] != ':')
			n++;
		if (n + len + 2 < sizeof(full)) {
			copy(full, path, n);
			full[n] = '/';
			copy(full + n + (n > 0), name, len + 1); /* "" in PATH: where we are */
			e = exec(b, full);
			if (e == EACCES)
				found = EACCES;
			else if (e != ENOENT && e != ENOTDIR)
				return e;
		}
		path = path[n] ? path + n + 1 : NULL;
	}
	return found;
}

/* The master goes to the launcher, before there is a payload that could get at it. */
static long send_master(int master)
{
	struct init_frame f = { .magic = INIT_FRAME_MAGIC, .type = FRAME_TTY };
	struct iovec iov = { .iov_base = &f, .iov_len = sizeof(f) };
	struct cmsg_fd c = {
		.len = CMSG_FD_LEN, .level = SOL_SOCKET, .type = SCM_RIGHTS, .fd = master
	};
	struct msghdr m = { .iov = &iov, .iov_n = 1, .control = &c, .control_len = sizeof(c) };

	return SYS(sendmsg, INIT_CONTROL_FD, &m, MSG_NOSIGNAL, 0, 0, 0);
}

/* The payload's terminal, of the sandbox's own devpts and the payload's own. Returns the slave. */
static int make_terminal(const struct init_config *head)
{
	struct winsize ws = { .ws_row = head->tty_rows, .ws_col = head->tty_cols };
	long master, slave, r;
	int locked = 0;

	master = SYS(openat, AT_FDCWD, "/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC, 0, 0, 0);
	if (master < 0)
		give_up(master, "/dev/pts/ptmx");
	r = SYS(ioctl, master, TIOCSPTLCK, &locked, 0, 0, 0);
	if (r >= 0)
		r = SYS(ioctl, master, TIOCSWINSZ, &ws, 0, 0, 0);
	if (r < 0)
		give_up(r, "terminal");
	slave = SYS(ioctl, master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC, 0, 0, 0);
	if (slave < 0)
		give_up(slave, "terminal");
	r = send_master((int)master);
	if (r < 0)
		give_up(r, "terminal");
	SYS(close, master, 0, 0, 0, 0, 0);
	return (int)slave;
}

/* In the payload, whose session is new. */
static long take_terminal(int slave)
{
	long r = SYS(ioctl, slave, TIOCSCTTY, 0, 0, 0, 0);

	for (int fd = 0; r >= 0 && fd < 3; fd++)
		r = SYS(dup3, slave, fd, 0, 0, 0, 0);
	return r < 0 ? r : 0;
}

/* In the child. `fd` closes at exec, which tells init that it worked. */
static void payload(const struct block *b, int slave, int fd)
{
	uint64_t none = 0;
	long r;
	int e;

	SYS(setsid, 0, 0, 0, 0, 0, 0);
	SYS(rt_sigprocmask, SIG_SETMASK, &none, 0, SIGSET_SIZE, 0, 0);
	r = SYS(chdir, b->cwd, 0, 0, 0, 0, 0);
	e = (int)-r;
	if (!e && slave >= 0)
		e = (int)take_terminal(slave); /* ours, not the command's: negative */
	if (!e && b->filter.len) {
		r = SYS(seccomp, SECCOMP_SET_MODE_FILTER, 0, &b->filter, 0, 0, 0);
		e = (int)r; /* so is this */
	}
	if (!e)
		e = exec_lookup(b);
	SYS(write, fd, &e, sizeof(e), 0, 0, 0);
	exit_now(EXIT_INTERNAL);
}

/* What init holds of the payload must not outlive the payload: its pipes would never end. */
static void let_go_of_stdio(void)
{
	long null = SYS(openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0, 0, 0);

	for (int fd = 0; fd < 3; fd++)
		if (null < 0 || SYS(dup3, null, fd, O_CLOEXEC, 0, 0, 0) < 0)
			SYS(close, fd, 0, 0, 0, 0, 0);
	if (null > 2)
		SYS(close, null, 0, 0, 0, 0, 0);
}

/* Starts the payload and says how that went. Init gives up its own calls before it looks at the
 * outcome. */
static pid_t start(const struct block *b)
{
	int pipefd[2], slave, e = 0;
	long n, pid;

	n = SYS(pipe2, pipefd, O_CLOEXEC, 0, 0, 0, 0);
	if (n < 0)
		give_up(n, "pipe");
	slave = b->head->tty ? make_terminal(b->head) : -1;
	pid = SYS(clone, SIGCHLD, 0, 0, 0, 0, 0);
	if (pid == 0)
		payload(b, slave, pipefd[1]);
	if (pid < 0)
		give_up(pid, "fork");
	SYS(close, pipefd[1], 0, 0, 0, 0, 0);
	if (slave >= 0)
		SYS(close, slave, 0, 0, 0, 0, 0);
	let_go_of_stdio();
	n = init_filter_install();
	if (n < 0)
		give_up(n, "filter of init");
	do {
		n = SYS(read, pipefd[0], &e, sizeof(e), 0, 0, 0);
	} while (n == -EINTR);
	if (n == 0) {
		tell(FRAME_STARTED, 0, 0, 0, NULL);
		return (pid_t)pid;
	}
	if (n != (long)sizeof(e) || e <= 0)
		give_up(n == (long)sizeof(e) ? e : -EIO, "payload's terminal or filter");
	tell(FRAME_EXEC_FAILED, e, 0, 0, b->argv[0]);
	exit_now(EXIT_INTERNAL);
	return -1;
}

/* Reaps all that is dead. True when nobody is left. */
static int reap(pid_t main_pid, int *ret_ended, int *ret_status)
{
	for (;;) {
		int status = 0;
		long pid = SYS(wait4, -1, &status, WNOHANG, 0, 0, 0);

		if (pid == main_pid) {
			*ret_ended = 1;
			*ret_status = status;
		}
		if (pid == 0 || (pid < 0 && pid != -EINTR))
			return pid < 0;
	}
}

static void take_frame(pid_t main_pid, int ended)
{
	struct init_frame f;
	long n = SYS(recvfrom, INIT_CONTROL_FD, &f, sizeof(f), MSG_DONTWAIT, 0, 0);

	if (n == 0 || (n < 0 && n != -EAGAIN && n != -EINTR))
		exit_now(0); /* the launcher is gone, and so must all of us be */
	if (n != (long)sizeof(f) || f.magic != INIT_FRAME_MAGIC)
		return;
	if (f.type == FRAME_SIGNAL && !ended && f.signal > 0 && f.signal <= SIGNALS_MAX)
		SYS(kill, -main_pid, f.signal, 0, 0, 0, 0);
}

static void tell_exit(int status, uint32_t alone)
{
	int sig = status & 0x7f;

	tell(FRAME_EXIT, sig ? 0 : status >> 8 & 0xff, sig, alone, NULL);
}

static void serve(pid_t main_pid, int sigfd)
{
	struct pollfd pfd[] = { { .fd = sigfd, .events = POLLIN },
				{ .fd = INIT_CONTROL_FD, .events = POLLIN } };
	int ended = 0, told = 0, status = 0;

	for (;;) {
		int alone = reap(main_pid, &ended, &status);

		if (ended && !told) {
			told = 1;
			tell_exit(status, (uint32_t)alone);
		}
		if (ended && alone)
			exit_now(0);
		if (SYS(ppoll, pfd, 2, 0, 0, 0, 0) < 0)
			continue;
		if (pfd[0].revents) {
			char info[SIGINFO_SIZE];

			SYS(read, sigfd, info, sizeof(info), 0, 0, 0);
		}
		if (pfd[1].revents)
			take_frame(main_pid, ended);
	}
}

void init_main(void);

__attribute__((used, noreturn)) void init_main(void)
{
	uint64_t set = 1ull << (SIGCHLD - 1);
	struct block b = { 0 };
	long sigfd;

	/* The program's file is not readable for us, which made us undumpable from the first
	 * instruction; this is the belt to those braces. */
	SYS(prctl, PR_SET_DUMPABLE, 0, 0, 0, 0, 0);
	/* A session of its own: the operator's terminal is not even the controlling one. */
	SYS(setsid, 0, 0, 0, 0, 0, 0);
	SYS(fcntl, INIT_CONTROL_FD, F_SETFD, FD_CLOEXEC, 0, 0, 0);
	SYS(rt_sigprocmask, SIG_BLOCK, &set, 0, SIGSET_SIZE, 0, 0);
	sigfd = SYS(signalfd4, -1, &set, SIGSET_SIZE, O_CLOEXEC | O_NONBLOCK, 0, 0);
	if (sigfd < 0)
		give_up(sigfd, "signalfd");
	if (block_open(&b) < 0)
		give_up(-EINVAL, "configuration");
	serve(start(&b), (int)sigfd);
	__builtin_unreachable();
}

/* The kernel's stack pointer is aligned; nothing on it is of interest. */
#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tcall init_main\n\thlt\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start:\n\tmov x29, #0\n\tbl init_main\n\tbrk #1\n");
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
