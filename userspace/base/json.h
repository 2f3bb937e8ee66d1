/* SPDX-License-Identifier: Apache-2.0 */
/* Streaming JSON writer (RFC 8259) for hostile bytes: output is always valid UTF-8, whatever goes
 * in. Writes into a struct buf; commas and nesting are kept by the writer. */
#ifndef WARDER_BASE_JSON_H
#define WARDER_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "userspace/base/auto.h"
#include "userspace/base/buf.h"
#include "userspace/base/str.h"

#if defined(__SSE2__) && !defined(JSON_PLAIN_C)
#include <emmintrin.h>
#define JSON_SSE2
#endif

#define JSON_DEPTH_MAX 16

struct json {
	struct buf *out;
	uint8_t depth;
	bool first[JSON_DEPTH_MAX + 1]; /* no member written yet at this depth */
	bool after_key;
};

void json_init(struct json *j, struct buf *out);
void json_object_begin(struct json *j);
void json_object_end(struct json *j);
void json_array_begin(struct json *j);
void json_array_end(struct json *j);
/* `key` must be plain ASCII that needs no escaping: keys are ours, never the sandbox's. */
void json_key(struct json *j, const char *key);
/* A key from outside, escaped. */
void json_key_str(struct json *j, struct str key);
/* Bytes that are not UTF-8 come out as U+FFFD; returns false when that happened. */
bool json_str(struct json *j, struct str s);
void json_strz(struct json *j, const char *z);
void json_u64(struct json *j, uint64_t v);
void json_i64(struct json *j, int64_t v);
void json_bool(struct json *j, bool v);
void json_null(struct json *j);
/* Text that is JSON already. */
void json_raw(struct json *j, struct str s);
void json_base64(struct json *j, struct str bytes);

/* The inside of a JSON string literal, with nothing in it that is_deceptive (plain.h): writes the escaped form of s at
 * d, which has room for JSON_ESCAPE_MAX bytes an input byte. Returns the end; *valid becomes false when s was not
 * UTF-8. */
#define JSON_ESCAPE_MAX 6
char *json_escape(char *d, struct str s, bool *valid);

/* The eight decimal digits of v < 10^8, leading zeros included, a byte each (0 to 9), the first one lowest: halves,
 * then pairs, then digits, all at once (x * 10486 >> 20 is x / 100 below 10,000, x * 103 >> 10 is x / 10 below 100). */
static inline uint64_t json_spread8(uint32_t v)
{
	uint64_t x = v / 10000 | (uint64_t)(v % 10000) << 32, q;

	q = (x * 10486 >> 20) & 0x0000007f0000007f;
	x = q | (x - q * 100) << 16;
	q = (x * 103 >> 10) & 0x000f000f000f000f;
	return q | (x - q * 10) << 8;
}

/* The first byte is the lowest one, on every machine. */
static inline uint64_t json_load8_le(const char *p)
{
	uint64_t x;

	memcpy(&x, p, sizeof(x));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	x = __builtin_bswap64(x);
#endif
	return x;
}

static inline void json_store8(char *d, uint64_t x)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	x = __builtin_bswap64(x);
#endif
	memcpy(d, &x, 8);
}

#define JSON_ZEROS 0x3030303030303030ull

/* Exactly eight digits of v < 10^8. */
static inline char *json_digits8(char *d, uint32_t v)
{
	json_store8(d, json_spread8(v) | JSON_ZEROS);
	return d + 8;
}

char *json_digits_long(char *d, uint64_t v);

#define JSON_DIGITS_ROOM 20

/* Decimal digits of v at d, where JSON_DIGITS_ROOM bytes may be written whatever v is. Returns the end. */
static inline char *json_digits(char *d, uint64_t v)
{
	unsigned zeros;
	uint64_t x;

	if (v < 10) {
		*d = (char)('0' + v);
		return d + 1;
	}
	if (v >= 100000000)
		return json_digits_long(d, v);
	x = json_spread8((uint32_t)v);
	zeros = (unsigned)__builtin_ctzll(x) / 8;
	json_store8(d, (x | JSON_ZEROS) >> 8 * zeros);
	return d + 8 - zeros;
}

