/* SPDX-License-Identifier: Apache-2.0 */
/* From matching rules to acts and records: the act comes first, its record right behind. */
#ifndef WARDER_PIPELINE_VERDICT_H
#define WARDER_PIPELINE_VERDICT_H

#include "userspace/pipeline/session.h"

struct verdict {
	bool acted;
	const struct rule_info *rule; /* that made us act; NULL = the memory limit */
	enum rule_action act;	      /* KILL, FREEZE or HOLD */
	enum rule_scope scope;
	bool by_kernel;	  /* it was done before the event came here */
	uint32_t hold_id; /* HOLD: number of the question */
	struct action_report report;
};

/* What the kernel decided by an entry of its tables is the verdict of the entry's rule, whatever its
 * condition says of the event (a path that was cut, the name of an exec that was denied). */
void verdict_attribute(const struct ruleset *rules, const struct event *ev, struct rule_matches *m);
/* Do what the gravest match asks for, if the sandbox was not killed yet: kill (also for an OOM kill in it),
 * then hold, then freeze. Before anything is written: what is written next cannot delay it. */
void verdict_act(struct session *s, const struct event *ev, const struct rule_matches *m,
		 struct verdict *ret);
/* Emit an alert for each match and the action taken. `ev` was emitted before. */
void verdict_emit(struct session *s, const struct event *ev, const struct rule_matches *m,
		  const struct verdict *v, const char *ruleset_hash, struct buf *json);

/* Slots of the trigger that stand in an event about it as evidence: all but what names the trigger itself. */
void verdict_copy_evidence(struct event *to, const struct event *from);

#endif
