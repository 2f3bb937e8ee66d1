// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/enrich/enrich.h"
#include "userspace/event/decode.h"
#include "userspace/pipeline/order.h"
#include "userspace/pipeline/session.h"
#include "userspace/pipeline/verdict.h"
#include "userspace/store/chain.h"

/* One event and the alerts it causes must fit: argv of 128 KiB, its pointers, its output texts. */
#define EVENT_ARENA_MAX (16u << 20)

struct pipeline {
	const struct ruleset *rules;
	struct decoder *decoder;
	struct enrich *enrich;
	struct arena arena;
	struct buf json;
	struct event ev;
	struct pipeline_counters counters;
	bool alerted;					 /* in this turn, by any session */
	uint32_t top;					 /* highest place there was */
	struct session *sessions[PIPELINE_SESSIONS_MAX]; /* by place, see capture_session_id() */
};

int pipeline_new(struct pipeline **ret, const struct ruleset *rules)
{
	struct pipeline *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->rules = rules;
	arena_init(&p->arena, EVENT_ARENA_MAX);
	buf_init(&p->json, 0);
	r = decoder_new(&p->decoder);
	if (r == 0)
		r = enrich_new(&p->enrich, NULL);
	if (r < 0) {
		pipeline_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

void pipeline_free(struct pipeline *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(p->sessions); i++)
		session_free(p->sessions[i]);
	decoder_free(p->decoder);
	enrich_free(p->enrich);
	arena_done(&p->arena);
	buf_done(&p->json);
	free(p);
}

static struct session *find_session(const struct pipeline *p, uint32_t id)
{
	struct session *s = p->sessions[id % PIPELINE_SESSIONS_MAX];

	return s && s->sandbox_id == id ? s : NULL;
}

/* What the session's rules remember, fresh. */
static int make_memory(struct rule_memory **ret, const struct session *s,
		       const struct ruleset *rules)
{
	const struct rule_session rs = { s->backend, s->tier, s->tenant, s->policy };
	int r;

	if (!rules)
		return 0;
	r = rule_memory_new(ret, rules);
	if (r == 0)
		rule_memory_set_session(*ret, rules, &rs);
	return r;
}

int pipeline_session_add(struct pipeline *p, const struct session_options *opt)
{
	struct enrich_session es = {
		.sandbox_id = opt->sandbox_id,
		.session = opt->session,
		.name = opt->name,
		.tenant = opt->tenant,
		.host = opt->host,
		.memory_limit = opt->memory_limit,
		.pids_limit = opt->pids_limit,
		.resolvers = opt->resolvers,
		.resolvers_n = opt->resolvers_n,
		.env_values = opt->env_values,
		.places = opt->places,
		.places_n = opt->places_n,
		.watch = opt->watch,
		.watch_n = opt->watch_n,
		.real_offset_ns = opt->real_offset_ns,
	};
	const uint32_t place = opt->sandbox_id % PIPELINE_SESSIONS_MAX;
	struct session *s;
	int r;

	if (opt->sandbox_id == 0)
		return -ERANGE;
	if (p->sessions[place])
		return -EEXIST;
	s = session_new(opt);
	if (!s)
		return -ENOMEM;
	r = make_memory(&s->memory, s, p->rules);
	if (r == 0)
		r = enrich_session_add(p->enrich, &es);
	if (r < 0) {
		session_free(s);
		return r;
	}
	p->sessions[place] = s;
	p->top = MAX(p->top, place);
	return 0;
}

void pipeline_session_remove(struct pipeline *p, uint32_t sandbox_id)
{
	struct session *s = find_session(p, sandbox_id);

	if (!s)
		return;
	enrich_session_remove(p->enrich, sandbox_id);
	session_free(s);
	p->sessions[sandbox_id % PIPELINE_SESSIONS_MAX] = NULL;
}

int pipeline_session_stats(const struct pipeline *p, uint32_t sandbox_id, struct session_stats *ret)
{
	const struct session *s = find_session(p, sandbox_id);

	if (!s)
		return -ENOENT;
	*ret = s->stats;
	return 0;
}

int pipeline_session_summary(const struct pipeline *p, uint32_t sandbox_id, struct buf *out)
{
	const struct session *s = find_session(p, sandbox_id);

	return s ? session_summary(s, out) : -ENOENT;
}

/* What only the pipeline knows of a session goes into its first record. */
static void complete_start(struct pipeline *p, const struct session *s, struct event *ev)
{
	if (s->tier[0])
		event_set_strz(ev, F_RUN_TIER, s->tier);
	if (p->rules)
		event_set_strz(ev, F_RULE_SET, ruleset_hash(p->rules));
}

/* A record that there was no memory for: part of its session's next gap event. */
static int lost_record(struct pipeline *p, const void *rec, size_t len)
{
	struct wire_hdr h;
	struct session *s;

	if (len < sizeof(h))
		return 0;
	memcpy(&h, rec, sizeof(h));
	s = find_session(p, h.sandbox);
	if (s)
		session_lose(s, 1, h.ts, h.ts);
	return 0;
}

/* Rules and the kill, by what happened; then the journal, without secrets. In this order, a kill waits for nothing. */
static void judge(struct pipeline *p, struct session *s, struct event *ev)
{
	struct rule_matches matches;
	struct verdict verdict;
	struct event *shown;

	matches.n = matches.more = 0;
	if (p->rules)
		ruleset_judge(p->rules, s->memory, ev, &matches);
	if (p->rules)
		verdict_attribute(p->rules, ev, &matches);
	p->counters.rule_overflow += matches.more;
	verdict_act(s, ev, &matches, &verdict);
	/* Packages are looked for in the event later: what is found there is redacted by itself. */
	shown = session_redact(s, ev);
	if (session_emit(s, shown, &p->json) == 0)
		p->counters.emitted++;
	verdict_emit(s, shown, &matches, &verdict, p->rules ? ruleset_hash(p->rules) : NULL,
		     &p->json);
	p->alerted |= s->alerted;
}

/* Installs that the event tells of: events of their own, behind it. */
static void tell_packages(struct pipeline *p, struct session *s, const struct event *from)
{
	struct packages found;

	packages_find(&found, &s->packages, from);
	for (size_t i = 0; i < found.n; i++) {
		struct event *ev = arena_alloc(&p->arena, sizeof(*ev));

		if (!ev) {
			session_lose(s, found.n - i, event_u64(from, F_MONO),
				     event_u64(from, F_MONO));
			return;
		}
		event_init(ev, WIRE_PACKAGE_INSTALL, &p->arena);
		verdict_copy_evidence(ev, from);
		event_set_strz(ev, F_VANTAGE, "agent");
		package_event(ev, &found.v[i]);
		if (found.more && i + 1 == found.n)
			event_set_u64(ev, F_PACKAGE_MORE, found.more);
		judge(p, s, ev);
	}
}

struct untold {
	struct pipeline *p;
	struct session *s;
};

/* An audit.rules with `text`; NULL, and told as lost, where there is no memory. */
static struct event *rules_event(struct pipeline *p, struct session *s, struct str text)
{
	struct event *ev = arena_alloc(&p->arena, sizeof(*ev));

	if (!ev || !text.p) {
		session_lose(s, 1, clock_boot_ns(), clock_boot_ns());
		return NULL;
	}
	event_init(ev, WIRE_AUDIT_RULES, &p->arena);
	session_fill(s, ev, clock_boot_ns());
	event_set_str(ev, F_AUDIT_MESSAGE, text);
	event_set_strz(ev, F_RULE_SET, ruleset_hash(p->rules));
	return ev;
}

static void emit_untold(void *arg, const struct rule_info *r, uint64_t held)
{
	const struct untold *u = arg;
	struct event *ev =
		rules_event(u->p, u->s,
			    arena_printf(&u->p->arena,
					 "%llu alerts of rule '%s' were held back by its throttle",
					 (unsigned long long)held, r->name));

	if (!ev)
		return;
	event_set_strz(ev, F_RULE_NAME, r->name);
	event_set_u64(ev, F_RULE_SUPPRESSED, held);
	session_emit(u->s, ev, &u->p->json);
}

/* What throttles hold back must not end with the session or its rules; nor that who made many values of `by` had
 * counters forgotten. */
static void tell_untold(struct pipeline *p, struct session *s)
{
	struct untold u = { p, s };
	struct event *ev;
	uint64_t n;

	if (!p->rules)
		return;
	rule_memory_untold(s->memory, p->rules, emit_untold, &u);
	n = rule_memory_evicted(s->memory);
	if (!n)
		return;
	ev = rules_event(
		p, s,
		arena_printf(&p->arena,
			     "%llu counters of rules were forgotten within their time: more "
			     "values of 'by' than are kept",
			     (unsigned long long)n));
	if (ev)
		session_emit(s, ev, &p->json);
}

/* One decoded event. */
static int process(struct pipeline *p, const void *rec, size_t len)
{
	struct event *ev = &p->ev;
	struct session *s;
	int r;

	s = find_session(p, ev->hdr.sandbox);
	if (!s) {
		p->counters.unattributed++;
		return 0;
	}
	r = enrich_apply(p->enrich, ev);
	if (r < 0 && r != -ENOENT)
		return lost_record(p, rec, len);
	if (ev->kind == WIRE_SESSION_START)
		complete_start(p, s, ev);
	else if (ev->kind == WIRE_SESSION_STOP)
		tell_untold(p, s);
	if (s->baseline)
		baseline_apply(s->baseline, ev);
	judge(p, s, ev);
	tell_packages(p, s, ev);
	return 0;
}

int pipeline_feed(struct pipeline *p, const void *rec, size_t len)
{
	int r;

	arena_reset(&p->arena);
	p->counters.fed++;
	r = decoder_feed(p->decoder, rec, len, &p->arena, &p->ev);
	while (r > 0) {
		r = process(p, rec, len);
		if (r < 0)
			return r;
		arena_reset(&p->arena);
		r = decoder_more(p->decoder, &p->arena, &p->ev);
	}
	return r < 0 ? lost_record(p, rec, len) : 0;
}

int pipeline_set_rules(struct pipeline *p, const struct ruleset *rules, size_t *ret_kept)
{
	struct rule_memory *fresh[ARRAY_SIZE(p->sessions)] = { NULL };
	size_t kept = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(p->sessions); i++)
		if (p->sessions[i])
			r = make_memory(&fresh[i], p->sessions[i], rules);
	for (size_t i = 0; i < ARRAY_SIZE(p->sessions); i++) {
		struct session *s = p->sessions[i];

		if (r < 0 || !s) {
			rule_memory_free(fresh[i]);
			continue;
		}
		arena_reset(&p->arena);
		tell_untold(p, s);
		if (p->rules && rules)
			kept += rule_memory_carry(fresh[i], rules, s->memory, p->rules);
		rule_memory_free(s->memory);
		s->memory = fresh[i];
	}
	if (r < 0)
		return r;
	p->rules = rules;
	*ret_kept = kept;
	return 0;
}

