/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a sandbox whose record cannot be written: a full disk, mostly. */
#ifndef WARDER_PIPELINE_STORE_GUARD_H
#define WARDER_PIPELINE_STORE_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "userspace/action/action.h"

enum full_policy {
	FULL_CONTINUE, /* goes on; what does not fit into memory is lost and counted */
	FULL_PAUSE,    /* stands still until there is room */
	FULL_KILL,
};

struct store_guard {
	enum full_policy policy;
	bool failing, paused, killed;
	uint64_t since_ns; /* CLOCK_MONOTONIC */
};

/* `text` goes into the record (when it can be written again) and to the operator. */
typedef void (*store_guard_fn)(void *arg, const char *text);

/* After each commit of the journal. `error`: what it said, 0 or -errno. `may_thaw`: nobody else wants the
 * sandbox to stand still. */
void store_guard_look(struct store_guard *g, int error, bool may_thaw,
		      const struct action_target *target, store_guard_fn fn, void *arg);

#endif
