// SPDX-License-Identifier: Apache-2.0
/* A network namespace with nothing but lo: made ahead, or by clone3 and configured here. */
#include "runtime/setup.h"

#include <errno.h>
#include <sched.h>

#include "runtime/netns.h"
#include "userspace/base/fd.h"

/* /proc/sys follows who opens it: these are of the namespaces that we are in, and of nobody else's. */
static int set_sysctls(struct setup *s)
{
	const struct sandbox_container *c = s->plan->container;
	int r = 0;

	for (size_t i = 0; r == 0 && c && i < c->sysctls_n; i++) {
		setup_at(s, c->sysctls[i].path);
		r = file_write_at(s->proc_sys, c->sysctls[i].path, c->sysctls[i].value);
	}
	return r;
}

int setup_net(struct setup *s)
{
	const char *what;
	int r;

	if (s->plan->net == SANDBOX_NET_HOST)
		return set_sysctls(s);
	if (s->netns >= 0) {
		setup_at(s, "setns");
		r = setns(s->netns, CLONE_NEWNET) < 0 ? -errno : 0;
	} else {
		r = netns_configure(s->proc_sys, &what);
		setup_at(s, what);
	}
	return r < 0 ? r : set_sysctls(s);
}
