// SPDX-License-Identifier: Apache-2.0
/* The routes of a policy, and the process that serves them. */
#include "runtime/egress/route.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/egress/helper_main.h"
#include "runtime/egress/route_priv.h"
#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/base/option.h"

#define READY_MS     10000
#define STOP_MS	     3000
#define MEMORY_LIMIT (64 << 10) /* of a connection: the head of a request */
#define FDS_OF_CONN  6
#define FDS_OTHER    64
#define STACK_SIZE   (512 << 10)

struct routes {
	pid_t pid;
	int life; /* its end is the process's */
};

/* ---- the policy ---- */

static int bad(struct err *err, const struct sandbox_route *s, const char *why)
{
	return err_set(err, EINVAL, "route '%.80s': %s", s->name, why);
}

static char *copy(struct arena *mem, const char *p, size_t n)
{
	char *ret = arena_zalloc(mem, n + 1);

	if (ret)
		memcpy(ret, p, n);
	return ret;
}

static int check_headers(const struct sandbox_route *s, struct err *err)
{
	if (!s->headers)
		return bad(err, s, "no header: without one --net-allow is enough");
	for (size_t i = 0; i < s->headers; i++) {
		if (!route_header_passes(s->header[i].name, NULL))
			return err_set(err, EINVAL, "route '%.80s': '%.80s' is no header to add",
				       s->name, s->header[i].name);
		if (s->header[i].value &&
		    (!*s->header[i].value || !route_value_is_good(s->header[i].value)))
			return err_set(
				err, EINVAL,
				"route '%.80s': the value of '%.80s' is not one line of text",
				s->name, s->header[i].name);
	}
	return 0;
}

/* "https://HOST[:PORT][/PREFIX]" */
static int take_url(struct egress_route *r, struct arena *mem, const struct sandbox_route *s,
		    struct err *err)
{
	const char *host = s->url + strlen("https://"), *path, *colon;
	uint64_t port = 443;
	size_t n, ok;

	if (strncmp(s->url, "https://", strlen("https://")) != 0)
		return bad(err, s, "its upstream must be https://HOST[:PORT][/PREFIX]");
	path = host + strcspn(host, "/");
	colon = memchr(host, ':', (size_t)(path - host));
	n = (size_t)((colon ? colon : path) - host);
	r->origin = copy(mem, s->url, (size_t)(path - s->url));
	r->host = copy(mem, host, n);
	r->prefix = copy(mem, path, strlen(path));
	if (!r->origin || !r->host || !r->prefix)
		return err_set(err, ENOMEM, "network policy: %m");
	if (colon) {
		char text[8] = "";

		snprintf(text, sizeof(text), "%.*s", (int)(path - colon - 1), colon + 1);
		if (parse_u64(text, &port) < 0 || !port || port > 65535)
			return bad(err, s, "expected a port from 1 to 65535");
	}
	if (!egress_name_is_valid(r->host, n, &ok) || ok != n)
		return bad(err, s,
			   "its upstream needs a host name: ,to=IP[:PORT] says where it is");
	if (*r->prefix && (!route_target_is_good(r->prefix, r->prefix) || strchr(r->prefix, '?')))
		return bad(err, s, "its upstream's path is not one");
	n = strlen(r->prefix);
	if (n && r->prefix[n - 1] == '/')
		((char *)r->prefix)[n - 1] = 0;
	r->port = (uint16_t)port;
	return 0;
}

int egress_policy_route(struct egress_policy *p, struct arena *mem, const struct sandbox_route *s,
			struct err *err)
{
	struct egress_route *r = &p->routes[p->routes_n];
	struct egress_row row = { .port = 80, .check = EGRESS_OPAQUE };
	struct egress_addr a;
	uint16_t port;
	int e;

	if (p->routes_n == EGRESS_ROUTES_MAX)
		return err_set(err, E2BIG, "more than %d routes", EGRESS_ROUTES_MAX);
	*r = (struct egress_route){ .spec = s, .name = egress_policy_name(mem, s->name, err) };
	if (!r->name)
		return -EINVAL;
	e = take_url(r, mem, s, err);
	if (e == 0)
		e = check_headers(s, err);
	if (e == 0 && s->to && !egress_addr_port_parse(&a, &port, s->to, false))
		e = bad(err, s, "to= is not IP[:PORT]");
	if (e < 0)
		return e;
	row.name = r->name;
	row.route = (uint8_t)(++p->routes_n);
	return egress_policy_add(p, &row, s->name, err);
}

