// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/replay_view.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/base/json.h"

#define LINES_MIN 3
#define LINES_MAX 14

static const char *const HELP[] = {
	"space        pause, go on            . ,      one record on, a little back",
	"right left   5 seconds on, back      ] [      a minute on, back",
	"home end     begin, end              g        go to a time: 90, 1:30, 50%",
	"+ -          twice, half as fast     1        as it was",
	"n N          next, previous alert    /        search text, / enter: again",
	"r            screen from the start   q        leave",
	"",
	"The screen after a jump is made of the last 64 KiB of output; '~' says that",
	"more came before. Typed keys are shown when they were recorded.",
};

const char *view_time(uint64_t ns, char text[24])
{
	uint64_t ms = ns / NSEC_PER_MSEC, s = ms / 1000;

	if (s >= 3600)
		snprintf(text, 24, "%llu:%02u:%02u.%03u", (unsigned long long)(s / 3600),
			 (unsigned)(s / 60 % 60), (unsigned)(s % 60), (unsigned)(ms % 1000));
	else
		snprintf(text, 24, "%u:%02u.%03u", (unsigned)(s / 60), (unsigned)(s % 60),
			 (unsigned)(ms % 1000));
	return text;
}

void view_forget(struct view *v)
{
	for (size_t i = 0; i < VIEW_ROWS_MAX; i++)
		buf_done(&v->shown[i]);
}

void view_done(struct view *v)
{
	view_forget(v);
	buf_done(&v->line);
	buf_done(&v->out);
}

/* ---- one line ---- */

/* At most `cols` columns of a line that is safe already. Colours pass, and are undone. What may be wide counts as
 * two columns: too short is better than too long. */
static void clip(const char *text, unsigned cols, struct buf *out)
{
	struct str left = str_from(text);
	bool coloured = false;

	while (left.n) {
		size_t n = utf8_length(left);
		unsigned width = n >= 3 ? 2 : 1;

		if (left.p[0] == '\033') { /* ours: ESC [ ... m */
			const char *m = memchr(left.p, 'm', left.n);

			n = m ? (size_t)(m - left.p) + 1 : left.n;
			width = 0;
			coloured = true;
		}
		if (!n || width > cols)
			break;
		buf_add(out, left.p, n);
		cols -= width;
		left.p += n;
		left.n -= n;
	}
	if (coloured)
		buf_addz(out, "\033[0m");
}

/* v->line is what row `row` is to show. */
static void put_row(struct view *v, unsigned row)
{
	struct buf *old = &v->shown[row];

	if (old->p && old->n == v->line.n && !memcmp(old->p, v->line.p ? v->line.p : "", old->n)) {
		buf_reset(&v->line);
		return;
	}
	buf_printf(&v->out, "\033[%u;1H", row + 1);
	buf_add(&v->out, v->line.p, v->line.n);
	buf_addz(&v->out, "\033[0m\033[K");
	buf_reset(old);
	buf_add(old, v->line.p, v->line.n);
	if (!v->line.n)
		buf_reserve(old, 1); /* empty, but known to be */
	buf_reset(&v->line);
}

/* ---- parts ---- */

static void draw_screen(struct view *v, const struct playback *p, unsigned height)
{
	const struct screen *s = playback_screen(p);
	unsigned rows, cols, row, col, top = 0;

	screen_size(s, &rows, &cols);
	screen_cursor(s, &row, &col);
	if (row >= height) /* the part where something happens */
		top = row - height + 1;
	for (unsigned i = 0; i < height; i++) {
		if (top + i < rows)
			screen_row(s, top + i, v->cols, v->colour, &v->line);
		put_row(v, i);
	}
}

static void draw_help(struct view *v, unsigned height)
{
	for (unsigned i = 0; i < height; i++) {
		if (i < ARRAY_SIZE(HELP))
			clip(HELP[i], v->cols, &v->line);
		put_row(v, i);
	}
}

