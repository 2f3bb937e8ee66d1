/* SPDX-License-Identifier: Apache-2.0 */
/* What the sentry is asked to tell (seccheck "points", `runsc trace metadata`), as the file that --pod-init-config
 * takes. */
#ifndef WARDER_RUNTIME_GVISOR_POINTS_H
#define WARDER_RUNTIME_GVISOR_POINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "userspace/base/buf.h"

#define GVISOR_SESSION "Default" /* the only name that gVisor knows */
#define GVISOR_SINK    "remote"

/* A full socket buffer: the guest's task waits and tries again, which costs the guest and not the record. */
#define GVISOR_SINK_RETRIES 20

/* JSON of the trace session: every point, with the context that is told with it, and the sink at `endpoint`. 0 or
 * -ENOMEM. */
int gvisor_points_json(struct buf *out, const char *endpoint);

/* Is this call told by its number only (what it was given is not in the message, its result is)? */
bool gvisor_points_raw(uint64_t sysno);

#endif
