/* SPDX-License-Identifier: Apache-2.0 */
/* What the network helper tells as a wire record. */
#ifndef WARDER_PIPELINE_EGRESS_RECORD_H
#define WARDER_PIPELINE_EGRESS_RECORD_H

#include "runtime/egress/event.h"
#include "userspace/base/buf.h"

/* The helper reads hostile bytes and may have been taken over: nothing it says is trusted. -EINVAL: no record
 * comes of it; -ENOMEM. */
int record_egress(struct buf *out, uint32_t sandbox_id, const struct egress_event *ev);

#endif
