// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/json.h"
#include "userspace/pipeline/redaction.h"

struct session *session_new(const struct session_options *opt)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->sandbox_id = opt->sandbox_id;
	snprintf(s->id, sizeof(s->id), "%s", opt->session);
	snprintf(s->name, sizeof(s->name), "%s", opt->name ? opt->name : "");
	snprintf(s->tenant, sizeof(s->tenant), "%s", opt->tenant ? opt->tenant : "");
	snprintf(s->host, sizeof(s->host), "%s", opt->host ? opt->host : "");
	snprintf(s->tier, sizeof(s->tier), "%s", opt->tier ? opt->tier : "");
	snprintf(s->backend, sizeof(s->backend), "%s", opt->backend ? opt->backend : "");
	snprintf(s->policy, sizeof(s->policy), "%s", opt->policy ? opt->policy : "");
	s->real_offset_ns = opt->real_offset_ns;
	if (opt->clock)
		s->clock = *opt->clock;
	s->baseline = opt->baseline;
	s->target = opt->target;
	s->holds.policy = opt->hold;
	s->dry_run = opt->dry_run;
	s->journal = opt->journal;
	s->redaction = opt->redaction;
	return s;
}

void session_free(struct session *s)
{
	if (s)
		rule_memory_free(s->memory);
	free(s);
}

void session_fill(const struct session *s, struct event *ev, uint64_t boot_ns)
{
	event_set_strz(ev, F_VANTAGE, "agent");
	event_set_u64(ev, F_MONO, boot_ns);
	event_set_u64(ev, F_TIME, boot_ns + (uint64_t)s->real_offset_ns);
	event_set_strz(ev, F_SESSION, s->id);
	if (s->name[0])
		event_set_strz(ev, F_SANDBOX, s->name);
	if (s->tenant[0])
		event_set_strz(ev, F_TENANT, s->tenant);
	if (s->host[0])
		event_set_strz(ev, F_HOST, s->host);
}

static void count_kind(struct session *s, enum wire_kind kind)
{
	const struct kind_def *k = event_kind_by_id((uint16_t)kind);
	size_t i = k ? (size_t)(k - event_kinds) : 0;

	s->stats.events++;
	if (k && i < ARRAY_SIZE(s->stats.by_kind))
		s->stats.by_kind[i]++;
}

static void count_limit(struct session *s, struct str type)
{
	const char *name;

	for (uint32_t i = 0; i < 32; i++) {
		name = event_limit_name(i);
		if (name && str_eqz(type, name))
			s->stats.limits |= 1u << i;
	}
}

void session_lose(struct session *s, uint64_t count, uint64_t first_ts, uint64_t last_ts)
{
	if (!s->lost.count)
		s->lost.first_ts = first_ts;
	s->lost.count += count;
	s->lost.last_ts = last_ts;
	s->stats.gaps += count;
}

/* "<session>:<seq>". By hand: printf was a tenth of an event's whole cost. */
static struct str event_id(const struct session *s, struct arena *arena, uint64_t seq)
{
	char digits[20], *p = digits + sizeof(digits);
	size_t n = strlen(s->id), k;
	char *d;

	do {
		*--p = (char)('0' + seq % 10);
		seq /= 10;
	} while (seq);
	k = (size_t)(digits + sizeof(digits) - p);
	d = arena_alloc(arena, n + 1 + k);
	if (!d)
		return (struct str){ 0 };
	memcpy(d, s->id, n);
	d[n] = ':';
	memcpy(d + n + 1, p, k);
	return (struct str){ d, n + 1 + k };
}

struct event *session_redact(struct session *s, struct event *ev)
{
	struct redact *x = redaction_redact(s->redaction);
	struct event *made = ev;

	if (ev->is_clean)
		return ev;
	if (x && redact_event(x, ev, &made) < 0) {
		redact_bare(x, ev);
		made = ev;
	}
	made->is_clean = true;
	return made;
}

/* What is sealed goes before the record that it was taken out of. One that the journal does not take is lost: it
 * must not hold up events. */
static void put_originals(struct session *s, struct buf *scratch)
{
	struct str payload;
	int r;

	while (redaction_next_original(s->redaction, scratch) > 0) {
		payload = (struct str){ scratch->p, scratch->n };
		r = journal_put_aside(s->journal, payload);
		if (r < 0) {
			redaction_original_lost(s->redaction, payload);
			s->stats.journal_error = -r;
		}
	}
}

