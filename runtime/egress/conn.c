// SPDX-License-Identifier: Apache-2.0
/* A connection of the sandbox: what it is for, whether it may, and to whom it goes. */
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/egress/helper.h"
#include "runtime/egress/route.h"
#include "userspace/base/auto.h"

#define ACCEPT_TURN 16

/* The resolver's way back. */
struct waiting {
	struct helper *h;
	struct conn *c;
};

static void copy_text(char *to, size_t max, const char *from)
{
	snprintf(to, max, "%s", from ? from : "");
}

static void fill_event(const struct conn *c, struct egress_event *ev, uint32_t type)
{
	*ev = (struct egress_event){
		.type = type,
		.ts = clock_boot_ns(),
		.cookie = c->cookie,
		.src = c->src,
		.sport = c->sport,
		.dst = c->dst,
		.dport = c->to_port ? c->to_port : c->port,
		.bytes_out = c->up.bytes,
		.bytes_in = c->down.bytes,
	};
	copy_text(ev->name, sizeof(ev->name), c->name);
}

static void tell_connect(struct helper *h, struct conn *c, int error, const char *reason)
{
	struct egress_event ev;

	fill_event(c, &ev, EGRESS_CONNECT);
	ev.error = error;
	ev.bytes_out = ev.bytes_in = 0;
	copy_text(ev.reason, sizeof(ev.reason), reason);
	copy_text(ev.asked, sizeof(ev.asked), c->asked);
	/* Of others there are no more than the limits let through. */
	if (error == EACCES && reason && !strncmp(reason, "limit", 5) &&
	    !tell_is_due(h, reason ? reason : "", clock_ns(CLOCK_MONOTONIC), &ev.count))
		return;
	tell(h, &ev);
}

