// SPDX-License-Identifier: Apache-2.0
/* The forms in which a known value is likely to be met. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "userspace/redact/internal.h"

#define FORM_MIN  6
#define LINE_MIN  12
#define LINES_MAX 512

/* Most values have nothing that would be escaped: many forms are the same. */
static bool is_there(const struct prefilter *f, struct str s, uint16_t value)
{
	for (size_t i = f->n; i-- > 0 && f->v[i].value == value;)
		if (f->v[i].n == s.n && !memcmp(f->v[i].p, s.p, s.n))
			return true;
	return false;
}

static int add_copy(struct redactor *r, struct str s, char blank, uint16_t value)
{
	struct str copy = arena_strndup(&r->mem, s.p, s.n);

	if (!copy.p)
		return -ENOMEM;
	for (size_t i = 0; blank && i < s.n; i++)
		if (s.p[i] == ' ')
			((char *)copy.p)[i] = blank;
	return prefilter_add(&r->pre, copy, 0, value);
}

static int add_form(struct redactor *r, struct str s, uint16_t value)
{
	int e;

	if (s.n < FORM_MIN || s.n > UINT16_MAX || is_there(&r->pre, s, value))
		return 0;
	e = add_copy(r, s, 0, value);
	if (e < 0 || !r->pre.v[r->pre.n - 1].blank_window || !memchr(s.p, ' ', s.n))
		return e;
	/* Nowhere four bytes without a blank: the filter doesn't take another for it. */
	for (const char *c = "\t\n\r"; e == 0 && *c; c++)
		e = add_copy(r, s, *c, value);
	return e;
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

static bool is_kept(char c, const char *kept)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr(kept, c));
}

/* RFC 3986, but for what writers keep as it is; forms write a blank as '+'. */
static int add_url(struct redactor *r, struct str v, struct buf *b, const char *kept, bool plus,
		   uint16_t value)
{
	buf_reset(b);
	for (size_t i = 0; i < v.n; i++) {
		if (is_kept(v.p[i], kept))
			buf_addc(b, v.p[i]);
		else if (plus && v.p[i] == ' ')
			buf_addc(b, '+');
		else
			buf_printf(b, "%%%02X", (unsigned char)v.p[i]);
	}
	return b->failed ? -ENOMEM : add_form(r, (struct str){ b->p, b->n }, value);
}

