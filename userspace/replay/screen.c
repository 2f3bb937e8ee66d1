// SPDX-License-Identifier: Apache-2.0
#include "userspace/replay/screen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <vterm.h>

#include "userspace/base/auto.h"
#include "userspace/base/plain.h"
#include "userspace/replay/neutral.h"

#define REPLACEMENT 0xfffd

struct screen {
	VTerm *term;
	VTermScreen *cells;
	struct neutral in[SCREEN_STREAMS];
	struct buf text, wide, clamped;
	char last[4];
	size_t last_n;
	int rows, cols;
	bool no_cursor;
	VTermPos cursor;
};

static int clamp(unsigned n, int none)
{
	return n == 0 ? none : (int)MIN(n, (unsigned)SCREEN_SIDE_MAX);
}

/* Questions do not get here; should one, nobody is answered. */
static void no_answer(const char *bytes, size_t n, void *user)
{
	(void)bytes;
	(void)n;
	(void)user;
}

static int on_property(VTermProp prop, VTermValue *v, void *user)
{
	struct screen *s = user;

	if (prop == VTERM_PROP_CURSORVISIBLE)
		s->no_cursor = !v->boolean;
	return 1;
}

static int on_cursor(VTermPos pos, VTermPos old, int visible, void *user)
{
	struct screen *s = user;

	(void)old;
	(void)visible;
	s->cursor = pos;
	return 1;
}

static const VTermScreenCallbacks CALLBACKS = { .settermprop = on_property,
						.movecursor = on_cursor };

int screen_reset(struct screen *s, unsigned rows, unsigned cols)
{
	int r = clamp(rows, 24), c = clamp(cols, 80);

	if (s->term && (r != s->rows || c != s->cols)) {
		vterm_free(s->term);
		s->term = NULL;
	}
	s->rows = r;
	s->cols = c;
	s->no_cursor = false;
	s->cursor = (VTermPos){ 0, 0 };
	memset(s->in, 0, sizeof(s->in));
	if (!s->term) {
		s->term = vterm_new(r, c);
		if (!s->term)
			return -ENOMEM;
		vterm_set_utf8(s->term, 1);
		vterm_output_set_callback(s->term, no_answer, NULL);
		s->cells = vterm_obtain_screen(s->term);
		vterm_screen_set_callbacks(s->cells, &CALLBACKS, s);
		vterm_screen_enable_altscreen(s->cells, 1);
		vterm_screen_set_damage_merge(s->cells, VTERM_DAMAGE_SCROLL);
	}
	vterm_screen_reset(s->cells, 1);
	return 0;
}

struct screen *screen_new(unsigned rows, unsigned cols)
{
	struct screen *s = calloc(1, sizeof(*s));

	if (s && screen_reset(s, rows, cols) == 0)
		return s;
	free(s);
	return NULL;
}

void screen_free(struct screen *s)
{
	if (!s)
		return;
	if (s->term)
		vterm_free(s->term);
	buf_done(&s->text);
	buf_done(&s->wide);
	buf_done(&s->clamped);
	free(s);
}

void screen_resize(struct screen *s, unsigned rows, unsigned cols)
{
	int r = clamp(rows, s->rows), c = clamp(cols, s->cols);

	if (r == s->rows && c == s->cols)
		return;
	vterm_set_size(s->term, r, c);
	s->rows = r;
	s->cols = c;
	s->cursor.row = MIN(s->cursor.row, r - 1);
	s->cursor.col = MIN(s->cursor.col, c - 1);
}

void screen_size(const struct screen *s, unsigned *ret_rows, unsigned *ret_cols)
{
	*ret_rows = (unsigned)s->rows;
	*ret_cols = (unsigned)s->cols;
}

/* The character that a repetition repeats. */
static void note_last(struct screen *s, char c)
{
	if ((unsigned char)c < 0x20)
		s->last_n = 0;
	else if ((unsigned char)c < 0x80 || (unsigned char)c >= 0xc0)
		s->last[0] = c, s->last_n = 1;
	else if (s->last_n && s->last_n < sizeof(s->last))
		s->last[s->last_n++] = c;
}

/* How far, how often: libvterm believes any number, and would go on for hours; it repeats a character that was not
 * there for ever. No screen needs a count beyond its side, and repetitions are written out. The neutraliser gives
 * sequences out whole; what it lets pass with a mark (?1049) is no count. */
static struct str clamp_counts(struct screen *s, struct str in)
{
	struct buf *out = &s->clamped;

	buf_reset(out);
	for (size_t i = 0; i < in.n;) {
		size_t start = out->n;
		unsigned n = 0;

		if (in.n - i < 3 || in.p[i] != 0x1b || in.p[i + 1] != '[' || in.p[i + 2] == '?') {
			note_last(s, in.p[i]);
			buf_addc(out, in.p[i++]);
			continue;
		}
		buf_add(out, in.p + i, 2);
		for (i += 2; i < in.n && in.p[i] >= '0' && in.p[i] <= ';';) {
			if (in.p[i] > '9') {
				buf_addc(out, in.p[i++]);
				continue;
			}
			for (n = 0; i < in.n && in.p[i] >= '0' && in.p[i] <= '9'; i++)
				n = MIN(n * 10 + (unsigned)(in.p[i] - '0'), SCREEN_SIDE_MAX);
			buf_printf(out, "%u", n);
		}
		if (i == in.n)
			break;
		if (in.p[i] == 'b') {
			out->n = MIN(out->n, start);
			for (n = MAX(n, 1); n; n--)
				buf_add(out, s->last, s->last_n);
		} else {
			buf_addc(out, in.p[i]);
		}
		i++;
	}
	return (struct str){ out->p, out->n };
}

