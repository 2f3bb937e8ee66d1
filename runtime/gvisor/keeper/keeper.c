// SPDX-License-Identifier: Apache-2.0
#include "runtime/gvisor/keeper/keeper.h"

#include <linux/errno.h>
#include <linux/mman.h>
#include <linux/openat2.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/un.h>
#include <linux/wait.h>
#include <asm/ioctls.h>
#include <asm/signal.h>
#include <asm/termios.h>

#define EXIT_INTERNAL 125
#define SIGNALS_MAX   64
#define OTHER_FDS     4 /* polled besides those of commands */
#define AF_UNIX	      1
#define SOCK_STREAM   1
#define SOCK_CLOEXEC  02000000

/* What `runsc start` gives a sentry that has no network: its own loopback. */
static const char loopback[] =
	"{\"LoopbackLinks\":[{\"Name\":\"lo\",\"Addresses\":[{\"Address\":\"127.0.0.1\",\"PrefixLen\":8},"
	"{\"Address\":\"::1\",\"PrefixLen\":128}],\"Routes\":[{\"Destination\":{\"IP\":\"127.0.0.0\","
	"\"Mask\":\"/wAAAA==\"},\"Gateway\":\"\"},{\"Destination\":{\"IP\":\"::1\","
	"\"Mask\":\"/////////////////////w==\"},\"Gateway\":\"\"}]}]}";

static struct words words;
static struct sentry sentry;
static long sentry_pid;
static char answer[TEXT_MAX];
static int writing = -1; /* where it will be told that all processes are written down */

struct command {
	long pid;    /* of runsc exec; 0 = free */
	uint32_t id; /* the launcher's */
	int begun;   /* told when the command runs; -1 = it was */
	long guest;  /* its pid inside, 0 = not known */
};

static struct command commands[INIT_EXECS_MAX];

int text_find(const char *text, size_t n, const char *word, size_t *ret_after)
{
	size_t k = length(word, n + 1);

	for (size_t i = 0; i + k <= n; i++) {
		size_t same = 0;

		while (same < k && text[i + same] == word[same])
			same++;
		if (same == k) {
			*ret_after = i + k;
			return 0;
		}
	}
	return -1;
}

static long number(const char *text, size_t n)
{
	long v = 0;

	for (size_t i = 0; i < n && text[i] >= '0' && text[i] <= '9' && v < 1L << 40; i++)
		v = v * 10 + (text[i] - '0');
	return v;
}

/* ---- the launcher ---- */

static void tell(uint32_t id, uint32_t type, long code, int sig, int fd)
{
	struct init_frame f = { .magic = INIT_FRAME_MAGIC,
				.type = type,
				.code = (int32_t)code,
				.signal = sig,
				.id = id };

	f.alone = type == FRAME_EXIT && !id;
	process1_send(&f, fd);
}

static void __attribute__((noreturn)) give_up(long r, const char *step, const char *text)
{
	struct init_frame f = { .magic = INIT_FRAME_MAGIC, .type = FRAME_FAILED };

	f.code = (int32_t)-r;
	copy(f.step, step, length(step, sizeof(f.step) - 1));
	for (size_t i = 0; i < sizeof(f.text) - 1 && text[i]; i++) /* it may be the sentry's */
		f.text[i] = (char)(text[i] < 32 || text[i] > 126 ? '?' : text[i]);
	process1_send(&f, -1);
	exit_now(EXIT_INTERNAL);
	__builtin_unreachable();
}

static void __attribute__((noreturn)) give_up_by_log(const char *step)
{
	char text[INIT_TEXT_MAX];

	if (!runsc_last_words(text, sizeof(text)))
		copy(text, "it said nothing", sizeof("it said nothing"));
	give_up(-EIO, step, text);
}

/* Until the launcher says that the payload may run. Returns what came with that, or -1. */
static int wait_for_go(void)
{
	struct init_frame f = { 0 };
	struct cmsg_fds fds;
	long n;

	do {
		n = process1_receive(&f, &fds, 0);
		if (n <= 0 && n != -EINTR)
			exit_now(0);
	} while (n != (long)sizeof(f) || f.type != FRAME_GO);
	return fds.len == CMSG_FD_LEN ? fds.fd[0] : -1;
}

