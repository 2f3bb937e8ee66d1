// SPDX-License-Identifier: Apache-2.0
/* The nursery (agent_park.c): probes are loaded here once, keepers are forked from it. It knows each by a pipe: the
 * keeper writes a byte when it has a sandbox, and whoever reads this session's events holds the other end. When that has
 * closed, by whatever death, the session's entries go out of the probes' tables, and its number may be used again. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/base/log.h"
#include "userspace/capture/capture.h"
#include "userspace/cli/agent_park.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/run_rules.h"
#include "userspace/cli/util.h"
#include "userspace/pipeline/privdrop.h"
#include "userspace/pipeline/run_status.h"

#define PARK_AGENT 3 /* descriptor: to the agent */
#define PARK_FDS   3 /* client, lock, hub */
#define PARK_NICE  5
#define BACKLOG	   64
#define EVENTS	   16
#define UNUSED_MAX \
	3 /* children made ahead that ended in a row before anybody took one: no more are, until one is */
#define URGENT ((size_t)512 << 10) /* rings of each sandbox */
#define BULK   ((size_t)1 << 20)

enum state { FREE, WAITS, TAKEN, OVER, CLEANED };

struct slot {
	enum state state;
	int alive;     /* our end; -1 */
	uint32_t turn; /* how many were here before: ids do not come again */
};

struct nursery {
	struct slot slot[CAPTURE_SESSIONS_MAX + 1]; /* by place; 0 is none's */
	size_t waiting, wanted;
	unsigned int unused;
	int dir, listen, signals, epoll;
	pid_t cleaner;
	char **argv;
};

static struct capture *loaded;

struct capture *agent_park_take(void)
{
	return take_ptr(loaded);
}

/* ---- a keeper ---- */

/* Until somebody wants it: the connection; -1: agent or nursery have gone. */
static int await(int listener)
{
	struct pollfd fds[] = { { .fd = PARK_AGENT }, { .fd = listener, .events = POLLIN } };

	for (;;) {
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0) {
			if (errno == EINTR)
				continue;
			return -1;
		}
		if (fds[1].revents & POLLIN)
			return accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fds[0].revents)
			return -1;
	}
}

static ssize_t receive(int sock, char *packet, int fds[PARK_FDS])
{
	ssize_t n = fd_recv(sock, packet, AGENT_FRAME_MAX, fds, PARK_FDS, 0);

	return n >= 0 && fds[0] < 0 ? -EBADMSG : n;
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
	/* One copy of each: when the hub has closed its own, who waits there has to see it. */
	for (int i = 0; i < PARK_FDS; i++)
		if (dup2(fds[i], PARK_AGENT + i) < 0 || close(fds[i]) < 0)
			return EXIT_WARDER;
	return agent_keeper((int)n, words);
}

/* What ps(1) shows. */
static void show(char **argv, const char *session)
{
	if (strlen(session) != strlen(argv[2]))
		return;
	memcpy(argv[1], "keep", 4);
	memcpy(argv[2], session, strlen(session));
}

static int serve(struct nursery *n, int sock, int alive)
{
	static char packet[AGENT_FRAME_MAX];
	int fds[PARK_FDS], high[PARK_FDS];
	struct agent_request q;
	struct err err = { 0 };
	struct arena arena;
	ssize_t got;

	arena_init(&arena, 4 * AGENT_FRAME_MAX + 4 * AGENT_WORDS_MAX * sizeof(char *));
	got = receive(sock, packet, fds);
	if (got < 0 ||
	    agent_request_parse(&q, &arena, (struct str){ packet, (size_t)got }, &err) < 0 ||
	    !q.sandbox || !q.cwd)
		return EXIT_WARDER;
	(void)!write(alive, "t", 1);
	(void)!send(sock, "t", 1, MSG_NOSIGNAL);
	close(sock);
	show(n->argv, q.sandbox);
	close(PARK_AGENT);
	for (int i = 0; i < PARK_FDS; i++) {
		high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 10);
		close(fds[i]);
	}
	return keep(&q, high);
}

static int listen_at(int *ret_fd, int dir, const char *name, int backlog)
{
	auto_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un at;
	mode_t old = umask(0177);
	int r = 0;

	agent_park_address(&at, dir, name);
	unlinkat(dir, name, 0); /* of a dead one with our number */
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, backlog) < 0)
		r = -errno;
	umask(old);
	if (r == 0)
		*ret_fd = take_fd(fd);
	return r;
}

