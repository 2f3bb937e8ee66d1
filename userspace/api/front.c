// SPDX-License-Identifier: Apache-2.0
#include "userspace/api/front.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "userspace/api/body.h"
#include "userspace/api/mhd.h"
#include "userspace/api/route.h"
#include "userspace/api/seats.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/base/log.h"
#include "userspace/base/plain.h"
#include "userspace/pipeline/confine_calls.h"
#include "userspace/pipeline/confine_files.h"
#include "userspace/pipeline/privdrop.h"

#define STACK_BYTES (256 * 1024)
#define HEAD_BYTES  (32 * 1024) /* of a request's line and headers */
#define PIECE_BYTES (16 * 1024)
#define TICK_MS	    1000
#define LOG_TARGET  200
#define FILES_MAX   (4 * API_CONNECTIONS_MAX + 64)
#define DISCARD_MAX (1 << 20) /* of a body that is not wanted */
#define EXIT_OURS   125

static struct {
	int channel;
	struct seats seats;
} front;

/* ---- a call's life ---- */

static struct call *call_new(const char *target)
{
	struct call *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->up.fd = -1;
	c->channel = front.channel;
	c->begun = clock_ns(CLOCK_MONOTONIC);
	c->raw = strdup(target);
	arena_init(&c->arena, CALL_ARENA_MAX);
	buf_init(&c->body, API_BODY_MAX);
	buf_init(&c->out, CALL_OUT_MAX);
	return c;
}

static void call_free(struct call *c)
{
	upstream_done(&c->up);
	arena_done(&c->arena);
	buf_done(&c->body);
	buf_done(&c->out);
	free(c->raw);
	free(c);
}

static void log_call(const struct call *c)
{
	char target[LOG_TARGET + 1];

	snprintf(target, sizeof(target), "%s", c->raw ? c->raw : "?");
	plain_text(target, '?', "");
	log_info("api: uid %u, pid %d: %.16s %s: %u, %llu bytes, %llu ms%s", c->uid, (int)c->pid,
		 c->method ? c->method : "?", target, c->status, (unsigned long long)c->sent,
		 (unsigned long long)((clock_ns(CLOCK_MONOTONIC) - c->begun) / NSEC_PER_MSEC),
		 c->whole ? "" : ", broken off");
}

/* ---- the answer ---- */

static const char *const TYPES[] = {
	[FORM_JSON] = "application/json",
	[FORM_NDJSON] = "application/x-ndjson",
	[FORM_SSE] = "text/event-stream",
	[FORM_BYTES] = "application/octet-stream",
};

static ssize_t read_more(void *arg, uint64_t at, char *p, size_t max)
{
	struct call *c = arg;
	size_t n;
	int r = 1;

	(void)at;
	while (c->out_at == c->out.n && c->more) {
		buf_reset(&c->out);
		c->out_at = 0;
		r = c->more(c);
		if (c->out.failed)
			r = -EMSGSIZE;
		if (r <= 0)
			c->more = NULL;
		if (r < 0)
			return MHD_CONTENT_READER_END_WITH_ERROR;
	}
	n = MIN(c->out.n - c->out_at, max);
	if (!n) {
		c->whole = true;
		return MHD_CONTENT_READER_END_OF_STREAM;
	}
	memcpy(p, c->out.p + c->out_at, n);
	c->out_at += n;
	c->sent += n;
	return (ssize_t)n;
}

static enum MHD_Result answer(struct call *c)
{
	struct MHD_Response *r;
	enum MHD_Result done;

	if (c->answered)
		return MHD_YES;
	if (!c->status || c->out.failed)
		call_fail(c, 500, "the answer is too long");
	r = c->more ? mhd.MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, PIECE_BYTES,
							    read_more, c, NULL)
		    : mhd.MHD_create_response_from_buffer(
			      c->out.n, c->out.p ? c->out.p : (char *)"", MHD_RESPMEM_PERSISTENT);
	if (!r)
		return MHD_NO;
	c->whole = !c->more;
	if (c->whole)
		c->sent = c->out.n;
	if (c->status != 204)
		mhd.MHD_add_response_header(r, "Content-Type", TYPES[c->form]);
	mhd.MHD_add_response_header(r, "Cache-Control", "no-store");
	mhd.MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	if (c->allow)
		mhd.MHD_add_response_header(r, "Allow", c->allow);
	if (c->status == 429)
		mhd.MHD_add_response_header(r, "Retry-After", "1");
	c->answered = true;
	done = mhd.MHD_queue_response(c->connection, c->status, r);
	mhd.MHD_destroy_response(r);
	return done;
}

/* ---- the request ---- */

