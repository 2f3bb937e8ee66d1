// SPDX-License-Identifier: Apache-2.0
#include "runtime/egress/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/egress/helper_main.h"
#include "runtime/egress/route.h"
#include "userspace/base/auto.h"
#include "userspace/base/fd.h"

#define BATCH	    64
#define SWEEP_MS    250
#define HELPER_NICE 5
#define FDS_OF_CONN 6
#define FDS_OTHER   128

int helper_watch(struct helper *h, int fd, uint32_t events, uint64_t what)
{
	struct epoll_event ev = { .events = events, .data.u64 = what };

	if (fd < 0)
		return 0;
	if (epoll_ctl(h->epoll, EPOLL_CTL_MOD, fd, &ev) == 0)
		return 0;
	return epoll_ctl(h->epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

void helper_pause(struct helper *h, bool pause)
{
	static const enum watch what[] = { WATCH_UDP, WATCH_TCP, WATCH_LISTENER };

	if (h->paused == pause || h->inside[INSIDE_UDP] < 0)
		return;
	h->paused = pause;
	for (int i = 0; i < INSIDE_LINK; i++)
		helper_watch(h, h->inside[i], pause ? 0 : EPOLLIN, watch_of(what[i], 0));
	for (uint32_t i = 0; i < DNS_CONNS; i++)
		helper_watch(h, h->dns[i].fd, pause ? 0 : EPOLLIN, watch_of(WATCH_DNS, i));
}

void helper_rest(struct helper *h)
{
	h->rest_until = clock_ns(CLOCK_MONOTONIC) + REST_NS;
	helper_pause(h, true);
}

bool bucket_take(struct bucket *b, uint64_t now)
{
	uint64_t max = b->burst * 1000ull, more = (now - b->at) / NSEC_PER_MSEC * b->rate;

	if (more) {
		b->at = now;
		b->tokens = more > max - b->tokens ? max : b->tokens + more;
	}
	if (b->tokens < 1000)
		return false;
	b->tokens -= 1000;
	return true;
}

/* ---- locked in ---- */

/* What a loop over sockets needs. No exec, no files for writing, no signals to others, no namespaces. */
static const int allowed_calls[] = {
	SCMP_SYS(read),		SCMP_SYS(write),	  SCMP_SYS(readv),
	SCMP_SYS(writev),	SCMP_SYS(close),	  SCMP_SYS(epoll_wait),
	SCMP_SYS(epoll_pwait),	SCMP_SYS(epoll_ctl),	  SCMP_SYS(accept4),
	SCMP_SYS(connect),	SCMP_SYS(bind),		  SCMP_SYS(getsockname),
	SCMP_SYS(getpeername),	SCMP_SYS(getsockopt),	  SCMP_SYS(setsockopt),
	SCMP_SYS(shutdown),	SCMP_SYS(recvfrom),	  SCMP_SYS(recvmsg),
	SCMP_SYS(sendto),	SCMP_SYS(sendmsg),	  SCMP_SYS(sendmmsg),
	SCMP_SYS(splice),	SCMP_SYS(pipe2),	  SCMP_SYS(fcntl),
	SCMP_SYS(poll),		SCMP_SYS(ppoll),	  SCMP_SYS(clock_gettime),
	SCMP_SYS(gettimeofday), SCMP_SYS(getrandom),	  SCMP_SYS(brk),
	SCMP_SYS(mmap),		SCMP_SYS(munmap),	  SCMP_SYS(mremap),
	SCMP_SYS(madvise),	SCMP_SYS(futex),	  SCMP_SYS(fstat),
	SCMP_SYS(newfstatat),	SCMP_SYS(stat),		  SCMP_SYS(lseek),
	SCMP_SYS(rt_sigreturn), SCMP_SYS(rt_sigprocmask), SCMP_SYS(restart_syscall),
	SCMP_SYS(getpid),	SCMP_SYS(gettid),	  SCMP_SYS(exit),
	SCMP_SYS(exit_group),	SCMP_SYS(getuid),	  SCMP_SYS(geteuid),
};

static int lock_in(struct err *err)
{
	const struct scmp_arg_cmp read_only = { .arg = 2,
						.op = SCMP_CMP_MASKED_EQ,
						.datum_a = O_ACCMODE | O_CREAT | O_TRUNC,
						.datum_b = O_RDONLY };
	const struct scmp_arg_cmp families[] = {
		{ .arg = 0, .op = SCMP_CMP_EQ, .datum_a = AF_INET },
		{ .arg = 0, .op = SCMP_CMP_EQ, .datum_a = AF_INET6 },
	};
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int r = ctx ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(allowed_calls); i++)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed_calls[i], 0);
	/* Files to read (the resolver's), sockets of these families. */
	if (r == 0)
		r = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1, &read_only);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(families); i++)
		r = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1, &families[i]);
	if (r == 0)
		r = seccomp_load(ctx);
	seccomp_release(ctx);
	return r < 0 ? err_set(err, -r, "network: system call filter of the helper: %m") : 0;
}