static int add_all_urls(struct redactor *r, struct str v, struct buf *b, uint16_t value)
{
	static const char *const kept[] = {
		"-._~",	     /* RFC 3986 */
		"-._~/",     /* Python's quote */
		"-_.!~*'()", /* JavaScript's encodeURIComponent, and encodeURI: */
		"-_.!~*'();/?:@&=+$,#",
		"*-._", /* forms (URL standard) */
	};
	int e = 0;

	for (size_t i = 0; e == 0 && i < ARRAY_SIZE(kept); i++) {
		e = add_url(r, v, b, kept[i], false, value);
		if (e == 0 && memchr(v.p, ' ', v.n))
			e = add_url(r, v, b, kept[i], true, value);
	}
	return e;
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

enum {
	JSON_ASCII = 1, /* what is not is escaped: Python */
	JSON_SLASH = 2, /* and '/': PHP */
	JSON_HTML = 4,	/* and what HTML knows: Go */
	JSON_FORMS = 8,
};

/* RFC 8259, as its writers do. */
static int add_json(struct redactor *r, struct str v, struct buf *b, int how, uint16_t value)
{
	static const char named[] = "\"\\\b\f\n\r\t/", as[] = "\"\\bfnrt/";
	bool ascii = how & JSON_ASCII;

	buf_reset(b);
	for (size_t i = 0, n = 1; i < v.n; i += n) {
		const char *at = v.p[i] ? strchr(named, v.p[i]) : NULL;
		unsigned code;

		if (v.p[i] == '/' && !(how & JSON_SLASH))
			at = NULL;

		n = utf8_code((struct str){ v.p + i, v.n - i }, &code);
		if (at)
			buf_printf(b, "\\%c", as[at - named]);
		else if (code < 0x20 || (code >= 0x80 && ascii && code <= 0xffff) ||
			 (how & JSON_HTML && code < 0x80 && strchr("<>&", (int)code)))
			buf_printf(b, "\\u%04x", code);
		else if (code > 0xffff && ascii)
			buf_printf(b, "\\u%04x\\u%04x", 0xd7c0 + (code >> 10),
				   0xdc00 + (code & 0x3ff));
		else
			buf_add(b, v.p + i, n);
	}
	return b->failed ? -ENOMEM : add_form(r, (struct str){ b->p, b->n }, value);
}

/* HTML 13.1.4, with each way to write the two quotes that is in use. */
static int add_html(struct redactor *r, struct str v, struct buf *b, uint16_t value)
{
	static const char *const quotes[][2] = {
		{ "&quot;", "&#x27;" },		       /* Python */
		{ "&#34;", "&#39;" },		       /* Go */
		{ "&quot;", "&#39;" },		       /* JavaScript's libraries */
		{ "&quot;", "&#039;" },		       /* PHP */
		{ "&quot;", "&apos;" },		       /* XML */
		{ "&quot;", "'" },	{ "\"", "'" }, /* text, not an attribute */
	};
	int e = 0;

	for (size_t q = 0; e == 0 && q < ARRAY_SIZE(quotes); q++) {
		buf_reset(b);
		for (size_t i = 0; i < v.n; i++) {
			if (v.p[i] == '&')
				buf_addz(b, "&amp;");
			else if (v.p[i] == '<')
				buf_addz(b, "&lt;");
			else if (v.p[i] == '>')
				buf_addz(b, "&gt;");
			else if (v.p[i] == '"' || v.p[i] == '\'')
				buf_addz(b, quotes[q][v.p[i] == '\'']);
			else
				buf_addc(b, v.p[i]);
		}
		e = b->failed ? -ENOMEM : add_form(r, (struct str){ b->p, b->n }, value);
	}
	return e;
}

/* A string's literal in Python, of text or of bytes, between ' or ". */
static int add_repr(struct redactor *r, struct str v, struct buf *b, bool bytes, bool quote,
		    uint16_t value)
{
	static const char named[] = "\\\n\r\t'", as[] = "\\nrt'";

	buf_reset(b);
	for (size_t i = 0; i < v.n; i++) {
		unsigned char c = (unsigned char)v.p[i];
		const char *at = c && (c != '\'' || quote) ? strchr(named, c) : NULL;

		if (at)
			buf_printf(b, "\\%c", as[at - named]);
		else if (c < 0x20 || c == 0x7f || (bytes && c >= 0x80))
			buf_printf(b, "\\x%02x", c);
		else
			buf_addc(b, v.p[i]);
	}
	return b->failed ? -ENOMEM : add_form(r, (struct str){ b->p, b->n }, value);
}

/* RFC 2781, both orders: without the bytes at its ends that only one of them has. And that in base64, as PowerShell
 * takes it. */
static int add_utf16(struct redactor *r, struct str v, struct buf *b, struct buf *b64,
		     uint16_t value)
{
	bool ascii = true;
	int e;

	buf_reset(b);
	for (size_t i = 0, n = 1; i < v.n; i += n) {
		unsigned code, units[2], k = 0;

		n = utf8_code((struct str){ v.p + i, v.n - i }, &code);
		ascii &= code < 0x80;
		if (code > 0xffff)
			units[k++] = 0xd7c0 + (code >> 10);
		units[k++] = code > 0xffff ? 0xdc00 + (code & 0x3ff) : code;
		for (unsigned u = 0; u < k; u++) {
			buf_addc(b, (char)units[u]);
			buf_addc(b, (char)(units[u] >> 8));
		}
	}
	if (b->failed)
		return -ENOMEM;
	e = add_form(r, (struct str){ b->p, b->n - ascii }, value);
	return e < 0 ? e : add_all_base64(r, (struct str){ b->p, b->n }, b64, value);
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

static int add_all_forms(struct redactor *r, struct str v, uint16_t value)
{
	auto_buf struct buf b = { 0 }, wide = { 0 };
	int e;

	buf_init(&b, 8 * REDACT_VALUE_MAX);
	buf_init(&wide, 8 * REDACT_VALUE_MAX);
	e = add_form(r, v, value);
	if (e == 0)
		e = add_all_base64(r, v, &b, value);
	if (e == 0)
		e = add_hex(r, v, &b, value);
	if (e == 0)
		e = add_all_urls(r, v, &b, value);
	for (int how = 0; e == 0 && how < JSON_FORMS; how++)
		e = add_json(r, v, &b, how, value);
	if (e == 0)
		e = add_html(r, v, &b, value);
	for (int how = 0; e == 0 && how < 4; how++)
		e = add_repr(r, v, &b, how & 1, how & 2, value);
	if (e == 0)
		e = add_utf16(r, v, &wide, &b, value);
	if (e == 0)
		e = add_lines(r, v, value);
	return e;
}

/* ---- what is in a secret that is JSON ---- */

#define STRINGS_MAX	     64			/* of one value */
#define STRING_MIN	     8			/* bytes */
#define LITERALS_FOR_STRINGS (LITERALS_MAX / 2) /* the rest is for the values themselves */

static void add_utf8(struct buf *b, unsigned code)
{
	if (code < 0x80) {
		buf_addc(b, (char)code);
	} else if (code < 0x800) {
		buf_addc(b, (char)(0xc0 | code >> 6));
		buf_addc(b, (char)(0x80 | (code & 0x3f)));
	} else {
		buf_addc(b, (char)(0xe0 | code >> 12));
		buf_addc(b, (char)(0x80 | (code >> 6 & 0x3f)));
		buf_addc(b, (char)(0x80 | (code & 0x3f)));
	}
}

static unsigned hex4(const char *p)
{
	unsigned code = 0;

	for (int i = 0; i < 4; i++)
		code = (code << 4) + ((unsigned)p[i] & 0xf) + (p[i] > '9' ? 9 : 0);
	return code;
}

/* The string behind the '"' before `at`, decoded; returns where it ends, behind its '"', or v.n. */
static size_t json_string(struct str v, size_t at, struct buf *ret)
{
	static const char named[] = "bfnrt", is[] = "\b\f\n\r\t";

	buf_reset(ret);
	while (at < v.n && v.p[at] != '"') {
		const char *c;

		if (v.p[at] != '\\' || at + 1 >= v.n) {
			buf_addc(ret, v.p[at++]);
			continue;
		}
		at++;
		if (v.p[at] == 'u' && v.n - at > 4) {
			add_utf8(ret, hex4(v.p + at + 1));
			at += 5;
			continue;
		}
		c = v.p[at] ? strchr(named, v.p[at]) : NULL;
		buf_addc(ret, c ? is[c - named] : v.p[at]);
		at++;
	}
	return MIN(at + 1, v.n);
}

/* Programs take one of its strings and use that alone. Names of members are none of them. */
static int add_json_strings(struct redactor *r, struct str v, uint16_t value)
{
	auto_buf struct buf b = { 0 };
	size_t at = 0, behind;
	int e = 0, n = 0;

	buf_init(&b, REDACT_VALUE_MAX + 16);
	if (v.p[0] != '{' && v.p[0] != '[')
		return 0;
	while (e == 0 && at < v.n && n < STRINGS_MAX && r->pre.n < LITERALS_FOR_STRINGS) {
		if (v.p[at++] != '"')
			continue;
		at = behind = json_string(v, at, &b);
		while (behind < v.n && strchr(" \t\r\n", v.p[behind]) && v.p[behind])
			behind++;
		if ((behind < v.n && v.p[behind] == ':') || b.n < STRING_MIN || b.failed)
			continue;
		n++;
		e = add_all_forms(r, (struct str){ b.p, b.n }, value);
	}
	return e;
}

int value_forms(struct redactor *r, struct str v, uint16_t value)
{
	int e = add_all_forms(r, v, value);

	return e < 0 ? e : add_json_strings(r, v, value);
}
