// SPDX-License-Identifier: Apache-2.0
#include "exporters/sink.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "exporters/cursor.h"
#include "exporters/record.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/plain.h"

static void note_error(struct sink *s, const char *what, const struct err *err)
{
	s->errors++;
	s->trouble = what;
	snprintf(s->text, sizeof(s->text), "%s: %.200s", what, err_text(err));
}

/* It works again: status says so by saying nothing. The count of errors stays. */
static void note_over(struct sink *s, const char *what)
{
	if (s->trouble && !strcmp(s->trouble, what)) {
		s->trouble = NULL;
		s->text[0] = 0;
	}
}

static void note_errno(struct sink *s, const char *what, int r)
{
	struct err err = { .code = -r };

	note_error(s, what, &err);
}

/* Twice the last pause, give or take a quarter so that the sinks of many hosts do not come back in
 * step. */
static void pause_sink(struct sink *s, uint64_t now, uint64_t *pause, uint64_t max)
{
	uint64_t quarter;

	*pause = *pause ? MIN(*pause * 2, max) : SINK_PAUSE_MIN_NS;
	s->rng ^= s->rng << 13; /* xorshift64 */
	s->rng ^= s->rng >> 7;
	s->rng ^= s->rng << 17;
	quarter = *pause / 4;
	s->not_before = now + *pause - quarter + s->rng % (2 * quarter);
}

/* Something failed that a moment's patience will not cure. */
static void pause_trouble(struct sink *s, uint64_t now)
{
	if (now - s->rewound_at > SINK_CALM_NS)
		s->rewind_pause = 0;
	s->rewound_at = now;
	pause_sink(s, now, &s->rewind_pause, SINK_REWIND_MAX_NS);
}

static void dead_letter(struct sink *s, uint64_t seq, struct str json, bool is_json,
			const char *why)
{
	char text[256];
	int r;

	s->poison++;
	snprintf(text, sizeof(text), "%s", why ? why : "");
	plain_text(text, '?', "");
	snprintf(s->why, sizeof(s->why), "%.*s", (int)sizeof(s->why) - 1, text);
	if (s->cursor_dirfd < 0)
		return;
	r = dead_letter_append(s->cursor_dirfd, s->session, s->name, seq, json, is_json, text);
	if (r < 0) { /* the count says that one is missing, and the text which */
		struct err err = { 0 };

		err_set(&err, r, "%m; record %" PRIu64 " and later ones may be in the journal only",
			seq);
		note_error(s, "dead-letter file", &err);
	}
}

static void on_dead_letter(void *arg, uint64_t seq, struct str json, const char *why)
{
	const struct sink *s = arg;

	/* It comes as it was sent. */
	dead_letter(arg, seq, json, !s->host.renderer || renderer_format(s->host.renderer)->is_json,
		    why);
}

static void refuse(struct sink *s, bool is_json, const char *why)
{
	if (s->rec.seq > s->refused) {
		s->refused = s->rec.seq;
		dead_letter(s, s->rec.seq, s->rec.json, is_json, why);
	}
	s->passed = s->rec.seq;
	s->have_rec = false;
}

/* Start again behind the cursor. */
static void rewind_sink(struct sink *s, uint64_t now)
{
	struct err err = { 0 };
	int r;

	s->x->rewind = false;
	s->rewinds++;
	s->have_rec = false;
	s->at_end = false;
	s->full_pause = 0;
	s->passed = s->cursor;
	s->taken = MIN(s->taken, s->cursor);
	pause_trouble(s, now);
	r = s->src.seek(s->src.arg, s->cursor, &err);
	s->source_down = r < 0;
	if (r < 0) {
		note_error(s, "journal", &err);
		s->x->rewind = true; /* and again after the pause */
	}
}

/* Returns true when the cursor moved. */
static bool serve(struct sink *s, uint64_t now)
{
	uint64_t acked = s->class->poll(s->x, 0), cursor = s->cursor;

	/* All that was taken is safe: what was refused behind it is done, too. */
	if (acked >= s->taken)
		acked = s->passed;
	if (acked > s->cursor)
		s->cursor = MIN(acked, s->passed);
	if (s->cursor != cursor && s->full_pause) {
		s->full_pause = 0;
		s->not_before = 0; /* there is room again; a pause for trouble is never cut short */
	}
	if (s->x->rewind && now >= s->not_before)
		rewind_sink(s, now);
	return s->cursor != cursor;
}

