// SPDX-License-Identifier: Apache-2.0
/* cgroup.freeze, which is of cgroup v2 itself: it works on hybrid hosts, where a v1 freezer holds other
 * groups. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "userspace/action/action.h"
#include "userspace/base/clock.h"

void action_freeze(const struct action_target *t, bool frozen, int wait_ms,
		   struct action_report *ret)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + (uint64_t)wait_ms * NSEC_PER_MSEC;
	int r;

	memset(ret, 0, sizeof(*ret));
	if (t->freeze_fd < 0 || pwrite(t->freeze_fd, frozen ? "1" : "0", 1, 0) != 1) {
		r = t->freeze_fd < 0 ? EBADF : errno;
		ret->outcome = ACTION_FAILED;
		ret->done_ns = clock_boot_ns();
		snprintf(ret->text, sizeof(ret->text), "failed: cgroup.freeze: %s", strerror(r));
		return;
	}
	if (frozen && t->let_go)
		t->let_go(t->arg);
	for (;;) {
		struct pollfd pfd = { .fd = t->events_fd, .events = POLLPRI };

		r = action_is_frozen(t);
		if (r < 0 || (r == 1) == frozen || clock_ns(CLOCK_MONOTONIC) >= end)
			break;
		poll(&pfd, 1, 2);
	}
	ret->done_ns = clock_boot_ns();
	if ((r == 1) == frozen && r >= 0) {
		snprintf(ret->text, sizeof(ret->text), "done");
		return;
	}
	ret->outcome = ACTION_PARTIAL;
	snprintf(ret->text, sizeof(ret->text), "partial: asked for, not yet seen after %d ms",
		 wait_ms);
}
