/* SPDX-License-Identifier: Apache-2.0 */
/* A strict JSON tokenizer (RFC 8259) over bytes in memory: no recursion, no extensions, UTF-8 checked,
 * lone surrogates refused. Numbers are integers only, which is all an event has. */
#ifndef WARDER_EVENT_JSON_READ_H
#define WARDER_EVENT_JSON_READ_H

#include <stdbool.h>
#include <stdint.h>
#include "userspace/base/arena.h"
#include "userspace/base/json.h"
#include "userspace/base/str.h"

/* The text is a copy, with JSON_READ_PAD zero bytes behind it: words may be loaded anywhere in it, and strings stay
 * where they are, ended by a NUL in place of their quote. */
#define JSON_READ_PAD 48

struct json_reader {
	char *p, *end;
	struct arena *arena; /* of the copy */
	const char *problem; /* static text; NULL while all is well */
	bool no_memory;
};

/* Copies the text into the arena. -ENOMEM. */
int json_reader_init(struct json_reader *r, struct arena *arena, struct str text);

bool json_read_string_slowly(struct json_reader *r, struct str *ret);
bool json_read_u64_slowly(struct json_reader *r, uint64_t *ret);
char json_peek_slowly(struct json_reader *r);

/* The next character that is no white space, 0 at the end. */
static inline char json_peek(struct json_reader *r)
{
	return (unsigned char)*r->p > ' ' ? *r->p : json_peek_slowly(r);
}

/* Takes `c` (no white space, not 0) if it is next, after white space. */
static inline bool json_take(struct json_reader *r, char c)
{
	if (json_peek(r) != c)
		return false;
	r->p++;
	return true;
}

/* The first byte from p on that is no plain ASCII of a string. The zeros behind the text are such bytes. */
static inline char *json_plain_end(char *p)
{
#ifdef JSON_SSE2
	for (;; p += 16) {
		unsigned odd = json_odd16(_mm_loadu_si128((const __m128i *)(const void *)p));

		if (odd)
			return p + __builtin_ctz(odd);
	}
#else
	while (json_is_plain8(json_load8(p)))
		p += 8;
	while ((unsigned char)*p >= 0x20 && (unsigned char)*p < 0x7f && *p != '"' && *p != '\\')
		p++;
	return p;
#endif
}

/* Into *ret, in the copy. */
static inline bool json_read_string(struct json_reader *r, struct str *ret)
{
	char *start = r->p + 1, *end;

	if (*r->p != '"')
		return json_read_string_slowly(r, ret);
	end = json_plain_end(start);
	if (*end != '"')
		return json_read_string_slowly(r, ret);
	*end = 0;
	*ret = (struct str){ start, (size_t)(end - start) };
	r->p = end + 1;
	return true;
}

/* How many decimal digits these eight bytes begin with. */
static inline unsigned json_count_digits8(uint64_t x)
{
	x ^= JSON_ZEROS; /* a carry out of a byte spoils only what is behind the first one that is no digit */
	x = ((x + 0x7676767676767676) | x) & 0x8080808080808080;
	return x ? (unsigned)__builtin_ctzll(x) / 8 : 8;
}

/* The number that the first n bytes are the digits of; n is 1 to 8. Digits, then pairs, then halves, all at once. */
static inline uint64_t json_parse_digits8(uint64_t x, unsigned n)
{
	x = (x ^ JSON_ZEROS) << 8 * (8 - n);
	x = (x * 10 + (x >> 8)) & 0x00ff00ff00ff00ff;
	x = (x * 100 + (x >> 16)) & 0x0000ffff0000ffff;
	return (x * 10000 + (x >> 32)) & 0xffffffff;
}

/* Whole numbers of fewer than sixteen digits; the rest, and mistakes, slowly. */
static inline bool json_read_u64(struct json_reader *r, uint64_t *ret)
{
	static const uint32_t tens[] = { 1, 10, 100, 1000, 10000, 100000, 1000000, 10000000 };
	unsigned n = json_count_digits8(json_load8_le(r->p)), more;
	uint64_t v;
	char next;

	if (!n || (*r->p == '0' && n > 1))
		return json_read_u64_slowly(r, ret);
	v = json_parse_digits8(json_load8_le(r->p), n);
	if (n == 8) {
		more = json_count_digits8(json_load8_le(r->p + 8));
		if (more == 8)
			return json_read_u64_slowly(r, ret);
		if (more)
			v = v * tens[more] + json_parse_digits8(json_load8_le(r->p + 8), more);
		n += more;
	}
	next = r->p[n];
	if (next == '.' || next == 'e' || next == 'E')
		return json_read_u64_slowly(r, ret);
	r->p += n;
	*ret = v;
	return true;
}

bool json_read_i64(struct json_reader *r, int64_t *ret);
bool json_read_bool(struct json_reader *r, bool *ret);
/* An object of single values (texts, integers, true, false, null) and lists of them, no key twice, as text
 * without white space. */
#define JSON_MEMBERS_MAX 256
bool json_read_members(struct json_reader *r, struct str *ret);
/* Sets the problem unless one is set; always false. */
bool json_problem(struct json_reader *r, const char *problem);

/* Requires `c`. */
static inline bool json_expect(struct json_reader *r, char c, const char *problem)
{
	return json_take(r, c) || json_problem(r, problem);
}

/* Standard base64 with padding -> bytes in the arena. */
bool base64_decode(struct arena *arena, struct str text, struct str *ret);

#endif