/* ---- a terminal: made by runsc, which sends its master to a socket of ours ---- */

static int console_listen(void)
{
	static const char path[] = GVISOR_CONSOLE;
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	long fd = SYS(socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, 0, 0, 0), r;

	copy(at.sun_path, path, sizeof(path));
	SYS(unlinkat, AT_FDCWD, path, 0, 0, 0, 0);
	r = fd < 0 ? fd : SYS(bind, fd, &at, sizeof(at), 0, 0, 0);
	if (r >= 0)
		r = SYS(listen, fd, 4, 0, 0, 0, 0);
	if (r < 0 && fd >= 0)
		SYS(close, fd, 0, 0, 0, 0, 0);
	return (int)(r < 0 ? r : fd);
}

/* The master that has come, with the size that it is to have. */
static int console_take(int listener, int rows, int cols)
{
	struct winsize ws = { .ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols };
	char name[256];
	struct iovec iov = { .iov_base = name, .iov_len = sizeof(name) };
	struct cmsg_fd c = { 0 };
	/* The length without padding, in which there would be room for one more. */
	struct msghdr m = { .iov = &iov, .iov_n = 1, .control = &c, .control_len = CMSG_FD_LEN };
	long fd = SYS(accept4, listener, 0, 0, SOCK_CLOEXEC, 0, 0), n;

	if (fd < 0)
		return (int)fd;
	n = SYS(recvmsg, fd, &m, MSG_CMSG_CLOEXEC, 0, 0, 0);
	SYS(close, fd, 0, 0, 0, 0, 0);
	if (n < 0 || c.len != CMSG_FD_LEN)
		return n < 0 ? (int)n : -EPROTO;
	if (m.flags & MSG_CTRUNC) {
		SYS(close, c.fd, 0, 0, 0, 0, 0);
		return -EPROTO;
	}
	SYS(ioctl, c.fd, TIOCSWINSZ, &ws, 0, 0, 0);
	return c.fd;
}

/* ---- making the sandbox ---- */

/* It comes from the launcher through a sealed memfd, and is believed. */
static int words_open(struct words *w, int fd)
{
	long size = SYS(lseek, fd, 0, 2, 0, 0, 0);
	char *base, **v, *s;
	uint32_t n;

	if (size < (long)sizeof(struct gvisor_config))
		return -1;
	base = process1_map((size_t)size, MAP_PRIVATE, fd);
	if (!base)
		return -1;
	w->head = (const struct gvisor_config *)base;
	if (w->head->magic != GVISOR_CONFIG_MAGIC || w->head->size != size)
		return -1;
	n = (uint32_t)w->head->create_n + w->head->exec_n;
	v = (char **)process1_map((n + 2) * sizeof(*v), MAP_PRIVATE | MAP_ANONYMOUS, -1);
	if (!v)
		return -1;
	s = base + w->head->strings_off;
	w->create = v;
	for (uint32_t i = 0; i < n; i++) {
		if (i == w->head->create_n)
			v++; /* NULL behind the first */
		v[i] = s;
		s += length(s, (size_t)(base + size - s)) + 1;
	}
	w->exec = v + w->head->create_n + (w->head->exec_n ? 0 : 1);
	w->id = s;
	w->cwd = s + length(s, (size_t)(base + size - s)) + 1;
	return 0;
}

/* Waits for this child; others that end are of gVisor, and none of them should yet. */
static int wait_child(long pid)
{
	int status = 0;
	long r;

	do {
		r = SYS(wait4, -1, &status, 0, 0, 0, 0);
	} while ((r >= 0 && r != pid) || r == -EINTR);
	return r < 0 ? 0x7f00 : status;
}

