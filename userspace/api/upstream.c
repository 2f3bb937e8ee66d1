// SPDX-License-Identifier: Apache-2.0
#include "userspace/api/upstream.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/base/clock.h"

#define ASK_TIMEOUT_MS 10000 /* for an agent that takes nothing */

void upstream_done(struct upstream *u)
{
	if (u->fd >= 0)
		close(u->fd);
	u->fd = -1;
}

static int hand_over(int channel, int end, int http)
{
	const int fds[] = { end, http };
	const char one = 1;
	struct pollfd p = { .fd = channel, .events = POLLOUT };

	for (;;) {
		ssize_t n = fd_send(channel, &one, 1, fds, ARRAY_SIZE(fds), MSG_DONTWAIT);

		if (n == 1)
			return 0;
		if (n == -EINTR)
			continue;
		if (n != -EAGAIN || poll(&p, 1, ASK_TIMEOUT_MS) != 1)
			return -EPIPE;
	}
}

int upstream_ask(struct upstream *u, int channel, int http, const struct agent_request *q)
{
	int pair[2], r;

	upstream_done(u);
	u->http = http;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	r = hand_over(channel, pair[1], http);
	close(pair[1]);
	u->fd = pair[0];
	if (r == 0)
		r = upstream_say(u, q);
	if (r < 0 && r != -EMSGSIZE) /* it may have said why before it was asked */
		r = 0;
	return r;
}

int upstream_say(struct upstream *u, const struct agent_request *q)
{
	auto_buf struct buf text = { 0 };
	int r = agent_request_print(&text, q);

	return r < 0 ? r : agent_send(u->fd, text.p, text.n, -1, 0);
}

ssize_t upstream_next(struct upstream *u, uint64_t deadline)
{
	for (;;) {
		struct pollfd p[] = { { .fd = u->fd, .events = POLLIN }, { .fd = u->http } };
		uint64_t now = clock_ns(CLOCK_MONOTONIC);
		int wait = -1;
		ssize_t n;

		if (deadline)
			wait = now >= deadline
				       ? 0
				       : (int)MIN((deadline - now) / NSEC_PER_MSEC + 1, 3600000ull);
		if (poll(p, ARRAY_SIZE(p), wait) < 0 && errno != EINTR)
			return -errno;
		if (p[1].revents & (POLLHUP | POLLERR | POLLNVAL))
			return -ECANCELED;
		if (!p[0].revents) {
			if (deadline && clock_ns(CLOCK_MONOTONIC) >= deadline)
				return -ETIMEDOUT;
			continue;
		}
		n = agent_recv(u->fd, u->packet, NULL, MSG_DONTWAIT);
		if (n == -EAGAIN)
			continue;
		if (n <= 0)
			return -EPIPE;
		u->packet[n] = 0;
		return n;
	}
}

int upstream_input(struct upstream *u, const char *p, size_t n)
{
	char packet[1 + AGENT_DATA_MAX];
	size_t len = MIN(n, (size_t)AGENT_DATA_MAX);

	packet[0] = 'i';
	if (len)
		memcpy(packet + 1, p, len);
	for (;;) {
		struct pollfd w[] = { { .fd = u->fd, .events = POLLOUT }, { .fd = u->http } };
		int r = agent_send(u->fd, packet, 1 + len, -1, MSG_DONTWAIT);

		if (r == 0)
			return (int)len;
		if (r != -EAGAIN)
			return r;
		if (poll(w, ARRAY_SIZE(w), -1) < 0 && errno != EINTR)
			return -errno;
		if (w[1].revents & (POLLHUP | POLLERR | POLLNVAL))
			return -ECANCELED;
	}
}

int upstream_take(int channel, int *ret_client, int *ret_peer)
{
	int fds[2];
	char one;
	ssize_t n = fd_recv(channel, &one, 1, fds, ARRAY_SIZE(fds), MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0)
		return n == -EAGAIN || n == -EINTR ? 0 : (int)n;
	if (n == 0)
		return -EPIPE;
	if (n == 1 && fds[0] >= 0) {
		*ret_client = fds[0];
		*ret_peer = fds[1];
		return 1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return -EPROTO;
}
