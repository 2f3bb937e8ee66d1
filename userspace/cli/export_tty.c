// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/export_tty.h"

#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/json.h"
#include "userspace/event/event.h"
#include "userspace/replay/neutral.h"
#include "userspace/store/terminal.h"

DEFINE_AUTO(journal_reader, journal_reader_free)
DEFINE_AUTO(terminal_reader, terminal_reader_free)

#define COLS_DEFAULT 80
#define ROWS_DEFAULT 24
#define EVENT_MAX    (8u << 20) /* an event of the largest record, read */
#define KIND_WITHIN  256	/* where in a record its kind stands: FORMAT.md */

enum cast { CAST_TEXT, CAST_V2, CAST_V3 };

struct mark {
	uint64_t mono;
	char label[128];
};

struct cast_writer {
	enum cast version;
	FILE *out;
	struct journal_reader *events;
	struct arena arena;
	struct event ev;
	struct neutral screen[TERMINAL_STREAMS];
	struct buf text, line, wide;
	uint64_t start, real, last; /* mono and time of the first event; mono of the last line */
	bool has_exit;
	int64_t exit_code;
};

static const struct {
	const char *name;
	enum cast version;
} FORMATS[] = { { "text", CAST_TEXT }, { "cast", CAST_V2 }, { "cast3", CAST_V3 } };

bool export_tty_is_format(const char *format)
{
	for (size_t i = 0; i < ARRAY_SIZE(FORMATS); i++)
		if (!strcmp(FORMATS[i].name, format))
			return true;
	return false;
}

/* ---- events: where it begins, alerts, how it ended ---- */

static bool is_of_kind(struct str rec, const char *kind)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "\"kind\":\"%s\"", kind);

	return memmem(rec.p, MIN(rec.n, (size_t)KIND_WITHIN), text, (size_t)n) != NULL;
}

static int read_event(struct cast_writer *w, struct str rec, struct err *err)
{
	arena_reset(&w->arena);
	return event_from_json(&w->ev, &w->arena, rec, err);
}

static int read_start(struct cast_writer *w, struct err *err)
{
	struct str rec;
	uint64_t seq;
	int r = journal_reader_next(w->events, &rec, &seq, err);

	if (r == 1)
		r = read_event(w, rec, err);
	if (r < 0)
		return r;
	w->start = event_u64(&w->ev, F_MONO);
	w->real = event_u64(&w->ev, F_TIME);
	return 0;
}

/* The next alert, or mono = UINT64_MAX: there is none any more. */
static int next_mark(struct cast_writer *w, struct mark *ret, struct err *err)
{
	struct str rec, name;
	uint64_t seq;
	int r;

	while ((r = journal_reader_next(w->events, &rec, &seq, err)) == 1) {
		bool alert = is_of_kind(rec, "rule.alert");

		if (!alert && !is_of_kind(rec, "session.stop"))
			continue;
		r = read_event(w, rec, err);
		if (r < 0)
			return r;
		if (!alert) {
			w->has_exit = event_has(&w->ev, F_EXIT_CODE);
			w->exit_code = w->has_exit ? w->ev.v[F_EXIT_CODE].i : 0;
			continue;
		}
		name = event_str(&w->ev, F_RULE_NAME);
		ret->mono = event_u64(&w->ev, F_MONO);
		snprintf(ret->label, sizeof(ret->label), "%.*s",
			 (int)MIN(name.n, sizeof(ret->label) - 1), name.p);
		return 0;
	}
	ret->mono = UINT64_MAX;
	return r;
}

/* ---- lines ---- */

static void put_line(struct cast_writer *w, uint64_t mono, const char *code, struct str data)
{
	uint64_t us, from = w->version == CAST_V3 ? MAX(w->last, w->start) : w->start;
	struct json j;

	mono = MAX(MAX(mono, w->last), w->start); /* the last half of a long output comes late */
	us = (mono - from) / 1000;
	w->last = mono;
	buf_reset(&w->line);
	buf_printf(&w->line, "[%llu.%06llu, \"%s\", ", (unsigned long long)(us / 1000000),
		   (unsigned long long)(us % 1000000), code);
	json_init(&j, &w->line);
	json_str(&j, data);
	buf_addz(&w->line, "]\n");
	if (!w->line.failed)
		fwrite(w->line.p, 1, w->line.n, w->out);
}

/* A pipe's lines end without the carriage return that a terminal adds. */
static struct str with_returns(struct cast_writer *w, struct str text)
{
	buf_reset(&w->wide);
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '\n')
			buf_addc(&w->wide, '\r');
		buf_addc(&w->wide, text.p[i]);
	}
	return (struct str){ w->wide.p, w->wide.n };
}

static void put_output(struct cast_writer *w, const struct terminal_record *rec)
{
	struct str text;

	buf_reset(&w->text);
	neutral_feed(&w->screen[rec->stream], rec->data, &w->text);
	text = (struct str){ w->text.p, w->text.n };
	if (!text.n)
		return;
	if (w->version == CAST_TEXT)
		fwrite(text.p, 1, text.n, w->out);
	else
		put_line(w, rec->mono, "o",
			 rec->stream == TERMINAL_TTY ? text : with_returns(w, text));
}

