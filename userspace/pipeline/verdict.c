// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/verdict.h"

#include <stdio.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"

/* How long one turn may wait to see the sandbox empty, or still: on a busy machine that takes more than the usual
 * millisecond, and what is being stopped makes no events meanwhile. */
#define KILL_WAIT_MS 2000
/* An alert repeats its evidence, but not a whole argument list of this size. */
#define ALERT_ARGS_MAX	4096
#define RULE_OUTPUT_MAX (64 * 1024)

/* ---- what the kernel did ---- */

static bool was_denied(const struct event *ev)
{
	return ev->hdr.enforced && ev->hdr.flags & WIRE_F_DENIED;
}

static bool was_killed(const struct event *ev)
{
	return ev->hdr.flags & WIRE_F_KILLED &&
	       (ev->hdr.enforced || event_u64(ev, F_ESCAPE_KILLED));
}

void verdict_attribute(const struct ruleset *rules, const struct event *ev, struct rule_matches *m)
{
	const struct rule_info *r;

	if (!ev->hdr.enforced || !(ev->hdr.flags & (WIRE_F_DENIED | WIRE_F_KILLED)))
		return;
	r = ruleset_get(rules, ev->hdr.enforced - 1u);
	if (!r || (r->action != RULE_ACT_DENY && r->action != RULE_ACT_KILL))
		return;
	for (size_t i = 0; i < m->n; i++)
		if (m->v[i] == r)
			return;
	if (m->n == RULE_MATCH_MAX) { /* in place of the last, an alert */
		m->n--;
		m->more++;
	}
	memmove(m->v + 1, m->v, m->n * sizeof(*m->v));
	m->v[0] = r;
	m->n++;
}

/* ---- acting ---- */

static bool is_dry(const struct session *s, const struct rule_info *r)
{
	return r->dry_run || s->dry_run;
}

/* The act has happened, or may still: it was not refused to the program. */
static bool is_done(const struct event *ev)
{
	struct str o = event_str(ev, F_OUTCOME);

	return !str_eqz(o, "denied") && !str_eqz(o, "failure");
}

/* Larger is graver; 0 = nothing to do. */
static int gravity(const struct session *s, const struct event *ev, const struct rule_info *r)
{
	bool sandbox = r->scope == RULE_SCOPE_SANDBOX;

	if (is_dry(s, r))
		return 0;
	switch (r->action) {
	case RULE_ACT_KILL:
		return sandbox ? 5 : 2;
	case RULE_ACT_DENY: /* settled for less, where it could not be denied */
		return r->deny_fallback && !was_denied(ev) && is_done(ev) ? sandbox ? 5 : 2 : 0;
	case RULE_ACT_HOLD:
		return 4;
	case RULE_ACT_FREEZE:
		return 3;
	default:
		return 0;
	}
}

static void kill_sandbox(struct session *s, struct verdict *v)
{
	action_kill_sandbox(&s->target, KILL_WAIT_MS, &v->report);
	v->act = RULE_ACT_KILL;
	s->stats.verdict = v->rule ? SESSION_KILLED_BY_RULE : SESSION_OOM;
	s->holds.n = 0; /* nobody has to answer any more */
	s->holds.frozen = false;
	s->holds.changed = true;
}

static void kill_process(struct session *s, const struct event *ev, struct verdict *v)
{
	v->act = RULE_ACT_KILL;
	v->scope = RULE_SCOPE_PROCESS;
	v->by_kernel = was_killed(ev);
	/* It may do more before the signal reaches it: once is enough. */
	v->acted = s->killed_tgid != ev->hdr.tgid || s->killed_start != ev->hdr.start;
	if (!v->acted)
		return;
	s->killed_tgid = ev->hdr.tgid;
	s->killed_start = ev->hdr.start;
	if (v->by_kernel)
		v->report = (struct action_report){ .done_ns = ev->hdr.ts, .text = "done" };
	else
		action_kill_process(&s->target, ev->hdr.tgid, ev->hdr.start, KILL_WAIT_MS,
				    &v->report);
}

static void stop_sandbox(struct session *s, struct verdict *v)
{
	v->act = v->rule->action;
	if (v->act == RULE_ACT_HOLD) {
		v->hold_id = hold_add(&s->holds, v->rule, KILL_WAIT_MS, &s->target, &v->report);
		v->acted = v->hold_id != 0; /* one question about a rule at a time */
		return;
	}
	v->acted = hold_freeze(&s->holds, v->rule->name, KILL_WAIT_MS, &s->target, &v->report);
}

