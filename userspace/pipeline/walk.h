/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over the events of a recorded session. */
#ifndef WARDER_PIPELINE_WALK_H
#define WARDER_PIPELINE_WALK_H

#include "userspace/event/event.h"
#include "userspace/store/store.h"

/* `ev` lives until the function returns. 0: go on; 1: enough; negative: stop with this error. */
typedef int (*walk_fn)(void *arg, const struct event *ev, struct err *err);

/* Every committed event of the bundle in `dirfd`, in order. *ret_last (may be NULL): the sequence number
 * of the last that was read. Memory is bounded whatever the bundle holds. 0 at the end or when `fn` had
 * enough; else -EBADMSG (damaged, err names the record), -ENOMEM, or what `fn` returned. */
int session_walk(int dirfd, walk_fn fn, void *arg, uint64_t *ret_last, struct err *err);

#endif