static int keep_descriptors(struct helper *h)
{
	int keep[] = { h->control, h->events, h->routes };

	return fd_keep_only(keep, ARRAY_SIZE(keep));
}

static int set_up(struct helper *h, const struct egress_options *opt, struct err *err)
{
	const struct rlimit files = { opt->policy->limits.connections * FDS_OF_CONN + FDS_OTHER,
				      opt->policy->limits.connections * FDS_OF_CONN + FDS_OTHER };
	int r = keep_descriptors(h);

	if (r < 0)
		return err_set(err, -r, "network: closing descriptors: %m");
	h->conns = calloc(opt->policy->limits.connections, sizeof(*h->conns));
	h->told = calloc(TOLD_MAX, sizeof(*h->told));
	if (!h->conns || !h->told)
		return err_set(err, ENOMEM, "network: %m");
	h->epoll = epoll_create1(EPOLL_CLOEXEC);
	h->netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (h->epoll < 0 || h->netlink < 0 || setrlimit(RLIMIT_NOFILE, &files) < 0)
		return err_set(err, errno, "network: helper: %m");
	h->connect_bucket = (struct bucket){ .rate = opt->policy->limits.rate,
					     .burst = opt->policy->limits.rate * 2 };
	h->dns_bucket = (struct bucket){ .rate = opt->policy->limits.dns,
					 .burst = opt->policy->limits.dns * 5 };
	h->connect_bucket.tokens = h->connect_bucket.burst * 1000ull;
	h->dns_bucket.tokens = h->dns_bucket.burst * 1000ull;
	h->connect_bucket.at = h->dns_bucket.at = clock_ns(CLOCK_MONOTONIC);
	/* Of the host's time the sandbox's traffic takes what others leave. */
	(void)setpriority(PRIO_PROCESS, 0, HELPER_NICE);
	if (opt->drop) {
		r = opt->drop(opt->uid, opt->gid, err);
		if (r < 0)
			return r;
	}
	r = resolve_init(h, err);
	if (r == 0)
		r = helper_watch(h, h->control, EPOLLIN, watch_of(WATCH_CONTROL, 0));
	return r < 0 ? r : lock_in(err);
}

/* ---- life ---- */

static void take_sockets(struct helper *h, const int fds[INSIDE_FDS])
{
	static const enum watch what[] = { WATCH_UDP, WATCH_TCP, WATCH_LISTENER };

	if (h->inside[INSIDE_UDP] >= 0) { /* they come once */
		for (int i = 0; i < INSIDE_FDS; i++)
			close(fds[i]);
		return;
	}
	memcpy(h->inside, fds, sizeof(h->inside));
	for (int i = 0; i < INSIDE_LINK; i++)
		helper_watch(h, h->inside[i], EPOLLIN, watch_of(what[i], 0));
}

