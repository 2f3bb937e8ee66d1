// SPDX-License-Identifier: Apache-2.0
/* DNS inside the sandbox: names that the policy has, and nothing else. Nothing is asked outside for another. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/egress/helper.h"
#include "userspace/base/auto.h"

#define TURN 32 /* packets before others have their turn */

/* Where an answer goes. */
struct asker {
	const struct sockaddr_in *peer; /* NULL: by TCP */
	int tcp;
};

static void send_answer(struct helper *h, const struct asker *to, const uint8_t *p, size_t n)
{
	if (to->peer) {
		(void)!sendto(h->inside[INSIDE_UDP], p, n, MSG_DONTWAIT, (const void *)to->peer,
			      sizeof(*to->peer));
	} else {
		uint8_t out[2 + EGRESS_DNS_MAX] = { (uint8_t)(n >> 8), (uint8_t)n };

		memcpy(out + 2, p, n);
		/* Who does not read his answers does not get them. */
		(void)!send(h->dns[to->tcp].fd, out, n + 2, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
}

static void answer(struct helper *h, const struct asker *to, const struct egress_question *q,
		   int rcode, const struct egress_addr *addrs, size_t n, const char *reason)
{
	struct egress_event ev = { .type = EGRESS_DNS,
				   .ts = clock_boot_ns(),
				   .udp = to->peer != NULL };

	ev.data_n = (uint16_t)egress_dns_answer(ev.data, q, rcode, addrs, n);
	send_answer(h, to, ev.data, ev.data_n);
	if (reason) {
		ev.error = EACCES;
		if (!strncmp(reason, "limit", 5) &&
		    !tell_is_due(h, reason, clock_ns(CLOCK_MONOTONIC), &ev.count))
			return;
		snprintf(ev.reason, sizeof(ev.reason), "%s", reason);
	}
	memcpy(ev.name, q->name, q->name_n + 1);
	tell(h, &ev);
}

static void resolved(void *arg, int error, const struct egress_addr *v, size_t n)
{
	struct asking *a = arg;
	struct asker to = { a->tcp < 0 ? &a->peer : NULL, a->tcp };
	struct egress_addr good[EGRESS_DNS_ADDRS];
	const char *why = NULL;
	size_t k = 0;

	for (size_t i = 0; i < n && k < EGRESS_DNS_ADDRS; i++) {
		const char *range = egress_range_of(&v[i]);

		if (!range)
			good[k++] = v[i];
		else
			why = range;
	}
	a->used = false;
	if (a->tcp >= 0 &&
	    (a->h->dns[a->tcp].fd < 0 || a->h->dns[a->tcp].generation != a->generation))
		return;
	/* A name that only leads to forbidden addresses does not exist in here. */
	answer(a->h, &to, &a->q,
	       error == ENOENT || (!k && why) ? DNS_NXDOMAIN
	       : error			      ? DNS_SERVFAIL
					      : DNS_NOERROR,
	       good, k, k ? NULL : why);
}

static void ask_outside(struct helper *h, const struct asker *to, const struct egress_question *q)
{
	for (size_t i = 0; i < QUESTIONS; i++) {
		struct asking *a = &h->asking[i];

		if (a->used)
			continue;
		*a = (struct asking){
			.h = h, .used = true, .q = *q, .tcp = to->peer ? -1 : to->tcp
		};
		if (to->peer)
			a->peer = *to->peer;
		else
			a->generation = h->dns[to->tcp].generation;
		resolve(h, q->name, q->type, resolved, a);
		return;
	}
	answer(h, to, q, DNS_SERVFAIL, NULL, 0, "limit.dns_pending");
}

static void answer_name(struct helper *h, const struct asker *to, const struct egress_question *q)
{
	bool address = q->type == DNS_TYPE_A || q->type == DNS_TYPE_AAAA;
	bool known = !q->odd && egress_policy_has_name(h->policy, q->name, q->name_n);
	struct egress_addr a;
	size_t n;

	if (known &&
	    q->type != DNS_TYPE_A) /* HTTPS records too: they carry keys that hide the name */
		answer(h, to, q, DNS_NOERROR, NULL, 0, NULL);
	else if (known && name_address(h, q->name, &a))
		answer(h, to, q, DNS_NOERROR, &a, 1, NULL);
	else if (known)
		answer(h, to, q, DNS_SERVFAIL, NULL, 0, "limit.names");
	else if (!h->policy->open || q->odd || !egress_name_is_valid(q->name, q->name_n, &n))
		answer(h, to, q, DNS_NXDOMAIN, NULL, 0, "name");
	else if (address)
		ask_outside(h, to, q);
	else
		answer(h, to, q, DNS_NOERROR, NULL, 0, NULL);
}

static void take_packet(struct helper *h, const struct asker *to, const uint8_t *p, size_t n)
{
	struct egress_question q;
	int r = egress_dns_parse(&q, p, n);

	if (r < 0)
		return;
	if (!bucket_take(&h->dns_bucket, clock_ns(CLOCK_MONOTONIC))) {
		helper_rest(h);
		answer(h, to, &q, DNS_REFUSED, NULL, 0, "limit.dns");
	} else if (r > 0)
		answer(h, to, &q, r, NULL, 0, "dns");
	else
		answer_name(h, to, &q);
}

void answer_udp(struct helper *h)
{
	uint8_t p[4096]; /* what is longer is cut, and then it is no question of ours */

	for (int i = 0; i < TURN && !h->paused; i++) {
		struct sockaddr_in peer;
		socklen_t len = sizeof(peer);
		ssize_t n = recvfrom(h->inside[INSIDE_UDP], p, sizeof(p), MSG_DONTWAIT,
				     (void *)&peer, &len);

		if (n < 0)
			return;
		if (len == sizeof(peer) && peer.sin_family == AF_INET)
			take_packet(h, &(struct asker){ &peer, -1 }, p, (size_t)n);
	}
}

static void drop(struct dns_conn *c)
{
	if (c->fd >= 0)
		close(take_fd(c->fd));
	c->generation++;
	c->have = 0;
}

void answer_accept(struct helper *h)
{
	for (;;) {
		int fd = accept4(h->inside[INSIDE_TCP], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		uint32_t i;

		if (fd < 0)
			return;
		for (i = 0; i < DNS_CONNS && h->dns[i].fd >= 0; i++)
			;
		if (i == DNS_CONNS || helper_watch(h, fd, EPOLLIN, watch_of(WATCH_DNS, i)) < 0) {
			close(fd);
			continue;
		}
		h->dns[i].fd = fd;
		h->dns[i].have = 0;
		h->dns[i].deadline = clock_ns(CLOCK_MONOTONIC) + DNS_IDLE_NS;
	}
}

void answer_tcp(struct helper *h, uint32_t slot)
{
	struct dns_conn *c = slot < DNS_CONNS ? &h->dns[slot] : NULL;
	ssize_t n;

	if (!c || c->fd < 0 || h->paused)
		return;
	n = recv(c->fd, c->buf + c->have, sizeof(c->buf) - c->have, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		drop(c);
		return;
	}
	c->have += (size_t)n;
	while (c->have >= 2) {
		size_t len = (size_t)c->buf[0] << 8 | c->buf[1];

		if (len > EGRESS_DNS_MAX) {
			drop(c);
			return;
		}
		if (c->have < 2 + len)
			return;
		take_packet(h, &(struct asker){ NULL, (int)slot }, c->buf + 2, len);
		if (c->fd < 0)
			return;
		c->have -= 2 + len;
		memmove(c->buf, c->buf + 2 + len, c->have);
		c->deadline = clock_ns(CLOCK_MONOTONIC) + DNS_IDLE_NS;
	}
}

void answer_sweep(struct helper *h, uint64_t now)
{
	for (uint32_t i = 0; i < DNS_CONNS; i++)
		if (h->dns[i].fd >= 0 && now >= h->dns[i].deadline)
			drop(&h->dns[i]);
}