/* ---- the process ---- */

/* What no server of requests needs. It runs threads and two TLS libraries: an allow list would be theirs to break. */
static const int denied_calls[] = {
	SCMP_SYS(execve),
	SCMP_SYS(execveat),
	SCMP_SYS(ptrace),
	SCMP_SYS(kill),
	SCMP_SYS(tkill),
	SCMP_SYS(process_vm_readv),
	SCMP_SYS(bpf),
	SCMP_SYS(process_vm_writev),
	SCMP_SYS(perf_event_open),
	SCMP_SYS(mount),
	SCMP_SYS(umount2),
	SCMP_SYS(unshare),
	SCMP_SYS(setns),
	SCMP_SYS(keyctl),
	SCMP_SYS(add_key),
	SCMP_SYS(request_key),
	SCMP_SYS(io_uring_setup),
	SCMP_SYS(userfaultfd),
	SCMP_SYS(unlink),
	SCMP_SYS(unlinkat),
	SCMP_SYS(rename),
	SCMP_SYS(renameat2),
	SCMP_SYS(mkdirat),
	SCMP_SYS(symlinkat),
	SCMP_SYS(linkat),
	SCMP_SYS(fchmodat),
	SCMP_SYS(fchownat),
	SCMP_SYS(pidfd_getfd),
	SCMP_SYS(pidfd_send_signal),
	SCMP_SYS(name_to_handle_at),
	SCMP_SYS(memfd_create),
	SCMP_SYS(listen),
};

static int lock_in(struct err *err)
{
	const struct scmp_arg_cmp writes = {
		.arg = 2, .op = SCMP_CMP_MASKED_EQ, .datum_a = O_CREAT, .datum_b = O_CREAT
	};
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	int r = ctx ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(denied_calls); i++)
		r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), denied_calls[i], 0);
	if (r == 0)
		r = seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(openat), 1,
					   &writes);
	if (r == 0)
		r = seccomp_load(ctx);
	seccomp_release(ctx);
	return r < 0 ? err_set(err, -r, "network: system call filter of the routes: %m") : 0;
}

static int start_daemons(struct route_server *s, struct err *err)
{
	static struct route_of of[EGRESS_ROUTES_MAX];
	const struct egress_limits *l = &s->policy->limits;

	for (size_t i = 0; i < s->policy->routes_n; i++) {
		of[i] = (struct route_of){ s, &s->policy->routes[i] };
		s->daemon[i] = route_lib.MHD_start_daemon(
			MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
				MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC | MHD_USE_POLL,
			0, NULL, NULL, route_on_request, &of[i], MHD_OPTION_URI_LOG_CALLBACK,
			route_on_target, &of[i], MHD_OPTION_NOTIFY_COMPLETED, route_on_done, &of[i],
			MHD_OPTION_CONNECTION_LIMIT, (unsigned)l->connections,
			MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)l->idle_s,
			MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_LIMIT,
			MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_SIZE,
			MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
		if (!s->daemon[i])
			return err_set(err, EIO, "network: libmicrohttpd does not start");
	}
	return 0;
}

static int set_up(struct route_server *s, const struct egress_options *opt, struct err *err)
{
	const rlim_t files = opt->policy->limits.connections * FDS_OF_CONN + FDS_OTHER;
	const struct rlimit limit = { files, files };
	int keep[] = { s->control, s->life, s->events };
	int r = fd_keep_only(keep, ARRAY_SIZE(keep));

	if (r == 0 && setrlimit(RLIMIT_NOFILE, &limit) < 0)
		r = -errno;
	if (r < 0)
		return err_set(err, -r, "network: routes: %m");
	r = route_lib_load(err);
	if (r == 0 && opt->drop)
		r = opt->drop(opt->uid, opt->gid, err);
	/* As threads inherit it: before they are. */
	if (r == 0)
		r = lock_in(err);
	return r < 0 ? r : start_daemons(s, err);
}

void routes_forget(const struct egress_policy *p)
{
	for (size_t i = 0; i < p->routes_n; i++)
		for (size_t k = 0; k < p->routes[i].spec->headers; k++) {
			char *v = (char *)p->routes[i].spec->header[k].value;

			if (v)
				explicit_bzero(v, strlen(v));
		}
}