/* `sock`: who waits for it; -1: it is made ahead. Returns an exit code. */
static int child(struct nursery *n, uint32_t id, int sock, int alive)
{
	struct err err = { 0 };
	char name[32];
	int listener;

	setsid();
	if (capture_join(loaded, id, alive, &err) < 0)
		return cli_fail(&err);
	if (sock < 0) {
		snprintf(name, sizeof(name), "%d", (int)getpid());
		if (listen_at(&listener, n->dir, name, 1) < 0)
			return EXIT_WARDER;
		sock = await(listener);
		/* Nobody else gets in: those that wait in line are refused. */
		close(listener);
		unlinkat(n->dir, name, 0);
		if (sock < 0)
			return 0;
	}
	close(take_fd(n->dir));
	return serve(n, sock, alive);
}

/* ---- the nursery ---- */

static void drop_ours(struct nursery *n)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	close(n->listen);
	close(n->signals);
	close(n->epoll);
	for (size_t i = 1; i < ARRAY_SIZE(n->slot); i++)
		if (n->slot[i].state != FREE && n->slot[i].alive >= 0)
			close(n->slot[i].alive);
}

static uint32_t free_place(const struct nursery *n)
{
	for (uint32_t i = 1; i < ARRAY_SIZE(n->slot); i++)
		if (n->slot[i].state == FREE)
			return i;
	return 0;
}

static int breed(struct nursery *n, int sock)
{
	uint32_t place = free_place(n);
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = place };
	struct slot *s = &n->slot[place];
	auto_close int ours = -1, theirs = -1;
	int p[2], r;
	pid_t pid;

	if (!place)
		return -ENOSPC;
	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	ours = p[0];
	theirs = p[1];
	/* Before there is a child: of one that we do not hear of we could not tell when it has ended. */
	if (epoll_ctl(n->epoll, EPOLL_CTL_ADD, ours, &ev) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		close(take_fd(ours));
		drop_ours(n);
		r = child(n, capture_session_id(place, s->turn), sock, take_fd(theirs));
		fflush(NULL);
		_exit(r);
	}
	if (pid < 0)
		return -errno;
	s->state = sock < 0 ? WAITS : TAKEN;
	s->alive = take_fd(ours);
	n->waiting += sock < 0;
	return 0;
}

static void fill(struct nursery *n)
{
	while (n->waiting < n->wanted && n->unused < UNUSED_MAX && breed(n, -1) == 0)
		;
}

/* A child made ahead has ended, and nobody took it: whatever ended it may end the next one, too. */
static void ended_unused(struct nursery *n)
{
	n->waiting--;
	if (++n->unused == UNUSED_MAX)
		log_warn(
			"no sandbox is prepared ahead until one is asked for: the last %d ended by themselves",
			UNUSED_MAX);
}

/* It takes the kernel some 10 ms for each table: not our time. */
static void clean(struct nursery *n)
{
	static uint32_t ids[CAPTURE_SESSIONS_MAX];
	size_t k = 0;

	if (n->cleaner)
		return;
	for (uint32_t i = 1; i < ARRAY_SIZE(n->slot); i++)
		if (n->slot[i].state == OVER)
			ids[k++] = capture_session_id(i, n->slot[i].turn);
	if (!k)
		return;
	n->cleaner = fork();
	if (n->cleaner == 0) {
		drop_ours(n);
		capture_forget(loaded, ids, k);
		_exit(0);
	}
	if (n->cleaner < 0) {
		n->cleaner = 0; /* at the next one's end */
		return;
	}
	for (size_t i = 1; i < ARRAY_SIZE(n->slot); i++)
		if (n->slot[i].state == OVER)
			n->slot[i].state = CLEANED;
}

