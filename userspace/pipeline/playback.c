// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/playback_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SCREEN_CONTEXT	     65536 /* bytes of output that a screen is made of after a jump */
#define SCREEN_CONTEXT_LINES 1500  /* and at most so many lines: each scrolls the screen */
#define EVENT_CONTEXT	     65536 /* bytes of events read before the place, for the lines above it */
#define SIZES_MAX	     4096
#define SIZES_SCAN	     (64u << 20) /* bytes of recording in which resizes are looked for at first */

/* ---- cursors ---- */

static uint64_t since(uint64_t mono, uint64_t start)
{
	return mono > start ? MIN(mono - start, PLAYBACK_NEVER - 1) : 0;
}

int event_cursor_open(struct event_cursor *c, int bundle, struct err *err)
{
	arena_init(&c->arena, EVENT_MEM_MAX);
	c->at = PLAYBACK_NEVER;
	c->ev = malloc(sizeof(*c->ev));
	if (!c->ev)
		return err_set(err, ENOMEM, "replay: %m");
	return journal_reader_open(&c->reader, bundle, err);
}

void event_cursor_done(struct event_cursor *c)
{
	if (!c->ev)
		return;
	journal_reader_free(c->reader);
	arena_done(&c->arena);
	free(c->ev);
	*c = (struct event_cursor){ .at = PLAYBACK_NEVER };
}

int event_cursor_next(struct event_cursor *c, uint64_t start, struct err *err)
{
	struct str rec;
	int r;

	c->at = PLAYBACK_NEVER;
	r = journal_reader_next(c->reader, &rec, &c->seq, err);
	if (r <= 0)
		return r;
	arena_reset(&c->arena);
	r = event_from_json(c->ev, &c->arena, rec, err);
	if (r < 0)
		return err_wrap(err, r, "record %llu", (unsigned long long)c->seq);
	c->at = since(event_u64(c->ev, F_MONO), start);
	return 1;
}

int tty_cursor_open(struct tty_cursor *c, int bundle, struct err *err)
{
	c->at = PLAYBACK_NEVER;
	return terminal_reader_open(&c->reader, bundle, err);
}

void tty_cursor_done(struct tty_cursor *c)
{
	terminal_reader_free(c->reader);
	*c = (struct tty_cursor){ .at = PLAYBACK_NEVER };
}

int tty_cursor_next(struct tty_cursor *c, uint64_t start, struct err *err)
{
	int r = terminal_reader_next(c->reader, &c->rec, &c->seq, err);

	c->at = r == 1 ? since(c->rec.mono, start) : PLAYBACK_NEVER;
	return r;
}

/* ---- what is shown ---- */

bool playback_is_alert(enum wire_kind kind)
{
	switch (kind) {
	case WIRE_RULE_ALERT:
	case WIRE_ACTION:
	case WIRE_ESCAPE:
	case WIRE_OOM:
	case WIRE_LIMIT:
	case WIRE_GAP:
		return true;
	default:
		return false;
	}
}

static int add_line(struct playback *p)
{
	struct playback_line *line = &p->lines[p->lines_n % PLAYBACK_LINES];
	const struct event *ev = p->events.ev;
	char *text;

	/* what binds the recording is not what happened */
	if (ev->kind == WIRE_TERMINAL || (p->opt.wanted && !p->opt.wanted(p->opt.arg, ev)))
		return 0;
	buf_reset(&p->text);
	if (timeline_line(&p->timeline, ev, &p->text) < 0)
		return -ENOMEM;
	text = strndup(p->text.p, p->text.n);
	if (!text)
		return -ENOMEM;
	free(line->text);
	line->text = text;
	line->grave = playback_is_alert(ev->kind);
	p->lines_n++;
	return 0;
}

static void clear_lines(struct playback *p)
{
	for (size_t i = 0; i < PLAYBACK_LINES; i++) {
		free(p->lines[i].text);
		p->lines[i].text = NULL;
	}
	p->lines_n = 0;
}