int route_hand_over(int sock, uint8_t route, int conn)
{
	ssize_t n = fd_send(sock, &route, sizeof(route), &conn, 1, MSG_DONTWAIT);

	return n < 0 ? (int)n : 0;
}

/* False: nobody hands over any more. */
static bool take_connection(struct route_server *s)
{
	const struct sockaddr_in nobody = { .sin_family = AF_INET };
	uint8_t route = 0;
	int fd;
	ssize_t n = fd_recv(s->control, &route, sizeof(route), &fd, 1, MSG_DONTWAIT);

	if (fd < 0)
		return n > 0 || n == -EAGAIN || n == -EINTR;
	if (n < 1 || route >= s->policy->routes_n)
		close(fd);
	else /* closes it, too, when it takes no more */
		route_lib.MHD_add_connection(s->daemon[route], fd, (const void *)&nobody,
					     sizeof(nobody));
	return n > 0;
}

static void serve(struct route_server *s)
{
	struct pollfd fds[] = { { .fd = s->life, .events = POLLIN },
				{ .fd = s->control, .events = POLLIN } };

	while (!fds[0].revents) {
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			break;
		if (fds[1].revents && !take_connection(s))
			fds[1].fd = -1;
	}
	s->over = true;
	for (size_t i = 0; i < s->policy->routes_n; i++)
		route_lib.MHD_stop_daemon(s->daemon[i]);
}

static void __attribute__((noreturn)) live(struct route_server *s, const struct egress_options *opt)
{
	struct helper_ready ready = { 0 };
	struct err err = { 0 };
	sigset_t none;
	int r;

	prctl(PR_SET_NAME, "warder-route");
	for (int sig = 1; sig < NSIG; sig++)
		if (sig == SIGINT || sig == SIGTERM || sig == SIGHUP || sig == SIGQUIT ||
		    sig == SIGPIPE)
			signal(sig, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	r = set_up(s, opt, &err);
	if (r < 0) {
		ready.error = -r;
		snprintf(ready.text, sizeof(ready.text), "%s", err_text(&err));
	}
	(void)!send(s->life, &ready, sizeof(ready), MSG_NOSIGNAL);
	if (r == 0)
		serve(s);
	_exit(r < 0);
}

static int wait_ready(int life, struct err *err)
{
	struct pollfd pfd = { .fd = life, .events = POLLIN };
	struct helper_ready m;

	if (poll(&pfd, 1, READY_MS) <= 0)
		return err_set(err, ETIMEDOUT, "network: the routes are not ready: %m");
	if (recv(life, &m, sizeof(m), 0) != (ssize_t)sizeof(m))
		return err_set(err, EPIPE, "network: the process of the routes ended");
	m.text[sizeof(m.text) - 1] = 0;
	return m.error ? err_set(err, m.error, "%s", m.text) : 0;
}

int routes_start(struct routes **ret, int *ret_sock, const struct egress_options *opt,
		 struct err *err)
{
	int life[2] = { -1, -1 }, control[2] = { -1, -1 }, r = 0;
	struct routes *v = calloc(1, sizeof(*v));

	if (!v || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, life) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0)
		r = err_set(err, errno, "network: routes: %m");
	if (r == 0) {
		v->life = life[0];
		v->pid = fork();
		if (v->pid == 0) {
			struct route_server s = { .policy = opt->policy,
						  .events = opt->events,
						  .control = control[1],
						  .life = life[1] };

			live(&s, opt);
		}
		if (v->pid < 0)
			r = err_set(err, errno, "network: fork: %m");
	}
	if (life[1] >= 0)
		close(life[1]);
	if (control[1] >= 0)
		close(control[1]);
	if (r < 0) {
		if (life[0] >= 0)
			close(life[0]);
		free(v);
	} else {
		r = wait_ready(v->life, err);
		if (r < 0)
			routes_free(v);
	}
	if (r < 0) {
		if (control[0] >= 0)
			close(control[0]);
		return r;
	}
	*ret = v;
	*ret_sock = control[0];
	return 0;
}

void routes_free(struct routes *r)
{
	struct pollfd pfd = { .fd = r ? r->life : -1, .events = 0 };

	if (!r)
		return;
	shutdown(r->life, SHUT_WR);
	(void)poll(&pfd, 1, STOP_MS); /* it hangs up when it ends */
	kill(r->pid, SIGKILL);
	while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
		;
	close(r->life);
	free(r);
}
