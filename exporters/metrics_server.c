// SPDX-License-Identifier: Apache-2.0
#include "exporters/metrics.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "exporters/stream.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"

#define CONNECTIONS_MAX 8
#define REQUEST_MAX	4096
#define CONNECTION_NS	(5 * NSEC_PER_SEC) /* whoever takes longer is cut */
#define SERVER_POLL_MS	10
#define DEAF_NS		NSEC_PER_SEC

struct connection {
	int fd; /* -1 = free */
	uint64_t deadline;
	char request[REQUEST_MAX];
	size_t request_n;
	struct buf reply;
};

struct metrics_server {
	int fd;
	uint64_t deaf_until; /* out of descriptors: poll would return at once, again and again */
	char *path;	     /* of a unix socket of ours */
	struct connection conns[CONNECTIONS_MAX];
};

static bool is_loopback(const struct sockaddr_storage *a)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)a;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)a;

	if (a->ss_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
	return a->ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

/* Numbers only: what we listen on must not depend on a name server. */
static int parse_address(const char *text, struct sockaddr_storage *ret, socklen_t *ret_n,
			 struct err *err)
{
	char copy[256];
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;
	struct stream_options o = { 0 };
	unsigned long port;
	char *end;

	memset(ret, 0, sizeof(*ret));
	if (snprintf(copy, sizeof(copy), "tcp://%s", text) >= (int)sizeof(copy))
		return err_set(err, EINVAL, "address '%.40s...' is too long", text);
	if (stream_parse(&o, copy, "9464", err) < 0)
		return -EINVAL;
	port = strtoul(o.port, &end, 10);
	if (*end || port > 65535)
		return err_set(err, EINVAL, "address '%s': '%s' is no port", text, o.port);
	if (inet_pton(AF_INET, o.host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((uint16_t)port);
		*ret_n = sizeof(*v4);
	} else if (inet_pton(AF_INET6, o.host, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons((uint16_t)port);
		*ret_n = sizeof(*v6);
	} else {
		return err_set(err, EINVAL,
			       "address '%s': expected a numeric address such as 127.0.0.1:9464, "
			       "or unix:/PATH",
			       text);
	}
	return 0;
}

static int listen_unix(struct metrics_server *s, const char *path, struct err *err)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct stat st;

	if (strlen(path) >= sizeof(un.sun_path))
		return err_set(err, ENAMETOOLONG, "socket path '%s' is too long", path);
	memcpy(un.sun_path, path, strlen(path));
	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0)
		return err_set(err, errno, "socket: %m");
	/* One that a crash left: nobody listens on it. */
	if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) &&
	    connect(s->fd, (struct sockaddr *)&un, sizeof(un)) < 0 && errno == ECONNREFUSED)
		unlink(path);
	if (bind(s->fd, (struct sockaddr *)&un, sizeof(un)) < 0)
		return err_set(err, errno, "cannot listen on '%s': %m", path);
	s->path = strdup(path);
	if (!s->path || chmod(path, 0660) < 0 || listen(s->fd, CONNECTIONS_MAX) < 0)
		return err_set(err, errno, "cannot listen on '%s': %m", path);
	return 0;
}

static int listen_tcp(struct metrics_server *s, const char *address, bool anywhere, struct err *err)
{
	struct sockaddr_storage a;
	const int one = 1;
	socklen_t n = 0;
	int r = parse_address(address, &a, &n, err);

	if (r < 0)
		return r;
	if (!anywhere && !is_loopback(&a))
		return err_set(err, EACCES,
			       "address '%s' is not loopback: metrics name rules and sessions; say "
			       "'anywhere=yes' if everybody may read them",
			       address);
	s->fd = socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0)
		return err_set(err, errno, "socket: %m");
	setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(s->fd, (struct sockaddr *)&a, n) < 0 || listen(s->fd, CONNECTIONS_MAX) < 0)
		return err_set(err, errno, "cannot listen on '%s': %m", address);
	return 0;
}

