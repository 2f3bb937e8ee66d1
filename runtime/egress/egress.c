// SPDX-License-Identifier: Apache-2.0
/* The launcher's side of the helper. */
#include "runtime/egress/egress.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/egress/helper_main.h"
#include "runtime/egress/inside.h"
#include "runtime/egress/route.h"
#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/base/clock.h"

#define READY_MS 10000
#define STOP_MS	 2000

struct egress {
	const struct egress_policy *policy;
	int control;
	pid_t pid;
	struct routes *routes; /* NULL */
};

int egress_start(struct egress **ret, const struct egress_options *opt, struct err *err)
{
	struct egress *e = calloc(1, sizeof(*e));
	struct egress_options own = *opt;
	auto_close int routes = -1;
	int pair[2];

	if (!e)
		return err_set(err, ENOMEM, "network: %m");
	if (opt->policy->routes_n) {
		int r = routes_start(&e->routes, &routes, opt, err);

		if (r < 0) {
			free(e);
			return r;
		}
	}
	own.routes = routes;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		int r = err_set(err, errno, "network: socket pair: %m");

		routes_free(e->routes);
		free(e);
		return r;
	}
	e->policy = opt->policy;
	e->control = pair[0];
	e->pid = fork();
	if (e->pid == 0) {
		close(pair[0]);
		helper_main(pair[1], &own);
	}
	close(pair[1]);
	if (e->pid < 0) {
		int r = err_set(err, errno, "network: fork: %m");

		routes_free(e->routes);
		close(e->control);
		free(e);
		return r;
	}
	*ret = e;
	return 0;
}

/* It has dropped its privilege and is ready, or says why not. */
static int wait_ready(struct egress *e, struct err *err)
{
	struct pollfd pfd = { .fd = e->control, .events = POLLIN };
	struct helper_ready m;
	ssize_t n;

	if (poll(&pfd, 1, READY_MS) <= 0)
		return err_set(err, ETIMEDOUT, "network: the helper is not ready: %m");
	n = recv(e->control, &m, sizeof(m), 0);
	if (n != (ssize_t)sizeof(m))
		return err_set(err, EPIPE, "network: the helper ended");
	m.text[sizeof(m.text) - 1] = 0;
	return m.error ? err_set(err, m.error, "%s", m.text) : 0;
}

int egress_connect(struct egress *e, int netns, struct err *err)
{
	int fds[INSIDE_FDS], r;

	r = egress_inside(netns, e->policy, fds, err);
	if (r < 0)
		return r;
	r = wait_ready(e, err);
	if (r == 0) {
		const ssize_t n = fd_send(e->control, "", 1, fds, INSIDE_FDS, 0);

		if (n < 0)
			r = err_set(err, (int)-n, "network: the helper: %m");
	}
	for (int i = 0; i < INSIDE_FDS; i++)
		close(fds[i]);
	return r;
}

void egress_free(struct egress *e)
{
	struct pollfd pfd = { .fd = e ? e->control : -1, .events = POLLIN };
	struct helper_ready m;

	if (!e)
		return;
	routes_free(e->routes); /* what it tells comes before the helper's last word */
	shutdown(e->control, SHUT_WR);
	/* Its end closes the socket; a ready message that nobody asked for may come before. */
	while (poll(&pfd, 1, STOP_MS) > 0 && recv(e->control, &m, sizeof(m), 0) > 0)
		;
	kill(e->pid, SIGKILL);
	while (waitpid(e->pid, NULL, 0) < 0 && errno == EINTR)
		;
	close(e->control);
	free(e);
}

pid_t egress_pid(const struct egress *e)
{
	return e->pid;
}