/* One that is not there is the sentry's end, with words that say nothing. What only gVisor has is not there. */
static void check_directory(void)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT };
	long root = SYS(openat, AT_FDCWD, GVISOR_TREE, O_PATH | O_DIRECTORY | O_CLOEXEC, 0, 0, 0);
	long fd = root < 0 ? root : SYS(openat2, root, words.cwd, &how, sizeof(how), 0, 0);

	if (fd == -ENOENT || fd == -ENOTDIR || fd == -EACCES || fd == -ELOOP) {
		tell(0, FRAME_EXEC_FAILED, fd == -EACCES ? EACCES : ENOENT, 0, -1);
		exit_now(EXIT_INTERNAL);
	}
	if (root >= 0)
		SYS(close, root, 0, 0, 0, 0, 0);
	if (fd >= 0)
		SYS(close, fd, 0, 0, 0, 0, 0);
}

static void make_sandbox(void)
{
	static const int stdio[] = { 0, 1, 2 };
	int console = -1, status;
	char text[32];
	long pid;

	if (words.head->tty) {
		console = console_listen();
		if (console < 0)
			give_up(console, "gvisor", "console socket");
	}
	pid = runsc_spawn(words.create, stdio, -1, -1);
	if (pid < 0)
		give_up(pid, "gvisor", "fork");
	status = wait_child(pid);
	if (status)
		give_up_by_log("runsc create");
	if (words.head->tty) {
		int master = console_take(console, words.head->tty_rows, words.head->tty_cols);

		SYS(close, console, 0, 0, 0, 0, 0);
		if (master < 0)
			give_up(master, "runsc create", "terminal");
		tell(0, FRAME_TTY, 0, 0, master);
		SYS(close, master, 0, 0, 0, 0, 0);
	}
	if (file_text(GVISOR_PIDFILE, text, sizeof(text)) <= 0)
		give_up(-EPROTO, "runsc create", GVISOR_PIDFILE);
	sentry_pid = number(text, sizeof(text));
}

/* `"id"`, as an argument of a call. */
static const char *quoted_id(char *to, size_t max)
{
	size_t n = length(words.id, max - 3);

	to[0] = '"';
	copy(to + 1, words.id, n);
	to[n + 1] = '"';
	to[n + 2] = 0;
	return to;
}

/* One call with its answer: the count, or -errno. The text is in `answer`. */
static long ask(const char *method, const char *arg, int timeout_ms)
{
	int fd = sentry_dial(&sentry);
	long n;

	if (fd < 0)
		return fd;
	n = sentry_ask(fd, method, arg, -1);
	if (n == 0)
		n = sentry_answer(fd, answer, sizeof(answer), timeout_ms);
	SYS(close, fd, 0, 0, 0, 0, 0);
	return n == 0 ? -ECONNRESET : n;
}

/* What the sentry says of its trace sessions goes to the launcher, who decides. */
static int show_sessions(void)
{
	long fd, n = ask(MANAGER "ListTraceSessions", "null", ANSWER_MS);

	if (n < 0)
		give_up(n, "gvisor", "trace sessions");
	fd = SYS(memfd_create, "sessions", 1 /* MFD_CLOEXEC */, 0, 0, 0, 0);
	if (fd < 0)
		give_up(fd, "gvisor", "memfd_create");
	if (SYS(write, fd, answer, n, 0, 0, 0) != n)
		give_up(-EIO, "gvisor", "memfd");
	tell(0, FRAME_MADE, 0, 0, (int)fd);
	SYS(close, fd, 0, 0, 0, 0, 0);
	return wait_for_go();
}

/* No namespace can be made here any more, whatever a filter of gVisor's may let through. */
static void close_namespaces(void)
{
	static const char *const files[] = {
		"user", "mnt", "pid", "ipc", "uts", "net", "cgroup", "time",
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		char path[64] = "/proc/sys/user/max_";
		size_t n = length(path, sizeof(path)), k = length(files[i], 8);
		long fd;

		copy(path + n, files[i], k);
		copy(path + n + k, "_namespaces", sizeof("_namespaces"));
		fd = SYS(openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0, 0, 0);
		if (fd < 0)
			continue;
		SYS(write, fd, "0", 1, 0, 0, 0);
		SYS(close, fd, 0, 0, 0, 0, 0);
	}
}