int screen_feed(struct screen *s, unsigned stream, struct str bytes)
{
	struct str text;

	if (stream >= SCREEN_STREAMS)
		return -EINVAL;
	buf_reset(&s->text);
	if (neutral_feed(&s->in[stream], bytes, &s->text) < 0)
		return -ENOMEM;
	text = clamp_counts(s, (struct str){ s->text.p, s->text.n });
	if (s->clamped.failed)
		return -ENOMEM;
	if (stream) {
		buf_reset(&s->wide);
		for (size_t i = 0; i < text.n; i++) {
			if (text.p[i] == '\n')
				buf_addc(&s->wide, '\r');
			buf_addc(&s->wide, text.p[i]);
		}
		if (s->wide.failed)
			return -ENOMEM;
		text = (struct str){ s->wide.p, s->wide.n };
	}
	if (text.n)
		vterm_input_write(s->term, text.p, text.n);
	vterm_screen_flush_damage(s->cells);
	return 0;
}

/* ---- cells -> a line ---- */

static void put_char(struct buf *out, uint32_t c)
{
	if (c < 0x80) {
		buf_addc(out, (char)c);
	} else if (c < 0x800) {
		buf_addc(out, (char)(0xc0 | c >> 6));
		buf_addc(out, (char)(0x80 | (c & 0x3f)));
	} else if (c < 0x10000) {
		buf_addc(out, (char)(0xe0 | c >> 12));
		buf_addc(out, (char)(0x80 | (c >> 6 & 0x3f)));
		buf_addc(out, (char)(0x80 | (c & 0x3f)));
	} else {
		buf_addc(out, (char)(0xf0 | c >> 18));
		buf_addc(out, (char)(0x80 | (c >> 12 & 0x3f)));
		buf_addc(out, (char)(0x80 | (c >> 6 & 0x3f)));
		buf_addc(out, (char)(0x80 | (c & 0x3f)));
	}
}

static uint32_t safe_char(uint32_t c)
{
	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000) || is_deceptive(c))
		return REPLACEMENT;
	return c;
}

static void put_cell(const VTermScreenCell *cell, struct buf *out)
{
	if (!cell->chars[0] || cell->chars[0] == (uint32_t)-1) {
		buf_addc(out, ' ');
		return;
	}
	for (int i = 0; i < VTERM_MAX_CHARS_PER_CELL && cell->chars[i]; i++)
		put_char(out, safe_char(cell->chars[i]));
}

static void put_colour(const VTermColor *c, int base, struct buf *out)
{
	if (VTERM_COLOR_IS_INDEXED(c))
		buf_printf(out, ";%d;5;%u", base, c->indexed.idx);
	else
		buf_printf(out, ";%d;2;%u;%u;%u", base, c->rgb.red, c->rgb.green, c->rgb.blue);
}

static void put_style(const VTermScreenCell *c, struct buf *out)
{
	static const struct {
		const char *code;
	} codes[] = { { ";1" }, { ";4" }, { ";3" }, { ";7" }, { ";9" } };
	const bool on[] = { c->attrs.bold, c->attrs.underline, c->attrs.italic, c->attrs.reverse,
			    c->attrs.strike };

	buf_addz(out, "\033[0");
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (on[i])
			buf_addz(out, codes[i].code);
	if (!VTERM_COLOR_IS_DEFAULT_FG(&c->fg))
		put_colour(&c->fg, 38, out);
	if (!VTERM_COLOR_IS_DEFAULT_BG(&c->bg))
		put_colour(&c->bg, 48, out);
	buf_addc(out, 'm');
}

static bool same_style(const VTermScreenCell *a, const VTermScreenCell *b)
{
	return a->attrs.bold == b->attrs.bold && a->attrs.underline == b->attrs.underline &&
	       a->attrs.italic == b->attrs.italic && a->attrs.reverse == b->attrs.reverse &&
	       a->attrs.strike == b->attrs.strike && vterm_color_is_equal(&a->fg, &b->fg) &&
	       vterm_color_is_equal(&a->bg, &b->bg);
}

static bool is_plain(const VTermScreenCell *c)
{
	return !c->attrs.bold && !c->attrs.underline && !c->attrs.italic && !c->attrs.reverse &&
	       !c->attrs.strike && VTERM_COLOR_IS_DEFAULT_FG(&c->fg) &&
	       VTERM_COLOR_IS_DEFAULT_BG(&c->bg);
}

int screen_row(const struct screen *s, unsigned row, unsigned cols, bool colour, struct buf *out)
{
	VTermScreenCell last = { 0 }, cell;
	bool styled = false, first = true;
	int end = MIN(s->cols, (int)MIN(cols, (unsigned)SCREEN_SIDE_MAX));

	for (int col = 0; (int)row < s->rows && col < end;) {
		const VTermPos pos = { (int)row, col };
		int width;

		if (!vterm_screen_get_cell(s->cells, pos, &cell))
			break;
		width = cell.width < 1 ? 1 : cell.width;
		if (col + width > end)
			break;
		if (colour && (first ? !is_plain(&cell) : !same_style(&cell, &last))) {
			put_style(&cell, out);
			styled = true;
		}
		first = false;
		last = cell;
		put_cell(&cell, out);
		col += width;
	}
	if (styled)
		buf_addz(out, "\033[0m");
	return out->failed ? -ENOMEM : 0;
}

bool screen_cursor(const struct screen *s, unsigned *ret_row, unsigned *ret_col)
{
	*ret_row = (unsigned)s->cursor.row;
	*ret_col = (unsigned)s->cursor.col;
	return !s->no_cursor;
}
