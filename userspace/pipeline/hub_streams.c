// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/hub_streams.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"

#define PUMP_TURNS 8 /* pieces a stream in one turn: the others wait */

/* ---- clients ---- */

void hub_client_queue(struct hub_client *c, const void *p, size_t n)
{
	uint32_t len = (uint32_t)n;

	if (c->fd < 0)
		return;
	buf_add(&c->queue, &len, sizeof(len));
	buf_add(&c->queue, p, n); /* too much: `failed`, and it is dropped */
}

void hub_client_data(struct hub_client *c, char letter, const char *p, size_t n)
{
	uint32_t len = (uint32_t)n + 1;

	buf_add(&c->queue, &len, sizeof(len));
	buf_addc(&c->queue, letter);
	buf_add(&c->queue, p, n);
}

bool hub_client_flush(struct hub_client *c)
{
	size_t at = 0;
	uint32_t len;
	int r = 0;

	if (c->queue.failed) {
		agent_send_error(c->fd, EXIT_OURS, "you read too slowly, and others wait");
		return false;
	}
	while (at < c->queue.n) {
		memcpy(&len, c->queue.p + at, sizeof(len));
		r = agent_send(c->fd, c->queue.p + at + sizeof(len), len, -1, MSG_DONTWAIT);
		if (r < 0)
			break;
		at += sizeof(len) + len;
	}
	buf_consume(&c->queue, at);
	if (r < 0 && r != -EAGAIN && r != -ENOBUFS)
		return false;
	return !(c->leaving && !c->queue.n);
}

/* ---- streams ---- */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0)
		fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

void hub_stream_first(struct hub *h, int in, int out, int err, bool tty)
{
	struct hub_stream *s = &h->stream[0];

	for (int i = 0; i < HUB_STREAMS_MAX; i++)
		h->stream[i].in = h->stream[i].out = h->stream[i].err = -1;
	*s = (struct hub_stream){ .used = true, .tty = tty, .in = in, .out = out, .err = err };
	buf_init(&s->input, HUB_INPUT_MAX);
	for (int i = 0; i < 3; i++)
		set_nonblocking(i == 0 ? in : i == 1 ? out : err);
}

struct hub_stream *hub_stream_add(struct hub *h)
{
	for (int i = 1; i < HUB_STREAMS_MAX; i++) {
		struct hub_stream *s = &h->stream[i];

		if (s->used)
			continue;
		*s = (struct hub_stream){
			.used = true, .id = ++h->last_id, .in = -1, .out = -1, .err = -1
		};
		buf_init(&s->input, HUB_INPUT_MAX);
		return s;
	}
	return NULL;
}

struct hub_stream *hub_stream_find(struct hub *h, uint32_t id)
{
	for (int i = 0; i < HUB_STREAMS_MAX; i++)
		if (h->stream[i].used && h->stream[i].id == id)
			return &h->stream[i];
	return NULL;
}

void hub_stream_open(struct hub_stream *s, int which, int fd)
{
	int *at = which == 0 ? &s->in : which == 1 ? &s->out : &s->err;

	set_nonblocking(fd);
	close_fd(at);
	*at = fd;
}

void hub_stream_free(struct hub_stream *s)
{
	if (!s->used)
		return;
	if (s->out != s->in)
		close_fd(&s->out);
	s->out = -1;
	close_fd(&s->in);
	close_fd(&s->err);
	buf_done(&s->input);
	s->used = false;
}

void hub_stream_input(struct hub_stream *s, const char *p, size_t n)
{
	if (!s->in_closed && !s->in_eof)
		buf_add(&s->input, p, n); /* who sends was not read from when it is full */
}

static void pump_input(struct hub_stream *s)
{
	while (s->in >= 0 && s->input.n) {
		ssize_t n = write(s->in, s->input.p, MIN(s->input.n, (size_t)4096));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) { /* it reads no more */
			buf_reset(&s->input);
			s->in_closed = true;
			if (!s->tty)
				close_fd(&s->in);
			return;
		}
		buf_consume(&s->input, (size_t)n);
	}
	if (s->in_eof && !s->input.n && !s->tty)
		close_fd(&s->in);
}

static void remember(struct hub *h, const char *p, size_t n)
{
	if (h->ring.n + n > HUB_RING_MAX)
		buf_consume(&h->ring, h->ring.n + n - HUB_RING_MAX);
	buf_add(&h->ring, p, n);
}

static void pass_on(struct hub *h, struct hub_stream *s, char letter, const char *p, size_t n)
{
	for (int i = 0; i < HUB_CLIENTS_MAX; i++)
		if (h->client[i].fd >= 0 && h->client[i].stream == s)
			hub_client_data(&h->client[i], letter, p, n);
	if (!s->id)
		remember(h, p, n);
}

/* Whom it runs for sets the pace, as a pipe would. */
static bool may_read(const struct hub_stream *s)
{
	return !s->owner || !s->owner->queue.n;
}

static void pump_output(struct hub *h, struct hub_stream *s, int *fd, char letter)
{
	char data[AGENT_DATA_MAX];

	for (int i = 0; *fd >= 0 && i < PUMP_TURNS && may_read(s); i++) {
		ssize_t n = read(*fd, data, sizeof(data));

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) { /* of a terminal that nobody has open: EIO */
			if (*fd == s->in)
				s->in = -1;
			close_fd(fd);
			return;
		}
		s->heard = clock_ns(CLOCK_MONOTONIC);
		if (h->finished)
			h->finished = s->heard;
		pass_on(h, s, letter, data, (size_t)n);
		if (s->owner)
			hub_client_flush(s->owner);
	}
}

void hub_stream_pump(struct hub *h, struct hub_stream *s)
{
	if (!s->used)
		return;
	pump_input(s);
	pump_output(h, s, &s->out, 'o');
	pump_output(h, s, &s->err, 'e');
}

/* What it had written when it ended comes whole, and then an end (relay_end). Of the first command, whose reader takes
 * nothing, not for ever. */
bool hub_stream_is_dry(const struct hub_stream *s, uint64_t now)
{
	return (s->out < 0 && s->err < 0) || (!s->id && now - s->heard > HUB_STUCK_NS);
}

/* ---- what to wait for ---- */

static void add(struct hub_poll *p, int fd, short events)
{
	p->fds[p->n++] = (struct pollfd){ .fd = fd, .events = events };
}

void hub_poll_set(struct hub *h, struct hub_poll *p)
{
	p->n = 0;
	add(p, h->keeper, POLLIN);
	add(p, h->listen, POLLIN);
	for (int i = 0; i < HUB_STREAMS_MAX; i++) {
		const struct hub_stream *s = &h->stream[i];

		if (!s->used)
			continue;
		if (s->in >= 0 && s->input.n)
			add(p, s->in, POLLOUT);
		if (s->out >= 0 && may_read(s))
			add(p, s->out, POLLIN);
		if (s->err >= 0 && may_read(s))
			add(p, s->err, POLLIN);
	}
	for (int i = 0; i < HUB_CLIENTS_MAX; i++) {
		const struct hub_client *c = &h->client[i];
		bool full = c->stream && c->stream->input.n > HUB_INPUT_MAX - AGENT_FRAME_MAX;

		p->client[i] = -1;
		if (c->fd < 0)
			continue;
		p->client[i] = (int)p->n;
		add(p, c->fd, (short)((full ? 0 : POLLIN) | (c->queue.n ? POLLOUT : 0)));
	}
}
