/* SPDX-License-Identifier: Apache-2.0 */
/* Streaming JSON writer (RFC 8259) for hostile bytes: output is always valid UTF-8, whatever goes
 * in. Writes into a struct buf; commas and nesting are kept by the writer. */
#ifndef WARDER_BASE_JSON_H
#define WARDER_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "userspace/base/buf.h"
#include "userspace/base/str.h"

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

/* The inside of a JSON string literal: writes the escaped form of s at d, which has room for
 * JSON_ESCAPE_MAX bytes an input byte. Returns the end; *valid becomes false when s was not UTF-8. */
#define JSON_ESCAPE_MAX 6
char *json_escape(char *d, struct str s, bool *valid);
/* Decimal digits of v at d (at most 20). Returns the end. */
char *json_digits(char *d, uint64_t v);

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

/* The part of it that is worth having inline: copies words as long as no byte needs an escape, and
 * returns how many bytes that were (n for most strings). The last word overlaps the one before it, so
 * that no tail is left over. */
static inline size_t json_copy_plain(char *d, const char *p, size_t n)
{
	size_t i = 0;

	if (n >= 8) {
		for (; n - i >= 8; i += 8) {
			uint64_t x = json_load8(p + i);

			if (!json_is_plain8(x))
				return i;
			memcpy(d + i, &x, 8);
		}
		if (i < n && json_is_plain8(json_load8(p + n - 8))) {
			memcpy(d + n - 8, p + n - 8, 8);
			return n;
		}
	} else if (n >= 4) {
		uint32_t head, tail;

		memcpy(&head, p, 4);
		memcpy(&tail, p + n - 4, 4);
		if (json_is_plain8(head | (uint64_t)tail << 32)) {
			memcpy(d, &head, 4);
			memcpy(d + n - 4, &tail, 4);
			return n;
		}
	}
	return i;
}

/* Is it well-formed UTF-8 (RFC 3629: no overlongs, no surrogates)? */
bool utf8_is_valid(struct str s);
/* Bytes of the well-formed sequence that s begins with; 0 when there is none. s.n > 0. */
size_t utf8_length(struct str s);

#endif