/* false: refused, it will never be what the sink's format asks for. */
static bool render(struct sink *s)
{
	struct err err = { 0 };

	if (!s->host.renderer || s->class->renders ||
	    renderer_record(s->host.renderer, s->rec.json, &s->rec.text, &err) == 0)
		return true;
	refuse(s, true, err_text(&err));
	return false;
}

/* 1: s->rec is there, 0: nothing to read now */
static int fetch(struct sink *s, uint64_t now)
{
	struct err err = { 0 };
	struct str json;
	uint64_t seq;
	int r;

	if (s->have_rec)
		return 1;
	r = s->src.next(s->src.arg, &json, &seq, &err);
	s->source_down = r < 0;
	if (r < 0) {
		note_error(s, "journal", &err);
		pause_trouble(s, now);
		return 0;
	}
	note_over(s, "journal");
	s->at_end = r == 0;
	if (r == 0)
		return 0;
	s->rec.seq = seq;
	s->have_rec = true;
	if (record_scan(&s->rec, json) < 0) {
		refuse(s, false, "not a JSON object");
		return 1;
	}
	if (!gate_wants(&s->gate, json)) {
		s->passed = seq;
		s->have_rec = false;
		return 1;
	}
	if (!render(s))
		return 1;
	if (!s->rec.session.n)
		s->rec.session = str_from(s->session);
	if (!s->rec.id.n) {
		snprintf(s->id, sizeof(s->id), "%.64s-%" PRIu64, s->session, seq);
		s->rec.id = str_from(s->id);
	}
	return 1;
}

/* Returns true when the turn ended by its length, not for want of records or room, nor by the sink's
 * rate (then *ret_at is when to go on). */
static bool offer(struct sink *s, uint64_t now, bool *ret_full, uint64_t *ret_at)
{
	*ret_full = false;
	for (int i = 0; i < SINK_TURN_RECORDS; i++) {
		if (!fetch(s, now))
			return false;
		if (!s->have_rec) /* it was refused, or is not for this sink */
			continue;
		if (!gate_is_open(&s->gate, now, ret_at))
			return false;
		switch (s->class->write(s->x, &s->rec)) {
		case EXPORT_OK:
			s->taken = s->passed = s->rec.seq;
			s->have_rec = false;
			gate_passed(&s->gate, now);
			break;
		case EXPORT_POISON:
			refuse(s, true, s->x->why);
			break;
		case EXPORT_FULL:
			*ret_full = true;
			return false;
		}
		if (s->x->rewind)
			return false;
	}
	return true;
}

/* Must the session be kept for this sink? A stream's numbers are not the journal's: once it took all there is, its
 * cursor asks for nothing more. */
static bool holds_session(const struct sink *s)
{
	return s->required && (!s->own_seq || !s->at_end || s->have_rec || s->cursor < s->passed);
}

void sink_store_cursor(struct sink *s, uint64_t now)
{
	bool required = holds_session(s);
	int r;

	if ((s->cursor == s->stored && required == s->stored_required) || s->cursor_dirfd < 0 ||
	    s->from_start)
		return;
	s->stored_at = now;
	r = cursor_store(s->cursor_dirfd, s->session, s->name, s->cursor, required);
	if (r < 0) {
		note_errno(s, "cursor file", r);
		return;
	}
	note_over(s, "cursor file");
	s->stored = s->cursor;
	s->stored_required = required;
}

bool sink_turn(struct sink *s, uint64_t now, bool hurry, uint64_t *ret_deadline)
{
	bool more = false, full = false, moved;
	uint64_t deadline = SINK_NEVER, rewinds = s->rewinds;

	serve(s, now);
	if (now >= s->not_before) {
		more = offer(s, now, &full, &deadline);
		moved = serve(s, now);
		if (full && moved)
			more = true;
		else if (full && rewinds == s->rewinds)
			pause_sink(s, now, &s->full_pause, SINK_FULL_MAX_NS);
	}
	if (s->cursor != s->stored && s->cursor_dirfd >= 0 && !s->from_start) {
		if (hurry || now >= s->stored_at + SINK_CURSOR_NS)
			sink_store_cursor(s, now);
		if (s->cursor != s->stored)
			deadline = MIN(deadline, s->stored_at + SINK_CURSOR_NS);
	}
	if (s->not_before > now) {
		more = false;
		deadline = MIN(deadline, s->not_before);
	}
	if (s->x->poll_in_ms)
		deadline = MIN(deadline, now + (uint64_t)s->x->poll_in_ms * NSEC_PER_MSEC);
	if (s->cursor < s->passed)
		deadline = MIN(deadline, now + SINK_TICK_NS);
	*ret_deadline = deadline;
	return more;
}

