// SPDX-License-Identifier: Apache-2.0
#include "userspace/base/json.h"

#include <string.h>

#include "userspace/base/plain.h"

/* What a byte needs inside a string: 0 nothing, 'u' \u00XX, 1 start of a multi-byte sequence, else
 * the letter behind the backslash. DEL is escaped too: terminals act on it. */
static const unsigned char ESCAPE[256] = {
	['\b'] = 'b',	   ['\t'] = 't',  ['\n'] = 'n',	     ['\f'] = 'f',    ['\r'] = 'r',
	['"'] = '"',	   ['\\'] = '\\', [0] = 'u',	     [1 ... 7] = 'u', [11] = 'u',
	[14 ... 31] = 'u', [127] = 'u',	  [128 ... 255] = 1,
};

void json_init(struct json *j, struct buf *out)
{
	*j = (struct json){ .out = out };
	j->first[0] = true;
}

static void before_value(struct json *j)
{
	if (j->after_key) {
		j->after_key = false;
		return;
	}
	if (!j->first[j->depth])
		buf_addc(j->out, ',');
	j->first[j->depth] = false;
}

static void open_level(struct json *j, char c)
{
	before_value(j);
	buf_addc(j->out, c);
	if (j->depth < JSON_DEPTH_MAX)
		j->depth++;
	else
		j->out->failed = true;
	j->first[j->depth] = true;
}

static void close_level(struct json *j, char c)
{
	buf_addc(j->out, c);
	if (j->depth)
		j->depth--;
}

void json_object_begin(struct json *j)
{
	open_level(j, '{');
}

void json_object_end(struct json *j)
{
	close_level(j, '}');
}

void json_array_begin(struct json *j)
{
	open_level(j, '[');
}

void json_array_end(struct json *j)
{
	close_level(j, ']');
}

void json_key(struct json *j, const char *key)
{
	size_t n = strlen(key);
	struct buf *b = j->out;

	if (buf_reserve(b, n + 4) < 0)
		return;
	if (!j->first[j->depth])
		b->p[b->n++] = ',';
	j->first[j->depth] = false;
	b->p[b->n++] = '"';
	memcpy(b->p + b->n, key, n);
	b->n += n;
	b->p[b->n++] = '"';
	b->p[b->n++] = ':';
	j->after_key = true;
}

void json_key_str(struct json *j, struct str key)
{
	json_str(j, key);
	buf_addc(j->out, ':');
	j->after_key = true;
}

