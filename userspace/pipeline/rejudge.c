// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/rejudge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/pipeline/walk.h"

DEFINE_AUTO(rule_memory, rule_memory_free)

/* A recorded alert: the event it is about, and the rule. */
struct fired {
	uint64_t seq;
	char *rule;
};

struct rejudge {
	const struct ruleset *rs;
	struct rule_memory *memory;
	rejudge_fn fn;
	void *arg;
	struct rejudge_counts *counts;
	struct fired *v; /* by seq, then name */
	size_t n, cap, at;
	const struct event *ev; /* at hand */
};

/* "SESSION:SEQ" */
static uint64_t trigger_seq(struct str id)
{
	uint64_t n = 0;
	size_t i = id.n;

	while (i && id.p[i - 1] != ':')
		i--;
	for (; i < id.n && id.p[i] >= '0' && id.p[i] <= '9' && n < UINT64_MAX / 16; i++)
		n = n * 10 + (uint64_t)(id.p[i] - '0');
	return n;
}

static int keep_alert(void *arg, const struct event *ev, struct err *err)
{
	struct rejudge *j = arg;
	struct str name = event_str(ev, F_RULE_NAME);
	struct fired *f;

	if (ev->kind != WIRE_RULE_ALERT)
		return 0;
	if (j->n == REJUDGE_ALERTS_MAX)
		return err_set(err, E2BIG, "more than %u alerts in the record", REJUDGE_ALERTS_MAX);
	if (j->n == j->cap) {
		size_t cap = j->cap ? 2 * j->cap : 64;
		void *p = reallocarray(j->v, cap, sizeof(*j->v));

		if (!p)
			return err_set(err, ENOMEM, "%m");
		j->v = p;
		j->cap = cap;
	}
	f = &j->v[j->n];
	f->seq = trigger_seq(event_str(ev, F_RULE_TRIGGER));
	f->rule = strndup(name.p ? name.p : "", name.n);
	if (!f->rule)
		return err_set(err, ENOMEM, "%m");
	j->n++;
	return 0;
}

static int compare_fired(const void *a, const void *b)
{
	const struct fired *x = a, *y = b;

	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	return strcmp(x->rule, y->rule);
}

static void tell(struct rejudge *j, bool added, const char *rule)
{
	struct rejudge_change c = {
		.added = added,
		.seq = event_u64(j->ev, F_SEQ),
		.rule = rule,
		.ev = j->ev,
	};

	*(added ? &j->counts->added : &j->counts->removed) += 1;
	j->fn(j->arg, &c);
}

static bool was_fired(const struct rejudge *j, size_t from, size_t to, const char *rule)
{
	for (size_t i = from; i < to; i++)
		if (!strcmp(j->v[i].rule, rule))
			return true;
	return false;
}

static bool fires_now(const struct rule_matches *m, const char *rule)
{
	for (size_t i = 0; i < m->n; i++)
		if (!strcmp(m->v[i]->name, rule))
			return true;
	return false;
}

/* What Warder itself said of other events is not judged: neither was it then. */
static bool is_verdict(enum wire_kind kind)
{
	return kind == WIRE_RULE_ALERT || kind == WIRE_ACTION || kind == WIRE_APPROVAL ||
	       kind == WIRE_REVIEW;
}

/* Which rules are for it, as then. */
static void read_session(struct rejudge *j)
{
	static const enum field_id fields[] = { F_RUN_BACKEND, F_RUN_TIER, F_TENANT, F_RUN_POLICY };
	char text[ARRAY_SIZE(fields)][128];
	struct rule_session s;

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		struct str v = event_str(j->ev, fields[i]);

		snprintf(text[i], sizeof(text[i]), "%.*s", (int)MIN(v.n, sizeof(text[i]) - 1),
			 v.p ? v.p : "");
	}
	s = (struct rule_session){ text[0], text[1], text[2], text[3] };
	rule_memory_set_session(j->memory, j->rs, &s);
}

/* Alerts that a throttle holds back would not be in the record. */
static void hold_back(struct rejudge *j, struct rule_matches *m)
{
	size_t n = 0;
	uint64_t held;

	for (size_t i = 0; i < m->n; i++)
		if (!rule_memory_throttle(j->memory, m->v[i], j->ev, &held))
			m->v[n++] = m->v[i];
	m->n = n;
}

static int judge_event(void *arg, const struct event *ev, struct err *err)
{
	struct rejudge *j = arg;
	uint64_t seq = event_u64(ev, F_SEQ);
	struct rule_matches m;
	size_t from, to;

	(void)err;
	j->ev = ev;
	if (is_verdict(j->ev->kind))
		return 0;
	j->counts->events++;
	j->counts->redacted += event_has(ev, F_REDACTIONS);
	if (j->ev->kind == WIRE_SESSION_START)
		read_session(j);
	m.n = m.more = 0;
	ruleset_judge(j->rs, j->memory, j->ev, &m);
	hold_back(j, &m);
	for (from = j->at; from < j->n && j->v[from].seq < seq; from++)
		;
	for (to = from; to < j->n && j->v[to].seq == seq; to++)
		;
	for (size_t i = 0; i < m.n; i++) {
		if (was_fired(j, from, to, m.v[i]->name))
			j->counts->same++;
		else
			tell(j, true, m.v[i]->name);
	}
	for (size_t i = from; i < to; i++)
		if (!fires_now(&m, j->v[i].rule))
			tell(j, false, j->v[i].rule);
	j->at = to;
	return 0;
}

int rejudge_session(int dirfd, const struct ruleset *rs, rejudge_fn fn, void *arg,
		    struct rejudge_counts *ret, struct err *err)
{
	AUTO(rule_memory) struct rule_memory *memory = NULL;
	struct rejudge *j = calloc(1, sizeof(*j));
	int r;

	*ret = (struct rejudge_counts){ 0 };
	if (!j || rule_memory_new(&memory, rs) < 0) {
		free(j);
		return err_set(err, ENOMEM, "judging again: out of memory");
	}
	j->rs = rs;
	j->memory = memory;
	j->fn = fn;
	j->arg = arg;
	j->counts = ret;
	r = session_walk(dirfd, keep_alert, j, NULL, err);
	if (r >= 0) {
		if (j->n)
			qsort(j->v, j->n, sizeof(*j->v), compare_fired);
		r = session_walk(dirfd, judge_event, j, NULL, err);
	}
	for (size_t i = 0; i < j->n; i++)
		free(j->v[i].rule);
	free(j->v);
	free(j);
	return r < 0 ? r : 0;
}