/* The other side shall see that it was cut off, not that it is over. */
static void reset(int fd)
{
	const struct linger now = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

static void release(struct helper *h, struct conn *c)
{
	h->conns[c->slot] = NULL;
	h->conns_n--;
	free(c);
}

void conn_end(struct helper *h, struct conn *c, int error, const char *reason)
{
	if (c->dead)
		return;
	if (!c->told || error == EACCES)
		tell_connect(h, c, error, reason);
	if (c->told) {
		struct egress_event ev;

		fill_event(c, &ev, EGRESS_CLOSE);
		copy_text(ev.reason, sizeof(ev.reason), reason);
		tell(h, &ev);
	}
	if (c->in >= 0 && error)
		reset(c->in);
	if (c->out >= 0 && error)
		reset(c->out);
	if (c->in >= 0)
		close(take_fd(c->in));
	if (c->out >= 0)
		close(take_fd(c->out));
	pump_done(c);
	if (c->resolving)
		c->dead = true;
	else
		release(h, c);
}

/* Ends it when it is over. */
static void run_pump(struct helper *h, struct conn *c)
{
	const char *why = NULL;
	int r = pump(h, c, &why);

	if (r > 0)
		conn_end(h, c, 0, NULL);
	else if (r < 0)
		conn_end(h, c, -r, why);
}

static void connected(struct helper *h, struct conn *c)
{
	const int one = 1;

	setsockopt(c->in, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(c->out, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	c->up.from = c->down.to = c->in;
	c->up.to = c->down.from = c->out;
	c->state = CONN_PUMP;
	c->deadline = clock_ns(CLOCK_MONOTONIC) + h->policy->limits.idle_s * NSEC_PER_SEC;
	tell_connect(h, c, 0, NULL);
	c->told = true;
	run_pump(h, c);
}

/* Why this address must not be dialled; NULL: it may. */
static const char *forbidden(struct helper *h, const struct conn *c, const struct egress_addr *a)
{
	const char *why;

	if (c->row && c->row->service)
		return NULL;
	why = egress_range_of(a);
	return why ? why : resolve_is_own(h, a) ? "own_address" : NULL;
}

/* 0: under way or done; -errno: this address does not answer. */
static int dial(struct helper *h, struct conn *c, const struct egress_addr *a)
{
	uint16_t port = c->to_port ? c->to_port : c->port;
	struct sockaddr_storage to;
	socklen_t len = egress_addr_to_sock(a, port, &to);

	c->out = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->out < 0)
		return -errno;
	if (connect(c->out, (const void *)&to, len) < 0 && errno != EINPROGRESS) {
		int e = errno;

		close(take_fd(c->out));
		return -e;
	}
	c->state = CONN_DIAL;
	c->deadline = clock_ns(CLOCK_MONOTONIC) + DIAL_NS;
	if (helper_watch(h, c->out, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
			 watch_of(WATCH_CONN, c->slot)) < 0) {
		close(take_fd(c->out));
		return -ENOMEM;
	}
	return 0;
}

static void dial_next(struct helper *h, struct conn *c)
{
	const char *why = NULL;
	int r = -EHOSTUNREACH;

	while (c->candidate < c->candidates_n) {
		const struct egress_addr *a = &c->candidates[c->candidate++];
		const char *no = forbidden(h, c, a);

		if (no) {
			why = no;
			if (!c->dst.family || name_is_fake(&c->dst))
				c->dst = *a;
			continue;
		}
		c->dst = *a;
		r = dial(h, c, a);
		if (r == 0)
			return;
	}
	conn_end(h, c, why ? EACCES : -r, why ? why : "dial");
}

static void resolved(void *arg, int error, const struct egress_addr *v, size_t n)
{
	struct waiting *pair = arg;
	struct helper *h = pair->h;
	struct conn *c = pair->c;

	free(pair);
	c->resolving = false;
	if (c->dead) {
		release(h, c);
		return;
	}
	if (n == 0) {
		conn_end(h, c, error == EAGAIN ? ETIMEDOUT : EHOSTUNREACH, "resolve");
		return;
	}
	c->candidates_n = MIN(n, (size_t)CANDIDATES);
	memcpy(c->candidates, v, c->candidates_n * sizeof(*v));
	dial_next(h, c);
}

static void start_dial(struct helper *h, struct conn *c)
{
	struct {
		struct helper *h;
		struct conn *c;
	} * pair;

	if (c->candidates_n) {
		dial_next(h, c);
		return;
	}
	pair = malloc(sizeof(*pair));
	if (!pair) {
		conn_end(h, c, ENOMEM, "memory");
		return;
	}
	pair->h = h;
	pair->c = c;
	c->state = CONN_RESOLVE;
	c->deadline = UINT64_MAX; /* the resolver has its own */
	c->resolving = true;
	resolve(h, c->name, 0, resolved, pair);
}

static void sniff(struct helper *h, struct conn *c)
{
	const char *why = NULL;
	int r = pump_sniff(h, c, &why);

	if (r < 0)
		conn_end(h, c, -r, why ? why : "closed");
	else if (r > 0)
		start_dial(h, c);
}

static void dialled(struct helper *h, struct conn *c)
{
	struct pollfd pfd = { .fd = c->out, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int e = 0;

	if (poll(&pfd, 1, 0) <= 0)
		return;
	if (getsockopt(c->out, SOL_SOCKET, SO_ERROR, &e, &len) < 0)
		e = errno;
	if (e == 0) {
		connected(h, c);
		return;
	}
	close(take_fd(c->out));
	if (c->candidate < c->candidates_n)
		dial_next(h, c);
	else
		conn_end(h, c, e, "dial");
}

void conn_event(struct helper *h, uint32_t slot)
{
	struct conn *c = slot < h->policy->limits.connections ? h->conns[slot] : NULL;

	if (!c || c->dead)
		return;
	switch (c->state) {
	case CONN_SNIFF:
		sniff(h, c);
		break;
	case CONN_RESOLVE:
		break;
	case CONN_DIAL:
		dialled(h, c);
		break;
	case CONN_PUMP:
		run_pump(h, c);
		break;
	}
}

void conn_work(struct helper *h)
{
	h->work = false;
	for (uint32_t i = 0; i < h->policy->limits.connections; i++)
		if (h->conns[i] && h->conns[i]->again && !h->conns[i]->dead)
			run_pump(h, h->conns[i]);
}

void conn_sweep(struct helper *h, uint64_t now)
{
	for (uint32_t i = 0; h->conns_n && i < h->policy->limits.connections; i++) {
		struct conn *c = h->conns[i];

		if (!c || c->dead || now < c->deadline)
			continue;
		if (c->state == CONN_DIAL) {
			close(take_fd(c->out));
			if (c->candidate < c->candidates_n)
				dial_next(h, c);
			else
				conn_end(h, c, ETIMEDOUT, "dial");
		} else if (c->state == CONN_SNIFF) {
			conn_end(h, c, EACCES, "silent");
		} else {
			conn_end(h, c, ETIMEDOUT, "idle");
		}
	}
}

/* What it is for. NULL: it may go on; else why not. */
static const char *judge(struct helper *h, struct conn *c)
{
	if (h->over)
		return "over";
	if (h->bytes > h->policy->limits.bytes)
		return "limit.bytes";
	if (!bucket_take(&h->connect_bucket, clock_ns(CLOCK_MONOTONIC)))
		return "limit.rate";
	c->name = name_of(h, &c->dst);
	if (c->name) {
		c->row = egress_policy_find(h->policy, c->name, c->port);
		if (!c->row)
			return "port";
		c->check = c->row->check;
		if (c->row->service) {
			c->candidates[0] = c->row->to;
			c->candidates_n = 1;
			c->to_port = c->row->to_port;
		}
		return NULL;
	}
	if (!h->policy->open || name_is_fake(&c->dst) ||
	    (c->dst.family == 4 && c->dst.b[0] == 127)) /* the listener's own */
		return "address";
	c->candidates[0] = c->dst;
	c->candidates_n = 1;
	return NULL;
}

/* It is somebody else's from here on, and so is telling of it. */
static void hand_over(struct helper *h, struct conn *c)
{
	int r = route_hand_over(h->routes, (uint8_t)(c->row->route - 1), c->in);

	if (r < 0) {
		conn_end(h, c, -r, "route");
		return;
	}
	close(take_fd(c->in));
	pump_done(c);
	release(h, c);
}

static void begin(struct helper *h, struct conn *c)
{
	const char *why = judge(h, c);
	socklen_t len = sizeof(c->cookie);

	if (why) {
		if (!strncmp(why, "limit", 5))
			helper_rest(h);
		conn_end(h, c, EACCES, why);
		return;
	}
	if (c->row && c->row->route) {
		hand_over(h, c);
		return;
	}
	(void)getsockopt(c->in, SOL_SOCKET, SO_COOKIE, &c->cookie, &len);
	if (helper_watch(h, c->in, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
			 watch_of(WATCH_CONN, c->slot)) < 0) {
		conn_end(h, c, ENOMEM, "memory");
		return;
	}
	c->deadline = clock_ns(CLOCK_MONOTONIC) + SNIFF_NS;
	c->state = CONN_SNIFF;
	if (c->check == EGRESS_OPAQUE)
		start_dial(h, c);
	else
		sniff(h, c);
}

/* No free slot: say so and cut it off. */
static void turn_away(struct helper *h, struct conn *full)
{
	full->name = name_of(h, &full->dst);
	tell_connect(h, full, EACCES, "limit.connections");
	helper_rest(h);
	reset(full->in);
	close(full->in);
}

static struct conn *new_conn(struct helper *h, const struct conn *first)
{
	uint32_t i;

	for (i = 0; i < h->policy->limits.connections && h->conns[i]; i++)
		;
	if (i == h->policy->limits.connections)
		return NULL;
	h->conns[i] = malloc(sizeof(*first));
	if (!h->conns[i])
		return NULL;
	*h->conns[i] = *first;
	h->conns[i]->slot = i;
	h->conns_n++;
	return h->conns[i];
}

void conn_accept(struct helper *h)
{
	for (int i = 0; i < ACCEPT_TURN && !h->paused; i++) {
		struct conn first = { .out = -1, .up.pipe = { -1, -1 }, .down.pipe = { -1, -1 } },
			    *c;
		struct sockaddr_storage s;
		socklen_t len = sizeof(s);

		first.in = accept4(h->inside[INSIDE_LISTENER], (void *)&s, &len,
				   SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (first.in < 0)
			return;
		egress_addr_from_sock(&first.src, &first.sport, &s);
		len = sizeof(s);
		if (getsockname(first.in, (void *)&s, &len) < 0 ||
		    !egress_addr_from_sock(&first.dst, &first.port, &s)) {
			close(first.in);
			continue;
		}
		c = new_conn(h, &first);
		if (c)
			begin(h, c);
		else
			turn_away(h, &first);
	}
}
