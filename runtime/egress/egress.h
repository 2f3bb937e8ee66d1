/* SPDX-License-Identifier: Apache-2.0 */
/* The way out of a sandbox whose network is `allow` or `open`: a process of its own without privilege, which holds
 * sockets in the sandbox's network namespace and dials in the host's. The namespace has no device but loopback; with
 * the helper gone there is no way out at all. */
#ifndef WARDER_RUNTIME_EGRESS_H
#define WARDER_RUNTIME_EGRESS_H

#include <sys/types.h>

#include "runtime/egress/policy.h"

struct egress;

struct egress_options {
	const struct egress_policy *policy; /* as long as the helper lives */
	uid_t uid;			    /* whom it becomes; not root */
	gid_t gid;
	/* Takes away all privilege (pipeline/privdrop.h). */
	int (*drop)(uid_t uid, gid_t gid, struct err *err);
	int routes; /* egress_start's own */
	int events; /* SOCK_SEQPACKET: struct egress_event each; -1: nobody wants them. Stays the caller's. */
};

/* Fork it. Returns at once; that it is ready is asked for by egress_connect. */
int egress_start(struct egress **ret, const struct egress_options *opt, struct err *err);
/* Make the sockets in the namespace and hand them over. Once. The payload must not run before. */
int egress_connect(struct egress *e, int netns, struct err *err);
/* Tell it that the sandbox is over, wait for its last events, end it if it takes too long, and free. NULL is
 * fine. */
void egress_free(struct egress *e);
pid_t egress_pid(const struct egress *e);

#endif
