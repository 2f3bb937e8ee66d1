/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets of ours in the sandbox's network namespace. */
#ifndef WARDER_RUNTIME_EGRESS_INSIDE_H
#define WARDER_RUNTIME_EGRESS_INSIDE_H

#include "runtime/egress/policy.h"

enum inside_fd {
	INSIDE_UDP, /* DNS on 127.0.0.1 */
	INSIDE_TCP,
	INSIDE_LISTENER, /* where all connections are led */
	INSIDE_LINK,	 /* of the program that leads them; not open: they are led nowhere */
	INSIDE_FDS
};

/* Make them: routes so that addresses of the internet are the namespace's own, and the sockets. 0 or -errno with
 * err. The caller closes them. */
int egress_inside(int netns, const struct egress_policy *p, int ret_fds[INSIDE_FDS],
		  struct err *err);

#endif
