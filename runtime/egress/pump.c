// SPDX-License-Identifier: Apache-2.0
/* Bytes from one socket to the other: by splice, or through a buffer where the client's have to be read. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/egress/helper.h"
#include "runtime/egress/tls.h"
#include "userspace/base/auto.h"

#define PIPE_SIZE (256 << 10)
#define TURN_MAX  (1 << 20) /* bytes of one way before others have their turn */

static bool is_later(int e)
{
	return e == EAGAIN || e == EINTR;
}

static int open_pipe(struct way *w)
{
	if (w->pipe[0] >= 0)
		return 0;
	if (pipe2(w->pipe, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	(void)fcntl(w->pipe[1], F_SETPIPE_SZ, PIPE_SIZE); /* a smaller one is slower, no more */
	return 0;
}

static void count(struct helper *h, struct way *w, size_t n)
{
	w->bytes += n;
	h->bytes += n;
}

static void end_way(struct way *w)
{
	if (w->shut)
		return;
	shutdown(w->to, SHUT_WR);
	w->shut = true;
}

static int splice_way(struct helper *h, struct conn *c, struct way *w)
{
	size_t budget = TURN_MAX;
	int r = open_pipe(w);

	while (r == 0 && !w->shut) {
		ssize_t n;

		if (w->in_pipe) {
			n = splice(w->pipe[0], NULL, w->to, NULL, w->in_pipe,
				   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
			if (n <= 0)
				return n == 0 ? -EPIPE : is_later(errno) ? 0 : -errno;
			w->in_pipe -= (size_t)n;
			count(h, w, (size_t)n);
			if ((size_t)n >= budget) {
				c->again = h->work = true;
				return 0;
			}
			budget -= (size_t)n;
		} else if (w->eof) {
			end_way(w);
		} else {
			n = splice(w->from, NULL, w->pipe[1], NULL, PIPE_SIZE,
				   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
			if (n < 0)
				return is_later(errno) ? 0 : -errno;
			w->in_pipe = (size_t)n;
			w->eof = n == 0;
		}
	}
	return r;
}

/* More of what the client sends. 1: there was something, or its end. */
static int fill(struct conn *c)
{
	ssize_t n = recv(c->in, c->buf + c->have, BUF_SIZE - c->have, MSG_DONTWAIT);

	if (n < 0)
		return is_later(errno) ? 0 : -errno;
	c->have += (size_t)n;
	c->up.eof = n == 0;
	return 1;
}

/* Which of it may go on. */
static int check_http(struct conn *c, const char **why)
{
	ssize_t n =
		egress_http_feed(&c->http, c->buf + c->ok, c->have - c->ok, c->name, c->port, why);

	if (n < 0) {
		memcpy(c->asked, c->http.asked, sizeof(c->http.asked));
		return -EACCES;
	}
	c->ok += (size_t)n;
	return 0;
}

static int check_tls(struct conn *c, const char **why)
{
	char name[EGRESS_NAME_MAX + 1];
	int r = egress_tls_name(c->buf, c->have, name, why);

	if (r == -EAGAIN)
		return 0;
	if (r < 0)
		return -EACCES;
	if (strcmp(name, c->name) != 0) {
		memcpy(c->asked, name, sizeof(name));
		*why = "sni";
		return -EACCES;
	}
	c->ok = c->have;
	return 0;
}

int pump_sniff(struct helper *h, struct conn *c, const char **why)
{
	(void)h;
	if (!c->buf)
		c->buf = malloc(BUF_SIZE);
	if (!c->buf)
		return -ENOMEM;
	for (;;) {
		int r = fill(c);

		if (r <= 0)
			return r;
		if (c->up.eof)
			return -ECONNRESET;
		r = c->check == EGRESS_TLS ? check_tls(c, why) : check_http(c, why);
		if (r < 0)
			return r;
		if (c->ok)
			return 1;
	}
}

static int copy_up(struct helper *h, struct conn *c, const char **why)
{
	size_t budget = TURN_MAX;
	int r;

	while (!c->up.shut) {
		if (c->ok) {
			ssize_t n = send(c->out, c->buf, c->ok, MSG_DONTWAIT | MSG_NOSIGNAL);

			if (n < 0)
				return is_later(errno) ? 0 : -errno;
			c->ok -= (size_t)n;
			c->have -= (size_t)n;
			memmove(c->buf, c->buf + n, c->have);
			count(h, &c->up, (size_t)n);
			if ((size_t)n >= budget) {
				c->again = h->work = true;
				return 0;
			}
			budget -= (size_t)n;
			continue;
		}
		if (c->check == EGRESS_TLS && c->have == 0) { /* the rest is its own */
			free(take_ptr(c->buf));
			return splice_way(h, c, &c->up);
		}
		if (c->up.eof) {
			end_way(&c->up);
			break;
		}
		r = fill(c);
		if (r <= 0)
			return r;
		r = check_http(c, why);
		if (r < 0)
			return r;
	}
	return 0;
}

int pump(struct helper *h, struct conn *c, const char **why)
{
	uint64_t before = c->up.bytes + c->down.bytes,
		 idle = h->policy->limits.idle_s * NSEC_PER_SEC;
	int r;

	c->again = false;
	r = c->buf ? copy_up(h, c, why) : splice_way(h, c, &c->up);
	if (r == 0)
		r = splice_way(h, c, &c->down);
	if (r < 0)
		return r;
	if (h->bytes > h->policy->limits.bytes) {
		*why = "limit.bytes";
		return -EACCES;
	}
	if (c->up.shut && c->down.shut)
		return 1;
	if (c->up.shut || c->down.shut)
		idle = MIN(idle, HALF_IDLE_NS);
	if (c->up.bytes + c->down.bytes != before)
		c->deadline = clock_ns(CLOCK_MONOTONIC) + idle;
	return 0;
}

void pump_done(struct conn *c)
{
	struct way *ways[] = { &c->up, &c->down };

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
		for (int k = 0; k < 2; k++)
			if (ways[i]->pipe[k] >= 0)
				close(take_fd(ways[i]->pipe[k]));
	free(take_ptr(c->buf));
}