static void make_loopback(void)
{
	size_t at;
	long n = ask("Network.CreateLinksAndRoutes", loopback, ANSWER_MS);

	if (n < 0)
		give_up(n, "gvisor", "loopback");
	if (sentry_result(answer, (size_t)n, &at) < 0)
		give_up(-EIO, "gvisor loopback", answer);
}

/* Those of `from` are there, and seen by who watches, before one of them makes a step. */
static void restore_payload(int from)
{
	char why[INIT_TEXT_MAX];
	long r = from < 0 ? -EBADF : checkpoint_restore(&sentry, from, why, sizeof(why));
	int told;

	if (r < 0)
		give_up(r, "runsc restore", from < 0 ? "nothing came" : why);
	SYS(close, from, 0, 0, 0, 0, 0);
	told = checkpoint_processes(&sentry);
	if (told < 0)
		give_up(told, "runsc restore", "its processes could not be listed");
	tell(0, FRAME_PROCESSES, 0, 0, told);
	SYS(close, told, 0, 0, 0, 0, 0);
	show_sessions();
	checkpoint_go_on(&sentry, words.id);
}

static void start_payload(void)
{
	char id[96];
	size_t at;
	long n = ask(MANAGER "StartRoot", quoted_id(id, sizeof(id)), ANSWER_MS);

	if (n < 0)
		give_up(n, "gvisor", "start");
	if (sentry_result(answer, (size_t)n, &at) < 0) {
		int e = runsc_error(answer, (size_t)n);

		if (e == EIO) {
			if (text_find(answer, (size_t)n, "\"err\":\"", &at))
				at = 0;
			give_up(-EIO, "gvisor", answer + at);
		}
		tell(0, FRAME_EXEC_FAILED, e, 0, -1);
		exit_now(EXIT_INTERNAL);
	}
}

/* Returns the connection on which the sentry will say how the payload ended. */
static int wait_for_payload(void)
{
	char id[96];
	int fd = sentry_dial(&sentry);

	if (fd >= 0 && sentry_ask(fd, MANAGER "Wait", quoted_id(id, sizeof(id)), -1) < 0) {
		SYS(close, fd, 0, 0, 0, 0, 0);
		fd = -1;
	}
	tell(0, FRAME_STARTED, 0, 0, -1);
	return fd;
}

/* ---- further commands ---- */

static struct command *command_of(long pid, uint32_t id)
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

/* The command line, with or without a terminal. */
static char *const *exec_words(char **to, int tty)
{
	size_t n = 0, k;

	for (uint32_t i = 0; i < words.head->exec_n && n < GVISOR_ARGS_MAX - 1; i++)
		if (tty ||
		    text_find(words.exec[i], length(words.exec[i], 64), GVISOR_CONSOLE_ARG, &k))
			to[n++] = words.exec[i];
	to[n] = NULL;
	return to;
}

/* `fd`: its process.json and its three descriptors. A terminal: f->alone, its size in f->code. */
static long command_start(struct command *c, const struct init_frame *f, const int *fd)
{
	int pipefd[2], console = -1;
	char *argv[GVISOR_ARGS_MAX];
	long pid;

	pid = SYS(pipe2, pipefd, O_CLOEXEC, 0, 0, 0, 0);
	if (pid < 0)
		return pid;
	if (f->alone)
		pid = console = console_listen();
	if (pid >= 0)
		pid = runsc_spawn(exec_words(argv, (int)f->alone), fd + 1, fd[0], pipefd[1]);
	SYS(close, pipefd[1], 0, 0, 0, 0, 0);
	if (pid < 0)
		SYS(close, pipefd[0], 0, 0, 0, 0, 0);
	else
		*c = (struct command){ .pid = pid, .id = f->id, .begun = pipefd[0] };
	if (pid >= 0 && console >= 0) {
		struct pollfd p = { .fd = console, .events = POLLIN };
		struct __kernel_timespec wait = { .tv_sec = ANSWER_MS / 1000 };
		int master = -1;

		if (SYS(ppoll, &p, 1, &wait, 0, 0, 0) == 1)
			master = console_take(console, f->code >> 16 & 0xffff, f->code & 0xffff);
		if (master >= 0) {
			tell(f->id, FRAME_TTY, 0, 0, master);
			SYS(close, master, 0, 0, 0, 0, 0);
		}
	}
	if (console >= 0)
		SYS(close, console, 0, 0, 0, 0, 0);
	return pid < 0 ? pid : 0;
}

