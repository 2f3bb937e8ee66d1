// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "userspace/action/action.h"
#include "userspace/base/clock.h"

/* Answers to what was given up on are not ours. */
static int ask(int fd, struct action_proc *a, int wait_ms)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + (uint64_t)wait_ms * NSEC_PER_MSEC, now;
	const struct action_proc asked = *a;

	if (fd < 0)
		return -EBADF;
	if (send(fd, a, sizeof(*a), MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof(*a))
		return -errno;
	while ((now = clock_ns(CLOCK_MONOTONIC)) < end) {
		struct pollfd pfd = { .fd = fd, .events = POLLIN };
		ssize_t n;

		if (poll(&pfd, 1, (int)((end - now) / NSEC_PER_MSEC) + 1) < 0 && errno != EINTR)
			return -errno;
		n = recv(fd, a, sizeof(*a), MSG_DONTWAIT);
		if (n == 0)
			return -EPIPE;
		if (n == (ssize_t)sizeof(*a) && a->tgid == asked.tgid && a->start == asked.start)
			return a->result;
	}
	return -ETIMEDOUT;
}

void action_kill_process(const struct action_target *t, uint32_t tgid, uint64_t start, int wait_ms,
			 struct action_report *ret)
{
	struct action_proc a = { .tgid = tgid, .start = start };
	int r;

	memset(ret, 0, sizeof(*ret));
	/* At a session's end all are gone, and the root part does not listen any more. */
	r = action_is_populated(t) == 0 ? -ESRCH : ask(t->proc_fd, &a, wait_ms);
	ret->done_ns = clock_boot_ns();
	if (r == 0 || r == -ESRCH) {
		snprintf(ret->text, sizeof(ret->text), "done%s", r ? ": it had ended" : "");
		return;
	}
	ret->outcome = ACTION_FAILED;
	snprintf(ret->text, sizeof(ret->text), "failed: %s",
		 r == -EXDEV ? "no process of this sandbox's payload" : strerror(-r));
}
