// SPDX-License-Identifier: Apache-2.0
/* Keepers that are made ahead. Most of a start is loading probes: a parked keeper has done that, and waits in
 * <run>/parked for its sandbox, without knowing whose it will be: nothing of any tenant has been in it. It keeps one
 * and ends with it. One that nobody took ends with its agent. */
#include "userspace/cli/agent_park.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/base/log.h"
#include "userspace/capture/capture.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/util.h"
#include "userspace/pipeline/agent_frame.h"
#include "userspace/pipeline/run_status.h"

#define DIR_FLAGS  (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
#define PARK_AGENT 3 /* descriptor: to the agent */
#define PARK_FDS   3 /* client, lock, hub */
#define ANSWER_MS  10000
#define PARK_NICE  5

static struct capture *loaded;

struct capture *agent_park_take(void)
{
	return take_ptr(loaded);
}

static int open_dir(int *ret_fd, bool make)
{
	char path[PATH_MAX];

	if ((size_t)snprintf(path, sizeof(path), "%s/parked", run_dir()) >= sizeof(path))
		return -ENAMETOOLONG;
	if (make && mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	*ret_fd = open(path, DIR_FLAGS);
	return *ret_fd < 0 ? -errno : 0;
}

/* By way of the descriptor: a path of the run directory may be longer than a socket's can be. */
static void address(struct sockaddr_un *ret, int dir, const char *name)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/%.32s", dir, name);
}

/* ---- the agent's side ---- */

void agent_park_init(struct agent_park *p)
{
	for (size_t i = 0; i < AGENT_PARKED_MAX; i++)
		p->fd[i] = -1;
}

static int spawn(int *ret_fd)
{
	static char name[] = "warder", agent[] = "agent", park[] = "park";
	char *argv[] = { name, agent, park, NULL };
	sigset_t none;
	int pair[2], null;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		for (int sig = 1; sig < NSIG; sig++)
			signal(sig, SIG_DFL);
		setsid();
		null = open("/dev/null", O_RDWR);
		if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || chdir("/") < 0 ||
		    (pair[1] != PARK_AGENT && dup2(pair[1], PARK_AGENT) < 0) ||
		    fcntl(PARK_AGENT, F_SETFD, 0) < 0 || close_range(PARK_AGENT + 1, ~0u, 0) < 0)
			_exit(EXIT_WARDER);
		execv("/proc/self/exe", argv);
		_exit(EXIT_WARDER);
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return -EAGAIN;
	}
	*ret_fd = pair[0];
	return 0;
}

void agent_park_fill(struct agent_park *p, uint64_t wanted)
{
	for (size_t i = 0; i < AGENT_PARKED_MAX; i++)
		if (i < wanted && p->fd[i] < 0 && spawn(&p->fd[i]) < 0)
			return;
		else if (i >= wanted && p->fd[i] >= 0)
			close(take_fd(p->fd[i]));
}

bool agent_park_hear(struct agent_park *p, size_t i)
{
	char word = 0;
	ssize_t n = recv(p->fd[i], &word, 1, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	close(take_fd(p->fd[i]));
	return n == 1; /* else it died: that may happen again at once */
}

void agent_park_drain(struct agent_park *p)
{
	for (size_t i = 0; i < AGENT_PARKED_MAX; i++)
		if (p->fd[i] >= 0)
			close(take_fd(p->fd[i]));
}

/* ---- the worker's side ---- */

/* One that was taken by somebody else, or is dead, does not answer. */
static bool give_to(int dir, const char *name, struct str text, const int fds[PARK_FDS])
{
	auto_close int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct pollfd p = { .fd = sock, .events = POLLIN };
	struct sockaddr_un at;
	char word;

	address(&at, dir, name);
	if (sock < 0 || connect(sock, (struct sockaddr *)&at, sizeof(at)) < 0) {
		if (errno == ECONNREFUSED)
			unlinkat(dir, name, 0);
		return false;
	}
	return fd_send(sock, text.p, text.n, fds, PARK_FDS, 0) >= 0 &&
	       poll(&p, 1, ANSWER_MS) == 1 && recv(sock, &word, 1, 0) == 1;
}

bool agent_park_give(const struct agent_request *q, int client, int lock, int hub)
{
	const int fds[PARK_FDS] = { client, lock, hub };
	auto_buf struct buf text = { 0 };
	auto_dir DIR *d = NULL;
	auto_close int dir = -1;
	struct dirent *de;
	int copy;

	if (agent_request_print(&text, q) < 0 || open_dir(&dir, false) < 0)
		return false;
	copy = openat(dir, ".", DIR_FLAGS);
	d = copy < 0 ? NULL : fdopendir(copy);
	if (!d && copy >= 0)
		close(copy);
	while (d && (de = readdir(d)))
		if (de->d_name[0] != '.' &&
		    give_to(dir, de->d_name, (struct str){ text.p, text.n }, fds))
			return true;
	return false;
}

/* ---- the parked one ---- */

/* All that takes long, and depends on nobody. */
static int get_ready(struct err *err)
{
	int r;

	/* Who starts a sandbox now shall not wait for the next one's. */
	(void)setpriority(PRIO_PROCESS, 0, PARK_NICE);
	r = capture_open(&loaded,
			 &(struct capture_options){ .quiet_libbpf = true, .enforce = true }, err);
	if (r == 0)
		r = capture_selftest(loaded, false, NULL, 0, err);
	(void)setpriority(PRIO_PROCESS, 0, 0);
	return r;
}

static int listen_at(int *ret_fd, int dir, const char *name)
{
	auto_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un at;
	mode_t old = umask(0177);
	int r = 0;

	address(&at, dir, name);
	unlinkat(dir, name, 0); /* of a dead one with our number */
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 1) < 0)
		r = -errno;
	umask(old);
	if (r == 0)
		*ret_fd = take_fd(fd);
	return r;
}