static void add_typed(struct playback *p, const struct terminal_record *rec)
{
	auto_buf struct buf text = { 0 };
	size_t n = strlen(p->typed), more, max = sizeof(p->typed) - 1;

	if (rec->type == TERMINAL_WITHHELD)
		buf_printf(&text, "[%llu hidden]", (unsigned long long)rec->bytes);
	for (size_t i = 0; rec->type == TERMINAL_INPUT && i < rec->data.n; i++) {
		unsigned char c = (unsigned char)rec->data.p[i];

		if (c < 0x20)
			buf_printf(&text, "^%c", c + 0x40);
		else
			buf_addc(&text, c < 0x7f ? (char)c : '?');
	}
	if (text.failed)
		return;
	more = MIN(text.n, max);
	if (n + more > max) {
		size_t drop = n + more - max;

		memmove(p->typed, p->typed + drop, n - drop);
		n -= drop;
	}
	memcpy(p->typed + n, text.p ? text.p + text.n - more : "", more);
	p->typed[n + more] = 0;
}

static int apply_tty(struct playback *p, const struct terminal_record *rec)
{
	char text[64];

	switch (rec->type) {
	case TERMINAL_OUTPUT:
		return screen_feed(p->screen, rec->stream, rec->data);
	case TERMINAL_RESIZE:
		screen_resize(p->screen, rec->rows, rec->cols);
		return 0;
	case TERMINAL_CUT:
		snprintf(text, sizeof(text), "\r\n[%llu bytes not recorded]\r\n",
			 (unsigned long long)rec->bytes);
		return screen_feed(p->screen, TERMINAL_TTY, str_from(text));
	case TERMINAL_INPUT:
	case TERMINAL_WITHHELD:
		add_typed(p, rec);
		return 0;
	}
	return 0;
}

/* ---- on ---- */

uint64_t playback_now(const struct playback *p)
{
	return p->now;
}

uint64_t playback_length(const struct playback *p)
{
	return p->length;
}

uint64_t playback_next(const struct playback *p)
{
	uint64_t at = MIN(p->events.at, p->tty.at);

	return p->opt.to && at > p->opt.to ? PLAYBACK_NEVER : at;
}

int playback_step(struct playback *p, uint64_t to, size_t budget, struct err *err)
{
	size_t used = 0;
	int r = 0;

	while (r >= 0 && playback_next(p) <= MIN(to, PLAYBACK_NEVER - 1)) {
		bool tty = p->tty.at <= p->events.at;
		uint64_t at = playback_next(p);

		if (used >= budget)
			return 1;
		p->now = MAX(p->now, at);
		p->length = MAX(p->length, at);
		r = tty ? apply_tty(p, &p->tty.rec) : add_line(p);
		if (r < 0)
			return err_set(err, r, "replay: %m");
		used += tty ? 32 + p->tty.rec.data.n : 512;
		r = tty ? tty_cursor_next(&p->tty, p->start, err)
			: event_cursor_next(&p->events, p->start, err);
	}
	p->now = MAX(p->now, to);
	return r < 0 ? r : 0;
}

/* ---- jumps ---- */

/* The size in force; what was seen of sizes so far. */
static void size_at(const struct playback *p, uint64_t at, unsigned *rows, unsigned *cols)
{
	*rows = *cols = 0;
	for (size_t i = 0; i < p->sizes_n && (i == 0 || p->sizes[i].at <= at); i++) {
		*rows = p->sizes[i].rows;
		*cols = p->sizes[i].cols;
	}
}

/* Where the context begins: the first record with so much output behind it up to `to`. */
struct window {
	struct {
		uint64_t seq;
		size_t bytes, lines;
	} v[4096];
	size_t n, first; /* in all; the oldest that counts */
	size_t bytes, lines;
};

static size_t count_lines(struct str s)
{
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++)
		n += s.p[i] == '\n';
	return n;
}

