/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's part: a program that leads every connection made in the sandbox's network namespace to one socket,
 * and the wall, which holds even if the namespace should not. Written as instructions: what they hold is different
 * for each policy. */
#ifndef WARDER_RUNTIME_EGRESS_KERNEL_H
#define WARDER_RUNTIME_EGRESS_KERNEL_H

#include "runtime/egress/policy.h"

/* Addresses that stand for names inside: 198.18.0.0/15 (RFC 2544, never routed). */
#define EGRESS_FAKE_BASE 0xc6120000u
#define EGRESS_FAKE_BITS 15

/* Of all TCP connections in namespace `netns` but to loopback, those to the policy's ports (`open`: all) go to
 * `listener`, whatever their address; others are refused. As long as the descriptor returned is open and no
 * longer. -errno with err. */
int egress_steer(int netns, int listener, const struct egress_policy *p, struct err *err);

#define EGRESS_WALLS 4

/* connect and sendmsg of everything in the cgroup: nowhere but loopback and where the policy leads. `p` NULL:
 * loopback only. Descriptors for as long as the wall shall stand (it goes with the cgroup, too). */
int egress_wall(int cgroup, const struct egress_policy *p, int ret_fds[EGRESS_WALLS],
		struct err *err);

#endif