void sink_status(const struct sink *s, struct fanout_status *ret)
{
	const char *text = s->class->status(s->x);

	memcpy(ret->name, s->name, sizeof(ret->name));
	ret->class_name = s->class->name;
	ret->acked = s->cursor;
	ret->sent = s->passed;
	ret->poison = s->poison;
	ret->rewinds = s->rewinds;
	ret->errors = s->errors;
	ret->skipped = s->gate.skipped;
	ret->required = s->required;
	ret->own_seq = s->own_seq;
	ret->at_end = s->at_end && !s->have_rec;
	ret->up = !*text && !s->source_down;
	snprintf(ret->text, sizeof(ret->text), "%s", *text ? text : s->text);
	memcpy(ret->why, s->why, sizeof(ret->why));
	ret->said[0] = 0;
	if (s->class->said && s->cursor)
		s->class->said(s->x, ret->said, sizeof(ret->said));
	/* All of it may quote the other side, and ends on terminals and in logs. */
	plain_text(ret->text, '?', "");
	plain_text(ret->why, '?', "");
	plain_text(ret->said, '?', "");
}

static int load_cursor(struct sink *s, struct err *err)
{
	int r;

	if (s->cursor_dirfd < 0 || s->from_start)
		return 0;
	r = cursor_load(s->cursor_dirfd, s->session, s->name, &s->cursor);
	if (r == -EBADMSG) {
		/* Sending all of it again is safe: duplicates have equal ids. */
		note_errno(s, "cursor file damaged, starting over", r);
		s->cursor = 0;
		return 0;
	}
	if (r < 0)
		return err_set(err, r, "cursor of session '%s': %m", s->session);
	return 0;
}

/* The property: is the journal kept until this sink took it? Its cursor then exists from the start. */
static int set_required(struct sink *s, const struct exporter_config *cfg, struct err *err)
{
	const char *v = exporter_config_get(cfg, "required");
	int r;

	if (strcmp(v, "yes") && strcmp(v, "no"))
		return err_set(err, EINVAL, "property 'required': '%s' is not yes or no", v);
	s->required = s->stored_required = !strcmp(v, "yes");
	if (!s->required || s->cursor_dirfd < 0 || s->from_start)
		return 0;
	r = cursor_store(s->cursor_dirfd, s->session, s->name, s->cursor, true);
	return r < 0 ? err_set(err, r, "cursor file: %m") : 0;
}

static void close_parts(struct sink *s)
{
	if (s->src.free)
		s->src.free(s->src.arg);
	gate_close(&s->gate);
	renderer_free(s->host.renderer);
}

static int open_parts(struct sink *s, const struct exporter_config *cfg,
		      const struct fanout_options *opt, struct err *err)
{
	struct exporter_config own = *cfg; /* the class copies what it keeps */
	int r;

	r = load_cursor(s, err);
	if (r == 0)
		r = set_required(s, cfg, err);
	if (r == 0)
		r = gate_open(&s->gate, cfg, opt->filters, err);
	if (r == 0 && cfg->format)
		r = renderer_new(&s->host.renderer, cfg->format, err);
	if (r < 0)
		return r;
	s->stored = s->passed = s->cursor;
	r = opt->open_source(opt->open_source_arg, &s->src, err);
	if (r == 0 && s->cursor)
		r = s->src.seek(s->src.arg, s->cursor, err);
	if (r < 0)
		return r;
	own.host = &s->host;
	return cfg->class->open(&s->x, &own, err);
}

int sink_open(struct sink *s, const struct exporter_config *cfg, const struct fanout_options *opt,
	      int wake_fd, struct err *err)
{
	int r;

	*s = (struct sink){
		.class = cfg->class,
		.session = opt->session,
		.cursor_dirfd = opt->cursor_dirfd,
		.from_start = opt->from_start,
		.host = { .wake_fd = wake_fd, .arg = s, .dead_letter = on_dead_letter },
		.rng = clock_ns(CLOCK_MONOTONIC) | 1,
	};
	memcpy(s->name, cfg->name, sizeof(s->name));
	r = open_parts(s, cfg, opt, err);
	if (r < 0) {
		close_parts(s);
		return err_wrap(err, r, "sink '%s'", s->name);
	}
	return 0;
}

void sink_close(struct sink *s)
{
	s->class->close(s->x);
	close_parts(s);
}
