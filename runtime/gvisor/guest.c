// SPDX-License-Identifier: Apache-2.0
#include "runtime/gvisor/guest.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

struct gvisor_guest {
	char dir[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	char sink[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	struct buf pod_init;
	struct sandbox_guest view;
	int gate_ms;
	bool made;
	int listen_fd;
	int news[2]; /* ours, the engine's */
	bool open, started, closed;
	struct gvisor_news who;
};

/* ---- made ahead ---- */

static int make_dir(struct gvisor_guest *g, const char *dir, struct err *err)
{
	struct stat st;

	if ((size_t)snprintf(g->dir, sizeof(g->dir), "%s", dir) >=
	    sizeof(g->dir) - sizeof(SOCKET_NAME) - 1)
		return err_set(err, ENAMETOOLONG, "'%s': too long for a socket's address", dir);
	if (mkdir(g->dir, 0700) < 0)
		return err_set(err, errno, "'%s': %m", g->dir);
	g->made = true;
	/* What is ours alone keeps everybody else away from the socket. */
	if (stat(g->dir, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 077))
		return err_set(err, EPERM, "'%s': not a directory of our own", g->dir);
	return 0;
}

static int make_socket(struct gvisor_guest *g, struct err *err)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	if ((size_t)snprintf(a.sun_path, sizeof(a.sun_path), "%s/" SOCKET_NAME, g->dir) >=
	    sizeof(a.sun_path))
		return err_set(err, ENAMETOOLONG, "'%s': %m", g->dir);
	snprintf(g->sink, sizeof(g->sink), "%s", a.sun_path);
	g->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (g->listen_fd < 0 || bind(g->listen_fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    chmod(a.sun_path, 0666) < 0 || listen(g->listen_fd, GVISOR_BACKLOG) < 0)
		return err_set(err, errno, "socket '%s': %m", a.sun_path);
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

int gvisor_guest_new(struct gvisor_guest **ret, const char *dir, int gate_ms, struct err *err)
{
	struct gvisor_guest *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return err_set(err, ENOMEM, "guest's events: %m");
	g->listen_fd = g->news[0] = g->news[1] = -1;
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
		.sink = g->sink, .pod_init = g->pod_init.p, .gate = look_at_gate, .arg = g
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

int gvisor_guest_fd(const struct gvisor_guest *g)
{
	return g ? g->news[0] : -1;
}
