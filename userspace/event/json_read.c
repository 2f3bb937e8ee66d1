// SPDX-License-Identifier: Apache-2.0
#include "userspace/event/json_read.h"

#include <errno.h>
#include <string.h>

#include "userspace/base/json.h"

int json_reader_init(struct json_reader *r, struct arena *arena, struct str text)
{
	*r = (struct json_reader){ .arena = arena };
	r->p = arena_alloc(arena, text.n + JSON_READ_PAD);
	if (!r->p)
		return -ENOMEM;
	if (text.n)
		memcpy(r->p, text.p, text.n);
	r->end = r->p + text.n;
	memset(r->end, 0, JSON_READ_PAD);
	return 0;
}

bool json_problem(struct json_reader *r, const char *problem)
{
	if (!r->problem)
		r->problem = problem;
	return false;
}

char json_peek_slowly(struct json_reader *r)
{
	while (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r')
		r->p++;
	return *r->p;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Four hex digits at r->p. */
static bool read_hex4(struct json_reader *r, unsigned *ret)
{
	unsigned v = 0;

	if (r->end - r->p < 4)
		return json_problem(r, "unfinished \\u escape");
	for (int i = 0; i < 4; i++) {
		int d = hex_digit(r->p[i]);

		if (d < 0)
			return json_problem(r, "bad \\u escape");
		v = v << 4 | (unsigned)d;
	}
	r->p += 4;
	*ret = v;
	return true;
}

/* Behind "\u": a code point, from one escape or a surrogate pair. */
static bool read_code_point(struct json_reader *r, unsigned *ret)
{
	unsigned hi, lo;

	if (!read_hex4(r, &hi))
		return false;
	*ret = hi;
	if (hi < 0xd800 || hi > 0xdfff)
		return true;
	if (hi > 0xdbff || r->end - r->p < 2 || r->p[0] != '\\' || r->p[1] != 'u')
		return json_problem(r, "lone surrogate");
	r->p += 2;
	if (!read_hex4(r, &lo))
		return false;
	if (lo < 0xdc00 || lo > 0xdfff)
		return json_problem(r, "lone surrogate");
	*ret = 0x10000 + ((hi - 0xd800) << 10) + (lo - 0xdc00);
	return true;
}

static char *put_utf8(char *d, unsigned c)
{
	if (c < 0x80) {
		*d++ = (char)c;
	} else if (c < 0x800) {
		*d++ = (char)(0xc0 | c >> 6);
		*d++ = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		*d++ = (char)(0xe0 | c >> 12);
		*d++ = (char)(0x80 | (c >> 6 & 0x3f));
		*d++ = (char)(0x80 | (c & 0x3f));
	} else {
		*d++ = (char)(0xf0 | c >> 18);
		*d++ = (char)(0x80 | (c >> 12 & 0x3f));
		*d++ = (char)(0x80 | (c >> 6 & 0x3f));
		*d++ = (char)(0x80 | (c & 0x3f));
	}
	return d;
}

/* Behind a backslash. */
static bool read_escape(struct json_reader *r, char **d)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at;
	unsigned c;

	if (r->p == r->end)
		return json_problem(r, "string without end");
	if (*r->p == 'u') {
		r->p++;
		if (!read_code_point(r, &c))
			return false;
		*d = put_utf8(*d, c);
		return true;
	}
	at = *r->p ? strchr(from, *r->p) : NULL;
	if (!at)
		return json_problem(r, "unknown escape");
	*(*d)++ = to[at - from];
	r->p++;
	return true;
}

/* The closing quote; an escape is two bytes at least, so a quote behind a backslash is skipped. */
static char *find_quote(char *p, const char *end)
{
	for (; p < end && *p != '"'; p++)
		if (*p == '\\' && p + 1 < end)
			p++;
	return p < end ? p : NULL;
}

/* Escapes, what is not ASCII, and mistakes. The string is unescaped in its place: no escape grows. */
bool json_read_string_slowly(struct json_reader *r, struct str *ret)
{
	char *quote, *out, *d;

	if (!json_expect(r, '"', "expected a string"))
		return false;
	quote = find_quote(r->p, r->end);
	if (!quote)
		return json_problem(r, "string without end");
	if (!utf8_is_valid((struct str){ r->p, (size_t)(quote - r->p) }))
		return json_problem(r, "string is not UTF-8");
	out = d = r->p;
	while (r->p < quote) {
		unsigned char c = (unsigned char)*r->p++;

		if (c < 0x20)
			return json_problem(r, "control character in a string");
		if (c != '\\')
			*d++ = (char)c;
		else if (!read_escape(r, &d))
			return false;
	}
	if (r->p != quote)
		return json_problem(r, "bad escape");
	r->p++;
	*d = 0;
	*ret = (struct str){ out, (size_t)(d - out) };
	return true;
}

bool json_read_u64_slowly(struct json_reader *r, uint64_t *ret)
{
	uint64_t v = 0;
	const char *first;

	json_peek(r);
	first = r->p;
	for (; *r->p >= '0' && *r->p <= '9'; r->p++)
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*r->p - '0'), &v))
			return json_problem(r, "number too large");
	if (r->p == first)
		return json_problem(r, "expected a number");
	if (*first == '0' && r->p - first > 1)
		return json_problem(r, "number with a leading zero");
	if (*r->p == '.' || *r->p == 'e' || *r->p == 'E')
		return json_problem(r, "expected a whole number");
	*ret = v;
	return true;
}

bool json_read_i64(struct json_reader *r, int64_t *ret)
{
	bool negative = json_take(r, '-');
	uint64_t v;

	if (negative && (*r->p < '0' || *r->p > '9'))
		return json_problem(r, "expected a number");
	if (!json_read_u64(r, &v))
		return false;
	if (v > (uint64_t)INT64_MAX + negative)
		return json_problem(r, "number too large");
	*ret = negative ? (int64_t)(0 - v) : (int64_t)v;
	return true;
}

bool json_read_bool(struct json_reader *r, bool *ret)
{
	json_peek(r);
	*ret = !memcmp(r->p, "true", 4); /* it may look at the zeros behind the text */
	if (!*ret && memcmp(r->p, "false", 5))
		return json_problem(r, "expected true or false");
	r->p += *ret ? 4 : 5;
	return true;
}

static int base64_digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool base64_decode(struct arena *arena, struct str text, struct str *ret)
{
	size_t pad = 0, n;
	uint32_t bits = 0;
	char *out, *d;

	if (text.n % 4)
		return false;
	while (pad < 2 && pad < text.n && text.p[text.n - 1 - pad] == '=')
		pad++;
	n = text.n - pad;
	out = d = arena_alloc(arena, text.n / 4 * 3 + 1);
	if (!out)
		return false;
	for (size_t i = 0; i < n; i++) {
		int v = base64_digit(text.p[i]);

		if (v < 0)
			return false;
		bits = bits << 6 | (uint32_t)v;
		if (i % 4 == 3) {
			*d++ = (char)(bits >> 16);
			*d++ = (char)(bits >> 8);
			*d++ = (char)bits;
			bits = 0;
		}
	}
	if (pad == 1) {
		*d++ = (char)(bits >> 10);
		*d++ = (char)(bits >> 2);
	} else if (pad == 2) {
		*d++ = (char)(bits >> 4);
	}
	if ((pad == 1 && bits & 3) || (pad == 2 && bits & 15))
		return false; /* more than one text for the same bytes */
	*d = 0;
	*ret = (struct str){ out, (size_t)(d - out) };
	return true;
}