static const char *header(const struct call *c, const char *name)
{
	return mhd.MHD_lookup_connection_value(c->connection, MHD_HEADER_KIND, name);
}

static void read_accept(struct call *c)
{
	const char *accept = header(c, "Accept");

	c->accept = accept && strstr(accept, "text/event-stream")      ? FORM_SSE
		    : accept && strstr(accept, "application/x-ndjson") ? FORM_NDJSON
								       : FORM_JSON;
}

static int check_head(struct call *c)
{
	const char *type = header(c, "Content-Type"), *length = header(c, "Content-Length");
	struct err err = { 0 };
	uint64_t n = length ? strtoull(length, NULL, 10) : 0;

	if (mhd.MHD_get_connection_values(c->connection, MHD_HEADER_KIND, NULL, NULL) >
	    CALL_HEADERS_MAX)
		return call_fail(c, 431, "more than %d header lines", CALL_HEADERS_MAX);
	if (!c->raw)
		return call_fail(c, 500, "out of memory");
	if (api_target_parse(&c->target, &c->arena, str_from(c->raw), &err) < 0)
		return call_fail(c, 400, "%s", err_text(&err));
	if (route_find(c) < 0)
		return -1;
	read_accept(c);
	if (c->route->body == BODY_JSON && type && strncasecmp(type, "application/json", 16))
		return call_fail(c, 415, "the body has to be application/json");
	if (c->route->body == BODY_JSON && n > API_BODY_MAX)
		return call_fail(c, 413, "the body is more than %d bytes", API_BODY_MAX);
	if (c->route->body == BODY_NONE && n)
		return call_fail(c, 400, "this request takes no body");
	return c->route->begin ? c->route->begin(c) : 0;
}

/* Who gets an answer in the middle of its body cannot read it: what is left of that is taken. */
static bool is_body_short(const struct call *c)
{
	const char *length = header(c, "Content-Length");

	return !header(c, "Expect") && length && *length != '-' &&
	       strtoull(length, NULL, 10) <= DISCARD_MAX;
}

static void take_body(struct call *c, const char *p, size_t n)
{
	c->body_n += n;
	if (c->body_bad)
		return;
	if (c->route->body == BODY_RAW)
		c->body_bad = c->route->data(c, p, n) < 0;
	else if (c->route->body == BODY_NONE)
		c->body_bad = call_fail(c, 400, "this request takes no body") < 0;
	else if (buf_add(&c->body, p, n) < 0)
		c->body_bad = call_fail(c, 413, "the body is more than %d bytes", API_BODY_MAX) < 0;
	if (c->body_bad && c->status)
		upstream_done(
			&c->up); /* a command that got half of it is not told that this was all */
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *body,
				  size_t *body_n, void **state)
{
	struct call *c = *state;

	(void)arg;
	(void)url;
	(void)version;
	if (!c)
		return MHD_NO;
	if (!c->connection) { /* the head is whole */
		c->connection = connection;
		c->method = method;
		c->http = mhd.MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)
				  ->connect_fd;
		seats_who(&front.seats, c->http, &c->uid, &c->pid);
		seats_set(&front.seats, c->http, SEAT_BODY, clock_ns(CLOCK_MONOTONIC));
		if (check_head(c) == 0)
			return MHD_YES;
		c->body_bad = true;
		return is_body_short(c) ? MHD_YES : answer(c);
	}
	if (*body_n) {
		seats_set(&front.seats, c->http, SEAT_WORKS, 0);
		take_body(c, body, *body_n);
		seats_set(&front.seats, c->http, SEAT_BODY, clock_ns(CLOCK_MONOTONIC));
		*body_n = 0;
		return MHD_YES;
	}
	seats_set(&front.seats, c->http, SEAT_WORKS, 0);
	if (!c->status && !c->answered)
		c->route->answer(c);
	return answer(c);
}

static void *on_target(void *arg, const char *target, struct MHD_Connection *connection)
{
	(void)arg;
	(void)connection;
	return call_new(target);
}

/* Targets are taken apart by ourselves. */
static size_t on_unescape(void *arg, struct MHD_Connection *connection, char *s)
{
	(void)arg;
	(void)connection;
	return strlen(s);
}

static void on_completed(void *arg, struct MHD_Connection *connection, void **state,
			 enum MHD_RequestTerminationCode why)
{
	struct call *c = *state;

	(void)arg;
	(void)connection;
	(void)why;
	if (!c)
		return;
	if (c->connection) {
		log_call(c);
		seats_set(&front.seats, c->http, SEAT_HEAD, clock_ns(CLOCK_MONOTONIC));
	}
	call_free(c);
	*state = NULL;
}

