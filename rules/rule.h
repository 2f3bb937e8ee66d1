/* SPDX-License-Identifier: Apache-2.0 */
/* Falco's rule language over our events, with Warder's own keys. Build once, evaluate without
 * allocating, all matching rules fire. */
#ifndef WARDER_RULES_RULE_H
#define WARDER_RULES_RULE_H

#include <stdio.h>
#include "userspace/event/event.h"

struct ruleset;

enum rule_priority { /* syslog order: lower is graver */
		     RULE_EMERGENCY,
		     RULE_ALERT,
		     RULE_CRITICAL,
		     RULE_ERROR,
		     RULE_WARNING,
		     RULE_NOTICE,
		     RULE_INFORMATIONAL,
		     RULE_DEBUG,
};

enum rule_action { RULE_ACT_ALERT, RULE_ACT_DENY, RULE_ACT_KILL, RULE_ACT_FREEZE, RULE_ACT_HOLD };
enum rule_scope { RULE_SCOPE_SANDBOX, RULE_SCOPE_PROCESS };
enum rule_state { RULE_LOADED, RULE_DEGRADED, RULE_REFUSED, RULE_DISABLED };

enum rule_for { RULE_FOR_BACKEND, RULE_FOR_TIER, RULE_FOR_TENANT, RULE_FOR_POLICY, RULE_FOR_KEYS };

#define RULE_MATCH_MAX 64 /* rules that can fire on one event; more are counted in `more` */

struct rule_info {
	const char *name;
	const char *desc;
	enum rule_priority priority;
	enum rule_action action;
	enum rule_scope scope;
	enum rule_state state;
	bool dry_run;	      /* the verdict says what would have been done, and nothing is */
	bool deny_fallback;   /* what cannot be denied is killed for */
	uint64_t throttle_ns; /* 0 = none: at most one alert in this time; never for actions */
	struct {
		const struct str *v; /* patterns; n == 0: any */
		size_t n;
	} only[RULE_FOR_KEYS]; /* `for`: sandboxes that the rule is for */
	const char *why;       /* degraded: the absent field; refused: the reason */
	const struct str *tags;
	size_t tags_n;
	const struct str *attack;
	size_t attack_n;
	const char *file;
	int line;
};

struct rule_matches {
	const struct rule_info *v[RULE_MATCH_MAX];
	size_t n;
	size_t more;
};

/* A rule file error: where, what, and a hint. */
struct rule_diag {
	char file[256];
	unsigned source; /* number of the file in load order */
	int line, col;	 /* from 1; 0 = whole file */
	bool warning;
	char text[512];
};

typedef void (*rule_diag_fn)(void *arg, const struct rule_diag *d);

/* Empty set; `fn` hears each error and warning (may be NULL). */
int ruleset_new(struct ruleset **ret, rule_diag_fn fn, void *arg);
void ruleset_free(struct ruleset *rs);
/* Files in load order; later ones may override and append. -EINVAL when the file has errors, all of
 * which went to `fn`; the first one is in `err` as "file:line:col: message". */
int ruleset_add_file(struct ruleset *rs, const char *path, struct err *err);
int ruleset_add_text(struct ruleset *rs, const char *file, struct str text, struct err *err);
/* Lists and macros for others to use: not told when nobody does, nor when one is replaced. */
int ruleset_add_library(struct ruleset *rs, const char *name, struct str text, struct err *err);
/* What the caller can do: a bit an action (1 << RULE_ACT_KILL ...). An enabled rule that asks for
 * another one is an error of its file. Before ruleset_compile; default: all. */
void ruleset_allow_actions(struct ruleset *rs, unsigned actions);
/* The caller judges with ruleset_judge: rules that count or order events are allowed. Without it they
 * are errors. Before ruleset_compile. */
void ruleset_allow_state(struct ruleset *rs);
/* Bind names, check types, compile. After this the set is read-only and can be shared by threads. */
int ruleset_compile(struct ruleset *rs, struct err *err);

/* Which rules match: those with an action first, so that no number of alerts can hide one. Allocates
 * nothing (after a thread's first event). Returns the number. */
size_t ruleset_eval(const struct ruleset *rs, const struct event *ev, struct rule_matches *ret);
/* What the rules remember of one sandbox: made with it, given with each of its events, of one thread. The
 * set must outlive it. `evicted`: counters of `by` that were forgotten within their time because there were too many,
 * since it was last asked. */
struct rule_memory;
int rule_memory_new(struct rule_memory **ret, const struct ruleset *rs);
void rule_memory_free(struct rule_memory *st);
uint64_t rule_memory_evicted(struct rule_memory *st);
/* What a sandbox is, for `for`: from now on rules that are for others do not fire here. NULL is what no
 * rule is for. Without this all do. */