static void hear_keeper(struct nursery *n, uint32_t place)
{
	struct slot *s = &n->slot[place];
	char word[8];
	ssize_t r = read(s->alive, word, sizeof(word));

	if (r < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (r > 0) {
		n->waiting -= s->state == WAITS;
		s->state = TAKEN;
		n->unused = 0;
		return;
	}
	if (s->state == WAITS)
		ended_unused(n);
	close(take_fd(s->alive));
	s->state = OVER;
}

static void hear_keepers(struct nursery *n)
{
	struct epoll_event ev[EVENTS];
	int k = epoll_wait(n->epoll, ev, EVENTS, 0);

	for (int i = 0; i < k; i++)
		hear_keeper(n, ev[i].data.u32);
}

static void reap(struct nursery *n)
{
	struct signalfd_siginfo si;
	bool keeper = false;
	pid_t pid;

	(void)!read(n->signals, &si, sizeof(si));
	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
		if (pid != n->cleaner) {
			keeper = true;
			continue;
		}
		n->cleaner = 0;
		for (size_t i = 1; i < ARRAY_SIZE(n->slot); i++)
			if (n->slot[i].state == CLEANED) {
				n->slot[i].state = FREE;
				n->slot[i].turn++;
			}
	}
	if (keeper) /* the agent sweeps what it left */
		(void)!send(PARK_AGENT, "s", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int live(struct nursery *n)
{
	struct pollfd fds[] = { { .fd = PARK_AGENT },
				{ .fd = n->listen, .events = POLLIN },
				{ .fd = n->signals, .events = POLLIN },
				{ .fd = n->epoll, .events = POLLIN } };

	for (;;) {
		fill(n);
		clean(n);
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0) {
			if (errno == EINTR)
				continue;
			return EXIT_WARDER;
		}
		if (fds[0].revents) /* the agent has gone */
			return 0;
		if (fds[3].revents)
			hear_keepers(n);
		if (fds[2].revents)
			reap(n);
		if (fds[1].revents) {
			auto_close int sock = accept4(n->listen, NULL, NULL, SOCK_CLOEXEC);
			int r = sock < 0 ? 0 : breed(n, sock);

			if (r < 0) /* who asked loads probes of its own */
				log_warn("a sandbox without the shared probes: %s", strerror(-r));
		}
	}
}

/* All that takes long, and depends on nobody. */
static int get_ready(struct err *err)
{
	const struct capture_options opt = { .quiet_libbpf = true,
					     .enforce = true,
					     .shared = true,
					     .urgent_bytes = URGENT,
					     .bulk_bytes = BULK };
	uid_t uid;
	gid_t gid;
	int r;

	/* Who starts a sandbox now shall not wait for the next one's. */
	(void)setpriority(PRIO_PROCESS, 0, PARK_NICE);
	r = capture_open(&loaded, &opt, err);
	if (r == 0)
		r = capture_selftest(loaded, false, NULL, 0, err);
	if (r >= 0)
		capture_leave(loaded);
	run_rules_ahead();
	engine_ids(&uid, &gid); /* what it takes to look up a user is in memory then */
	(void)setpriority(PRIO_PROCESS, 0, 0);
	return r;
}

static int open_dir(int *ret_fd)
{
	char path[PATH_MAX];

	if ((size_t)snprintf(path, sizeof(path), "%s/parked", run_dir()) >= sizeof(path))
		return -ENAMETOOLONG;
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	*ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return *ret_fd < 0 ? -errno : 0;
}

int agent_nursery(int argc, char **argv)
{
	static struct nursery n;
	struct err err = { 0 };
	uint64_t wanted;
	sigset_t set;
	int r;

	if (argc != 3 || parse_u64(argv[2], &wanted) < 0 || wanted > AGENT_PARKED_MAX ||
	    fcntl(PARK_AGENT, F_GETFD) < 0) {
		err_set(&err, EINVAL, "`agent park` is for the agent itself");
		return cli_bad_usage("agent", &err);
	}
	n.argv = argv;
	n.wanted = wanted;
	fcntl(PARK_AGENT, F_SETFD, FD_CLOEXEC);
	/* What comes later has these numbers: no probe's may lie there. */
	for (int fd = PARK_AGENT + 1; fd < PARK_AGENT + PARK_FDS; fd++)
		if (dup3(STDIN_FILENO, fd, O_CLOEXEC) < 0)
			return EXIT_WARDER;
	log_set_prefix("warder agent");
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	n.epoll = epoll_create1(EPOLL_CLOEXEC);
	n.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	r = n.epoll < 0 || n.signals < 0 ? -errno : open_dir(&n.dir);
	if (r == 0)
		r = listen_at(&n.listen, n.dir, AGENT_NURSERY, BACKLOG);
	if (r < 0) {
		err_set(&err, r, "'%s/parked': %m", run_dir());
		return cli_fail(&err);
	}
	if (get_ready(&err) < 0)
		return cli_fail(&err);
	sigprocmask(SIG_BLOCK, &set, NULL); /* the self-test has children of its own */
	return live(&n);
}