void verdict_act(struct session *s, const struct event *ev, const struct rule_matches *m,
		 struct verdict *ret)
{
	int best = 0;

	*ret = (struct verdict){ .scope = RULE_SCOPE_SANDBOX };
	for (size_t i = 0; i < m->n; i++) {
		int g = gravity(s, ev, m->v[i]);

		if (g > best) {
			best = g;
			ret->rule = m->v[i];
		}
	}
	if (!ret->rule && ev->kind != WIRE_OOM)
		return;
	if (s->stats.verdict != SESSION_UNDECIDED)
		return; /* already dead: further matches are alerts */
	ret->acted = true;
	if (!ret->rule || best == 5)
		kill_sandbox(s, ret);
	else if (best == 2)
		kill_process(s, ev, ret);
	else
		stop_sandbox(s, ret);
	if (!ret->acted)
		return;
	snprintf(s->stats.rule, sizeof(s->stats.rule), "%s", ret->rule ? ret->rule->name : "");
	snprintf(s->stats.action, sizeof(s->stats.action), "%s", rule_action_name(ret->act));
}

/* ---- telling ---- */

/* What became of the act, of a rule that asks for more than an alert. */
static const char *enforced_text(const struct session *s, const struct event *ev,
				 const struct rule_info *r)
{
	static const char *const dry[] = {
		[RULE_ACT_DENY] = "dry-run: would be denied",
		[RULE_ACT_KILL] = "dry-run: would kill",
		[RULE_ACT_FREEZE] = "dry-run: would freeze",
		[RULE_ACT_HOLD] = "dry-run: would hold",
	};

	if (r->action == RULE_ACT_ALERT)
		return NULL;
	if (is_dry(s, r))
		return dry[r->action];
	if (was_denied(ev))
		return "prevented";
	if ((r->action == RULE_ACT_KILL || r->deny_fallback) && was_killed(ev))
		return "killed-before-return";
	if (gravity(s, ev, r) >= 5 || (gravity(s, ev, r) == 2 && r->action != RULE_ACT_FREEZE))
		return "killed-after";
	if (r->action == RULE_ACT_DENY)
		return is_done(ev) ? "not-prevented" : "failed-anyway";
	return r->action == RULE_ACT_HOLD ? "held" : "frozen";
}

void verdict_copy_evidence(struct event *to, const struct event *from)
{
	static const enum field_id own[] = { F_V,	   F_ID,	 F_SEQ,
					     F_KIND,	   F_VANTAGE,	 F_PROC_ANCESTORS,
					     F_REDACTIONS, F_PROC_PARGS, F_DEGRADED };
	uint64_t skip[EVENT_PRESENT_WORDS] = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		skip[own[i] / 64] |= (uint64_t)1 << (own[i] % 64);
	if (event_u64(from, F_PROC_ARGS_LEN) > ALERT_ARGS_MAX)
		skip[F_PROC_ARGS / 64] |= (uint64_t)1 << (F_PROC_ARGS % 64);
	for (int f = 0; f < F_COUNT; f++) {
		if (!event_has(from, (enum field_id)f) || (skip[f / 64] >> (f % 64) & 1))
			continue;
		to->v[f] = from->v[f];
		event_mark(to, (enum field_id)f);
	}
}

static void fill_rule(struct event *ev, const struct event *trigger, const struct rule_info *r,
		      const char *enforced, const char *ruleset_hash)
{
	event_set_str(ev, F_RULE_TRIGGER, event_str(trigger, F_ID));
	event_set_str(ev, F_RULE_TRIGGER_KIND, event_str(trigger, F_KIND));
	if (ruleset_hash)
		event_set_strz(ev, F_RULE_SET, ruleset_hash);
	if (!r)
		return;
	if (enforced)
		event_set_strz(ev, F_RULE_ENFORCED, enforced);
	event_set_strz(ev, F_RULE_NAME, r->name);
	event_set_strz(ev, F_RULE_PRIORITY, rule_priority_name(r->priority));
	event_set_strz(ev, F_RULE_ACTION, rule_action_name(r->action));
	if (r->tags_n)
		event_set_list(ev, F_RULE_TAGS, r->tags, r->tags_n);
	if (r->attack_n)
		event_set_list(ev, F_RULE_ATTACK, r->attack, r->attack_n);
}

