/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes that were stopped: for a question that a person answers (hold), or to be looked at (freeze). Both
 * end by themselves: nobody may be needed to get rid of a stopped sandbox. */
#ifndef WARDER_PIPELINE_HOLD_H
#define WARDER_PIPELINE_HOLD_H

#include "rules/rule.h"
#include "userspace/action/action.h"
#include "userspace/base/ulid.h"

#define HOLD_QUESTIONS_MAX 16 /* questions of one sandbox at a time */

struct hold_policy {
	uint64_t timeout_ns; /* of a question; 0 = none */
	bool approve;	     /* the answer when nobody gives one; else it is no, and a kill */
	uint64_t freeze_timeout_ns; /* then it is killed; 0 = never */
};

struct hold {
	uint32_t id;
	char rule[128];
	char trigger[64];     /* id of the event */
	uint64_t asked_ns;    /* CLOCK_BOOTTIME */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; UINT64_MAX = none */
};

/* A question that is no longer open, for who answers it a second time. */
struct hold_answer {
	uint32_t id;
	bool approved;
	char who[96]; /* "" = nobody in time */
};

struct holds {
	struct hold_policy policy;
	struct hold v[HOLD_QUESTIONS_MAX];
	size_t n;
	uint32_t last_id;
	struct hold_answer answered[HOLD_QUESTIONS_MAX]; /* the last ones; by id modulo */
	bool frozen;	       /* by a rule or an operator, besides the questions */
	char freeze_rule[128]; /* "" = operator */
	uint64_t freeze_deadline_ns;
	bool changed; /* since who shows it looked */
};

/* Stop the sandbox and ask. 0: the same rule's question is open already, or too many are (it stays
 * stopped for them). */
uint32_t hold_add(struct holds *h, const struct rule_info *rule, int wait_ms,
		  const struct action_target *t, struct action_report *ret);
/* Stop it until somebody comes, or the time is over. False: it is already. */
bool hold_freeze(struct holds *h, const char *rule, int wait_ms, const struct action_target *t,
		 struct action_report *ret);
/* The event that question `id` is about got its own id: when it was asked it had none. */
void hold_set_trigger(struct holds *h, uint32_t id, struct str event_id);
/* Take a question away. -ENOENT. */
int hold_take(struct holds *h, uint32_t id, struct hold *ret);
/* Who took it; NULL: none of the last ones. */
const struct hold_answer *hold_answered(const struct holds *h, uint32_t id);
void hold_note_answer(struct holds *h, uint32_t id, bool approved, const char *who);
/* The next question whose time is over. */
bool hold_expired(const struct holds *h, uint64_t now, uint32_t *ret_id);
bool hold_freeze_expired(const struct holds *h, uint64_t now);
/* Nothing holds it any more: let it go on. */
void hold_release(struct holds *h, int wait_ms, const struct action_target *t,
		  struct action_report *ret);
bool hold_is_stopped(const struct holds *h);
/* CLOCK_MONOTONIC ns of what is due next; UINT64_MAX = nothing. */
uint64_t hold_deadline(const struct holds *h);

/* What a person types: the end of the session's id and the number, "0T3K9XQZ-2". */
#define HOLD_NAME_MAX 32
struct str hold_name(const char *session, uint32_t id, struct arena *arena);
void hold_name_text(char ret[HOLD_NAME_MAX], const char *session, uint32_t id);
/* *ret_id: the number, when the name is of this session. */
bool hold_name_parse(const char *name, const char *session, uint32_t *ret_id);

#endif
