// SPDX-License-Identifier: Apache-2.0
#include "runtime/gvisor/guest.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/gvisor/points.h"
#include "runtime/gvisor/sink.h"
#include "userspace/base/auto.h"
#include "userspace/base/buf.h"
#include "userspace/base/clock.h"

#define SOCKET_NAME "sink.sock"
#define DIR_FLAGS   (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)

struct gvisor_guest {
	char dir[PATH_MAX], sink[PATH_MAX];
	int dir_fd;
	struct buf pod_init;
	struct sandbox_guest view;
	int gate_ms;
	bool made;
	int listen_fd;
	int news[2]; /* ours, the engine's */
	bool open, started, ended, closed;
	int status;
	struct gvisor_news who;
	int (*on_processes)(void *arg, int fd);
	void *on_processes_arg;
};

/* ---- made ahead ---- */

/* The directory that `dir` is in, locked: between its being made and its own lock, none that sweeps comes by; others that
 * make theirs may. */
static int lock_parent(const char *dir, struct err *err)
{
	char parent[PATH_MAX];
	const char *slash = strrchr(dir, '/');
	auto_close int fd = -1;

	snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - dir) : 1, slash ? dir : ".");
	fd = open(*parent ? parent : "/", DIR_FLAGS);
	if (fd < 0 || flock(fd, LOCK_SH) < 0)
		return err_set(err, errno, "'%s': %m", parent);
	return take_fd(fd);
}

static int make_dir(struct gvisor_guest *g, const char *dir, struct err *err)
{
	auto_close int parent = -1;
	struct stat st;

	if ((size_t)snprintf(g->dir, sizeof(g->dir), "%s", dir) >= sizeof(g->dir) ||
	    (size_t)snprintf(g->sink, sizeof(g->sink), "%s/" SOCKET_NAME, dir) >= sizeof(g->sink))
		return err_set(err, ENAMETOOLONG, "'%s': %m", dir);
	parent = lock_parent(g->dir, err);
	if (parent < 0)
		return parent;
	if (mkdir(g->dir, 0700) < 0)
		return err_set(err, errno, "'%s': %m", g->dir);
	g->made = true;
	g->dir_fd = open(g->dir, DIR_FLAGS);
	/* What is ours alone keeps everybody else away from the socket; the lock says that we live. */
	if (g->dir_fd < 0 || fstat(g->dir_fd, &st) < 0 || st.st_uid != geteuid() ||
	    (st.st_mode & 077) || flock(g->dir_fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, EPERM, "'%s': not a directory of our own", g->dir);
	return 0;
}

static int make_socket(struct gvisor_guest *g, struct err *err)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	/* The path itself may be longer than an address. */
	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/" SOCKET_NAME, g->dir_fd);
	g->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (g->listen_fd < 0 || bind(g->listen_fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    fchmodat(g->dir_fd, SOCKET_NAME, 0666, 0) < 0 ||
	    listen(g->listen_fd, GVISOR_BACKLOG) < 0)
		return err_set(err, errno, "socket '%s': %m", g->sink);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, g->news) < 0)
		return err_set(err, errno, "socket pair: %m");
	return 0;
}

static int write_points(struct gvisor_guest *g, struct err *err)
{
	int r = gvisor_points_json(&g->pod_init, SANDBOX_GUEST_SINK);

	if (r == 0)
		r = buf_addc(&g->pod_init, 0);
	return r < 0 ? err_set(err, r, "guest's events: %m") : 0;
}

void gvisor_guest_given(struct gvisor_guest *g)
{
	if (g->listen_fd >= 0)
		close(take_fd(g->listen_fd));
	if (g->news[1] >= 0)
		close(take_fd(g->news[1]));
}

void gvisor_guest_free(struct gvisor_guest *g)
{
	if (!g)
		return;
	gvisor_guest_given(g);
	if (g->news[0] >= 0)
		close(g->news[0]);
	if (g->made) {
		unlink(g->sink);
		rmdir(g->dir);
	}
	if (g->dir_fd >= 0)
		close(g->dir_fd);
	buf_done(&g->pod_init);
	free(g);
}

int gvisor_guest_listen_fd(const struct gvisor_guest *g)
{
	return g ? g->listen_fd : -1;
}

int gvisor_guest_news_fd(const struct gvisor_guest *g)
{
	return g ? g->news[1] : -1;
}

int gvisor_guest_sweep(const char *parent)
{
	int fd = open(parent, DIR_FLAGS), n = 0;
	auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *de;

	if (dir && flock(fd, LOCK_EX) < 0)
		return 0;
	while (dir && (de = readdir(dir))) {
		auto_close int one = -1;

		if (de->d_name[0] == '.')
			continue;
		one = openat(fd, de->d_name, DIR_FLAGS);
		if (one < 0 || flock(one, LOCK_EX | LOCK_NB) < 0) /* somebody's who lives */
			continue;
		unlinkat(one, SOCKET_NAME, 0);
		n += unlinkat(fd, de->d_name, AT_REMOVEDIR) == 0;
	}
	return n;
}

/* ---- what the engine has seen ---- */

static int left_ms(uint64_t end)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	return end > now ? (int)((end - now) / NSEC_PER_MSEC + 1) : 0;
}

static uint64_t end_of(int timeout_ms)
{
	return clock_ns(CLOCK_MONOTONIC) + (uint64_t)timeout_ms * NSEC_PER_MSEC;
}