static int write_event(struct session *s, struct event *ev, struct buf *json)
{
	uint64_t seq = s->journal ? journal_next_seq(s->journal) : s->seq + 1;
	int r;

	ev = session_redact(s, ev);
	if (s->redacted) {
		event_set_u64(ev, F_REDACTIONS, event_u64(ev, F_REDACTIONS) + s->redacted);
		s->redacted = 0;
	}
	event_set_u64(ev, F_SEQ, seq);
	event_set_str(ev, F_ID, event_id(s, ev->arena, seq));
	if (s->journal && event_has(ev, F_REDACTIONS))
		put_originals(s, json);
	buf_reset(json);
	r = event_to_json(ev, json);
	if (r < 0)
		return r;
	if (s->journal) {
		r = journal_append(s->journal, (struct str){ json->p, json->n });
		if (r < 0 && journal_next_seq(s->journal) == seq)
			return r; /* not taken */
		if (r < 0)	  /* buffered: late, not lost */
			s->stats.journal_error = -r;
	}
	s->seq = seq;
	count_kind(s, ev->kind);
	if (ev->kind == WIRE_GAP) {
		s->stats.gaps += event_u64(ev, F_GAP_COUNT);
		s->stats.gap_events++;
	}
	statement_note(&s->statement, ev);
	if (ev->kind == WIRE_LIMIT)
		count_limit(s, event_str(ev, F_LIMIT_TYPE));
	return 0;
}

struct event *session_gap(const struct session *s, struct arena *arena, const char *kind,
			  const char *reason, const struct session_lost *lost)
{
	struct event *ev = arena_alloc(arena, sizeof(*ev));

	if (!ev)
		return NULL;
	event_init(ev, WIRE_GAP, arena);
	session_fill(s, ev, clock_boot_ns());
	event_set_strz(ev, F_GAP_KIND, kind);
	event_set_u64(ev, F_GAP_COUNT, lost->count);
	event_set_strz(ev, F_GAP_REASON, reason);
	event_set_u64(ev, F_GAP_FIRST, lost->first_ts + (uint64_t)s->real_offset_ns);
	event_set_u64(ev, F_GAP_LAST, lost->last_ts + (uint64_t)s->real_offset_ns);
	return ev;
}

/* What a gap told is lost with it and must still be counted. */
static void lose_event(struct session *s, const struct event *ev)
{
	uint64_t at = event_u64(ev, F_MONO), off = (uint64_t)s->real_offset_ns;

	if (ev->kind == WIRE_GAP)
		session_lose(s, event_u64(ev, F_GAP_COUNT), event_u64(ev, F_GAP_FIRST) - off,
			     event_u64(ev, F_GAP_LAST) - off);
	else
		session_lose(s, 1, at, at);
}

/* The gap event for what could not be stored before, if it can be stored now. */
static void tell_lost(struct session *s, struct arena *arena, struct buf *json)
{
	struct session_lost lost = s->lost;
	struct event *ev;

	if (!lost.count)
		return;
	ev = session_gap(s, arena, "any", "not_stored", &lost);
	if (!ev)
		return;
	s->lost.count = 0;
	s->stats.gaps -= lost.count; /* counted again by the gap */
	if (write_event(s, ev, json) < 0) {
		s->lost = lost;
		s->stats.gaps += lost.count;
	}
}

int session_emit(struct session *s, struct event *ev, struct buf *json)
{
	int r;

	tell_lost(s, ev->arena, json);
	r = write_event(s, ev, json);
	if (r < 0) {
		lose_event(s, ev);
		s->stats.journal_error = -r;
	}
	return r;
}

void session_commit(struct session *s)
{
	int r;

	s->alerted = false;
	if (!s->journal)
		return;
	r = journal_commit(s->journal);
	if (r < 0)
		s->stats.journal_error = -r;
}

static void summary_text(struct json *j, const char *key, const char *text)
{
	json_key(j, key);
	if (*text)
		json_strz(j, text);
	else
		json_null(j);
}

/* Where a sandbox can write, and no comparison looks (runtime/plan_root.c): its own, and gone with it. What is done
 * there is in the events. */
static void not_compared_json(struct json *j)
{
	static const char *const places[] = { "/tmp", "/var/tmp", "/run", "/dev/shm" };

	json_key(j, "not_compared");
	json_array_begin(j);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		json_strz(j, places[i]);
	json_array_end(j);
}

int session_summary(const struct session *s, struct buf *out)
{
	struct json j;

	json_init(&j, out);
	json_object_begin(&j);
	json_key(&j, "events");
	json_u64(&j, s->stats.events);
	json_key(&j, "alerts");
	json_u64(&j, s->stats.alerts);
	json_key(&j, "actions");
	json_u64(&j, s->stats.actions);
	json_key(&j, "lost");
	json_u64(&j, s->stats.gaps);
	summary_text(&j, "backend", s->backend);
	summary_text(&j, "tier", s->tier);
	summary_text(&j, "policy", s->policy);
	json_key(&j, "clock");
	json_object_begin(&j);
	summary_text(&j, "source", s->clock.source);
	json_key(&j, "synced");
	json_bool(&j, s->clock.is_synced);
	json_object_end(&j);
	statement_json(&s->statement, &j);
	not_compared_json(&j);
	json_key(&j, "redaction");
	redaction_json(s->redaction, &j);
	redaction_warn(s->redaction);
	json_key(&j, "by_kind");
	json_object_begin(&j);
	for (size_t i = 0; i < event_kinds_n && i < ARRAY_SIZE(s->stats.by_kind); i++) {
		if (!s->stats.by_kind[i])
			continue;
		json_key(&j, event_kinds[i].name);
		json_u64(&j, s->stats.by_kind[i]);
	}
	json_object_end(&j);
	json_object_end(&j);
	return out->failed ? -ENOMEM : 0;
}
