/* SPDX-License-Identifier: Apache-2.0 */
/* The way of an event: decode, enrich, rules, action, journal. pipeline.c alone knows the order; no
 * stage calls another. Ring, recorded file and launcher's socket all enter by pipeline_feed. */
#ifndef WARDER_PIPELINE_PIPELINE_H
#define WARDER_PIPELINE_PIPELINE_H

#include "rules/rule.h"
#include "userspace/action/action.h"
#include "userspace/capture/capture.h"
#include "userspace/event/event.h"
#include "userspace/pipeline/hold.h"
#include "userspace/store/store.h"
#include "userspace/store/terminal.h"

#define PIPELINE_SESSIONS_MAX SANDBOXES_MAX

struct pipeline;
struct session;
struct enrich_place;
struct clock_state;
struct redaction;

struct session_options {
	uint32_t sandbox_id;
	const char *session; /* ULID */
	const char *name;
	const char *tenant; /* NULL = none */
	const char *host;
	const struct baseline *baseline; /* borrowed; NULL = nothing is compared */
	const char *tier;		 /* probe tier, goes into session.start */
	const char *backend,
		*policy; /* with tier and tenant: which rules are for it; may be NULL */
	uint64_t memory_limit, pids_limit;
	const struct ip_addr *resolvers; /* whose DNS answers name addresses; n == 0: anybody's */
	size_t resolvers_n;
	const char *env_values;		   /* see enrich_session */
	const struct enrich_place *places; /* the same */
	size_t places_n;
	const char *const *watch;
	size_t watch_n;
	int64_t real_offset_ns;
	const struct clock_state *clock; /* may be NULL: unknown */
	struct action_target target;	 /* borrowed descriptors */
	struct hold_policy hold;
	bool dry_run;		     /* actions are told, not done */
	struct redaction *redaction; /* borrowed; NULL = secrets are recorded */
	struct journal *journal;     /* borrowed; NULL = events are judged but not kept */
};

/* Why a session ended, as far as the pipeline decided it. */
enum session_verdict {
	SESSION_UNDECIDED,
	SESSION_KILLED_BY_RULE,
	SESSION_OOM,
	SESSION_KILLED_BY_OPERATOR,
	SESSION_KILLED_FROZEN,	   /* by an operator's freeze whose time ran out */
	SESSION_KILLED_FOR_RECORD, /* it could not be written, and the policy is to kill */
	SESSION_KILLED_FOR_EVENTS, /* more than the rings could take, and the policy is to kill */
};

struct session_stats {
	uint64_t events, alerts, actions, gaps /* events lost */, gap_events;
	uint64_t by_kind[64]; /* index = position in event_kinds[] */
	uint32_t limits;      /* bit n: enum wire_limit n was hit */
	enum session_verdict verdict;
	char rule[128];	 /* that killed it */
	char action[16]; /* "kill" */
	bool expired;	 /* killed because nobody came in time to a stopped sandbox */
	uint64_t
		kill_latency_ns; /* from the act to the sandbox seen empty; 0 = not killed by a rule */
	int journal_error;	 /* last errno from the journal, 0 = none */
};

/* `rules` is borrowed and compiled; NULL = none. */
int pipeline_new(struct pipeline **ret, const struct ruleset *rules);
void pipeline_free(struct pipeline *p);

int pipeline_session_add(struct pipeline *p, const struct session_options *opt);
void pipeline_session_remove(struct pipeline *p, uint32_t sandbox_id);
int pipeline_session_stats(const struct pipeline *p, uint32_t sandbox_id,
			   struct session_stats *ret);
/* One JSON object for the seal: events by kind, gaps, alerts. */
int pipeline_session_summary(const struct pipeline *p, uint32_t sandbox_id, struct buf *out);

/* One record through every stage. Never fails because of what is in the record; one that memory does
 * not suffice for becomes part of a gap. */
int pipeline_feed(struct pipeline *p, const void *rec, size_t len);
/* End of a turn: sessions with new alerts are committed. Returns how many were. */
size_t pipeline_end_turn(struct pipeline *p);
/* Losses become gap events of their session, or of every session when that is not known. */
void pipeline_gaps(struct pipeline *p, const struct capture_gap *gaps, size_t n);
/* An event about the audit itself (audit.start, audit.degraded ...). */
int pipeline_audit(struct pipeline *p, uint32_t sandbox_id, enum wire_kind kind, const char *text,
		   const struct str *degraded, size_t degraded_n);

/* Judge by another compiled set from the next event on; the old one is the caller's to free. What the
 * sessions' rules remember goes along where it can, *ret_kept rules of all sessions. -ENOMEM: the old set
 * stays, nothing has changed. */
int pipeline_set_rules(struct pipeline *p, const struct ruleset *rules, size_t *ret_kept);

/* What of the terminal's recording is on disk: binds it into the events' chain. Tell all marks, in order. */
int pipeline_terminal(struct pipeline *p, uint32_t sandbox_id, const struct terminal_mark *mark);
/* So many places of the next event were redacted already: what it is about. */
void pipeline_redacted(struct pipeline *p, uint32_t sandbox_id, uint64_t places);
/* audit.rules: what became of rules that were to be loaded. rule.set is the set in force. */
int pipeline_rules_event(struct pipeline *p, uint32_t sandbox_id, bool ok, const char *text);

/* ---- what an operator asks for, and what is due ---- */

enum pipeline_order {
	ORDER_APPROVE, /* the question: let the sandbox go on */
	ORDER_DENY,    /* the question: kill it */
	ORDER_FREEZE,
	ORDER_THAW, /* a freeze; questions stay */
	ORDER_KILL,
};

/* Carries it out and journals it with who asked ("uid 0, pid 7"). `id`: of APPROVE and DENY. `reply` gets a
 * line for the operator. 0, -ENOENT (no such question, not frozen), -ESRCH (killed already). */
int pipeline_order(struct pipeline *p, uint32_t sandbox_id, enum pipeline_order what, uint32_t id,
		   const char *who, char *reply, size_t reply_n);
/* Tell who asks for one more command ("exec"), or joins the first ("attach"): an action of an operator. -ESRCH. */
int pipeline_asked(struct pipeline *p, uint32_t sandbox_id, const char *what, const char *who);
/* Answer questions and end freezes whose time is over. */
void pipeline_tick(struct pipeline *p);
/* CLOCK_MONOTONIC ns of what is due next; UINT64_MAX = nothing. */
uint64_t pipeline_deadline(const struct pipeline *p);
/* No rule and no operator wants it to stand still. */
bool pipeline_may_go_on(const struct pipeline *p, uint32_t sandbox_id);
/* Is it stopped, and by what? `fn` is called for each open question. Sets *ret_changed when that differs from
 * the last call. */
typedef void (*pipeline_hold_fn)(void *arg, const struct hold *h);
/* A freeze of it, besides the questions: by which rule ("" = an operator) and until when it will be killed
 * (CLOCK_MONOTONIC; UINT64_MAX = never). False: there is none. */
bool pipeline_freeze(const struct pipeline *p, uint32_t sandbox_id, const char **ret_rule,
		     uint64_t *ret_deadline_ns);
bool pipeline_is_stopped(struct pipeline *p, uint32_t sandbox_id, bool *ret_changed,
			 pipeline_hold_fn fn, void *arg);

struct pipeline_counters {
	uint64_t fed, emitted, unattributed /* no such sandbox */, rule_overflow;
};
void pipeline_counters(const struct pipeline *p, struct pipeline_counters *ret);

#endif
