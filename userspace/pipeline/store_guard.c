// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/store_guard.h"

#include <stdio.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"

#define ACT_MS 1000

static const char *act(struct store_guard *g, const struct action_target *target)
{
	struct action_report report;

	switch (g->policy) {
	case FULL_KILL:
		action_kill_sandbox(target, ACT_MS, &report);
		g->killed = true;
		return "sandbox killed";
	case FULL_PAUSE:
		action_freeze(target, true, ACT_MS, &report);
		g->paused = true;
		return "sandbox paused until there is room";
	default:
		return "sandbox goes on; what memory cannot hold will be lost";
	}
}

void store_guard_look(struct store_guard *g, int error, bool may_thaw,
		      const struct action_target *target, store_guard_fn fn, void *arg)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct action_report report;
	char text[256];

	if (error < 0 && !g->failing) {
		g->failing = true;
		g->since_ns = now;
		snprintf(text, sizeof(text), "the record cannot be written (%s): %s",
			 strerror(-error), act(g, target));
		fn(arg, text);
	} else if (error >= 0 && g->failing) {
		g->failing = false;
		if (g->paused && may_thaw)
			action_freeze(target, false, ACT_MS, &report);
		snprintf(text, sizeof(text), "the record can be written again after %.1f s%s",
			 (double)(now - g->since_ns) / NSEC_PER_SEC,
			 g->paused ? ", in which the sandbox stood still" : "");
		g->paused = false;
		fn(arg, text);
	}
}
