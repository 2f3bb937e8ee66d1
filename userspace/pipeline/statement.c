// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/statement.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/timex.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"

#define CLOCKSOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"

void clock_state_read(struct clock_state *ret)
{
	auto_free char *text = NULL;
	struct timex tx = { 0 };
	size_t n;

	*ret = (struct clock_state){ 0 };
	if (file_read_at(AT_FDCWD, CLOCKSOURCE, sizeof(ret->source) - 1, &text, &n) == 0)
		snprintf(ret->source, sizeof(ret->source), "%.*s", (int)strcspn(text, "\n"), text);
	ret->is_synced = adjtimex(&tx) >= 0 && !(tx.status & STA_UNSYNC);
}

static void copy(char *d, size_t size, struct str s)
{
	snprintf(d, size, "%.*s", (int)MIN(s.n, size - 1), s.n ? s.p : "");
}

static void note_gap(struct statement *s, const struct event *ev)
{
	uint32_t i = s->gaps_n;

	if (i == STATEMENT_GAPS_MAX) {
		s->more++;
		return;
	}
	copy(s->gaps[i].kind, sizeof(s->gaps[i].kind), event_str(ev, F_GAP_KIND));
	copy(s->gaps[i].reason, sizeof(s->gaps[i].reason), event_str(ev, F_GAP_REASON));
	s->gaps[i].count = event_u64(ev, F_GAP_COUNT);
	s->gaps[i].first_ns = event_u64(ev, F_GAP_FIRST);
	s->gaps[i].last_ns = event_u64(ev, F_GAP_LAST);
	s->gaps_n++;
}

static void note_name(struct statement *s, char *list, size_t size, uint32_t max, uint32_t *n,
		      struct str name)
{
	for (uint32_t i = 0; i < *n; i++)
		if (str_eqz(name, list + i * size))
			return;
	if (*n == max || name.n >= size) {
		s->more++;
		return;
	}
	copy(list + (*n)++ * size, size, name);
}

void statement_note(struct statement *s, const struct event *ev)
{
	if (ev->kind == WIRE_GAP)
		note_gap(s, ev);
	if (ev->kind != WIRE_SESSION_START && ev->kind != WIRE_AUDIT_DEGRADED &&
	    ev->kind != WIRE_AUDIT_RULES)
		return;
	if (event_has(ev, F_RULE_SET))
		note_name(s, s->rules[0], sizeof(s->rules[0]), STATEMENT_RULES_MAX, &s->rules_n,
			  event_str(ev, F_RULE_SET));
	if (event_has(ev, F_DEGRADED))
		for (size_t i = 0; i < ev->v[F_DEGRADED].list.n; i++)
			note_name(s, s->degraded[0], sizeof(s->degraded[0]), STATEMENT_DEGRADED_MAX,
				  &s->degraded_n, ev->v[F_DEGRADED].list.v[i]);
}

static void names_json(struct json *j, const char *key, const char *list, size_t size, uint32_t n)
{
	json_key(j, key);
	json_array_begin(j);
	for (uint32_t i = 0; i < n; i++)
		json_strz(j, list + i * size);
	json_array_end(j);
}

static void time_json(struct json *j, const char *key, uint64_t ns)
{
	char text[RFC3339_NS_LEN + 1];

	json_key(j, key);
	if (!ns) {
		json_null(j);
		return;
	}
	rfc3339_ns(text, ns);
	json_strz(j, text);
}

void statement_json(const struct statement *s, struct json *j)
{
	names_json(j, "rules", s->rules[0], sizeof(s->rules[0]), s->rules_n);
	names_json(j, "degraded", s->degraded[0], sizeof(s->degraded[0]), s->degraded_n);
	json_key(j, "gaps");
	json_array_begin(j);
	for (uint32_t i = 0; i < s->gaps_n; i++) {
		json_object_begin(j);
		json_key(j, "kind");
		json_strz(j, s->gaps[i].kind);
		json_key(j, "reason");
		json_strz(j, s->gaps[i].reason);
		json_key(j, "count");
		json_u64(j, s->gaps[i].count);
		time_json(j, "first", s->gaps[i].first_ns);
		time_json(j, "last", s->gaps[i].last_ns);
		json_object_end(j);
	}
	json_array_end(j);
	json_key(j, "more");
	json_u64(j, s->more);
}