/* Does none of these eight bytes need the table? */
static inline bool json_is_plain8(uint64_t x)
{
	const uint64_t ones = 0x0101010101010101, high = ones << 7;
	uint64_t quote = x ^ ones * '"', back = x ^ ones * '\\', del = x ^ ones * 0x7f;

	/* y - ones has its high bit set where y's byte is 0; x - 0x20.. where x's is below 0x20. */
	return ((x | (x - ones * 0x20) | (quote - ones) | (back - ones) | (del - ones)) & high) ==
	       0;
}

static inline uint64_t json_load8(const char *p)
{
	uint64_t x;

	memcpy(&x, p, sizeof(x));
	return x;
}

#ifdef JSON_SSE2
/* Sixteen bytes: a bit for each that needs the table. As signed bytes, what is not ASCII is below the space, too. */
static inline unsigned json_odd16(__m128i x)
{
	__m128i odd = _mm_cmplt_epi8(x, _mm_set1_epi8(0x20));

	odd = _mm_or_si128(odd, _mm_cmpeq_epi8(x, _mm_set1_epi8('"')));
	odd = _mm_or_si128(odd, _mm_cmpeq_epi8(x, _mm_set1_epi8('\\')));
	odd = _mm_or_si128(odd, _mm_cmpeq_epi8(x, _mm_set1_epi8(0x7f)));
	return (unsigned)_mm_movemask_epi8(odd);
}
#endif

static inline bool json_is_plain16(uint64_t a, uint64_t b)
{
#ifdef JSON_SSE2
	return !json_odd16(_mm_set_epi64x((long long)b, (long long)a));
#else
	return json_is_plain8(a) && json_is_plain8(b);
#endif
}

/* Of more than sixteen bytes. The last piece overlaps the one before it, so that no tail is left over. */
static inline size_t json_copy_long(char *d, const char *p, size_t n)
{
	for (size_t i = 0;; i = MIN(i + 16, n - 16)) {
#ifdef JSON_SSE2
		__m128i x = _mm_loadu_si128((const __m128i *)(const void *)(p + i));
		unsigned odd = json_odd16(x);

		_mm_storeu_si128((__m128i *)(void *)(d + i), x);
		if (odd)
			return i + (unsigned)__builtin_ctz(odd);
#else
		uint64_t a = json_load8(p + i), b = json_load8(p + i + 8);

		if (!json_is_plain16(a, b))
			return i;
		memcpy(d + i, &a, 8);
		memcpy(d + i + 8, &b, 8);
#endif
		if (i + 16 == n)
			return n;
	}
}

/* Copies from the start what needs no escape, and says how many bytes that were: n for most strings; fewer than
 * possible where one of a short string needs one. Up to n bytes are written, whatever it says. */
static inline size_t json_copy_plain(char *d, const char *p, size_t n)
{
	uint64_t head = 0, tail = 0;

	if (n > 16)
		return json_copy_long(d, p, n);
	if (n >= 8) {
		head = json_load8(p);
		tail = json_load8(p + n - 8);
		if (!json_is_plain16(head, tail))
			return 0;
		memcpy(d, &head, 8);
		memcpy(d + n - 8, &tail, 8);
	} else if (n >= 4) {
		memcpy(&head, p, 4);
		memcpy(&tail, p + n - 4, 4);
		if (!json_is_plain8(head | tail << 32))
			return 0;
		memcpy(d, &head, 4);
		memcpy(d + n - 4, &tail, 4);
	} else if (n) {
		char first = p[0], middle = p[n / 2], last = p[n - 1];

		head = (unsigned char)first | (unsigned)(unsigned char)middle << 8;
		if (!json_is_plain8(head | (uint64_t)(unsigned char)last << 16 | JSON_ZEROS << 24))
			return 0;
		d[0] = first;
		d[n / 2] = middle;
		d[n - 1] = last;
	}
	return n;
}

/* Is it well-formed UTF-8 (RFC 3629: no overlongs, no surrogates)? */
bool utf8_is_valid(struct str s);
/* Bytes of the well-formed sequence that s begins with; 0 when there is none. s.n > 0. */
size_t utf8_length(struct str s);
/* What that sequence, exactly s, stands for. */
uint32_t utf8_code_point(struct str s);
/* How many bytes at the end begin a character that is longer than they are: 0 to 3. */
size_t utf8_unfinished(struct str s);

#endif
