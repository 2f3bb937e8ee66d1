// SPDX-License-Identifier: Apache-2.0
#include "userspace/redact/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/redact/internal.h"

#define ESC 0x1b

/* A text as it reads, and where its bytes were. */
struct view {
	struct buf plain;
	struct buf place; /* uint32_t a byte of `plain`: where it was */
};

struct redact_stream {
	struct redact *x;
	struct buf held;
	struct view view, edited; /* without colours; and without what was rubbed out */
	struct span first[SPANS_MAX];
	size_t look_at; /* a secret grows: not before so much is held, or it may have ended */
	bool was_cut;	/* what is held may begin inside of a secret */
};

int redact_stream_new(struct redact_stream **ret, const struct redactor *r)
{
	AUTO(redact_stream) struct redact_stream *s = calloc(1, sizeof(*s));
	int e;

	if (!s)
		return -ENOMEM;
	e = redact_new(&s->x, r);
	if (e < 0)
		return e;
	*ret = take_ptr(s);
	return 0;
}

void redact_stream_free(struct redact_stream *s)
{
	if (!s)
		return;
	redact_free(s->x);
	buf_done(&s->held);
	for (int i = 0; i < 2; i++) {
		struct view *v = i ? &s->edited : &s->view;

		buf_done(&v->plain);
		buf_done(&v->place);
	}
	free(s);
}

bool redact_stream_holds(const struct redact_stream *s)
{
	return s->held.n > 0;
}

struct redact *redact_stream_redact(struct redact_stream *s)
{
	return s->x;
}

/* ---- looking through colours ---- */

/* ECMA-48 5.4: ESC [, parameters, intermediates, a final byte. 0: no whole one begins here. */
static size_t csi_length(struct str s)
{
	size_t i = 2;

	if (s.n < 3 || s.p[0] != ESC || s.p[1] != '[')
		return 0;
	while (i < s.n && i < 64 && s.p[i] >= 0x20 && s.p[i] <= 0x3f)
		i++;
	return i < s.n && s.p[i] >= 0x40 && s.p[i] <= 0x7e ? i + 1 : 0;
}

static bool is_editing(char c)
{
	return c == '\b' || c == 0x7f || c == 0x15 || c == 0x17;
}

/* Four times memchr() is many times faster than one look at each byte. */
static bool has_editing(struct str s)
{
	return s.n && (memchr(s.p, '\b', s.n) || memchr(s.p, 0x7f, s.n) || memchr(s.p, 0x15, s.n) ||
		       memchr(s.p, 0x17, s.n));
}

static bool ends_line(const struct buf *b)
{
	return !b->n || b->p[b->n - 1] == '\n' || b->p[b->n - 1] == '\r';
}

static void rub_char(struct buf *b)
{
	if (ends_line(b))
		return;
	while (b->n > 1 && (b->p[b->n - 1] & 0xc0) == 0x80)
		b->n--;
	b->n--;
}

/* Backspace, DEL, ^U and ^W as a terminal's line editing has them: of what is typed, and how its echo shows it. */
static void rub(struct view *v, char c)
{
	struct buf *b = &v->plain;

	if (c == '\b' || c == 0x7f)
		rub_char(b);
	while (c == 0x15 && !ends_line(b))
		b->n--;
	while (c == 0x17 && !ends_line(b) && b->p[b->n - 1] == ' ')
		b->n--;
	while (c == 0x17 && !ends_line(b) && b->p[b->n - 1] != ' ')
		b->n--;
	v->place.n = b->n * sizeof(uint32_t);
}

static int strip(struct view *v, struct str in, bool edit, struct str *ret)
{
	buf_reset(&v->plain);
	buf_reset(&v->place);
	for (size_t i = 0; i < in.n;) {
		size_t skip = csi_length((struct str){ in.p + i, in.n - i });
		uint32_t at = (uint32_t)i;

		if (skip) {
			i += skip;
			continue;
		}
		if (edit && is_editing(in.p[i])) {
			rub(v, in.p[i++]);
			continue;
		}
		buf_addc(&v->plain, in.p[i++]);
		buf_add(&v->place, &at, sizeof(at));
	}
	if (v->plain.failed || v->place.failed)
		return -ENOMEM;
	*ret = (struct str){ v->plain.p, v->plain.n };
	return 0;
}

static uint32_t place_of(const struct view *v, uint32_t i)
{
	uint32_t at;

	memcpy(&at, v->place.p + i * sizeof(at), sizeof(at));
	return at;
}

static void to_places(struct redact *x, const struct view *v)
{
	for (size_t i = 0; i < x->n && !x->whole; i++) {
		x->span[i].from = place_of(v, x->span[i].from);
		x->span[i].to = place_of(v, x->span[i].to - 1) + 1;
	}
}