size_t pipeline_end_turn(struct pipeline *p)
{
	size_t n = 0;

	if (!p->alerted)
		return 0;
	p->alerted = false;
	for (size_t i = 0; i < ARRAY_SIZE(p->sessions); i++) {
		if (!p->sessions[i] || !p->sessions[i]->alerted)
			continue;
		session_commit(p->sessions[i]);
		n++;
	}
	return n;
}

/* Judged as well: what a policy holds of a loss is its own business, up to the kill. */
static void gap_of(struct pipeline *p, struct session *s, const struct capture_gap *g)
{
	const struct kind_def *k = event_kind_by_id(g->kind);
	struct session_lost lost = { g->count, g->first_ts, g->last_ts };
	struct event *ev;

	arena_reset(&p->arena);
	ev = session_gap(s, &p->arena, k ? k->name : "any",
			 g->guest    ? "guest"
			 : g->missed ? "hook_missed"
			 : g->rate   ? "rate"
				     : "ring_full",
			 &lost);
	if (ev)
		judge(p, s, ev);
	else
		session_lose(s, g->count, g->first_ts, g->last_ts);
	session_commit(s);
}

void pipeline_gaps(struct pipeline *p, const struct capture_gap *gaps, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct session *s = find_session(p, gaps[i].sandbox);

		if (s) {
			gap_of(p, s, &gaps[i]);
			continue;
		}
		for (size_t k = 0; k < ARRAY_SIZE(p->sessions); k++)
			if (p->sessions[k])
				gap_of(p, p->sessions[k], &gaps[i]);
	}
}

