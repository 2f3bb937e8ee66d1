// SPDX-License-Identifier: Apache-2.0
#include "userspace/action/action.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "userspace/base/clock.h"

#define LOOK_EVERY_NS	200000
#define LOOK_CLOSELY_NS (4 * NSEC_PER_MSEC)

static int read_event(const struct action_target *t, const char *key, int gone)
{
	char text[256];
	const char *p;
	ssize_t n;

	if (t->events_fd < 0)
		return -EBADF;
	n = pread(t->events_fd, text, sizeof(text) - 1, 0);
	if (n < 0)
		return errno == ENODEV ? gone : -errno; /* the cgroup was removed */
	text[n] = 0;
	p = strstr(text, key);
	return p ? p[strlen(key)] == '1' : -EPROTO;
}

/* One that was removed must have been empty. */
int action_is_populated(const struct action_target *t)
{
	return read_event(t, "populated ", 0);
}

int action_is_frozen(const struct action_target *t)
{
	return read_event(t, "frozen ", 0);
}

/* 1: still populated after wait_ms, 0: empty, -errno. */
static int wait_empty(const struct action_target *t, int wait_ms)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	uint64_t end = begin + (uint64_t)wait_ms * NSEC_PER_MSEC;

	for (;;) {
		struct pollfd pfd = { .fd = t->events_fd, .events = POLLPRI };
		struct timespec nap = { .tv_nsec = LOOK_EVERY_NS };
		uint64_t now;
		int r = action_is_populated(t);

		if (r <= 0)
			return r;
		now = clock_ns(CLOCK_MONOTONIC);
		if (now >= end)
			return 1;
		if (now - begin < LOOK_CLOSELY_NS) { /* most are empty within that */
			nanosleep(&nap, NULL);
			continue;
		}
		/* kernfs notifies at most every 10 ms: do not depend on the wake-up alone */
		poll(&pfd, 1, (int)((end - now) / NSEC_PER_MSEC > 2 ? 2 : 1));
	}
}

void action_kill_sandbox(const struct action_target *t, int wait_ms, struct action_report *ret)
{
	int r;

	memset(ret, 0, sizeof(*ret));
	if (t->kill_fd < 0 || pwrite(t->kill_fd, "1", 1, 0) != 1) {
		r = t->kill_fd < 0 ? EBADF : errno;
		ret->done_ns = clock_boot_ns();
		if (r == ENODEV) { /* the cgroup is gone, and with it every task */
			snprintf(ret->text, sizeof(ret->text), "done");
			return;
		}
		ret->outcome = ACTION_FAILED;
		snprintf(ret->text, sizeof(ret->text), "failed: cgroup.kill: %s", strerror(r));
		return;
	}
	r = wait_empty(t, wait_ms);
	ret->done_ns = clock_boot_ns();
	if (r == 0) {
		snprintf(ret->text, sizeof(ret->text), "done");
	} else if (r > 0) {
		ret->outcome = ACTION_PARTIAL;
		snprintf(ret->text, sizeof(ret->text), "partial: killed, not yet empty after %d ms",
			 wait_ms);
	} else {
		ret->outcome = ACTION_PARTIAL;
		snprintf(ret->text, sizeof(ret->text), "partial: killed, cannot tell if empty: %s",
			 strerror(-r));
	}
}