/* Length of the well-formed sequence at p (RFC 3629 table 3-7), 0 when there is none. */
static size_t utf8_sequence(const unsigned char *p, size_t n)
{
	unsigned char c = p[0];

	if (c < 0x80)
		return 1;
	if (c < 0xc2 || c > 0xf4)
		return 0;
	if (c < 0xe0)
		return n >= 2 && (p[1] & 0xc0) == 0x80 ? 2 : 0;
	if (c < 0xf0) {
		if (n < 3 || (p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80)
			return 0;
		if ((c == 0xe0 && p[1] < 0xa0) || (c == 0xed && p[1] > 0x9f))
			return 0;
		return 3;
	}
	if (n < 4 || (p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80 || (p[3] & 0xc0) != 0x80)
		return 0;
	if ((c == 0xf0 && p[1] < 0x90) || (c == 0xf4 && p[1] > 0x8f))
		return 0;
	return 4;
}

size_t utf8_length(struct str s)
{
	return utf8_sequence((const unsigned char *)s.p, s.n);
}

uint32_t utf8_code_point(struct str s)
{
	uint32_t c = (unsigned char)s.p[0];

	if (s.n > 1)
		c &= 0x7fu >> s.n;
	for (size_t i = 1; i < s.n; i++)
		c = c << 6 | ((unsigned char)s.p[i] & 0x3f);
	return c;
}

bool utf8_is_valid(struct str s)
{
	const unsigned char *p = (const unsigned char *)s.p;
	size_t i = 0;

	while (i < s.n) {
		size_t k = utf8_sequence(p + i, s.n - i);

		if (!k)
			return false;
		i += k;
	}
	return true;
}

static char *put_unit(char *d, uint32_t unit)
{
	static const char hex[] = "0123456789abcdef";

	*d++ = '\\';
	*d++ = 'u';
	for (int shift = 12; shift >= 0; shift -= 4)
		*d++ = hex[unit >> shift & 15];
	return d;
}

/* A character of more than one byte; what a terminal obeys or an eye misses is written out. */
static char *put_character(char *d, struct str s)
{
	uint32_t c = utf8_code_point(s);

	if (!is_deceptive(c)) {
		memcpy(d, s.p, s.n);
		return d + s.n;
	}
	if (c < 0x10000)
		return put_unit(d, c);
	c -= 0x10000;
	return put_unit(put_unit(d, 0xd800 | c >> 10), 0xdc00 | (c & 0x3ff));
}

char *json_escape(char *d, struct str s, bool *valid)
{
	const unsigned char *p = (const unsigned char *)s.p;
	size_t i = json_copy_plain(d, s.p, s.n), k;

	d += i;
	while (i < s.n) {
		unsigned char c = p[i], e = ESCAPE[c];

		if (!e) {
			*d++ = (char)c;
			i++;
		} else if (e == 1) {
			k = utf8_sequence(p + i, s.n - i);
			if (k) {
				d = put_character(d, (struct str){ s.p + i, k });
				i += k;
			} else {
				memcpy(d, "\xef\xbf\xbd", 3);
				d += 3;
				i++;
				*valid = false;
			}
		} else if (e == 'u') {
			d = put_unit(d, c);
			i++;
		} else {
			*d++ = '\\';
			*d++ = (char)e;
			i++;
		}
		if (s.n - i >= 8) {
			k = json_copy_plain(d, s.p + i, s.n - i);
			d += k;
			i += k;
		}
	}
	return d;
}

bool json_str(struct json *j, struct str s)
{
	struct buf *b = j->out;
	bool valid = true;
	size_t done = 0;

	before_value(j);
	buf_addc(b, '"');
	while (done < s.n) { /* in pieces: worst-case room is six times the input */
		struct str piece = { s.p + done, s.n - done };

		if (piece.n > 4096) {
			piece.n = 4096;
			/* never cut inside a UTF-8 sequence */
			for (int k = 0; k < 3 && ((unsigned char)piece.p[piece.n] & 0xc0) == 0x80;
			     k++)
				piece.n--;
		}
		if (buf_reserve(b, piece.n * JSON_ESCAPE_MAX) < 0)
			return valid;
		b->n = (size_t)(json_escape(b->p + b->n, piece, &valid) - b->p);
		done += piece.n;
	}
	buf_addc(b, '"');
	return valid;
}

void json_strz(struct json *j, const char *z)
{
	json_str(j, str_from(z));
}

char *json_digits_long(char *d, uint64_t v)
{
	uint64_t high = v / 100000000;

	d = high < 100000000
		    ? json_digits(d, high)
		    : json_digits8(json_digits(d, high / 100000000), (uint32_t)(high % 100000000));
	return json_digits8(d, (uint32_t)(v % 100000000));
}

void json_u64(struct json *j, uint64_t v)
{
	char tmp[JSON_DIGITS_ROOM];

	before_value(j);
	buf_add(j->out, tmp, (size_t)(json_digits(tmp, v) - tmp));
}

void json_i64(struct json *j, int64_t v)
{
	if (v >= 0) {
		json_u64(j, (uint64_t)v);
		return;
	}
	before_value(j);
	buf_addc(j->out, '-');
	j->after_key = true; /* the digits belong to the same value */
	json_u64(j, -(uint64_t)v);
}

void json_bool(struct json *j, bool v)
{
	before_value(j);
	buf_addz(j->out, v ? "true" : "false");
}

void json_null(struct json *j)
{
	before_value(j);
	buf_addz(j->out, "null");
}

void json_raw(struct json *j, struct str s)
{
	before_value(j);
	buf_add(j->out, s.p, s.n);
}

void json_base64(struct json *j, struct str s)
{
	static const char set[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *p = (const unsigned char *)s.p;
	struct buf *b = j->out;
	char *d;

	before_value(j);
	if (buf_reserve(b, (s.n / 3 + 1) * 4 + 2) < 0)
		return;
	d = b->p + b->n;
	*d++ = '"';
	for (size_t i = 0; i < s.n; i += 3) {
		unsigned v = (unsigned)p[i] << 16;

		if (i + 1 < s.n)
			v |= (unsigned)p[i + 1] << 8;
		if (i + 2 < s.n)
			v |= p[i + 2];
		*d++ = set[v >> 18];
		*d++ = set[v >> 12 & 63];
		*d++ = i + 1 < s.n ? set[v >> 6 & 63] : '=';
		*d++ = i + 2 < s.n ? set[v & 63] : '=';
	}
	*d++ = '"';
	b->n = (size_t)(d - b->p);
}

size_t utf8_unfinished(struct str s)
{
	for (size_t k = 1; k <= 3 && k <= s.n; k++) {
		unsigned char b = (unsigned char)s.p[s.n - k];
		size_t need = b >= 0xf0 && b <= 0xf4 ? 4 : b >= 0xe0 ? 3 : b >= 0xc2 ? 2 : 1;

		if ((b & 0xc0) == 0x80)
			continue;
		return b < 0xf5 && need > k ? k : 0;
	}
	return 0;
}
