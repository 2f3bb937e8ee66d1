// SPDX-License-Identifier: Apache-2.0
/* Alerts and text of a recorded session: in pieces of time, so that a person can go on pressing keys. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/clock.h"
#include "userspace/pipeline/playback_internal.h"

#define KIND_WITHIN 256 /* where in a record its kind stands: FORMAT.md */
#define AT_ONCE	    256 /* records between two looks at the clock */

/* ---- alerts ---- */

/* Without decoding it: most records are none. */
static bool may_be_alert(struct str rec)
{
	static const char *const kinds[] = {
		"rule.alert", "action", "escape", "oom", "limit", "gap"
	};
	static const char key[] = "\"kind\":\"";
	size_t n = MIN(rec.n, (size_t)KIND_WITHIN);
	const char *at = memmem(rec.p, n, key, sizeof(key) - 1);

	if (!at)
		return false;
	at += sizeof(key) - 1;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		size_t k = strlen(kinds[i]);

		if ((size_t)(rec.p + rec.n - at) > k && !memcmp(at, kinds[i], k) && at[k] == '"')
			return true;
	}
	return false;
}

static int add_mark(struct playback *p, struct str rec)
{
	uint64_t mono, *v;

	if (!p->index_ev)
		p->index_ev = malloc(sizeof(*p->index_ev));
	if (!p->index_ev)
		return -ENOMEM;
	arena_reset(&p->index_arena);
	if (event_from_json(p->index_ev, &p->index_arena, rec, NULL) < 0)
		return -EBADMSG;
	mono = event_u64(p->index_ev, F_MONO);
	p->indexed = MAX(p->indexed, mono > p->start ? mono - p->start : 0);
	if (!playback_is_alert(p->index_ev->kind) || p->marks_n == PLAYBACK_MARKS_MAX)
		return 0;
	if (p->marks_n && p->marks[p->marks_n - 1] == p->indexed)
		return 0; /* one moment, one stop */
	if (!(p->marks_n & (p->marks_n - 1))) {
		v = realloc(p->marks, sizeof(*v) * (p->marks_n ? p->marks_n * 2 : 16));
		if (!v)
			return -ENOMEM;
		p->marks = v;
	}
	p->marks[p->marks_n++] = p->indexed;
	return 0;
}

bool playback_index(struct playback *p, uint64_t budget_ns)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + budget_ns;

	for (unsigned i = 0; p->index; i++) {
		struct str rec;

		if (i % AT_ONCE == 0 && i && clock_ns(CLOCK_MONOTONIC) >= end)
			return true;
		/* what is damaged ends it; playing tells of it */
		if (journal_reader_next(p->index, &rec, NULL, NULL) != 1 ||
		    (may_be_alert(rec) && add_mark(p, rec) < 0)) {
			journal_reader_free(p->index);
			p->index = NULL;
			p->indexed = p->length;
		}
	}
	return false;
}

size_t playback_alerts(const struct playback *p)
{
	return p->marks_n;
}

bool playback_alert_within(const struct playback *p, uint64_t from, uint64_t to)
{
	size_t low = 0, high = p->marks_n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (p->marks[mid] < from)
			low = mid + 1;
		else
			high = mid;
	}
	return low < p->marks_n && p->marks[low] < to;
}

static int find_alert(struct playback *p, uint64_t budget_ns, uint64_t *ret_at)
{
	const struct search *s = &p->search;
	bool next = s->what == PLAYBACK_FIND_NEXT;
	size_t i;
	bool more = true;

	/* the one before is certain only when all before is known */
	if (next ? !p->marks_n || p->marks[p->marks_n - 1] <= s->from : p->indexed < s->from)
		more = playback_index(p, budget_ns);
	for (i = 0; i < p->marks_n && (next ? p->marks[i] <= s->from : p->marks[i] < s->from); i++)
		;
	if (next && i < p->marks_n) {
		*ret_at = p->marks[i];
		return 1;
	}
	if (next)
		return more && p->index ? -EAGAIN : 0;
	if (p->index && p->indexed < s->from)
		return -EAGAIN;
	if (i)
		*ret_at = p->marks[i - 1];
	return i ? 1 : 0;
}

/* ---- text ---- */

static bool has(const char *text, size_t n, const char *what)
{
	size_t k = strlen(what);

	for (size_t i = 0; i + k <= n; i++) {
		size_t m = 0;

		while (m < k &&
		       tolower((unsigned char)text[i + m]) == tolower((unsigned char)what[m]))
			m++;
		if (m == k)
			return true;
	}
	return false;
}

