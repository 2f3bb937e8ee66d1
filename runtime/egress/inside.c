// SPDX-License-Identifier: Apache-2.0
#include "runtime/egress/inside.h"

#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/egress/kernel.h"
#include "userspace/base/auto.h"

#define LO_INDEX 1 /* the first device of each namespace (drivers/net/loopback.c) */
#define BACKLOG	 128
#define DNS_PORT 53

struct job {
	int netns;
	const struct egress_policy *policy;
	int *fds;
	struct err *err;
	int result;
};

struct route_msg {
	struct nlmsghdr head;
	struct rtmsg route;
	char attrs[64];
};

static void add_attr(struct route_msg *m, uint16_t type, const void *p, size_t n)
{
	struct rtattr *a = (struct rtattr *)((char *)m + NLMSG_ALIGN(m->head.nlmsg_len));

	a->rta_type = type;
	a->rta_len = (uint16_t)RTA_LENGTH(n);
	memcpy(RTA_DATA(a), p, n);
	m->head.nlmsg_len = NLMSG_ALIGN(m->head.nlmsg_len) + (uint32_t)RTA_ALIGN(a->rta_len);
}

/* A request and the kernel's answer: 0 or -errno. */
static int talk(int sock, const void *p, size_t len)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		char rest[256];
	} answer;
	ssize_t n;

	if (send(sock, p, len, 0) < 0)
		return -errno;
	n = recv(sock, &answer, sizeof(answer), 0);
	if (n < 0)
		return -errno;
	if ((size_t)n < sizeof(answer.head) + sizeof(answer.error) ||
	    answer.head.nlmsg_type != NLMSG_ERROR)
		return -EPROTO;
	return answer.error.error;
}

/* Addresses that are this namespace's own, whoever has them outside. */
static int add_local(int sock, int family, const void *dst, size_t len, uint8_t bits)
{
	struct route_msg m = {
		.head = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
			  .nlmsg_type = RTM_NEWROUTE,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL },
		.route = { .rtm_family = (unsigned char)family,
			   .rtm_dst_len = bits,
			   .rtm_table = RT_TABLE_LOCAL,
			   .rtm_protocol = RTPROT_STATIC,
			   .rtm_scope = RT_SCOPE_HOST,
			   .rtm_type = RTN_LOCAL },
	};
	const uint32_t oif = LO_INDEX, own = htonl(INADDR_LOOPBACK);

	if (bits)
		add_attr(&m, RTA_DST, dst, len);
	add_attr(&m, RTA_OIF, &oif, sizeof(oif));
	if (family == AF_INET) /* else it would be the peer's address */
		add_attr(&m, RTA_PREFSRC, &own, sizeof(own));
	return talk(sock, &m, m.head.nlmsg_len);
}

/* An address that is not 127.0.0.1: without one, programs that ask with AI_ADDRCONFIG are told that there is no
 * IPv4 here (getaddrinfo(3)). */
static int add_address(int sock)
{
	struct {
		struct nlmsghdr head;
		struct ifaddrmsg addr;
		struct rtattr attr;
		uint32_t own;
	} m = {
		.head = { .nlmsg_len = sizeof(m),
			  .nlmsg_type = RTM_NEWADDR,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL },
		.addr = { .ifa_family = AF_INET,
			  .ifa_prefixlen = 32,
			  .ifa_scope = RT_SCOPE_UNIVERSE,
			  .ifa_index = LO_INDEX },
		.attr = { .rta_len = RTA_LENGTH(sizeof(uint32_t)), .rta_type = IFA_LOCAL },
		.own = htonl(EGRESS_FAKE_BASE + 1),
	};

	return talk(sock, &m, sizeof(m));
}

static int add_routes(const struct egress_policy *p)
{
	auto_close int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	const uint32_t fake = htonl(EGRESS_FAKE_BASE);
	int r;

	if (sock < 0)
		return -errno;
	r = add_address(sock);
	if (r < 0)
		return r;
	if (!p->open)
		return add_local(sock, AF_INET, &fake, sizeof(fake), EGRESS_FAKE_BITS);
	r = add_local(sock, AF_INET, NULL, 0, 0);
	if (r == 0)
		r = add_local(sock, AF_INET6, NULL, 0, 0);
	/* A kernel without IPv6 gives no way to its addresses either. */
	return r == -EAFNOSUPPORT || r == -EOPNOTSUPP ? 0 : r;
}

static int loopback_socket(int type, uint16_t port)
{
	const struct sockaddr_in in = { .sin_family = AF_INET,
					.sin_port = htons(port),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	auto_close int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (const void *)&in, sizeof(in)) < 0 ||
	    (type == SOCK_STREAM && listen(fd, BACKLOG) < 0))
		return -errno;
	return take_fd(fd);
}

/* Both versions; bound to one loopback port, so that the sandbox's own servers may have all others. */
static int both_socket(void)
{
	struct sockaddr_in6 in = { .sin6_family = AF_INET6 };
	auto_close int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int zero = 0;

	if (fd < 0)
		return errno == EAFNOSUPPORT ? loopback_socket(SOCK_STREAM, 0) : -errno;
	inet_pton(AF_INET6, "::ffff:127.0.0.1", &in.sin6_addr);
	if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero)) < 0 ||
	    bind(fd, (const void *)&in, sizeof(in)) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	return take_fd(fd);
}

static int make(struct job *j)
{
	int r;

	if (setns(j->netns, CLONE_NEWNET) < 0)
		return err_set(j->err, errno, "network: entering the namespace: %m");
	r = add_routes(j->policy);
	if (r < 0)
		return err_set(j->err, -r, "network: routes in the namespace: %m");
	j->fds[INSIDE_UDP] = loopback_socket(SOCK_DGRAM, DNS_PORT);
	j->fds[INSIDE_TCP] = loopback_socket(SOCK_STREAM, DNS_PORT);
	j->fds[INSIDE_LISTENER] = both_socket();
	for (int i = 0; i < INSIDE_LINK; i++)
		if (j->fds[i] < 0)
			return err_set(j->err, -j->fds[i], "network: sockets in the namespace: %m");
	r = egress_steer(j->netns, j->fds[INSIDE_LISTENER], j->policy, j->err);
	if (r < 0)
		return r;
	j->fds[INSIDE_LINK] = r;
	return 0;
}

/* The thread ends in the sandbox's namespace; the descriptors come back. */
static void *enter(void *arg)
{
	struct job *j = arg;

	j->result = make(j);
	return NULL;
}

int egress_inside(int netns, const struct egress_policy *p, int ret_fds[INSIDE_FDS],
		  struct err *err)
{
	struct job j = { .netns = netns, .policy = p, .fds = ret_fds, .err = err };
	sigset_t all, old;
	pthread_t thread;
	int r;

	for (int i = 0; i < INSIDE_FDS; i++)
		ret_fds[i] = -1;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&thread, NULL, enter, &j);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r != 0)
		return err_set(err, r, "network: thread: %m");
	pthread_join(thread, NULL);
	if (j.result < 0)
		for (int i = 0; i < INSIDE_FDS; i++)
			if (ret_fds[i] >= 0)
				close(take_fd(ret_fds[i]));
	return j.result;
}
