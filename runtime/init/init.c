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
#include "runtime/init/listen.h"
#include "runtime/init/process1.h"
#include "runtime/init/sys.h"

#define PATH_LOOKUP_MAX 4096
#define EXIT_INTERNAL	125
#define SIGNALS_MAX	64

struct block {
	const struct init_config *head;
	char *base;
	size_t size, pointers_size;
	char **argv;
	char **envp;
	const char *cwd;
	struct sock_fprog filter;
};

static void tell_of(uint32_t id, uint32_t type, long code, int sig, uint32_t alone,
		    const char *text)
{
	struct init_frame f = { .magic = INIT_FRAME_MAGIC,
				.type = type,
				.code = (int32_t)code,
				.signal = sig,
				.alone = alone,
				.id = id };

	if (text)
		copy(f.text, text, length(text, sizeof(f.text) - 1));
	SYS(sendto, INIT_CONTROL_FD, &f, sizeof(f), MSG_NOSIGNAL, 0, 0);
}

static void tell(uint32_t type, long code, int sig, uint32_t alone, const char *text)
{
	tell_of(0, type, code, sig, alone, text);
}

static void give_up(long r, const char *text)
{
	tell(FRAME_FAILED, -r, 0, 0, text);
	exit_now(EXIT_INTERNAL);
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
static int block_open(struct block *b, int fd)
{
	long size = SYS(lseek, fd, 0, 2, 0, 0, 0);
	char *base, *end;

	if (size < (long)sizeof(struct init_config))
		return -1;
	base = process1_map((size_t)size, MAP_PRIVATE, fd);
	if (!base)
		return -1;
	b->base = base;
	b->size = (size_t)size;
	b->head = (const struct init_config *)base;
	if (b->head->magic != INIT_CONFIG_MAGIC || b->head->size != size ||
	    (b->head->argc == 0 && !b->head->serve))
		return -1;
	b->pointers_size = ((size_t)b->head->argc + b->head->envc + 2) * sizeof(char *);
	b->argv = (char **)process1_map(b->pointers_size, MAP_PRIVATE | MAP_ANONYMOUS, -1);
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

static void block_close(struct block *b)
{
	if (b->argv)
		SYS(munmap, b->argv, b->pointers_size, 0, 0, 0, 0);
	if (b->base)
		SYS(munmap, b->base, b->size, 0, 0, 0, 0);
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
static long send_master(int master, uint32_t id)
{
	const struct init_frame f = { .magic = INIT_FRAME_MAGIC, .type = FRAME_TTY, .id = id };

	return process1_send(&f, master);
}

/* A terminal of the sandbox's own devpts, the command's own. Returns the slave, or -errno and where. */
static long make_terminal(const struct init_config *head, uint32_t id, const char **ret_where)
{
	struct winsize ws = { .ws_row = head->tty_rows, .ws_col = head->tty_cols };
	long master, slave, r;
	int locked = 0;

	*ret_where = "/dev/pts/ptmx";
	master = SYS(openat, AT_FDCWD, "/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC, 0, 0, 0);
	if (master < 0)
		return master;
	*ret_where = "terminal";
	r = SYS(ioctl, master, TIOCSPTLCK, &locked, 0, 0, 0);
	if (r >= 0)
		r = SYS(ioctl, master, TIOCSWINSZ, &ws, 0, 0, 0);
	if (r >= 0)
		r = slave = SYS(ioctl, master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC, 0, 0, 0);
	if (r >= 0)
		r = send_master((int)master, id);
	SYS(close, master, 0, 0, 0, 0, 0);
	return r < 0 ? r : slave;
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
static void payload(struct block *b, int slave, const int *stdio, int fd)
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
	for (int i = 0; !e && slave < 0 && stdio && i < 3; i++) {
		r = SYS(dup3, stdio[i], i, 0, 0, 0, 0);
		e = r < 0 ? (int)r : 0;
	}
	if (!e && b->filter.len && !b->head->serve) /* else it is init's already */
		e = (int)filter_install(&b->filter, b->head->notify, 0); /* so is this */
	if (!e)
		e = exec_lookup(b);
	SYS(write, fd, &e, sizeof(e), 0, 0, 0);
	exit_now(EXIT_INTERNAL);
}

/* What init may call from now on. One that runs further commands keeps what they need: it is under their filter, from
 * before the first of them, which is born with it. */
static long restrict_self(const struct block *b)
{
	return b->head->serve ? 0 : init_filter_install();
}

static void restrict_all(struct block *b)
{
	long r = b->head->serve && b->filter.len ? filter_install(&b->filter, b->head->notify, 1)
						 : 0;

	if (r < 0)
		give_up(r, "filter of init");
}

/* The errno that the child's exec failed with; 0: it runs; -errno: something of ours went wrong. */
static long exec_outcome(int fd)
{
	int e = 0;
	long n;

	do {
		n = SYS(read, fd, &e, sizeof(e), 0, 0, 0);
	} while (n == -EINTR);
	if (n == 0)
		return 0;
	return n == (long)sizeof(e) ? e : -EIO;
}

/* Starts the payload and says how that went. Init gives up its own calls before it looks at the
 * outcome. */
static pid_t start(struct block *b)
{
	long n, pid, slave = -1;
	const char *where;
	int pipefd[2];

	restrict_all(b);
	if (!b->head->argc) {
		process1_let_go_of_stdio();
		n = restrict_self(b);
		if (n < 0)
			give_up(n, "filter of init");
		tell(FRAME_STARTED, 0, 0, 0, NULL);
		return -1;
	}
	n = SYS(pipe2, pipefd, O_CLOEXEC, 0, 0, 0, 0);
	if (n < 0)
		give_up(n, "pipe");
	if (b->head->tty) {
		slave = make_terminal(b->head, 0, &where);
		if (slave < 0)
			give_up(slave, where);
	}
	pid = SYS(clone, SIGCHLD, 0, 0, 0, 0, 0);
	if (pid == 0)
		payload(b, (int)slave, NULL, pipefd[1]);
	if (pid < 0)
		give_up(pid, "fork");
	SYS(close, pipefd[1], 0, 0, 0, 0, 0);
	if (slave >= 0)
		SYS(close, slave, 0, 0, 0, 0, 0);
	process1_let_go_of_stdio();
	n = restrict_self(b);
	if (n < 0)
		give_up(n, "filter of init");
	n = exec_outcome(pipefd[0]);
	if (b->head->serve)
		SYS(close, pipefd[0], 0, 0, 0, 0, 0);
	if (n == 0) {
		tell(FRAME_STARTED, 0, 0, 0, NULL);
		return (pid_t)pid;
	}
	if (n < 0)
		give_up(n, "payload's terminal or filter");
	tell(FRAME_EXEC_FAILED, n, 0, 0, b->argv[0]);
	exit_now(EXIT_INTERNAL);
	return -1;
}

/* ---- further commands ---- */

static struct command {
	pid_t pid; /* 0 = free */
	uint32_t id;
} commands[INIT_EXECS_MAX];

static struct command *command_of(pid_t pid, uint32_t id)
{
	for (int i = 0; i < INIT_EXECS_MAX; i++)
		if (pid ? commands[i].pid == pid : commands[i].pid && commands[i].id == id)
			return &commands[i];
	return NULL;
}

static struct command *command_free(void)
{
	for (int i = 0; i < INIT_EXECS_MAX; i++)
		if (!commands[i].pid)
			return &commands[i];
	return NULL;
}

/* The pid, or -errno; a positive errno of the command's own goes to *ret_failed. */
static long command_start(struct block *b, uint32_t id, const int *stdio, int *ret_failed)
{
	long n, pid, slave = -1;
	const char *where;
	int pipefd[2];

	n = SYS(pipe2, pipefd, O_CLOEXEC, 0, 0, 0, 0);
	if (n < 0)
		return n;
	if (b->head->tty)
		n = slave = make_terminal(b->head, id, &where);
	pid = n < 0 ? n : SYS(clone, SIGCHLD, 0, 0, 0, 0, 0);
	if (pid == 0)
		payload(b, (int)slave, stdio, pipefd[1]);
	SYS(close, pipefd[1], 0, 0, 0, 0, 0);
	if (slave >= 0)
		SYS(close, slave, 0, 0, 0, 0, 0);
	n = pid < 0 ? 0 : exec_outcome(pipefd[0]);
	SYS(close, pipefd[0], 0, 0, 0, 0, 0);
	*ret_failed = n < 0 ? (int)-n : (int)n;
	return pid;
}

static void command_take(uint32_t id, int config, const int *stdio)
{
	struct command *c = command_free();
	struct block b = { 0 };
	int failed = 0;
	long pid = -EAGAIN;

	if (c && !command_of(0, id))
		pid = block_open(&b, config) < 0 || !b.head->argc
			      ? -EINVAL
			      : command_start(&b, id, stdio, &failed);
	block_close(&b);
	if (pid < 0 || failed) { /* the child is on its way out, and reaped like all */
		tell_of(id, FRAME_EXEC_FAILED, pid < 0 ? -pid : failed, 0, 0, NULL);
		return;
	}
	*c = (struct command){ .pid = (pid_t)pid, .id = id };
	tell_of(id, FRAME_STARTED, 0, 0, 0, NULL);
}

static void tell_exit_of(uint32_t id, int status, uint32_t alone)
{
	int sig = status & 0x7f;

	tell_of(id, FRAME_EXIT, sig ? 0 : status >> 8 & 0xff, sig, alone, NULL);
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
		} else if (pid > 0) {
			struct command *c = command_of((pid_t)pid, 0);

			if (c) {
				c->pid = 0;
				tell_exit_of(c->id, status, 0);
			}
		}
		if (pid == 0 || (pid < 0 && pid != -EINTR))
			return pid < 0;
	}
}

static void take_signal(const struct init_frame *f, pid_t main_pid, int ended)
{
	struct command *c = f->id ? command_of(0, f->id) : NULL;

	if (f->signal <= 0 || f->signal > SIGNALS_MAX)
		return;
	if (c)
		SYS(kill, -c->pid, f->signal, 0, 0, 0, 0);
	else if (!f->id && !ended && main_pid > 0)
		SYS(kill, -main_pid, f->signal, 0, 0, 0, 0);
}

/* Descriptors come with FRAME_EXEC only; who sends is the launcher, which is believed. */
static long receive(struct init_frame *f, struct cmsg_fds *fds, int with_fds)
{
	fds->len = 0;
	if (!with_fds) /* all that such an init may call */
		return SYS(recvfrom, INIT_CONTROL_FD, f, sizeof(*f), MSG_DONTWAIT, 0, 0);
	return process1_receive(f, fds, MSG_DONTWAIT);
}

static void take_frame(pid_t main_pid, int ended, int serves)
{
	struct init_frame f;
	struct cmsg_fds fds;
	long n = receive(&f, &fds, serves);

	if (n == 0 || (n < 0 && n != -EAGAIN && n != -EINTR))
		exit_now(0); /* the launcher is gone, and so must all of us be */
	if (n != (long)sizeof(f) || f.magic != INIT_FRAME_MAGIC)
		return;
	if (f.type == FRAME_SIGNAL)
		take_signal(&f, main_pid, ended);
	if (fds.len != sizeof(fds))
		return;
	if (f.type == FRAME_EXEC && f.id)
		command_take(f.id, fds.fd[0], fds.fd + 1);
	for (int i = 0; i < INIT_EXEC_FDS; i++)
		SYS(close, fds.fd[i], 0, 0, 0, 0, 0);
}

static void tell_exit(int status, uint32_t alone)
{
	tell_exit_of(0, status, alone);
}

static void serve(pid_t main_pid, int sigfd, int serves)
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
			take_frame(main_pid, ended, serves);
	}
}

__attribute__((noreturn)) void process1_main(void)
{
	struct block b = { 0 };
	long sigfd = process1_begin();

	if (sigfd < 0)
		give_up(sigfd, "signalfd");
	if (block_open(&b, INIT_CONFIG_FD) < 0)
		give_up(-EINVAL, "configuration");
	SYS(close, INIT_CONFIG_FD, 0, 0, 0, 0, 0);
	serve(start(&b), (int)sigfd, b.head->serve);
	__builtin_unreachable();
}