/* What is looked through: as it came, without colours, and as it reads after editing. A part of a secret may pass for
 * a colour, so none of them is enough. */
enum { AS_IT_CAME, PLAIN, EDITED, VIEWS };

struct texts {
	struct str v[VIEWS];
};

static int by_place(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

/* Over both; what is read from its first byte to its last tells what it is. */
static void cover(struct span *s, const struct span *other, int view)
{
	struct span both = *s;

	if (other->from <= s->from && other->to >= s->to &&
	    other->to - other->from > s->to - s->from) {
		both = *other;
		both.view = (uint8_t)view;
	}
	both.from = MIN(s->from, other->from);
	both.to = MAX(s->to, other->to);
	*s = both;
}

/* One that was made wider may reach the next, or be over all of it. */
static void drop_covered(struct redact *x)
{
	size_t n = 0;

	for (size_t i = 0; i < x->n; i++) {
		struct span s = x->span[i];

		if (n)
			s.from = MAX(s.from, x->span[n - 1].to);
		if (s.from < s.to)
			x->span[n++] = s;
	}
	x->n = n;
}

/* Adds to x->span, which are of `view`, those of `first` [n]; where two overlap, one is left, over both. */
static void unite(struct redact *x, const struct span *first, size_t n, int view)
{
	size_t found = x->n, kept = 0;
	struct span more[SPANS_MAX];

	memcpy(more, x->span, found * sizeof(*more));
	memcpy(x->span, first, n * sizeof(*first));
	for (size_t i = 0; i < found; i++) {
		bool apart = true;

		for (size_t k = 0; k < n; k++) {
			struct span *s = &x->span[k];

			if (more[i].from >= s->to || more[i].to <= s->from)
				continue;
			cover(s, &more[i], view);
			apart = false;
		}
		if (apart)
			more[kept++] = more[i];
	}
	x->whole |= n + kept > SPANS_MAX;
	for (size_t i = 0; i < kept && !x->whole; i++) {
		x->span[n + i] = more[i];
		x->span[n + i].view = (uint8_t)view;
	}
	x->n = x->whole ? n : n + kept;
	qsort(x->span, x->n, sizeof(x->span[0]), by_place);
	drop_covered(x);
}

/* The same again, with other eyes. */
static int find_in_view(struct redact_stream *s, struct str in, int view, struct texts *ret)
{
	struct view *v = view == EDITED ? &s->edited : &s->view;
	struct redact *x = s->x;
	size_t n = x->n;
	int e;

	if (x->whole)
		return 0;
	e = strip(v, in, view == EDITED, &ret->v[view]);
	if (e < 0)
		return e;
	memcpy(s->first, x->span, n * sizeof(*s->first));
	find_secrets(x, ret->v[view], WORDS_NONE);
	to_places(x, v);
	if (!x->whole)
		unite(x, s->first, n, view);
	return 0;
}

/* Leaves x->span by places of `in`. A tag is about what is read in its view: *ret is what secret_from and secret_to are
 * places of. */
static int find(struct redact_stream *s, struct str in, struct texts *ret)
{
	int e = 0;

	*ret = (struct texts){ { in, in, in } };
	find_secrets(s->x, in, WORDS_NONE);
	if (in.n && memchr(in.p, ESC, in.n))
		e = find_in_view(s, in, PLAIN, ret);
	if (e == 0 && has_editing(in))
		e = find_in_view(s, in, EDITED, ret);
	return e;
}

/* Colours that begin or end inside of what is taken out must not be lost. */
static void keep_colours(struct str in, const struct span *p, struct buf *out)
{
	for (size_t i = p->from; i < p->to;) {
		size_t n = csi_length((struct str){ in.p + i, p->to - i });

		if (n && in.p[i + n - 1] == 'm')
			buf_add(out, in.p + i, n);
		i += n ? n : 1;
	}
}

/* ---- what goes and what stays ---- */

static int put(struct redact_stream *s, size_t cut, const struct texts *text, struct buf *out)
{
	const struct str in = { s->held.p, cut };
	struct redact *x = s->x;
	size_t at = 0;

	if (x->whole) {
		add_whole_mark(x, in, out);
		at = cut;
	}
	for (size_t i = 0; i < x->n && !x->whole && x->span[i].to <= cut; i++) {
		buf_add(out, in.p + at, x->span[i].from - at);
		add_mark(x, text->v[x->span[i].view], &x->span[i], out);
		keep_colours(in, &x->span[i], out);
		at = x->span[i].to;
	}
	buf_add(out, in.p + at, cut - at);
	buf_consume(&s->held, cut);
	return out->failed ? -ENOMEM : 0;
}

/* A secret over the cut goes with it as a whole, or, when it may still grow, waits; but not for ever. */
static size_t move_cut(const struct redact *x, size_t cut, size_t n)
{
	for (size_t i = 0; i < x->n && !x->whole; i++) {
		const struct span *p = &x->span[i];

		if (p->from >= cut || p->to < cut || (p->to == cut && p->to < n))
			continue;
		if (p->to < n || n - p->from > REDACT_BLOCK_MAX)
			return p->to;
		return p->from;
	}
	return cut;
}

/* All of [0, n) goes, whatever is in it, but what may be a part of a secret whose rest has not come: else its rest would
 * stand behind the mark. */
static size_t whole_cut(const struct redactor *r, struct str s)
{
	size_t keep = prefilter_begun(r, s, false), word = 0;

	while (word < s.n && word <= REDACT_HELD_MAX && is_of_token(s.p[s.n - word - 1]))
		word++;
	if (word <= REDACT_HELD_MAX)
		keep = MAX(keep, word);
	return keep < s.n ? s.n - keep : s.n;
}

static int drop_all(struct redact_stream *s)
{
	s->was_cut = true;
	buf_reset(&s->held);
	return -ENOMEM;
}

/* Everything up to `cut`, of which the first `look` bytes are looked through. */
static int tell(struct redact_stream *s, size_t cut, size_t look, struct buf *out)
{
	struct texts text;
	size_t moved;
	int e;

	s->x->edges = s->was_cut ? EDGE_BEGIN : 0;
	e = find(s, (struct str){ s->held.p, look }, &text);
	s->x->edges = 0;
	if (e < 0)
		return drop_all(s);
	moved = s->x->whole ? whole_cut(s->x->r, (struct str){ s->held.p, look })
			    : move_cut(s->x, cut, look);
	s->was_cut = s->x->whole || (s->was_cut && !moved);
	s->look_at = moved < cut ? s->held.n + s->held.n / 4 : 0;
	return put(s, moved, &text, out) < 0 ? drop_all(s) : 0;
}

static size_t last_line(const struct buf *b)
{
	size_t i = b->n;

	while (i && b->p[i - 1] != '\n' && b->p[i - 1] != '\r')
		i--;
	return i;
}

/* No line's end has come for long. What may be a known value, however long, waits for its rest. */
static int feed_long(struct redact_stream *s, struct buf *out)
{
	size_t begun = prefilter_begun(s->x->r, (struct str){ s->held.p, s->held.n }, false);
	size_t cut = s->held.n - MAX(begun, (size_t)REDACT_HELD_MAX);

	if (cut)
		return tell(s, cut, s->held.n, out);
	s->look_at = s->held.n + s->held.n / 4;
	return 0;
}

int redact_stream_feed(struct redact_stream *s, struct str in, struct buf *out)
{
	size_t cut, begun;

	if (buf_add(&s->held, in.p, in.n) < 0)
		return drop_all(s);
	if (s->held.n < s->look_at && !memmem(in.p, in.n, "--", 2))
		return 0;
	cut = last_line(&s->held);
	if (s->held.n - cut > 2 * REDACT_HELD_MAX)
		return feed_long(s, out);
	if (!cut)
		return 0;
	/* Of a value with lines the first may be here already. */
	begun = prefilter_begun(s->x->r, (struct str){ s->held.p, cut }, true);
	cut -= begun;
	return cut ? tell(s, cut, cut, out) : 0;
}

/* A word ends there: a blank that is none of "\b \b", with which a terminal rubs out. */
static bool is_blank_at(struct str s, size_t i)
{
	return s.p[i] && strchr(" \t\n\r", s.p[i]) && (i == 0 || s.p[i - 1] != '\b');
}

int redact_stream_idle(struct redact_stream *s, struct buf *out)
{
	struct str held = { s->held.p, s->held.n };
	size_t cut = held.n;
	const char *block;

	/* Only what follows will say what begins here. */
	while (cut && (block = memmem(held.p, cut, "-----", 5)))
		cut = (size_t)(block - held.p);
	if (!cut || prefilter_any(s->x->r, held))
		return 0;
	while (cut && !is_blank_at(held, cut - 1))
		cut--;
	held.n = cut;
	cut -= prefilter_begun(s->x->r, held, false);
	return cut ? tell(s, cut, cut, out) : 0;
}

int redact_stream_end(struct redact_stream *s, struct buf *out)
{
	struct texts text;
	int e;

	if (!s->held.n)
		return 0;
	/* Who wrote may have been stopped in the middle of one. */
	s->x->edges = EDGE_END | (s->was_cut ? EDGE_BEGIN : 0);
	e = find(s, (struct str){ s->held.p, s->held.n }, &text);
	s->x->edges = 0;
	if (e < 0)
		return drop_all(s);
	return put(s, s->held.n, &text, out) < 0 ? drop_all(s) : 0;
}