static void read_control(struct helper *h)
{
	int fds[INSIDE_FDS];
	char byte;
	ssize_t n = fd_recv(h->control, &byte, 1, fds, INSIDE_FDS, MSG_DONTWAIT);

	if (n > 0 && fds[0] >= 0)
		take_sockets(h, fds);
	else if (n == 0 || (n < 0 && n != -EAGAIN))
		h->over = true;
}

static void handle(struct helper *h, const struct epoll_event *ev)
{
	uint32_t id = (uint32_t)ev->data.u64;

	switch ((enum watch)(ev->data.u64 >> 32)) {
	case WATCH_CONTROL:
		read_control(h);
		break;
	case WATCH_EVENTS:
		tell_flush(h);
		break;
	case WATCH_UDP:
		answer_udp(h);
		break;
	case WATCH_TCP:
		answer_accept(h);
		break;
	case WATCH_LISTENER:
		conn_accept(h);
		break;
	case WATCH_DNS:
		answer_tcp(h, id);
		break;
	case WATCH_CONN:
		conn_event(h, id);
		break;
	case WATCH_ARES:
		resolve_event(h, (int)id, ev->events);
		break;
	}
}

static bool has_deadlines(const struct helper *h)
{
	for (int i = 0; i < DNS_CONNS; i++)
		if (h->dns[i].fd >= 0)
			return true;
	return h->conns_n > 0;
}

static void sweep(struct helper *h)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (h->rest_until && now >= h->rest_until) {
		h->rest_until = 0;
		if (!tell_is_full(h))
			helper_pause(h, false);
	}
	if (now - h->last_turn < SWEEP_MS * NSEC_PER_MSEC)
		return;
	h->last_turn = now;
	conn_sweep(h, now);
	answer_sweep(h, now);
}

static void loop(struct helper *h)
{
	while (!h->over) {
		struct epoll_event ev[BATCH];
		int ms = h->work	    ? 0
			 : h->rest_until    ? (int)(REST_NS / NSEC_PER_MSEC)
			 : has_deadlines(h) ? SWEEP_MS
					    : -1;
		int n = epoll_wait(h->epoll, ev, BATCH, resolve_timeout(h, ms));

		for (int i = 0; i < n; i++)
			handle(h, &ev[i]);
		if (h->work)
			conn_work(h);
		sweep(h);
	}
}

/* The sandbox is over: what was open ended with it. */
static void finish(struct helper *h)
{
	const struct egress_event over = { .type = EGRESS_OVER };
	struct pollfd pfd = { .fd = h->events, .events = POLLOUT };

	for (uint32_t i = 0; i < h->policy->limits.connections; i++)
		if (h->conns[i])
			conn_end(h, h->conns[i], ECANCELED, "over");
	tell(h, &over);
	while (h->told_n && poll(&pfd, 1, OVER_MS) > 0)
		tell_flush(h);
}

void helper_main(int control, const struct egress_options *opt)
{
	struct helper h = { .policy = opt->policy,
			    .control = control,
			    .events = opt->events,
			    .routes = opt->routes,
			    .netlink = -1,
			    .epoll = -1 };
	struct helper_ready ready = { 0 };
	struct err err = { 0 };
	sigset_t none;
	int r;

	prctl(PR_SET_NAME, "warder-net");
	/* Ctrl-C at the terminal is the sandbox's affair: it may want its network to end in order. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	routes_forget(opt->policy);
	for (int i = 0; i < INSIDE_FDS; i++)
		h.inside[i] = -1;
	for (int i = 0; i < DNS_CONNS; i++)
		h.dns[i].fd = -1;
	r = set_up(&h, opt, &err);
	if (r < 0) {
		ready.error = -r;
		snprintf(ready.text, sizeof(ready.text), "%s", err_text(&err));
	}
	(void)!send(control, &ready, sizeof(ready), MSG_NOSIGNAL);
	if (r == 0) {
		loop(&h);
		finish(&h);
	}
	_exit(r < 0 ? 1 : 0);
}