static void command_take(const struct init_frame *f, const int *fd)
{
	struct command *c = command_free();
	long r = -EAGAIN;

	if (c && words.head->exec_n && !command_of(0, f->id))
		r = command_start(c, f, fd);
	if (r < 0)
		tell(f->id, FRAME_EXEC_FAILED, -r, 0, -1);
}

/* It has written the command's pid: the command runs. */
static void command_begun(struct command *c)
{
	char text[32] = { 0 };
	long n = SYS(read, c->begun, text, sizeof(text) - 1, 0, 0, 0);

	if (n == -EINTR || n == -EAGAIN)
		return;
	SYS(close, c->begun, 0, 0, 0, 0, 0);
	c->begun = -1;
	if (n <= 0)
		return;
	c->guest = number(text, sizeof(text));
	tell(c->id, FRAME_STARTED, c->guest, 0, -1);
}

static void command_ended(struct command *c, int status)
{
	int sig = status & 0x7f;

	if (c->begun >= 0)
		command_begun(c);
	if (!c->guest) {
		char text[INIT_TEXT_MAX];
		size_t n = runsc_last_words(text, sizeof(text));

		tell(c->id, FRAME_EXEC_FAILED, runsc_error(text, n), 0, -1);
	} else {
		tell(c->id, FRAME_EXIT, sig ? 0 : status >> 8 & 0xff, sig, -1);
	}
	c->pid = 0;
}

/* ---- its life ---- */

static void told_writing(long r, const char *why)
{
	struct init_frame f = { .magic = INIT_FRAME_MAGIC, .type = FRAME_CHECKPOINTED };

	f.code = (int32_t)-r;
	for (size_t i = 0; i < sizeof(f.text) - 1 && why[i]; i++)
		f.text[i] = (char)(why[i] < 32 || why[i] > 126 ? '?' : why[i]);
	process1_send(&f, -1);
}

static void write_down(int to)
{
	long r = writing >= 0 ? -EBUSY : checkpoint_begin(&sentry, words.id, to);

	SYS(close, to, 0, 0, 0, 0, 0);
	if (r < 0)
		told_writing(r, "the sentry could not be asked");
	else
		writing = (int)r;
}

static void written_down(void)
{
	char why[INIT_TEXT_MAX] = "";
	long r = checkpoint_end(writing, why, sizeof(why));

	SYS(close, writing, 0, 0, 0, 0, 0);
	writing = -1;
	told_writing(r, why);
}

static void take_frame(void)
{
	struct init_frame f;
	struct cmsg_fds fds;
	long n = process1_receive(&f, &fds, MSG_DONTWAIT);

	if (n == 0 || (n < 0 && n != -EAGAIN && n != -EINTR))
		exit_now(0); /* the launcher is gone, and so must all of us be */
	if (n != (long)sizeof(f) || f.magic != INIT_FRAME_MAGIC)
		return;
	if (f.type == FRAME_SIGNAL && f.signal > 0 && f.signal <= SIGNALS_MAX) {
		struct command *c = f.id ? command_of(0, f.id) : NULL;

		if (!f.id || (c && c->guest))
			sentry_signal(&sentry, words.id, c ? c->guest : 0, f.signal, 0);
	}
	if (f.type == FRAME_CONTINUE)
		checkpoint_go_on(&sentry, words.id);
	if (f.type == FRAME_CHECKPOINT && fds.len == CMSG_FD_LEN)
		write_down(fds.fd[0]);
	if (fds.len != sizeof(fds))
		return;
	if (f.type == FRAME_EXEC && f.id)
		command_take(&f, fds.fd);
	for (int i = 0; i < INIT_EXEC_FDS; i++)
		SYS(close, fds.fd[i], 0, 0, 0, 0, 0);
}

