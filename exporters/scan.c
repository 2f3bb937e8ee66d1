// SPDX-License-Identifier: Apache-2.0
#include "exporters/scan.h"

#include <string.h>
#include "userspace/base/auto.h"

static void skip_space(struct scan *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
		s->p++;
}

static bool take(struct scan *s, char c)
{
	skip_space(s);
	if (s->p == s->end || *s->p != c)
		return false;
	s->p++;
	return true;
}

/* Bytes of x that are c have their high bit set, at least up to the first such byte. */
static inline uint64_t bytes_like(uint64_t x, char c)
{
	const uint64_t ones = 0x0101010101010101;
	uint64_t y = x ^ ones * (unsigned char)c;

	return (y - ones) & ~y & ones << 7;
}

/* The first quote or backslash from p on; `end` when there is none. Strings are short: no calls. */
static const char *find_special(const char *p, const char *end)
{
	for (; end - p >= 8; p += 8) {
		uint64_t x, hit;

		memcpy(&x, p, 8);
		hit = bytes_like(x, '"') | bytes_like(x, '\\');
		if (!hit)
			continue;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
		return p + __builtin_ctzll(hit) / 8;
#else
		break;
#endif
	}
	while (p < end && *p != '"' && *p != '\\')
		p++;
	return p;
}

/* p is at the opening quote; afterwards behind the closing one. */
static bool skip_string(struct scan *s)
{
	const char *p = s->p + 1;

	for (;;) {
		p = p < s->end ? find_special(p, s->end) : s->end;
		if (p == s->end)
			return false;
		if (*p == '"')
			break;
		p += 2; /* what is escaped is part of the string */
	}
	s->p = p + 1;
	return true;
}

static bool skip_value(struct scan *s)
{
	const char *start = s->p;
	int depth = 0;

	while (s->p < s->end) {
		char c = *s->p;

		if (c == '"') {
			if (!skip_string(s))
				return false;
			if (!depth)
				return true;
			continue;
		}
		if (!depth && (c == ',' || c == '}' || c == ']'))
			return s->p > start;
		s->p++;
		if (c == '{' || c == '[')
			depth++;
		else if ((c == '}' || c == ']') && --depth == 0)
			return true;
	}
	return !depth && s->p > start;
}

static bool fail(struct scan *s)
{
	s->bad = true;
	return false;
}

/* Before an item: the opening bracket or a comma. false at the end. */
static bool next(struct scan *s, char open, char close)
{
	if (s->bad)
		return false;
	if (!s->started) {
		s->started = true;
		if (!take(s, open))
			return fail(s);
		return !take(s, close);
	}
	if (take(s, close))
		return false;
	return take(s, ',') || fail(s);
}

static bool take_value(struct scan *s, struct str *ret)
{
	const char *start, *end;

	skip_space(s);
	start = s->p;
	if (!skip_value(s))
		return fail(s);
	for (end = s->p; end > start &&
			 (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\n' || end[-1] == '\r');)
		end--;
	*ret = (struct str){ start, (size_t)(end - start) };
	return end > start || fail(s);
}

bool scan_member(struct scan *s, struct str *ret_key, struct str *ret_value)
{
	const char *start;

	if (!next(s, '{', '}'))
		return false;
	skip_space(s);
	start = s->p;
	if (s->p == s->end || *s->p != '"' || !skip_string(s))
		return fail(s);
	*ret_key = (struct str){ start + 1, (size_t)(s->p - start) - 2 };
	if (!take(s, ':'))
		return fail(s);
	return take_value(s, ret_value);
}

bool scan_element(struct scan *s, struct str *ret_value)
{
	return next(s, '[', ']') && take_value(s, ret_value);
}

bool scan_string(struct str value, struct str *ret)
{
	if (value.n < 2 || value.p[0] != '"' ||
	    find_special(value.p + 1, value.p + value.n) != value.p + value.n - 1)
		return false;
	*ret = (struct str){ value.p + 1, value.n - 2 };
	return true;
}

bool scan_u64(struct str value, uint64_t *ret)
{
	uint64_t v = 0;

	if (!value.n || value.n > 20)
		return false;
	for (size_t i = 0; i < value.n; i++) {
		if (value.p[i] < '0' || value.p[i] > '9' || __builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(value.p[i] - '0'), &v))
			return false;
	}
	*ret = v;
	return true;
}

bool scan_find(struct str object, const char *key, struct str *ret_value)
{
	struct scan s = scan_of(object);
	struct str k, v;

	while (scan_member(&s, &k, &v)) {
		if (!str_eqz(k, key))
			continue;
		*ret_value = v;
		return true;
	}
	return false;
}

const char *scan_text(struct str object, const char *key, char *ret, size_t size)
{
	struct str v = { 0 };
	size_t n;

	if (scan_find(object, key, &v) && v.n >= 2 && v.p[0] == '"')
		v = (struct str){ v.p + 1, v.n - 2 };
	n = MIN(v.n, size - 1);
	if (n)
		memcpy(ret, v.p, n);
	ret[n] = 0;
	return ret;
}
