// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/verdict.h"

#include <stdio.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"

/* How long one turn may wait to see the sandbox empty. */
#define KILL_WAIT_MS 250
/* An alert repeats its evidence, but not a whole argument list of this size. */
#define ALERT_ARGS_MAX	4096
#define RULE_OUTPUT_MAX (64 * 1024)

void verdict_act(struct session *s, const struct event *ev, const struct rule_matches *m,
		 struct verdict *ret)
{
	const struct rule_info *rule = NULL;

	*ret = (struct verdict){ 0 };
	for (size_t i = 0; i < m->n && !rule; i++)
		if (m->v[i]->action == RULE_ACT_KILL)
			rule = m->v[i];
	if (!rule && ev->kind != WIRE_OOM)
		return;
	if (s->stats.verdict != SESSION_UNDECIDED)
		return; /* already dead: further matches are alerts */
	action_kill_sandbox(&s->target, KILL_WAIT_MS, &ret->report);
	ret->acted = true;
	ret->rule = rule;
	s->stats.verdict = rule ? SESSION_KILLED_BY_RULE : SESSION_OOM;
	snprintf(s->stats.rule, sizeof(s->stats.rule), "%s", rule ? rule->name : "");
	snprintf(s->stats.action, sizeof(s->stats.action), "kill");
}

void verdict_copy_evidence(struct event *to, const struct event *from)
{
	static const enum field_id own[] = { F_V,	   F_ID,      F_SEQ,
					     F_KIND,	   F_VANTAGE, F_PROC_ANCESTORS,
					     F_PROC_PARGS, F_DEGRADED };
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
		      const char *ruleset_hash)
{
	event_set_str(ev, F_RULE_TRIGGER, event_str(trigger, F_ID));
	event_set_str(ev, F_RULE_TRIGGER_KIND, event_str(trigger, F_KIND));
	if (ruleset_hash)
		event_set_strz(ev, F_RULE_SET, ruleset_hash);
	if (!r)
		return;
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
	fill_rule(ev, trigger, r, ruleset_hash);
	if (held)
		event_set_u64(ev, F_RULE_SUPPRESSED, held);
	buf_init(&text, RULE_OUTPUT_MAX);
	if (rule_format_output(r, trigger, &text) == 0)
		event_set_str(ev, F_RULE_OUTPUT, arena_strndup(trigger->arena, text.p, text.n));
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
	fill_rule(ev, trigger, v->rule, ruleset_hash);
	event_set_strz(ev, F_ACTION_TYPE, "kill");
	event_set_strz(ev, F_ACTION_SCOPE, "sandbox");
	event_set_strz(ev, F_ACTION_BY, "agent");
	event_set_strz(ev, F_ACTION_RESULT, v->report.text);
	if (v->report.done_ns > since)
		event_set_u64(ev, F_ACTION_LATENCY, v->report.done_ns - since);
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
	if (v->acted)
		emit_action(s, ev, v, ruleset_hash, json);
	/* A decision is on disk before anything else happens; alerts are by the end of the turn, one
	 * commit for all: a flood of them must not slow the drain to the speed of the disk. */
	if (v->acted)
		session_commit(s);
}