struct rule_session {
	const char *backend, *tier, *tenant;
	const char *policy; /* hash of the plan, as in run.policy */
};
void rule_memory_set_session(struct rule_memory *st, const struct ruleset *rs,
			     const struct rule_session *s);
bool rule_applies(const struct rule_info *r, const struct rule_session *s);
/* As far as one key says. */
bool rule_applies_to(const struct rule_info *r, enum rule_for key, const char *is);
/* Is the alert of `r` for `ev` one that its `throttle` holds back? If not, *ret_held: how many were since
 * the one told last. Asked once an alert. */
bool rule_memory_throttle(struct rule_memory *st, const struct rule_info *r, const struct event *ev,
			  uint64_t *ret_held);
/* Alerts that were held back and not told since, by rule; they count as told then. */
typedef void (*rule_untold_fn)(void *arg, const struct rule_info *r, uint64_t held);
void rule_memory_untold(struct rule_memory *st, const struct ruleset *rs, rule_untold_fn fn,
			void *arg);
/* A new set for a running sandbox: what `from` remembers of rules that mean the same in both sets goes
 * into `to`, which is fresh. Returns how many rules that count or order events went on so. */
size_t rule_memory_carry(struct rule_memory *to, const struct ruleset *to_rs,
			 struct rule_memory *from, const struct ruleset *from_rs);
/* As ruleset_eval, which leaves out rules that count or order events. */
size_t ruleset_judge(const struct ruleset *rs, struct rule_memory *st, const struct event *ev,
		     struct rule_matches *ret);
/* The rule's `output` with fields filled in, at most `max` bytes. */
int rule_format_output(const struct rule_info *r, const struct event *ev, struct buf *out);
/* The fields that the output names as one JSON object, {"proc.name":"sh","fd.sport":443}: null = absent, texts and
 * lists cut at RULE_FIELD_MAX bytes, what does not fit into `out` left out. Returns their number. */
#define RULE_FIELD_MAX 4096
int rule_format_fields(const struct rule_info *r, const struct event *ev, struct buf *out);

/* Fixtures: JSON events as event_to_json writes them, one a line, each behind comment lines
 *   # fires: Rule A; Rule B     exactly these rules fire (none without this line)
 *   # near: Rule C              a near miss: this rule exists and does not fire
 *   # repeat: 20                the event happens so often, {i} in it is the number; the above is
 *                               said of the last one
 *   # sandbox                   from here on another sandbox: nothing is remembered
 * Every difference is told to `fn` with its line. Returns the number of failed events, with
 * *ret_events the number tried; -EINVAL when the file is no fixture file. */
int ruleset_test(const struct ruleset *rs, const char *file, struct str text, rule_diag_fn fn,
		 void *arg, size_t *ret_events, struct err *err);

/* A bare condition ("kind = exec and proc.exe startswith /tmp/"), for --filter. */
struct rule_filter;
int rule_filter_new(struct rule_filter **ret, struct str text, struct err *err);
void rule_filter_free(struct rule_filter *f);
bool rule_filter_match(const struct rule_filter *f, const struct event *ev);

size_t ruleset_count(const struct ruleset *rs);
const struct rule_info *ruleset_get(const struct ruleset *rs, size_t i);
/* Lower-case hex SHA-256 over the sources in load order. */
const char *ruleset_hash(const struct ruleset *rs);
/* Does a rule that can fire look at a field whose name begins so ("usage.")? */
bool ruleset_uses(const struct ruleset *rs, const char *prefix);
/* Push-down: escape types (bit n = enum wire_escape_type n) that some enabled kill rule kills for
 * whatever process does it: provably implied by the rule's condition. */
uint64_t ruleset_kernel_kill_escapes(const struct ruleset *rs);
const char *rule_priority_name(enum rule_priority p);
const char *rule_action_name(enum rule_action a);
/* Names of Falco's that rules may use besides the schema's (event_fields). False behind the last one. */
struct rule_field {
	const char *name, *type, *doc; /* doc may be NULL */
	bool takes_arg;		       /* name[2] */
	bool absent;		       /* accepted, never present */
	bool partial;		       /* present for some values only, see doc */
};
bool rule_falco_field(size_t i, struct rule_field *ret);
/* The default packs, built into the binary. */
struct rule_pack {
	const char *name;
	struct str text;
};
#define RULE_PACK_MACROS "macros" /* the one that is a library: for rule files written for Falco */
extern const struct rule_pack rule_packs[];
extern const size_t rule_packs_n;

/* The i-th name that conditions may use for an event's own field besides the field's name (proc.name). 1; 0: this
 * one is computed or is a field's own name too; negative: behind the last. */
int rule_field_alias(size_t i, const char **ret_name, enum field_id *ret_field);

#endif
