// SPDX-License-Identifier: Apache-2.0
/* A network namespace with nothing but lo: made ahead, or by clone3 and configured here. */
#include "runtime/setup.h"

#include <errno.h>
#include <sched.h>

#include "runtime/netns.h"

int setup_net(struct setup *s)
{
	const char *what;
	int r;

	if (s->plan->net == SANDBOX_NET_HOST)
		return 0;
	if (s->netns >= 0) {
		setup_at(s, "setns");
		return setns(s->netns, CLONE_NEWNET) < 0 ? -errno : 0;
	}
	r = netns_configure(s->proc_sys, &what);
	setup_at(s, what);
	return r;
}