static void put_cut(struct cast_writer *w, const struct terminal_record *rec)
{
	char text[96];

	snprintf(text, sizeof(text), "[%llu bytes not recorded]", (unsigned long long)rec->bytes);
	if (w->version == CAST_TEXT)
		fprintf(w->out, "\n%s\n", text);
	else
		put_line(w, rec->mono, "m", str_from(text));
}

static void put_record(struct cast_writer *w, const struct terminal_record *rec)
{
	struct neutral input = { 0 };
	char size[32];

	switch (rec->type) {
	case TERMINAL_OUTPUT:
		put_output(w, rec);
		break;
	case TERMINAL_CUT:
		put_cut(w, rec);
		break;
	case TERMINAL_RESIZE:
		snprintf(size, sizeof(size), "%ux%u", rec->cols, rec->rows);
		if (w->version != CAST_TEXT)
			put_line(w, rec->mono, "r", str_from(size));
		break;
	case TERMINAL_INPUT:
		if (w->version == CAST_TEXT)
			break;
		buf_reset(&w->text);
		neutral_feed(&input, rec->data, &w->text);
		put_line(w, rec->mono, "i", (struct str){ w->text.p, w->text.n });
		break;
	case TERMINAL_WITHHELD:
		break;
	}
}

static void put_header(struct cast_writer *w, unsigned cols, unsigned rows)
{
	unsigned long long when = w->real / NSEC_PER_SEC;

	if (w->version == CAST_V2)
		fprintf(w->out,
			"{\"version\": 2, \"width\": %u, \"height\": %u, \"timestamp\": %llu}\n",
			cols, rows, when);
	else if (w->version == CAST_V3)
		fprintf(w->out,
			"{\"version\": 3, \"term\": {\"cols\": %u, \"rows\": %u}, \"timestamp\": %llu}\n",
			cols, rows, when);
}

/* The first size that is told, before the first record is written. */
static int begin(struct cast_writer *w, int bundle, struct err *err)
{
	AUTO(terminal_reader) struct terminal_reader *r = NULL;
	struct terminal_record rec = { 0 };
	unsigned cols = COLS_DEFAULT, rows = ROWS_DEFAULT;
	int s = terminal_reader_open(&r, bundle, err);

	if (s == 0)
		s = terminal_reader_next(r, &rec, NULL, err);
	if (s < 0)
		return s;
	if (s == 1 && rec.type == TERMINAL_RESIZE && rec.cols && rec.rows) {
		cols = rec.cols;
		rows = rec.rows;
	}
	put_header(w, cols, rows);
	return 0;
}

static int write_all(struct cast_writer *w, struct terminal_reader *terminal, struct err *err)
{
	struct mark mark = { 0 };
	struct terminal_record rec;
	int r = next_mark(w, &mark, err), s;

	while (r == 0 && !ferror(w->out)) {
		s = terminal_reader_next(terminal, &rec, NULL, err);
		if (s < 0)
			return s;
		while (r == 0 && mark.mono != UINT64_MAX && (s == 0 || mark.mono <= rec.mono)) {
			if (w->version != CAST_TEXT)
				put_line(w, mark.mono, "m", str_from(mark.label));
			r = next_mark(w, &mark, err);
		}
		if (s == 0)
			break;
		put_record(w, &rec);
	}
	return r;
}

static void end(struct cast_writer *w)
{
	char code[16];

	for (int i = 0; i < TERMINAL_STREAMS; i++) {
		buf_reset(&w->text);
		neutral_end(&w->screen[i], &w->text);
		if (!w->text.n)
			continue;
		if (w->version == CAST_TEXT)
			fwrite(w->text.p, 1, w->text.n, w->out);
		else
			put_line(w, w->last, "o", (struct str){ w->text.p, w->text.n });
	}
	snprintf(code, sizeof(code), "%d", (int)w->exit_code);
	if (w->version == CAST_V3 && w->has_exit)
		put_line(w, w->last, "x", str_from(code));
}

int export_tty(const char *format, int bundle, FILE *out, struct err *err)
{
	AUTO(terminal_reader) struct terminal_reader *terminal = NULL;
	AUTO(journal_reader) struct journal_reader *events = NULL;
	static struct cast_writer w;
	int r;

	w = (struct cast_writer){ .out = out };
	for (size_t i = 0; i < ARRAY_SIZE(FORMATS); i++)
		if (!strcmp(FORMATS[i].name, format))
			w.version = FORMATS[i].version;
	for (int i = 0; i < TERMINAL_STREAMS; i++)
		w.screen[i].plain = w.version == CAST_TEXT;
	arena_init(&w.arena, EVENT_MAX);
	r = journal_reader_open(&events, bundle, err);
	if (r == 0)
		r = terminal_reader_open(&terminal, bundle, err);
	w.events = events;
	if (r == 0)
		r = read_start(&w, err);
	if (r == 0)
		r = begin(&w, bundle, err);
	if (r == 0)
		r = write_all(&w, terminal, err);
	if (r == 0)
		end(&w);
	arena_done(&w.arena);
	buf_done(&w.text);
	buf_done(&w.line);
	buf_done(&w.wide);
	return r;
}