static void note(struct gvisor_guest *g, const struct gvisor_news *news)
{
	if (news->what == GVISOR_NEWS_OPEN) {
		g->open = true;
		g->who = *news;
	} else if (news->what == GVISOR_NEWS_STARTED) {
		g->started = true;
	} else if (news->what == GVISOR_NEWS_ENDED) {
		g->ended = true;
		g->status = (int)news->status;
	} else if (news->what == GVISOR_NEWS_CLOSED) {
		g->closed = true;
	}
}

static int wait_news(struct gvisor_guest *g, const bool *wanted, uint64_t end, const char *what,
		     struct err *err)
{
	struct pollfd pfd = { .fd = g->news[0], .events = POLLIN };
	struct gvisor_news news;
	ssize_t n;

	for (;;) {
		n = recv(g->news[0], &news, sizeof(news), MSG_DONTWAIT);
		if (n == (ssize_t)sizeof(news)) {
			note(g, &news);
			continue;
		}
		if (n >= 0)
			return err_set(err, EPIPE, "%s: the engine is gone", what);
		if (*wanted)
			return 0;
		if (g->closed)
			return err_set(err, EPIPE, "%s: the sentry's connection is closed", what);
		if (!left_ms(end))
			return err_set(err, ETIMEDOUT, "%s: nothing came in time", what);
		poll(&pfd, 1, left_ms(end));
	}
}

/* ---- what runsc says ---- */

static bool eat(struct str *s, const char *z)
{
	if (!str_starts(*s, str_from(z)))
		return false;
	s->p += strlen(z);
	s->n -= strlen(z);
	return true;
}

int gvisor_trace_list_parse(struct str text, uint64_t *ret_dropped, struct err *err)
{
	uint64_t dropped = 0;
	size_t digits = 0;

	if (!eat(&text, "SESSIONS (1)\n\"" GVISOR_SESSION "\"\n"))
		return err_set(err, ENOENT, "runsc trace list: there is no session '%s'",
			       GVISOR_SESSION);
	if (!eat(&text, "\tSink: \"" GVISOR_SINK "\", dropped: "))
		return err_set(err, ENOENT, "runsc trace list: the session has no sink '%s'",
			       GVISOR_SINK);
	for (; digits < text.n && digits < 19 && text.p[digits] >= '0' && text.p[digits] <= '9';
	     digits++)
		dropped = dropped * 10 + (uint64_t)(text.p[digits] - '0');
	if (!digits || digits == text.n || text.p[digits] != '\n')
		return err_set(err, EBADMSG, "runsc trace list: no count of dropped messages");
	*ret_dropped = dropped;
	return 0;
}

/* struct sandbox_guest.gate */
static int look_at_gate(void *arg, const char *sessions, size_t n, struct err *err)
{
	struct gvisor_guest *g = arg;
	uint64_t dropped;
	int r = wait_news(g, &g->open, end_of(g->gate_ms), "guest's events", err);

	if (r < 0)
		return r;
	return gvisor_trace_list_parse((struct str){ sessions, n }, &dropped, err);
}

/* struct sandbox_guest.processes: of those there is no start to be told, and the engine says instead that it knows them. */
static int take_processes(void *arg, int fd, struct err *err)
{
	struct gvisor_guest *g = arg;
	int r = g->on_processes ? g->on_processes(g->on_processes_arg, fd) : 0;

	if (r < 0)
		return err_set(err, -r, "guest's processes: %m");
	return wait_news(g, &g->started, end_of(g->gate_ms), "guest's processes", err);
}

void gvisor_guest_on_processes(struct gvisor_guest *g, int (*fn)(void *arg, int fd), void *arg)
{
	g->on_processes = fn;
	g->on_processes_arg = arg;
}

int gvisor_guest_new(struct gvisor_guest **ret, const char *dir, int gate_ms, struct err *err)
{
	struct gvisor_guest *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return err_set(err, ENOMEM, "guest's events: %m");
	g->dir_fd = g->listen_fd = g->news[0] = g->news[1] = -1;
	r = make_dir(g, dir, err);
	if (r == 0)
		r = make_socket(g, err);
	if (r == 0)
		r = write_points(g, err);
	if (r < 0) {
		gvisor_guest_free(g);
		return r;
	}
	g->gate_ms = gate_ms > 0 ? gate_ms : GVISOR_GATE_MS;
	g->view = (struct sandbox_guest){
		.sink = g->sink,
		.pod_init = g->pod_init.p,
		.gate = look_at_gate,
		.processes = take_processes,
		.arg = g,
	};
	*ret = g;
	return 0;
}

const struct sandbox_guest *gvisor_guest_view(const struct gvisor_guest *g)
{
	return &g->view;
}

bool gvisor_guest_has_started(struct gvisor_guest *g, bool *ret_closed)
{
	struct gvisor_news news;
	ssize_t n;

	while ((n = recv(g->news[0], &news, sizeof(news), MSG_DONTWAIT)) == (ssize_t)sizeof(news))
		note(g, &news);
	*ret_closed = g->closed || n >= 0;
	return g->started;
}

int gvisor_guest_wait_started(struct gvisor_guest *g, int timeout_ms, struct err *err)
{
	return wait_news(g, &g->started, end_of(timeout_ms), "guest's start", err);
}

bool gvisor_guest_has_ended(struct gvisor_guest *g, int timeout_ms, int *ret_status)
{
	if (wait_news(g, &g->ended, end_of(timeout_ms), "guest's end", NULL) < 0)
		return false;
	*ret_status = g->status;
	return true;
}

int gvisor_guest_fd(const struct gvisor_guest *g)
{
	return g ? g->news[0] : -1;
}