static void on_connection(void *arg, struct MHD_Connection *connection, void **state,
			  enum MHD_ConnectionNotificationCode what)
{
	(void)arg;
	(void)state;
	if (what == MHD_CONNECTION_NOTIFY_CLOSED)
		seats_leave(&front.seats, mhd.MHD_get_connection_info(
						     connection, MHD_CONNECTION_INFO_CONNECTION_FD)
						  ->connect_fd);
}

/* ---- connections ---- */

/* Who cannot be served hears why, if it listens. */
static void refuse(int fd, int r)
{
	char body[128], text[512];
	int status = r == -EUSERS ? 429 : 503, n;

	n = snprintf(body, sizeof(body), "{\"code\":%d,\"type\":\"%s\",\"message\":\"%s\"}", status,
		     status == 429 ? "no_room" : "unavailable", "too many connections");
	n = snprintf(text, sizeof(text),
		     "HTTP/1.1 %d No\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
		     "Connection: close\r\nContent-Length: %d\r\n\r\n%s",
		     status, n, body);
	send(fd, text, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

static void take_connection(struct MHD_Daemon *daemon, int listen)
{
	struct sockaddr_storage at;
	socklen_t at_n = sizeof(at), n = sizeof(struct ucred);
	struct ucred who = { .uid = (uid_t)-1 };
	int fd = accept4(listen, (struct sockaddr *)&at, &at_n, SOCK_CLOEXEC | SOCK_NONBLOCK), r;

	if (fd < 0)
		return;
	r = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0 ? -EUSERS : 0;
	if (r == 0)
		r = seats_take(&front.seats, fd, who.uid, who.pid, clock_ns(CLOCK_MONOTONIC));
	if (r < 0)
		refuse(fd, r);
	else if (mhd.MHD_add_connection(daemon, fd, (struct sockaddr *)&at, at_n) != MHD_YES)
		seats_leave(&front.seats, fd); /* closed by it, or not; it is full */
}

static void serve(struct MHD_Daemon *daemon, int listen, int channel)
{
	bool ending = false;

	for (;;) {
		struct pollfd fds[] = { { .fd = ending ? -1 : listen, .events = POLLIN },
					{ .fd = ending ? -1 : channel, .events = POLLIN } };

		if (poll(fds, ARRAY_SIZE(fds), ending ? TICK_MS / 10 : TICK_MS) < 0 &&
		    errno != EINTR)
			return;
		if (fds[1].revents) { /* it says nothing: it has gone */
			close(listen);
			ending = true;
		} else if (fds[0].revents) {
			take_connection(daemon, listen);
		}
		if (!seats_look(&front.seats, clock_ns(CLOCK_MONOTONIC), ending) && ending)
			return;
	}
}

static struct MHD_Daemon *start(void)
{
	return mhd.MHD_start_daemon(
		MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL |
			MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC,
		0, NULL, NULL, on_request, NULL, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)API_CONNECTIONS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)HEAD_BYTES, MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_BYTES,
		MHD_OPTION_URI_LOG_CALLBACK, on_target, NULL, MHD_OPTION_UNESCAPE_CALLBACK,
		on_unescape, NULL, MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, NULL, MHD_OPTION_END);
}

static void lock_down(uid_t uid, gid_t gid, struct err *err)
{
	const struct rlimit files = { FILES_MAX, FILES_MAX };

	if (privdrop(uid, gid, err) < 0)
		return;
	if (setrlimit(RLIMIT_NOFILE, &files) < 0)
		err_set(err, errno, "limit of files: %m");
	else if (confine_files_only(NULL, 0, err) == 0)
		confine_calls(CONFINE_TALK | CONFINE_THREAD, err);
}

_Noreturn void front_run(int listen, int channel, uid_t uid, gid_t gid)
{
	int keep[] = { listen, channel }, null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct MHD_Daemon *daemon = NULL;
	struct err err = { 0 };

	prctl(PR_SET_NAME, "warder-api");
	signal(SIGPIPE, SIG_IGN);
	for (int i = 0; null >= 0 && i < 2; i++) /* stderr is the log */
		dup2(null, i);
	front.channel = channel;
	seats_init(&front.seats);
	if (fd_keep_only(keep, ARRAY_SIZE(keep)) < 0)
		err_set(&err, errno, "descriptors: %m");
	if (!err.code)
		mhd_load(&err);
	if (!err.code)
		lock_down(uid, gid, &err);
	if (!err.code && !(daemon = start()))
		err_set(&err, EIO, "libmicrohttpd does not start");
	if (err.code) {
		log_error("api: %s", err_text(&err));
		_exit(EXIT_OURS);
	}
	serve(daemon, listen, channel);
	_exit(0);
}