/* How the payload ended, as the sentry says. False: it says nothing that makes sense. */
static int take_end(int fd, int timeout_ms)
{
	long n = sentry_answer(fd, answer, sizeof(answer), timeout_ms);
	size_t at;
	long status;

	if (n <= 0 || sentry_result(answer, (size_t)n, &at) < 0)
		return 0;
	status = number(answer + at, (size_t)n - at);
	tell(0, FRAME_EXIT, status >> 8 & 0xff, (int)(status & 0x7f), -1);
	exit_now(0);
	return 1;
}

/* The sentry is dead. What it said before still counts. */
static void __attribute__((noreturn)) sentry_ended(int fd, int status)
{
	if (fd >= 0)
		take_end(fd, 0);
	if (!status) /* it panics with others; its end was faster than its answer */
		tell(0, FRAME_EXIT, 0, 0, -1);
	else
		tell(0, FRAME_DIED, status >> 8 & 0xff, status & 0x7f, -1);
	exit_now(0);
	__builtin_unreachable();
}

static void reap(int wait_fd)
{
	for (;;) {
		int status = 0;
		long pid = SYS(wait4, -1, &status, WNOHANG, 0, 0, 0);
		struct command *c = pid > 0 ? command_of(pid, 0) : NULL;

		if (pid == -EINTR)
			continue;
		if (pid <= 0)
			return;
		if (pid == sentry_pid)
			sentry_ended(wait_fd, status);
		if (c)
			command_ended(c, status);
	}
}

static void __attribute__((noreturn)) serve(int wait_fd, int sigfd)
{
	for (;;) {
		struct pollfd p[OTHER_FDS + INIT_EXECS_MAX] = {
			{ .fd = sigfd, .events = POLLIN },
			{ .fd = INIT_CONTROL_FD, .events = POLLIN },
			{ .fd = wait_fd, .events = POLLIN },
			{ .fd = writing, .events = POLLIN },
		};

		reap(wait_fd);
		for (int i = 0; i < INIT_EXECS_MAX; i++)
			p[OTHER_FDS + i] =
				(struct pollfd){ .fd = commands[i].pid ? commands[i].begun : -1,
						 .events = POLLIN };
		if (SYS(ppoll, p, sizeof(p) / sizeof(p[0]), 0, 0, 0, 0) < 0)
			continue;
		if (p[0].revents) {
			char info[SIGINFO_SIZE];

			SYS(read, sigfd, info, sizeof(info), 0, 0, 0);
		}
		if (p[2].revents && !take_end(wait_fd, SIGNAL_MS)) {
			SYS(close, wait_fd, 0, 0, 0, 0, 0);
			wait_fd = -1; /* its own end will tell */
		}
		if (p[3].revents)
			written_down();
		for (int i = 0; i < INIT_EXECS_MAX; i++)
			if (p[OTHER_FDS + i].revents && commands[i].pid && commands[i].begun >= 0)
				command_begun(&commands[i]);
		if (p[1].revents)
			take_frame();
	}
}

__attribute__((noreturn)) void process1_main(void)
{
	long sigfd = process1_begin();
	int r, from = -1;

	if (sigfd < 0)
		give_up(sigfd, "gvisor", "signalfd");
	/* Those numbers are the descriptors of runsc's children. */
	sigfd = SYS(fcntl, sigfd, F_DUPFD_CLOEXEC, 10, 0, 0, 0);
	if (words_open(&words, INIT_CONFIG_FD) < 0)
		give_up(-EINVAL, "gvisor", "configuration");
	SYS(close, INIT_CONFIG_FD, 0, 0, 0, 0, 0);
	check_directory();
	make_sandbox();
	close_namespaces();
	r = sentry_find(&sentry, words.id);
	if (r < 0)
		give_up(r, "gvisor", "the sentry's socket was not found");
	if (words.head->gate)
		from = show_sessions();
	if (words.head->loopback)
		make_loopback();
	process1_let_go_of_stdio();
	if (words.head->restores)
		restore_payload(from);
	else
		start_payload();
	serve(wait_for_payload(), (int)sigfd);
}
