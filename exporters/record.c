// SPDX-License-Identifier: Apache-2.0
#include "exporters/record.h"

#include <errno.h>
#include <time.h>

#include "exporters/scan.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/json.h"

#define RECORD_WANTED 5 /* members of `wanted` */

static struct str *wanted(struct export_record *rec, struct str key)
{
	if (key.n < 2 || key.n > 7)
		return NULL;
	if (str_eq(key, STR("id")))
		return &rec->id;
	if (str_eq(key, STR("time")))
		return &rec->time;
	if (str_eq(key, STR("kind")))
		return &rec->kind;
	if (str_eq(key, STR("session")))
		return &rec->session;
	if (str_eq(key, STR("sandbox")))
		return &rec->sandbox;
	return NULL;
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
/* Where the first quote is within these eight bytes, 8 when nowhere. */
static inline size_t quote_in(uint64_t x)
{
	const uint64_t ones = 0x0101010101010101;
	uint64_t y = x ^ ones * '"', hit = (y - ones) & ~y & ones << 7;

	return hit ? (size_t)__builtin_ctzll(hit) / 8 : 8;
}

static inline bool has_backslash(uint64_t x)
{
	const uint64_t ones = 0x0101010101010101;
	uint64_t y = x ^ ones * '\\';

	return (y - ones) & ~y & ones << 7;
}

/* The start of the line as our own writer has it: short keys, strings without escapes and numbers, nothing between
 * them. Returns how many of the wanted members it found; with fewer than all nothing is said about the rest. */
static int scan_start(struct export_record *rec, const char *p, const char *end)
{
	int found = 0;

	if (end - p < 32 || *p != '{')
		return 0;
	end -= 24; /* a key and the word behind it can be loaded */
	for (p++; p < end && *p == '"' && found < RECORD_WANTED;) {
		uint64_t key = json_load8(++p);
		size_t n = quote_in(key);
		struct str *slot = wanted(rec, (struct str){ p, n });
		const char *start;

		if (n == 8 || p[n + 1] != ':' || has_backslash(key))
			break;
		p += n + 2;
		start = p + 1;
		if (*p == '"') {
			uint64_t x;

			do {
				if (++p >= end)
					return found;
				x = json_load8(p);
				n = quote_in(x);
				if (has_backslash(x))
					return found;
				p += (ptrdiff_t)n -
				     1; /* back by one where the quote is the first byte */
			} while (n == 8);
			p++;
			if (slot && !slot->p) {
				*slot = (struct str){ start, (size_t)(p - start) };
				found++;
			}
			p++;
		} else {
			while (p < end && *p >= '0' && *p <= '9')
				p++;
			if (p < start)
				break;
		}
		if (*p++ != ',')
			break;
	}
	return found;
}
#else
static int scan_start(struct export_record *rec, const char *p, const char *end)
{
	(void)rec, (void)p, (void)end;
	return 0;
}
#endif

static void forget(struct export_record *rec)
{
	rec->id = rec->kind = rec->session = rec->sandbox = rec->time = rec->text =
		(struct str){ 0 };
}

int record_scan(struct export_record *rec, struct str json)
{
	bool cut = json.n > RECORD_SCAN_BYTES;
	struct scan s = scan_of((struct str){ json.p, cut ? RECORD_SCAN_BYTES : json.n });
	struct str key, value;
	int found = 0;

	rec->json = json;
	forget(rec);
	if (scan_start(rec, json.p, json.p + MIN(json.n, (size_t)RECORD_SCAN_BYTES)) ==
	    RECORD_WANTED)
		return 0;
	forget(rec);
	for (int i = 0; found < RECORD_WANTED && i < RECORD_SCAN_MEMBERS; i++) {
		struct str *slot;

		if (!scan_member(&s, &key, &value))
			break;
		slot = wanted(rec, key);
		if (slot && !slot->p && scan_string(value, slot)) /* the first one wins */
			found++;
	}
	if (s.bad && (!cut || s.p == json.p))
		return -EBADMSG;
	return 0;
}

/* `n` digits at p, -1 when there are none. */
static int digits(const char *p, int n)
{
	int v = 0;

	for (; n; n--, p++) {
		if (*p < '0' || *p > '9')
			return -1;
		v = v * 10 + (*p - '0');
	}
	return v;
}

uint64_t record_time_ns(const struct export_record *rec)
{
	struct str t = rec->time;
	struct tm tm = { 0 };
	uint64_t ns = 0, unit = NSEC_PER_SEC / 10;
	time_t sec;
	size_t i;

	if (t.n < 20 || t.n > RFC3339_NS_LEN || t.p[t.n - 1] != 'Z')
		return 0;
	tm.tm_year = digits(t.p, 4) - 1900;
	tm.tm_mon = digits(t.p + 5, 2) - 1;
	tm.tm_mday = digits(t.p + 8, 2);
	tm.tm_hour = digits(t.p + 11, 2);
	tm.tm_min = digits(t.p + 14, 2);
	tm.tm_sec = digits(t.p + 17, 2);
	if (tm.tm_year < 70 || tm.tm_mon < 0 || tm.tm_mday < 1 || tm.tm_hour < 0 || tm.tm_min < 0 ||
	    tm.tm_sec < 0)
		return 0;
	for (i = 20; t.p[19] == '.' && i < t.n - 1; i++, unit /= 10)
		ns += (uint64_t)MAX(digits(t.p + i, 1), 0) * unit;
	sec = timegm(&tm);
	return sec < 0 ? 0 : (uint64_t)sec * NSEC_PER_SEC + ns;
}
