// SPDX-License-Identifier: Apache-2.0
#include "userspace/redact/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/redact/internal.h"

#define ESC 0x1b

struct redact_stream {
	struct redact *x;
	struct buf held;
	struct buf plain; /* without colours */
	struct buf place; /* uint32_t a byte of `plain`: where it was, and one more */
	size_t look_at;	  /* a secret grows: not before so much is held, or it may have ended */
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
	buf_done(&s->plain);
	buf_done(&s->place);
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

static int strip(struct redact_stream *s, struct str in, struct str *ret)
{
	buf_reset(&s->plain);
	buf_reset(&s->place);
	for (size_t i = 0; i < in.n;) {
		size_t skip = csi_length((struct str){ in.p + i, in.n - i });
		uint32_t at = (uint32_t)i;

		if (skip) {
			i += skip;
			continue;
		}
		buf_addc(&s->plain, in.p[i++]);
		buf_add(&s->place, &at, sizeof(at));
	}
	if (s->plain.failed || s->place.failed)
		return -ENOMEM;
	*ret = (struct str){ s->plain.p, s->plain.n };
	return 0;
}

static uint32_t place_of(const struct redact_stream *s, uint32_t i)
{
	uint32_t at;

	memcpy(&at, s->place.p + i * sizeof(at), sizeof(at));
	return at;
}

/* Leaves x->span by places of `in`. The tag is about what it says without colours: *ret_text is what secret_from
 * and secret_to are places of. */
static int find(struct redact_stream *s, struct str in, struct str *ret_text)
{
	struct redact *x = s->x;
	int e;

	*ret_text = in;
	if (!in.n || !memchr(in.p, ESC, in.n)) {
		find_secrets(x, in, WORDS_NONE);
		return 0;
	}
	e = strip(s, in, ret_text);
	if (e < 0)
		return e;
	find_secrets(x, *ret_text, WORDS_NONE);
	for (size_t i = 0; i < x->n && !x->whole; i++) {
		x->span[i].from = place_of(s, x->span[i].from);
		x->span[i].to = place_of(s, x->span[i].to - 1) + 1;
	}
	return 0;
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

static int put(struct redact_stream *s, size_t cut, struct str text, struct buf *out)
{
	const struct str in = { s->held.p, cut };
	struct redact *x = s->x;
	size_t at = 0;

	if (x->whole) {
		add_whole_mark(x, text, out);
		at = cut;
	}
	for (size_t i = 0; i < x->n && !x->whole && x->span[i].to <= cut; i++) {
		buf_add(out, in.p + at, x->span[i].from - at);
		add_mark(x, text, &x->span[i], out);
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

static int drop_all(struct redact_stream *s)
{
	buf_reset(&s->held);
	return -ENOMEM;
}

/* Everything up to `cut`, of which the first `look` bytes are looked through. */
static int tell(struct redact_stream *s, size_t cut, size_t look, struct buf *out)
{
	struct str text;
	size_t moved;

	if (find(s, (struct str){ s->held.p, look }, &text) < 0)
		return drop_all(s);
	moved = move_cut(s->x, cut, look);
	s->look_at = moved < cut ? s->held.n + s->held.n / 4 : 0;
	return put(s, moved, text, out) < 0 ? drop_all(s) : 0;
}

static size_t last_line(const struct buf *b)
{
	size_t i = b->n;

	while (i && b->p[i - 1] != '\n' && b->p[i - 1] != '\r')
		i--;
	return i;
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
		return tell(s, s->held.n - REDACT_HELD_MAX, s->held.n, out);
	if (!cut)
		return 0;
	/* Of a value with lines the first may be here already. */
	begun = prefilter_begun(s->x->r, (struct str){ s->held.p, cut }, true);
	cut -= begun;
	return cut ? tell(s, cut, cut, out) : 0;
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
	while (cut && !strchr(" \t\n\r", held.p[cut - 1]))
		cut--;
	held.n = cut;
	cut -= prefilter_begun(s->x->r, held, false);
	return cut ? tell(s, cut, cut, out) : 0;
}

int redact_stream_end(struct redact_stream *s, struct buf *out)
{
	struct str text;

	if (!s->held.n)
		return 0;
	if (find(s, (struct str){ s->held.p, s->held.n }, &text) < 0)
		return drop_all(s);
	return put(s, s->held.n, text, out) < 0 ? drop_all(s) : 0;
}
