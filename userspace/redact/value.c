// SPDX-License-Identifier: Apache-2.0
/* The forms in which a known value is likely to be met. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "userspace/redact/internal.h"

#define FORM_MIN  6
#define LINE_MIN  12
#define LINES_MAX 512

static int add_form(struct redactor *r, struct str s, uint16_t value)
{
	struct str copy;

	if (s.n < FORM_MIN || s.n > UINT16_MAX)
		return 0;
	copy = arena_strndup(&r->mem, s.p, s.n);
	return copy.p ? prefilter_add(&r->pre, copy, 0, value) : -ENOMEM;
}

/* RFC 4648, the part of it that does not depend on what stands before (`lead` bytes, modulo 3) and behind. */
static int add_base64(struct redactor *r, struct str v, unsigned lead, const char *alphabet,
		      struct buf *b, uint16_t value)
{
	size_t bits = (lead + v.n) * 8, first = (lead * 8 + 5) / 6;

	buf_reset(b);
	for (size_t c = first; c < bits / 6; c++) {
		unsigned got = 0;

		for (size_t bit = c * 6; bit < c * 6 + 6; bit++) {
			size_t byte = bit / 8 - lead;

			got = got << 1 | ((unsigned char)v.p[byte] >> (7 - bit % 8) & 1);
		}
		buf_addc(b, alphabet[got]);
	}
	return b->failed ? -ENOMEM : add_form(r, (struct str){ b->p, b->n }, value);
}

static int add_all_base64(struct redactor *r, struct str v, struct buf *b, uint16_t value)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	static const char url[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	int e = 0;

	for (unsigned lead = 0; e == 0 && lead < 3; lead++) {
		e = add_base64(r, v, lead, plain, b, value);
		if (e == 0 && b->n && (memchr(b->p, '+', b->n) || memchr(b->p, '/', b->n)))
			e = add_base64(r, v, lead, url, b, value);
	}
	return e;
}

static int add_hex(struct redactor *r, struct str v, struct buf *b, uint16_t value)
{
	buf_reset(b);
	for (size_t i = 0; i < v.n; i++)
		buf_printf(b, "%02x", (unsigned char)v.p[i]);
	return b->failed ? -ENOMEM : add_form(r, (struct str){ b->p, b->n }, value);
}

static bool is_unreserved(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-._~", c));
}

/* RFC 3986; forms write a blank as '+'. */
static int add_url(struct redactor *r, struct str v, struct buf *b, bool plus, uint16_t value)
{
	buf_reset(b);
	for (size_t i = 0; i < v.n; i++) {
		if (is_unreserved(v.p[i]))
			buf_addc(b, v.p[i]);
		else if (plus && v.p[i] == ' ')
			buf_addc(b, '+');
		else
			buf_printf(b, "%%%02X", (unsigned char)v.p[i]);
	}
	if (b->failed)
		return -ENOMEM;
	return b->n == v.n && !plus ? 0 : add_form(r, (struct str){ b->p, b->n }, value);
}

static size_t utf8_code(struct str s, unsigned *ret)
{
	unsigned char c = (unsigned char)s.p[0];
	size_t n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;

	if (n > s.n)
		n = 1;
	*ret = n == 1 ? c : c & (0xffu >> (n + 1));
	for (size_t i = 1; i < n; i++)
		*ret = *ret << 6 | ((unsigned char)s.p[i] & 0x3f);
	return n;
}

/* RFC 8259; `ascii`: what is not is escaped, as many writers do. */
static int add_json(struct redactor *r, struct str v, struct buf *b, bool ascii, uint16_t value)
{
	static const char named[] = "\"\\\b\f\n\r\t", as[] = "\"\\bfnrt";

	buf_reset(b);
	for (size_t i = 0, n = 1; i < v.n; i += n) {
		const char *at = v.p[i] ? strchr(named, v.p[i]) : NULL;
		unsigned code;

		n = utf8_code((struct str){ v.p + i, v.n - i }, &code);
		if (at)
			buf_printf(b, "\\%c", as[at - named]);
		else if (code < 0x20 || (code >= 0x80 && ascii && code <= 0xffff))
			buf_printf(b, "\\u%04x", code);
		else if (code > 0xffff && ascii)
			buf_printf(b, "\\u%04x\\u%04x", 0xd7c0 + (code >> 10),
				   0xdc00 + (code & 0x3ff));
		else
			buf_add(b, v.p + i, n);
	}
	if (b->failed)
		return -ENOMEM;
	return b->n == v.n ? 0 : add_form(r, (struct str){ b->p, b->n }, value);
}

static int add_lines(struct redactor *r, struct str v, uint16_t value)
{
	const char *end;
	int e = 0, n = 0;

	if (!memchr(v.p, '\n', v.n))
		return 0;
	while (e == 0 && v.n && n++ < LINES_MAX) {
		struct str line = { v.p, v.n };

		end = memchr(v.p, '\n', v.n);
		if (end)
			line.n = (size_t)(end - v.p);
		v.p += MIN(line.n + 1, v.n);
		v.n -= MIN(line.n + 1, v.n);
		while (line.n && line.p[line.n - 1] == '\r')
			line.n--;
		/* Of a key's first and last line everybody knows what they say. */
		if (line.n >= LINE_MIN && !str_starts(line, STR("-----")))
			e = add_form(r, line, value);
	}
	return e;
}

int value_forms(struct redactor *r, struct str v, uint16_t value)
{
	auto_buf struct buf b = { 0 };
	int e;

	buf_init(&b, 8 * REDACT_VALUE_MAX);
	e = add_form(r, v, value);
	if (e == 0)
		e = add_all_base64(r, v, &b, value);
	if (e == 0)
		e = add_hex(r, v, &b, value);
	if (e == 0)
		e = add_url(r, v, &b, false, value);
	if (e == 0 && memchr(v.p, ' ', v.n))
		e = add_url(r, v, &b, true, value);
	if (e == 0)
		e = add_json(r, v, &b, false, value);
	if (e == 0)
		e = add_json(r, v, &b, true, value);
	if (e == 0)
		e = add_lines(r, v, value);
	return e;
}
