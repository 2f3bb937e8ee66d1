// SPDX-License-Identifier: Apache-2.0
#include "exporters/scan.h"

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

/* p is at the opening quote; afterwards behind the closing one. */
static bool skip_string(struct scan *s)
{
	const char *from = s->p + 1, *quote, *slash;

	for (;;) {
		quote = from < s->end ? memchr(from, '"', (size_t)(s->end - from)) : NULL;
		if (!quote)
			return false;
		slash = memchr(from, '\\', (size_t)(quote - from));
		if (!slash)
			break;
		from = slash + 2; /* what is escaped is part of the string */
	}
	s->p = quote + 1;
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
	if (value.n < 2 || value.p[0] != '"' || memchr(value.p, '\\', value.n))
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