static int look_at_event(struct playback *p, const struct search *s)
{
	const struct event *ev = s->events.ev;
	struct timeline plain = { .start = p->start };

	if (p->opt.wanted && !p->opt.wanted(p->opt.arg, ev))
		return 0;
	buf_reset(&p->text);
	if (timeline_line(&plain, ev, &p->text) < 0)
		return -ENOMEM;
	return has(p->text.p, p->text.n, s->text);
}

/* What was shown, across the ends of records. */
static int look_at_output(struct playback *p, struct search *s, const struct terminal_record *rec)
{
	struct shown *w = &s->shown[rec->stream];
	size_t k = strlen(s->text), keep;
	bool found;

	if (rec->type != TERMINAL_OUTPUT)
		return 0;
	buf_reset(&p->text);
	buf_add(&p->text, w->tail, w->n);
	w->plain.plain = true;
	if (neutral_feed(&w->plain, rec->data, &p->text) < 0)
		return -ENOMEM;
	found = has(p->text.p, p->text.n, s->text);
	/* less than the text itself, or it would be found again */
	keep = MIN(MIN(p->text.n, k - 1), (size_t)SHOWN_MAX);
	memcpy(w->tail, p->text.p + p->text.n - keep, keep);
	w->n = keep;
	return found;
}

static int find_text(struct playback *p, uint64_t budget_ns, uint64_t *ret_at, struct err *err)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + budget_ns;
	struct search *s = &p->search;

	for (unsigned i = 1;; i++) {
		bool tty = s->tty.at <= s->events.at;
		uint64_t at = MIN(s->tty.at, s->events.at);
		int r;

		if (at == PLAYBACK_NEVER)
			return 0;
		if (i % AT_ONCE == 0 && clock_ns(CLOCK_MONOTONIC) >= end)
			return -EAGAIN;
		r = tty ? look_at_output(p, s, &s->tty.rec) : look_at_event(p, s);
		if (r < 0)
			return err_set(err, r, "replay: %m");
		if (r && at > s->from) {
			*ret_at = at;
			return 1;
		}
		r = tty ? tty_cursor_next(&s->tty, p->start, err)
			: event_cursor_next(&s->events, p->start, err);
		if (r < 0)
			return r;
	}
}

static int start_text(struct playback *p, struct err *err)
{
	struct search *s = &p->search;
	uint64_t mono = p->start + MIN(s->from, (uint64_t)INT64_MAX);
	bool start;
	int r = event_cursor_open(&s->events, p->bundle, err);

	if (r == 0)
		r = journal_reader_seek_time(s->events.reader, mono, err);
	if (r == 0)
		r = event_cursor_next(&s->events, p->start, err);
	if (r >= 0)
		r = tty_cursor_open(&s->tty, p->bundle, err);
	if (r == 0)
		r = terminal_reader_seek_back(s->tty.reader, mono, 1, &start, err);
	if (r == 0)
		r = tty_cursor_next(&s->tty, p->start, err);
	return MIN(r, 0);
}

/* ---- both ---- */

void playback_find_done(struct playback *p)
{
	event_cursor_done(&p->search.events);
	tty_cursor_done(&p->search.tty);
	p->search.active = false;
}

int playback_find(struct playback *p, enum playback_find what, const char *text, struct err *err)
{
	struct search *s = &p->search;
	int r = 0;

	playback_find_done(p);
	if (what == PLAYBACK_FIND_TEXT && (!text || !*text || strlen(text) > PLAYBACK_TEXT_MAX))
		return err_set(err, EINVAL, "text to search: 1 to %d bytes", PLAYBACK_TEXT_MAX);
	*s = (struct search){ .what = what, .from = p->now };
	s->events.at = s->tty.at = PLAYBACK_NEVER;
	if (what == PLAYBACK_FIND_TEXT) {
		memcpy(s->text, text, strlen(text) + 1);
		r = start_text(p, err);
	}
	s->active = r == 0;
	if (r < 0)
		playback_find_done(p);
	return r;
}

int playback_find_more(struct playback *p, uint64_t budget_ns, uint64_t *ret_at, struct err *err)
{
	int r;

	if (!p->search.active)
		return 0;
	r = p->search.what == PLAYBACK_FIND_TEXT ? find_text(p, budget_ns, ret_at, err)
						 : find_alert(p, budget_ns, ret_at);
	if (r != -EAGAIN)
		playback_find_done(p);
	return r;
}

uint64_t playback_find_at(const struct playback *p)
{
	if (p->search.what != PLAYBACK_FIND_TEXT)
		return p->indexed;
	return MIN(MIN(p->search.events.at, p->search.tty.at), p->length);
}