static void draw_bar(struct view *v, const struct playback *p, unsigned row)
{
	uint64_t length = MAX(playback_length(p), 1), now = playback_now(p);
	unsigned at = (unsigned)((double)now / (double)length * (v->cols - 1));

	for (unsigned i = 0; i < v->cols; i++) {
		uint64_t from = (uint64_t)((double)length / v->cols * i);
		uint64_t to = (uint64_t)((double)length / v->cols * (i + 1));
		bool alert = playback_alert_within(p, from, i + 1 == v->cols ? UINT64_MAX : to);

		if (alert && v->colour)
			buf_addz(&v->line, "\033[31m");
		buf_addc(&v->line, i == at ? '|' : alert ? '!' : i < at ? '=' : '-');
		if (alert && v->colour)
			buf_addz(&v->line, "\033[0m");
	}
	put_row(v, row);
}

static void draw_lines(struct view *v, const struct playback *p, unsigned row, unsigned height)
{
	for (unsigned i = 0; i < height; i++) {
		const struct playback_line *l = playback_line(p, height - 1 - i);

		if (l)
			clip(l->text, v->cols, &v->line);
		put_row(v, row + i);
	}
}

static void draw_state(struct view *v, const struct playback *p, const struct view_state *st,
		       unsigned row)
{
	char now[24], length[24], line[400];
	const struct screen *s = playback_screen(p);
	unsigned rows = 0, cols = 0;
	int n;

	if (s)
		screen_size(s, &rows, &cols);
	if (st->prompt)
		n = snprintf(line, sizeof(line), "%s%s_", st->prompt, st->typed);
	else
		n = snprintf(line, sizeof(line), "%s %g x  %s / %s  %zu alert%s",
			     st->searching ? "SEARCH"
			     : st->playing ? "PLAY"
					   : "PAUSE",
			     (double)st->speed / 1000, view_time(playback_now(p), now),
			     view_time(playback_length(p), length), playback_alerts(p),
			     playback_alerts(p) == 1 ? "" : "s");
	if (!st->prompt && n > 0 && (size_t)n < sizeof(line)) {
		if (s)
			n += snprintf(line + n, sizeof(line) - (size_t)n, "  %ux%u%s", cols, rows,
				      playback_is_partial(p) ? " ~" : "");
		if (st->message[0])
			snprintf(line + n, sizeof(line) - (size_t)n, "  %s", st->message);
		else if (playback_typed(p)[0])
			snprintf(line + n, sizeof(line) - (size_t)n, "  typed: %s",
				 playback_typed(p));
		else
			snprintf(line + n, sizeof(line) - (size_t)n, "  ? help");
	}
	buf_addz(&v->line, "\033[7m");
	clip(line, v->cols, &v->line);
	put_row(v, row);
}

int view_draw(struct view *v, const struct playback *p, const struct view_state *st)
{
	unsigned lines, top, row = 0;

	v->rows = MIN(MAX(v->rows, 4), VIEW_ROWS_MAX);
	v->cols = MIN(MAX(v->cols, 10), SCREEN_SIDE_MAX);
	lines = MIN(MAX(v->rows / 3, LINES_MIN), LINES_MAX);
	top = v->rows > lines + 2 ? v->rows - lines - 2 : 0;
	if (!playback_screen(p) && !st->help) {
		lines = v->rows - 2;
		top = 0;
	}
	lines = MIN(lines, v->rows - 2);
	buf_reset(&v->out);
	if (st->help)
		draw_help(v, top);
	else if (top)
		draw_screen(v, p, top);
	row = top;
	draw_bar(v, p, row++);
	draw_lines(v, p, row, lines);
	draw_state(v, p, st, row + lines);
	if (v->out.failed || v->line.failed)
		return -ENOMEM;
	return fd_write_all(STDOUT_FILENO, v->out.p, v->out.n);
}
