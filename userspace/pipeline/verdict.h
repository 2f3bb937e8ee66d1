/* SPDX-License-Identifier: Apache-2.0 */
/* From matching rules to acts and records: the kill comes first, its record right behind. */
#ifndef WARDER_PIPELINE_VERDICT_H
#define WARDER_PIPELINE_VERDICT_H

#include "userspace/pipeline/session.h"

struct verdict {
	bool acted;
	const struct rule_info *rule; /* that made us act; NULL = the memory limit */
	struct action_report report;
};

/* Kill the sandbox if a match (or an OOM kill in it) asks for it and it was not killed yet. Before
 * anything is written: what is written next cannot delay it. */
void verdict_act(struct session *s, const struct event *ev, const struct rule_matches *m,
		 struct verdict *ret);
/* Emit an alert for each match and the action taken. `ev` was emitted before. */
void verdict_emit(struct session *s, const struct event *ev, const struct rule_matches *m,
		  const struct verdict *v, const char *ruleset_hash, struct buf *json);

/* Slots of the trigger that stand in an event about it as evidence: all but what names the trigger itself. */
void verdict_copy_evidence(struct event *to, const struct event *from);

#endif
