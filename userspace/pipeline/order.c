// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/order.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"

#define WAIT_MS 2000 /* to see an order carried out */

static const char *const verbs[] = {
	[ORDER_APPROVE] = "approved", [ORDER_DENY] = "denied", [ORDER_FREEZE] = "freeze",
	[ORDER_THAW] = "thaw",	      [ORDER_KILL] = "kill",
};

static void __attribute__((format(printf, 2, 3))) say(const struct order *o, const char *fmt, ...)
{
	va_list ap;

	if (!o->reply)
		return;
	va_start(ap, fmt);
	vsnprintf(o->reply, o->reply_n, fmt, ap);
	va_end(ap);
}

/* The record of the decision: an answer (approval) or an act of the operator's own (action). */
static void tell(struct session *s, const struct order *o, const struct hold *h,
		 const struct action_report *report, struct arena *arena, struct buf *json)
{
	struct event *ev = arena_alloc(arena, sizeof(*ev));
	const char *how = o->who ? "" : h ? "timeout: by default " : "timeout: ";

	if (!ev) {
		session_lose(s, 1, report->done_ns, report->done_ns);
		return;
	}
	event_init(ev, h ? WIRE_APPROVAL : WIRE_ACTION, arena);
	session_fill(s, ev, report->done_ns);
	event_set_strz(ev, F_ACTION_TYPE, h ? "hold" : verbs[o->what]);
	event_set_strz(ev, F_ACTION_SCOPE, "sandbox");
	event_set_strz(ev, F_ACTION_BY, o->who ? "operator" : "timeout");
	if (o->who)
		event_set_str(ev, F_ACTION_WHO, arena_strndup(arena, o->who, strlen(o->who)));
	if (o->rule_set)
		event_set_strz(ev, F_RULE_SET, o->rule_set);
	if (h) {
		event_set_str(ev, F_ACTION_ID, hold_name(s->id, h->id, arena));
		event_set_str(ev, F_RULE_NAME, arena_strndup(arena, h->rule, strlen(h->rule)));
		event_set_strz(ev, F_RULE_ACTION, rule_action_name(RULE_ACT_HOLD));
		event_set_str(ev, F_RULE_TRIGGER,
			      arena_strndup(arena, h->trigger, strlen(h->trigger)));
		event_set_str(ev, F_ACTION_RESULT,
			      arena_printf(arena, "%s%s; %s", how, verbs[o->what], report->text));
		event_set_u64(ev, F_ACTION_LATENCY, report->done_ns - h->asked_ns);
	} else {
		event_set_str(ev, F_ACTION_RESULT, arena_printf(arena, "%s%s", how, report->text));
	}
	if (session_emit(s, ev, json) == 0)
		s->stats.actions++;
	session_commit(s);
}

static void kill_for(struct session *s, const struct order *o, const char *rule,
		     struct action_report *report)
{
	action_kill_sandbox(&s->target, WAIT_MS, report);
	s->stats.verdict = *rule    ? SESSION_KILLED_BY_RULE
			   : o->who ? SESSION_KILLED_BY_OPERATOR
				    : SESSION_KILLED_FROZEN;
	s->stats.expired = !o->who;
	snprintf(s->stats.rule, sizeof(s->stats.rule), "%s", rule);
	snprintf(s->stats.action, sizeof(s->stats.action), "kill");
	s->holds.n = 0;
	s->holds.frozen = false;
	s->holds.changed = true;
}

/* Of two who answer at once, one is late: he has to know what the answer was. */
static void say_answered(const struct session *s, const struct order *o)
{
	const struct hold_answer *a = hold_answered(&s->holds, o->id);

	if (!a)
		say(o, "no such question is open");
	else
		say(o, "it was answered already: %s by %s", a->approved ? "approved" : "denied",
		    *a->who ? a->who : "default, nobody answered in time");
}

static int answer(struct session *s, const struct order *o, struct arena *arena, struct buf *json)
{
	struct action_report report = { 0 };
	struct hold h;

	if (hold_take(&s->holds, o->id, &h) < 0) {
		say_answered(s, o);
		return -ENOENT;
	}
	hold_note_answer(&s->holds, h.id, o->what == ORDER_APPROVE, o->who);
	if (o->what == ORDER_APPROVE)
		hold_release(&s->holds, WAIT_MS, &s->target, &report);
	else
		kill_for(s, o, h.rule, &report);
	tell(s, o, &h, &report, arena, json);
	say(o, "%s: %s (rule '%s'): %s", verbs[o->what],
	    o->what == ORDER_APPROVE ? "the sandbox goes on" : "the sandbox is killed", h.rule,
	    report.text);
	return 0;
}

static int act(struct session *s, const struct order *o, struct arena *arena, struct buf *json)
{
	struct action_report report = { 0 };
	char rule[sizeof(s->holds.freeze_rule)];

	switch (o->what) {
	case ORDER_FREEZE:
		if (!hold_freeze(&s->holds, "", WAIT_MS, &s->target, &report)) {
			say(o, "it is frozen already");
			return -EALREADY;
		}
		break;
	case ORDER_THAW:
		if (!s->holds.frozen) {
			say(o, s->holds.n ? "it waits for an answer: warder approve or deny"
					  : "it is not frozen");
			return -ENOENT;
		}
		s->holds.frozen = false;
		hold_release(&s->holds, WAIT_MS, &s->target, &report);
		break;
	default: /* a freeze that nobody came to: for the rule that asked for it, if one did */
		snprintf(rule, sizeof(rule), "%s", o->who ? "" : s->holds.freeze_rule);
		kill_for(s, o, rule, &report);
		break;
	}
	tell(s, o, NULL, &report, arena, json);
	say(o, "%s: %s", verbs[o->what], report.text);
	return 0;
}

int order_carry_out(struct session *s, const struct order *o, struct arena *arena, struct buf *json)
{
	if (s->stats.verdict != SESSION_UNDECIDED) {
		if (o->what <= ORDER_DENY && hold_answered(&s->holds, o->id))
			say_answered(s, o);
		else
			say(o, "it was killed already");
		return -ESRCH;
	}
	if (o->what == ORDER_APPROVE || o->what == ORDER_DENY)
		return answer(s, o, arena, json);
	return act(s, o, arena, json);
}

void order_expire(struct session *s, uint64_t now, const char *rule_set, struct arena *arena,
		  struct buf *json)
{
	struct order o = { .rule_set = rule_set };

	o.what = s->holds.policy.approve ? ORDER_APPROVE : ORDER_DENY;
	while (s->stats.verdict == SESSION_UNDECIDED && hold_expired(&s->holds, now, &o.id))
		answer(s, &o, arena, json);
	if (s->stats.verdict != SESSION_UNDECIDED || !hold_freeze_expired(&s->holds, now))
		return;
	o.what = ORDER_KILL;
	act(s, &o, arena, json);
}