int metrics_server_new(struct metrics_server **ret, const char *address, bool anywhere,
		       struct err *err)
{
	struct metrics_server *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_set(err, ENOMEM, "out of memory");
	s->fd = -1;
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		s->conns[i].fd = -1;
	if (!strncmp(address, "unix:", 5))
		r = listen_unix(s, address + 5, err);
	else
		r = listen_tcp(s, address, anywhere, err);
	if (r < 0) {
		metrics_server_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

static void hang_up(struct connection *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->request_n = 0;
	buf_done(&c->reply);
}

void metrics_server_free(struct metrics_server *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		hang_up(&s->conns[i]);
	if (s->fd >= 0)
		close(s->fd);
	if (s->path)
		unlink(s->path);
	free(s->path);
	free(s);
}

static void take_connections(struct metrics_server *s, uint64_t now)
{
	/* So many at once, no more: the thread has sinks to serve. */
	for (int n = 0; n < CONNECTIONS_MAX; n++) {
		int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct connection *c = &s->conns[0];

		if (fd < 0) {
			s->deaf_until = errno == EMFILE || errno == ENFILE ? now + DEAF_NS : 0;
			return;
		}
		/* A free place, else that of whoever has been here longest: clients that only hold on to
		 * theirs do not keep Prometheus out. */
		for (size_t i = 1; i < CONNECTIONS_MAX && c->fd >= 0; i++)
			if (s->conns[i].fd < 0 || s->conns[i].deadline < c->deadline)
				c = &s->conns[i];
		hang_up(c);
		c->fd = fd;
		c->deadline = now + CONNECTION_NS;
		buf_init(&c->reply, 0);
	}
}

static void reply(struct connection *c, const char *status, struct str body)
{
	buf_printf(&c->reply,
		   "HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
		   "Content-Length: %zu\r\nConnection: close\r\n\r\n",
		   status, body.n);
	buf_add(&c->reply, body.p, body.n);
}

static void answer(struct connection *c, metrics_page_fn page, void *arg)
{
	struct str request = { c->request, c->request_n };
	auto_buf struct buf text = { 0 };

	buf_init(&text, 0);
	if (!str_starts(request, STR("GET "))) {
		reply(c, "405 Method Not Allowed", STR("only GET\n"));
	} else if (str_starts(request, STR("GET /metrics ")) ||
		   str_starts(request, STR("GET /metrics?"))) {
		page(arg, &text);
		reply(c, "200 OK", (struct str){ text.p, text.n });
	} else {
		reply(c, "404 Not Found", STR("/metrics is all there is\n"));
	}
}

static void serve(struct connection *c, metrics_page_fn page, void *arg)
{
	while (!c->reply.n) {
		ssize_t n = recv(c->fd, c->request + c->request_n, REQUEST_MAX - c->request_n, 0);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			hang_up(c);
			return;
		}
		c->request_n += (size_t)n;
		if (memmem(c->request, c->request_n, "\r\n\r\n", 4))
			answer(c, page, arg);
		else if (c->request_n == REQUEST_MAX)
			reply(c, "431 Request Header Fields Too Large", STR("too much\n"));
	}
	while (c->reply.n) {
		ssize_t n = send(c->fd, c->reply.p, c->reply.n, MSG_NOSIGNAL);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0)
			break;
		buf_consume(&c->reply, (size_t)n);
	}
	hang_up(c);
}

int metrics_server_poll(struct metrics_server *s, metrics_page_fn page, void *arg)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	int open = 0;

	take_connections(s, now);
	for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
		struct connection *c = &s->conns[i];

		if (c->fd >= 0)
			serve(c, page, arg);
		if (c->fd >= 0 && now > c->deadline)
			hang_up(c);
		open += c->fd >= 0;
	}
	if (open)
		return SERVER_POLL_MS;
	return s->deaf_until ? (int)(DEAF_NS / NSEC_PER_MSEC) : 0;
}

int metrics_server_fd(const struct metrics_server *s)
{
	return s->deaf_until ? -1 : s->fd;
}