static void window_add(struct window *w, const struct tty_cursor *c)
{
	size_t i = w->n++ % ARRAY_SIZE(w->v);

	w->v[i].seq = c->seq;
	w->v[i].bytes = c->rec.type == TERMINAL_OUTPUT ? c->rec.data.n : 0;
	w->v[i].lines = w->v[i].bytes ? count_lines(c->rec.data) : 0;
	w->bytes += w->v[i].bytes;
	w->lines += w->v[i].lines;
	while (w->n - w->first > 1 &&
	       (w->n - w->first >= ARRAY_SIZE(w->v) || w->bytes > SCREEN_CONTEXT ||
		w->lines > SCREEN_CONTEXT_LINES)) {
		size_t k = w->first++ % ARRAY_SIZE(w->v);

		w->bytes -= w->v[k].bytes;
		w->lines -= w->v[k].lines;
	}
}

static int seek_tty(struct playback *p, uint64_t to, struct err *err)
{
	auto_free struct window *w = calloc(1, sizeof(*w));
	bool start = true;
	unsigned rows, cols;
	int r;

	if (!w)
		return err_set(err, ENOMEM, "replay: %m");
	r = terminal_reader_seek_back(p->tty.reader, p->start + MIN(to, INT64_MAX), SCREEN_CONTEXT,
				      &start, err);
	while (r >= 0 && (r = tty_cursor_next(&p->tty, p->start, err)) == 1 && p->tty.at <= to)
		window_add(w, &p->tty);
	if (r < 0)
		return r;
	p->partial = !start || w->first > 0;
	size_at(p, p->partial ? to : 0, &rows, &cols);
	r = screen_reset(p->screen, rows, cols);
	if (r < 0)
		return err_set(err, r, "replay: %m");
	if (!w->n)
		return 0;
	r = terminal_reader_seek(p->tty.reader, w->v[w->first % ARRAY_SIZE(w->v)].seq - 1, err);
	while (r >= 0 && (r = tty_cursor_next(&p->tty, p->start, err)) == 1 && p->tty.at <= to) {
		r = apply_tty(p, &p->tty.rec);
		if (r < 0)
			return err_set(err, r, "replay: %m");
	}
	return MIN(r, 0);
}

static int seek_events(struct playback *p, uint64_t to, struct err *err)
{
	bool start;
	int r = journal_reader_seek_back(p->events.reader, p->start + MIN(to, INT64_MAX),
					 EVENT_CONTEXT, &start, err);

	while (r >= 0 && (r = event_cursor_next(&p->events, p->start, err)) == 1 &&
	       p->events.at <= to) {
		r = add_line(p);
		if (r < 0)
			return err_set(err, r, "replay: %m");
	}
	return MIN(r, 0);
}

static int seek_start(struct playback *p, struct err *err)
{
	unsigned rows, cols;
	int r = journal_reader_seek(p->events.reader, 0, err);

	if (r == 0)
		r = event_cursor_next(&p->events, p->start, err);
	if (r >= 0 && p->screen) {
		size_at(p, 0, &rows, &cols);
		r = screen_reset(p->screen, rows, cols);
		if (r == 0)
			r = terminal_reader_seek(p->tty.reader, 0, err);
		if (r == 0)
			r = tty_cursor_next(&p->tty, p->start, err);
	}
	p->partial = false;
	return MIN(r, 0);
}

int playback_seek(struct playback *p, uint64_t to, bool exact, struct err *err)
{
	int r;

	to = MIN(to, p->length);
	clear_lines(p);
	p->typed[0] = 0;
	p->now = exact ? 0 : to;
	if (exact || to == 0) {
		r = seek_start(p, err);
		return r < 0 || exact ? r : MIN(playback_step(p, 0, SIZE_MAX, err), 0);
	}
	r = seek_events(p, to, err);
	if (r == 0 && p->screen)
		r = seek_tty(p, to, err);
	return r;
}

bool playback_is_partial(const struct playback *p)
{
	return p->partial;
}

const struct screen *playback_screen(const struct playback *p)
{
	return p->screen;
}

const char *playback_typed(const struct playback *p)
{
	return p->typed;
}

const struct playback_line *playback_line(const struct playback *p, size_t i)
{
	if (i >= MIN(p->lines_n, (size_t)PLAYBACK_LINES))
		return NULL;
	return &p->lines[(p->lines_n - 1 - i) % PLAYBACK_LINES];
}

/* ---- open ---- */

