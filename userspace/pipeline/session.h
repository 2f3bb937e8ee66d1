/* SPDX-License-Identifier: Apache-2.0 */
/* One watched sandbox inside the pipeline: its journal, its counts, what was decided about it. */
#ifndef WARDER_PIPELINE_SESSION_H
#define WARDER_PIPELINE_SESSION_H

#include "rules/rule.h"
#include "userspace/base/ulid.h"
#include "userspace/enrich/baseline.h"
#include "userspace/enrich/packages.h"
#include "userspace/pipeline/hold.h"
#include "userspace/pipeline/pipeline.h"
#include "userspace/pipeline/statement.h"

/* Events that the journal could not take, waiting to be told as one gap. */
struct session_lost {
	uint64_t count;
	uint64_t first_ts, last_ts; /* CLOCK_BOOTTIME */
};

struct session {
	uint32_t sandbox_id;
	char id[ULID_LEN + 1];
	char name[64];
	char tenant[64];
	char host[64];
	char tier[16];
	char backend[16];
	char policy[72];
	int64_t real_offset_ns;
	struct action_target target;
	struct journal *journal;
	struct redaction *redaction; /* borrowed; NULL = none */
	uint64_t redacted;	     /* places that the next event tells of besides its own */
	uint64_t seq;		     /* last one given */
	struct session_stats stats;
	struct statement statement;
	struct clock_state clock;
	struct session_lost lost;
	struct packages_seen packages;
	struct holds holds;
	bool dry_run;	      /* nothing is done to it, by no rule */
	uint32_t killed_tgid; /* process that a rule killed last */
	uint64_t killed_start;
	const struct baseline *baseline;
	bool alerted;		    /* since the last commit */
	struct rule_memory *memory; /* of rules that count or order events; NULL without rules */
};

struct session *session_new(const struct session_options *opt);
void session_free(struct session *s);

/* Identity slots of an event that the agent makes itself, at `boot_ns`. */
void session_fill(const struct session *s, struct event *ev, uint64_t boot_ns);

/* What of an event may be recorded: itself, or a copy in its arena. */
struct event *session_redact(struct session *s, struct event *ev);
/* Number the event, write it to the journal without its secrets, count it. `json` is scratch. A record that the journal
 * cannot take becomes part of the next gap event. */
int session_emit(struct session *s, struct event *ev, struct buf *json);
/* Events that could not become records: told by the next gap event. ts in CLOCK_BOOTTIME ns. */
void session_lose(struct session *s, uint64_t count, uint64_t first_ts, uint64_t last_ts);
/* Flush to disk now. */
void session_commit(struct session *s);
/* A gap event, to be judged and emitted; NULL without memory. ts in CLOCK_BOOTTIME ns. */
struct event *session_gap(const struct session *s, struct arena *arena, const char *kind,
			  const char *reason, const struct session_lost *lost);
/* Counts as a JSON object. */
int session_summary(const struct session *s, struct buf *out);

#endif
