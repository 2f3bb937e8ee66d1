// SPDX-License-Identifier: Apache-2.0
/* Names, by the host's resolver. */
#include <ares.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <netdb.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "runtime/egress/helper.h"
#include "userspace/base/auto.h"

#define TRY_MS	 3000
#define TRIES	 3
#define REQUESTS (QUESTIONS + EGRESS_CONNECTIONS_MAX)

struct request {
	resolved_fn *fn;
	void *arg;
	uint16_t type;
};

/* c-ares wants to be told of this descriptor. */
static void watch_socket(void *arg, ares_socket_t fd, int readable, int writable)
{
	struct helper *h = arg;
	uint32_t events = (readable ? EPOLLIN : 0) | (writable ? EPOLLOUT : 0);

	if (events)
		helper_watch(h, fd, events, watch_of(WATCH_ARES, (uint32_t)fd));
	else
		epoll_ctl(h->epoll, EPOLL_CTL_DEL, fd, NULL);
}

int resolve_init(struct helper *h, struct err *err)
{
	/* What /etc/hosts says is for this host. */
	char lookups[] = "b";
	struct ares_options opt = {
		.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
		.timeout = TRY_MS,
		.tries = TRIES,
		.lookups = lookups,
		.sock_state_cb = watch_socket,
		.sock_state_cb_data = h,
	};
	struct ares_addr_port_node server = { .udp_port = h->policy->dns_port,
					      .tcp_port = h->policy->dns_port };
	int r = ares_library_init(ARES_LIB_INIT_ALL);

	if (r == ARES_SUCCESS)
		r = ares_init_options(&h->ares, &opt,
				      ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
					      ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB);
	if (r == ARES_SUCCESS && h->policy->dns.family) {
		server.family = h->policy->dns.family == 4 ? AF_INET : AF_INET6;
		memcpy(&server.addr, h->policy->dns.b, h->policy->dns.family == 4 ? 4 : 16);
		r = ares_set_servers_ports(h->ares, &server);
	}
	return r == ARES_SUCCESS ? 0 : err_set(err, EIO, "network: resolver: %s", ares_strerror(r));
}

static void answered(void *arg, int status, int timeouts, struct ares_addrinfo *ai)
{
	struct egress_addr v[CANDIDATES];
	struct request *req = arg;
	size_t n = 0;
	uint16_t port;

	(void)timeouts;
	for (struct ares_addrinfo_node *a = ai ? ai->nodes : NULL; a && n < CANDIDATES;
	     a = a->ai_next) {
		struct sockaddr_storage s = { 0 };

		if (a->ai_addrlen > sizeof(s))
			continue;
		memcpy(&s, a->ai_addr, a->ai_addrlen);
		if (egress_addr_from_sock(&v[n], &port, &s))
			n++;
	}
	if (ai)
		ares_freeaddrinfo(ai);
	req->fn(req->arg,
		n || status == ARES_SUCCESS || status == ARES_ENODATA ? 0
		: status == ARES_ENOTFOUND			      ? ENOENT
								      : EAGAIN,
		v, n);
	free(req);
}

void resolve(struct helper *h, const char *name, uint16_t type, resolved_fn *fn, void *arg)
{
	const struct ares_addrinfo_hints hints = {
		.ai_family = type == DNS_TYPE_A	     ? AF_INET
			     : type == DNS_TYPE_AAAA ? AF_INET6
						     : AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
	};
	struct request *req = malloc(sizeof(*req));

	if (!req) {
		fn(arg, EAGAIN, NULL, 0);
		return;
	}
	*req = (struct request){ fn, arg, type };
	ares_getaddrinfo(h->ares, name, NULL, &hints, answered, req);
}

void resolve_event(struct helper *h, int fd, uint32_t events)
{
	ares_process_fd(h->ares, events & (EPOLLIN | EPOLLERR | EPOLLHUP) ? fd : ARES_SOCKET_BAD,
			events & EPOLLOUT ? fd : ARES_SOCKET_BAD);
}

int resolve_timeout(struct helper *h, int max)
{
	struct timeval tv, *p;

	ares_process_fd(h->ares, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	p = ares_timeout(h->ares, NULL, &tv);
	if (!p)
		return max;
	if (tv.tv_sec > 60)
		return max < 0 ? 60000 : MIN(max, 60000);
	return max < 0 ? (int)(tv.tv_sec * 1000 + tv.tv_usec / 1000) + 1
		       : MIN(max, (int)(tv.tv_sec * 1000 + tv.tv_usec / 1000) + 1);
}

/* By the routing table, which also knows addresses that no device shows. Unclear counts as its own. */
bool resolve_is_own(struct helper *h, const struct egress_addr *a)
{
	struct {
		struct nlmsghdr head;
		struct rtmsg route;
		struct rtattr attr;
		uint8_t addr[16];
	} m = {
		.head = { .nlmsg_type = RTM_GETROUTE, .nlmsg_flags = NLM_F_REQUEST },
		.route = { .rtm_family = a->family == 4 ? AF_INET : AF_INET6,
			   .rtm_dst_len = a->family == 4 ? 32 : 128 },
		.attr = { .rta_len = (uint16_t)RTA_LENGTH(a->family == 4 ? 4 : 16),
			  .rta_type = RTA_DST },
	};
	union {
		struct nlmsghdr head;
		char space[4096];
	} answer;
	struct rtmsg *route = NLMSG_DATA(&answer.head);
	ssize_t n;

	m.head.nlmsg_len = NLMSG_LENGTH(sizeof(m.route)) + m.attr.rta_len;
	memcpy(m.addr, a->b, a->family == 4 ? 4 : 16);
	if (send(h->netlink, &m, m.head.nlmsg_len, 0) < 0)
		return true;
	n = recv(h->netlink, &answer, sizeof(answer), MSG_DONTWAIT);
	if (n < (ssize_t)NLMSG_LENGTH(sizeof(*route)))
		return true;
	if (answer.head.nlmsg_type == NLMSG_ERROR) /* no route: dialling will say so */
		return false;
	return answer.head.nlmsg_type != RTM_NEWROUTE || route->rtm_type == RTN_LOCAL;
}
