// SPDX-License-Identifier: Apache-2.0
/* ECMA-48 sequences as far as they have to be recognised to be dropped. */
#include "userspace/replay/neutral.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/json.h"

#define ESC	    0x1b
#define REPLACEMENT "\xef\xbf\xbd"

/* Finals of CSI sequences without a private mark that move, erase, insert, delete, scroll or colour. */
static const char ALLOWED[] = "@ABCDEFGHIJKLMPSTXZ`abdefmr";

/* DEC private modes that may be switched: they are undone in the end. */
static bool is_allowed_mode(const char *digits)
{
	static const char *const modes[] = { "25", "47", "1047", "1049" };

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (!strcmp(digits, modes[i]))
			return true;
	return false;
}

static void put_csi(struct neutral *v, char final, struct buf *out)
{
	if (v->plain)
		return;
	buf_addz(out, "\033[");
	buf_add(out, v->seq, v->seq_n);
	buf_addc(out, final);
}

static void end_csi(struct neutral *v, char final, struct buf *out)
{
	v->state = NEUTRAL_TEXT;
	v->seq[v->seq_n] = 0;
	if (v->seq[0] == '?') {
		if ((final != 'h' && final != 'l') || !is_allowed_mode(v->seq + 1))
			return;
		if (!strcmp(v->seq + 1, "25"))
			v->no_cursor = final == 'l';
		else
			v->other_screen = final == 'h';
		put_csi(v, final, out);
		return;
	}
	for (size_t i = 0; i < v->seq_n; i++)
		if (!strchr("0123456789;:", v->seq[i]))
			return;
	if (!strchr(ALLOWED, final))
		return;
	v->coloured |= final == 'm';
	v->region |= final == 'r';
	put_csi(v, final, out);
}

static void take_csi(struct neutral *v, unsigned char c, struct buf *out)
{
	if (c >= 0x40 && c <= 0x7e) {
		if (v->state == NEUTRAL_CSI)
			end_csi(v, (char)c, out);
		v->state = NEUTRAL_TEXT;
	} else if (c < 0x20 || c >= 0x7f) {
		v->state = NEUTRAL_TEXT; /* broken: what follows is text again */
	} else if (v->state == NEUTRAL_CSI) {
		if (v->seq_n == sizeof(v->seq) - 1)
			v->state = NEUTRAL_SKIP_CSI;
		else
			v->seq[v->seq_n++] = (char)c;
	}
}

static void take_esc(struct neutral *v, unsigned char c, struct buf *out)
{
	v->state = NEUTRAL_TEXT;
	if (c == '[') {
		v->state = NEUTRAL_CSI;
		v->seq_n = 0;
	} else if (c && strchr("]P_^X", c)) {
		v->state = NEUTRAL_STRING;
	} else if (c >= 0x20 && c <= 0x2f) {
		v->state = NEUTRAL_SKIP_ONE;
	} else if (c && strchr("78DEM", c) && !v->plain) {
		buf_addc(out, ESC);
		buf_addc(out, (char)c);
	} else if (c == 'c' && !v->plain) { /* a reset, as far as it goes */
		buf_addz(out, "\033[0m\033[r\033[H\033[2J");
	}
}

static void put_replacement(struct neutral *v, struct buf *out)
{
	v->utf8_n = 0;
	buf_addz(out, REPLACEMENT);
}

/* Returns how many bytes the character has that begins so; 0: none does. */
static size_t expected(unsigned char c)
{
	return c >= 0xf0 && c <= 0xf4  ? 4
	       : c >= 0xe0 && c < 0xf0 ? 3
	       : c >= 0xc2 && c < 0xe0 ? 2
				       : 0;
}

static void take_multibyte(struct neutral *v, unsigned char c, struct buf *out)
{
	if ((c & 0xc0) != 0x80) {
		if (v->utf8_n)
			put_replacement(v, out);
		if (!expected(c)) {
			put_replacement(v, out);
			return;
		}
	} else if (!v->utf8_n) {
		put_replacement(v, out);
		return;
	}
	v->utf8[v->utf8_n++] = (char)c;
	if (v->utf8_n < expected((unsigned char)v->utf8[0]))
		return;
	if (utf8_length((struct str){ v->utf8, v->utf8_n }) != v->utf8_n)
		put_replacement(v, out);
	else if (!((unsigned char)v->utf8[0] == 0xc2 && (unsigned char)v->utf8[1] < 0xa0))
		buf_add(out, v->utf8,
			v->utf8_n); /* else: a control of 8 bits, CSI and OSC among them */
	v->utf8_n = 0;
}

static void take_text(struct neutral *v, unsigned char c, struct buf *out)
{
	if (c >= 0x80) {
		take_multibyte(v, c, out);
		return;
	}
	if (v->utf8_n)
		put_replacement(v, out);
	if (c == ESC)
		v->state = NEUTRAL_ESC;
	else if ((c >= 0x20 && c != 0x7f) || c == '\n' || c == '\t')
		buf_addc(out, (char)c);
	else if (!v->plain && (c == '\r' || c == '\b'))
		buf_addc(out, (char)c);
}

int neutral_feed(struct neutral *v, struct str in, struct buf *out)
{
	for (size_t i = 0; i < in.n; i++) {
		unsigned char c = (unsigned char)in.p[i];

		switch (v->state) {
		case NEUTRAL_TEXT:
			take_text(v, c, out);
			break;
		case NEUTRAL_ESC:
			if (c != ESC)
				take_esc(v, c, out);
			break;
		case NEUTRAL_CSI:
		case NEUTRAL_SKIP_CSI:
			if (c == ESC)
				v->state = NEUTRAL_ESC;
			else
				take_csi(v, c, out);
			break;
		case NEUTRAL_SKIP_ONE:
			v->state = c == ESC ? NEUTRAL_ESC : NEUTRAL_TEXT;
			break;
		case NEUTRAL_STRING:
			if (c == ESC)
				v->state = NEUTRAL_STRING_ESC;
			else if (c == 0x07 || c == 0x18 || c == 0x1a)
				v->state = NEUTRAL_TEXT;
			break;
		case NEUTRAL_STRING_ESC: /* "\" ends it; anything else does, too, and begins anew */
			v->state = NEUTRAL_TEXT;
			if (c == ESC)
				v->state = NEUTRAL_ESC;
			else if (c != '\\')
				take_esc(v, c, out);
			break;
		}
	}
	return out->failed ? -ENOMEM : 0;
}

int neutral_end(struct neutral *v, struct buf *out)
{
	if (v->utf8_n)
		put_replacement(v, out);
	if (!v->plain) {
		if (v->coloured)
			buf_addz(out, "\033[0m");
		if (v->region)
			buf_addz(out, "\033[r");
		if (v->other_screen)
			buf_addz(out, "\033[?1049l");
		if (v->no_cursor)
			buf_addz(out, "\033[?25h");
	}
	*v = (struct neutral){ .plain = v->plain };
	return out->failed ? -ENOMEM : 0;
}