static int add_size(struct playback *p, const struct tty_cursor *c)
{
	if (!p->sizes)
		p->sizes = calloc(SIZES_MAX, sizeof(*p->sizes));
	if (!p->sizes)
		return -ENOMEM;
	if (p->sizes_n == SIZES_MAX)
		return 0;
	p->sizes[p->sizes_n].rows = c->rec.rows;
	p->sizes[p->sizes_n].cols = c->rec.cols;
	p->sizes[p->sizes_n++].at = c->at;
	return 0;
}

/* A jump must know the size without going the whole way. */
static int find_sizes(struct playback *p, struct err *err)
{
	AUTO(terminal_reader) struct terminal_reader *r = NULL;
	struct tty_cursor c = { .at = PLAYBACK_NEVER };
	uint64_t bytes = 0;
	int s = terminal_reader_open(&r, p->bundle, err);

	c.reader = r;
	while (s >= 0 && bytes < SIZES_SCAN && (s = tty_cursor_next(&c, p->start, err)) == 1) {
		bytes += c.rec.data.n + TERMINAL_RECORD_LEN;
		if (c.rec.type == TERMINAL_RESIZE && add_size(p, &c) < 0)
			return err_set(err, ENOMEM, "replay: %m");
	}
	/* damage is for when it is played; then all before it is there */
	return 0;
}

/* The time of the last record of either kind; what cannot be read is no reason not to play the rest. */
static void find_length(struct playback *p)
{
	struct event_cursor ev = { .at = PLAYBACK_NEVER };
	struct tty_cursor tty = { .at = PLAYBACK_NEVER };
	bool start;

	if (event_cursor_open(&ev, p->bundle, NULL) == 0 &&
	    journal_reader_seek_back(ev.reader, UINT64_MAX, 1, &start, NULL) == 0)
		while (event_cursor_next(&ev, p->start, NULL) == 1)
			p->length = MAX(p->length, ev.at);
	if (tty_cursor_open(&tty, p->bundle, NULL) == 0 &&
	    terminal_reader_seek_back(tty.reader, UINT64_MAX, 1, &start, NULL) == 0)
		while (tty_cursor_next(&tty, p->start, NULL) == 1)
			p->length = MAX(p->length, tty.at);
	event_cursor_done(&ev);
	tty_cursor_done(&tty);
}

static int open_all(struct playback *p, struct err *err)
{
	int r = event_cursor_open(&p->events, p->bundle, err);

	if (r == 0)
		r = event_cursor_next(&p->events, 0, err);
	if (r == 1) {
		p->start = p->timeline.start = p->events.at;
		p->events.at = 0;
	}
	if (r >= 0)
		r = tty_cursor_open(&p->tty, p->bundle, err);
	if (r == 0)
		r = tty_cursor_next(&p->tty, p->start, err);
	if (r == 1) {
		p->screen = screen_new(0, 0);
		r = p->screen ? find_sizes(p, err) : err_set(err, ENOMEM, "replay: %m");
	}
	if (r == 0)
		r = journal_reader_open(&p->index, p->bundle, err);
	if (r < 0)
		return r;
	find_length(p);
	if (p->opt.to)
		p->length = MIN(p->length, p->opt.to);
	return playback_seek(p, 0, true, err);
}

int playback_open(struct playback **ret, int bundle, const struct playback_options *opt,
		  struct err *err)
{
	struct playback *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return err_set(err, ENOMEM, "replay: %m");
	p->bundle = bundle;
	p->opt = *opt;
	p->timeline.colour = opt->colour;
	p->events.at = p->tty.at = PLAYBACK_NEVER;
	buf_init(&p->text, 1 << 20);
	arena_init(&p->index_arena, EVENT_MEM_MAX);
	r = open_all(p, err);
	if (r < 0) {
		playback_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

void playback_free(struct playback *p)
{
	if (!p)
		return;
	playback_find_done(p);
	event_cursor_done(&p->events);
	tty_cursor_done(&p->tty);
	journal_reader_free(p->index);
	arena_done(&p->index_arena);
	free(p->index_ev);
	screen_free(p->screen);
	clear_lines(p);
	buf_done(&p->text);
	free(p->sizes);
	free(p->marks);
	free(p);
}