int pipeline_audit(struct pipeline *p, uint32_t sandbox_id, enum wire_kind kind, const char *text,
		   const struct str *degraded, size_t degraded_n)
{
	struct session *s = find_session(p, sandbox_id);

	if (!s)
		return -ENOENT;
	arena_reset(&p->arena);
	event_init(&p->ev, kind, &p->arena);
	session_fill(s, &p->ev, clock_boot_ns());
	event_set_strz(&p->ev, F_AUDIT_MESSAGE, text);
	if (p->rules)
		event_set_strz(&p->ev, F_RULE_SET, ruleset_hash(p->rules));
	if (degraded_n)
		event_set_list(&p->ev, F_DEGRADED, degraded, degraded_n);
	return session_emit(s, &p->ev, &p->json);
}

void pipeline_redacted(struct pipeline *p, uint32_t sandbox_id, uint64_t places)
{
	struct session *s = find_session(p, sandbox_id);

	if (s)
		s->redacted += places;
}

int pipeline_terminal(struct pipeline *p, uint32_t sandbox_id, const struct terminal_mark *mark)
{
	struct session *s = find_session(p, sandbox_id);
	char head[2 * STORE_HASH_LEN + 1];

	if (!s)
		return -ENOENT;
	hash_to_hex(head, mark->head);
	arena_reset(&p->arena);
	event_init(&p->ev, WIRE_TERMINAL, &p->arena);
	session_fill(s, &p->ev, clock_boot_ns());
	s->redacted += mark->redactions;
	event_set_u64(&p->ev, F_TERMINAL_FIRST, mark->first);
	event_set_u64(&p->ev, F_TERMINAL_LAST, mark->last);
	event_set_u64(&p->ev, F_TERMINAL_BYTES, mark->bytes);
	event_set_strz(&p->ev, F_TERMINAL_HEAD, head);
	return session_emit(s, &p->ev, &p->json);
}