/* Until somebody wants it: the connection; -1: the agent has gone. */
static int await(int listener)
{
	struct pollfd fds[] = { { .fd = PARK_AGENT, .events = POLLIN },
				{ .fd = listener, .events = POLLIN } };

	for (;;) {
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			return -1;
		if (fds[1].revents & POLLIN)
			return accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fds[0].revents)
			return -1;
	}
}

static ssize_t receive(int sock, char *packet, int fds[PARK_FDS])
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(PARK_FDS * sizeof(int))];
	} control;
	struct iovec iov = { packet, AGENT_FRAME_MAX };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;

	if (!c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(PARK_FDS * sizeof(int)))
		return -EBADMSG;
	memcpy(fds, CMSG_DATA(c), PARK_FDS * sizeof(int));
	return n;
}

/* Its words as those of `agent keep`. */
static int keep(struct agent_request *q, const int fds[PARK_FDS])
{
	static char agent[] = "agent", keep_word[] = "keep";
	char flags[8], rows[8], cols[8];
	char **words = calloc(q->argc + 8, sizeof(*words));
	size_t n = 0;

	if (!words)
		return EXIT_WARDER;
	snprintf(flags, sizeof(flags), "%.3s", q->cwd);
	snprintf(rows, sizeof(rows), "%u", q->rows);
	snprintf(cols, sizeof(cols), "%u", q->cols);
	words[n++] = agent;
	words[n++] = keep_word;
	words[n++] = (char *)q->sandbox;
	words[n++] = flags;
	words[n++] = rows;
	words[n++] = cols;
	for (size_t i = 0; i < q->argc; i++)
		words[n++] = (char *)q->argv[i];
	if (q->term)
		setenv("TERM", q->term, 1);
	if (chdir(q->dir ? q->dir : "/") < 0)
		return EXIT_WARDER;
	for (int i = 0; i < PARK_FDS; i++)
		if (dup2(fds[i], PARK_AGENT + i) < 0)
			return EXIT_WARDER;
	return agent_keeper((int)n, words);
}

int agent_parked(void)
{
	static char packet[AGENT_FRAME_MAX];
	auto_close int dir = -1, listener = -1;
	struct agent_request q;
	struct err err = { 0 };
	int sock, fds[PARK_FDS], high[PARK_FDS], agent;
	struct arena arena;
	char name[32];
	ssize_t n;

	if (fcntl(PARK_AGENT, F_GETFD) < 0) {
		err_set(&err, EINVAL, "`agent park` is for the agent itself");
		return cli_bad_usage("agent", &err);
	}
	fcntl(PARK_AGENT, F_SETFD, FD_CLOEXEC);
	/* What comes later has these numbers: no probe's may lie there. */
	for (int fd = PARK_AGENT + 1; fd < PARK_AGENT + PARK_FDS; fd++)
		if (dup3(STDIN_FILENO, fd, O_CLOEXEC) < 0)
			return EXIT_WARDER;
	log_set_prefix("warder agent");
	if (get_ready(&err) < 0)
		return cli_fail(&err);
	snprintf(name, sizeof(name), "%d", (int)getpid());
	if (open_dir(&dir, true) < 0 || listen_at(&listener, dir, name) < 0)
		return EXIT_WARDER;
	sock = await(listener);
	/* Nobody else gets in: those that wait in line are refused. */
	close(take_fd(listener));
	unlinkat(dir, name, 0);
	if (sock < 0)
		return 0;
	arena_init(&arena, 4 * AGENT_FRAME_MAX + 4 * AGENT_WORDS_MAX * sizeof(char *));
	n = receive(sock, packet, fds);
	if (n < 0 || agent_request_parse(&q, &arena, (struct str){ packet, (size_t)n }, &err) < 0 ||
	    !q.sandbox || !q.cwd)
		return EXIT_WARDER;
	(void)!send(PARK_AGENT, "t", 1, MSG_NOSIGNAL);
	(void)!send(sock, "t", 1, MSG_NOSIGNAL);
	close(sock);
	agent = fcntl(PARK_AGENT, F_DUPFD_CLOEXEC, 10);
	for (int i = 0; i < PARK_FDS; i++) {
		high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 10);
		close(fds[i]);
	}
	if (agent >= 0)
		close(agent);
	return keep(&q, high);
}