/* `held`: alerts of this rule that its throttle held back before this one. */
static void emit_alert(struct session *s, const struct event *trigger, const struct rule_info *r,
		       uint64_t held, const char *ruleset_hash, struct buf *json)
{
	struct event *ev = arena_alloc(trigger->arena, sizeof(*ev));
	struct buf text;

	if (!ev) {
		session_lose(s, 1, event_u64(trigger, F_MONO), event_u64(trigger, F_MONO));
		return;
	}
	event_init(ev, WIRE_RULE_ALERT, trigger->arena);
	verdict_copy_evidence(ev, trigger);
	event_set_strz(ev, F_VANTAGE, "agent");
	fill_rule(ev, trigger, r, enforced_text(s, trigger, r), ruleset_hash);
	if (held)
		event_set_u64(ev, F_RULE_SUPPRESSED, held);
	buf_init(&text, RULE_OUTPUT_MAX);
	if (rule_format_output(r, trigger, &text) == 0)
		event_set_str(ev, F_RULE_OUTPUT, arena_strndup(trigger->arena, text.p, text.n));
	buf_reset(&text);
	if (rule_format_fields(r, trigger, &text) > 0)
		event_set_str(ev, F_RULE_OUTPUT_FIELDS,
			      arena_strndup(trigger->arena, text.p, text.n));
	buf_done(&text);
	if (session_emit(s, ev, json) == 0)
		s->stats.alerts++;
}

static void emit_action(struct session *s, const struct event *trigger, const struct verdict *v,
			const char *ruleset_hash, struct buf *json)
{
	struct event *ev = arena_alloc(trigger->arena, sizeof(*ev));
	uint64_t since = event_u64(trigger, F_MONO);

	if (!ev) {
		session_lose(s, 1, since, since);
		return;
	}
	event_init(ev, WIRE_ACTION, trigger->arena);
	verdict_copy_evidence(ev, trigger);
	session_fill(s, ev, v->report.done_ns);
	fill_rule(ev, trigger, v->rule, v->rule ? enforced_text(s, trigger, v->rule) : NULL,
		  ruleset_hash);
	event_set_strz(ev, F_ACTION_TYPE, rule_action_name(v->act));
	event_set_strz(ev, F_ACTION_SCOPE, v->scope == RULE_SCOPE_PROCESS ? "process" : "sandbox");
	event_set_strz(ev, F_ACTION_BY, v->by_kernel ? "kernel" : "agent");
	if (v->hold_id)
		event_set_str(ev, F_ACTION_ID, hold_name(s->id, v->hold_id, ev->arena));
	event_set_strz(ev, F_ACTION_RESULT, v->report.text);
	if (v->report.done_ns > since)
		event_set_u64(ev, F_ACTION_LATENCY, v->report.done_ns - since);
	if (v->act == RULE_ACT_KILL && v->rule && v->scope == RULE_SCOPE_SANDBOX &&
	    v->report.outcome == ACTION_DONE)
		s->stats.kill_latency_ns = event_u64(ev, F_ACTION_LATENCY);
	if (session_emit(s, ev, json) == 0)
		s->stats.actions++;
}

void verdict_emit(struct session *s, const struct event *ev, const struct rule_matches *m,
		  const struct verdict *v, const char *ruleset_hash, struct buf *json)
{
	/* What fails here was counted as lost by session_emit; the other alerts still go out. */
	for (size_t i = 0; i < m->n; i++) {
		uint64_t held;

		if (rule_memory_throttle(s->memory, m->v[i], ev, &held))
			continue; /* counted; the event itself is in the record */
		emit_alert(s, ev, m->v[i], held, ruleset_hash, json);
		s->alerted = true;
	}
	if (v->hold_id)
		hold_set_trigger(&s->holds, v->hold_id, event_str(ev, F_ID));
	if (v->acted)
		emit_action(s, ev, v, ruleset_hash, json);
	/* A decision is on disk before anything else happens; alerts are by the end of the turn, one
	 * commit for all: a flood of them must not slow the drain to the speed of the disk. */
	if (v->acted)
		session_commit(s);
}