int pipeline_rules_event(struct pipeline *p, uint32_t sandbox_id, bool ok, const char *text)
{
	struct session *s = find_session(p, sandbox_id);
	int r;

	if (!s)
		return -ENOENT;
	arena_reset(&p->arena);
	event_init(&p->ev, WIRE_AUDIT_RULES, &p->arena);
	session_fill(s, &p->ev, clock_boot_ns());
	event_set_strz(&p->ev, F_OUTCOME, ok ? "success" : "failure");
	event_set_strz(&p->ev, F_AUDIT_MESSAGE, text);
	if (p->rules)
		event_set_strz(&p->ev, F_RULE_SET, ruleset_hash(p->rules));
	r = session_emit(s, &p->ev, &p->json);
	session_commit(s);
	return r;
}

int pipeline_order(struct pipeline *p, uint32_t sandbox_id, enum pipeline_order what, uint32_t id,
		   const char *who, char *reply, size_t reply_n)
{
	struct session *s = find_session(p, sandbox_id);
	struct order o = {
		.what = what,
		.id = id,
		.who = who,
		.reply = reply,
		.reply_n = reply_n,
		.rule_set = p->rules ? ruleset_hash(p->rules) : NULL,
	};

	if (!s)
		return -ESRCH;
	arena_reset(&p->arena);
	return order_carry_out(s, &o, &p->arena, &p->json);
}

int pipeline_asked(struct pipeline *p, uint32_t sandbox_id, const char *what, const char *who)
{
	struct session *s = find_session(p, sandbox_id);
	struct event *ev;

	if (!s)
		return -ESRCH;
	arena_reset(&p->arena);
	ev = arena_alloc(&p->arena, sizeof(*ev));
	if (!ev)
		return -ENOMEM;
	event_init(ev, WIRE_ACTION, &p->arena);
	session_fill(s, ev, clock_boot_ns());
	event_set_str(ev, F_ACTION_TYPE, arena_strndup(&p->arena, what, strlen(what)));
	event_set_strz(ev, F_ACTION_SCOPE, "sandbox");
	event_set_strz(ev, F_ACTION_BY, "operator");
	event_set_str(ev, F_ACTION_WHO, arena_strndup(&p->arena, who, strlen(who)));
	return session_emit(s, ev, &p->json);
}

void pipeline_tick(struct pipeline *p)
{
	const char *set = p->rules ? ruleset_hash(p->rules) : NULL;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	for (size_t i = 0; i <= p->top; i++) {
		if (!p->sessions[i] || hold_deadline(&p->sessions[i]->holds) > now)
			continue;
		arena_reset(&p->arena);
		order_expire(p->sessions[i], now, set, &p->arena, &p->json);
	}
}

uint64_t pipeline_deadline(const struct pipeline *p)
{
	uint64_t at = UINT64_MAX;

	for (size_t i = 0; i <= p->top; i++)
		if (p->sessions[i])
			at = MIN(at, hold_deadline(&p->sessions[i]->holds));
	return at;
}

bool pipeline_may_go_on(const struct pipeline *p, uint32_t sandbox_id)
{
	const struct session *s = find_session(p, sandbox_id);

	return !s || !hold_is_stopped(&s->holds);
}

bool pipeline_is_stopped(struct pipeline *p, uint32_t sandbox_id, bool *ret_changed,
			 pipeline_hold_fn fn, void *arg)
{
	struct session *s = find_session(p, sandbox_id);

	*ret_changed = false;
	if (!s || s->stats.verdict != SESSION_UNDECIDED)
		return false;
	*ret_changed = s->holds.changed;
	s->holds.changed = false;
	for (size_t i = 0; i < s->holds.n; i++)
		fn(arg, &s->holds.v[i]);
	return hold_is_stopped(&s->holds);
}

bool pipeline_freeze(const struct pipeline *p, uint32_t sandbox_id, const char **ret_rule,
		     uint64_t *ret_deadline_ns)
{
	const struct session *s = find_session((struct pipeline *)p, sandbox_id);

	if (!s || !s->holds.frozen || s->stats.verdict != SESSION_UNDECIDED)
		return false;
	*ret_rule = s->holds.freeze_rule;
	*ret_deadline_ns = s->holds.freeze_deadline_ns;
	return true;
}

void pipeline_counters(const struct pipeline *p, struct pipeline_counters *ret)
{
	*ret = p->counters;
}
