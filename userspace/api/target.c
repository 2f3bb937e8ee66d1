// SPDX-License-Identifier: Apache-2.0
#include "userspace/api/target.h"

#include "userspace/base/json.h"

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Percent-decoded (RFC 3986 2.1); in a query '+' is a space, as forms write it. */
static int decode(const char **ret, struct arena *arena, struct str s, bool query, struct err *err)
{
	char *out = arena_alloc(arena, s.n + 1), *d = out;

	if (!out)
		return err_set(err, ENOMEM, "request target: %m");
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c <= ' ' || c == 127 || c == '#')
			return err_set(err, EBADMSG, "request target: a byte that must be escaped");
		if (c == '+' && query) {
			c = ' ';
		} else if (c == '%') {
			int hi = s.n - i > 2 ? hex(s.p[i + 1]) : -1;
			int lo = s.n - i > 2 ? hex(s.p[i + 2]) : -1;

			if (hi < 0 || lo < 0)
				return err_set(err, EBADMSG, "request target: a broken %%-escape");
			c = (unsigned char)(hi << 4 | lo);
			i += 2;
		}
		if (!c)
			return err_set(err, EBADMSG, "request target: NUL in it");
		*d++ = (char)c;
	}
	*d = 0;
	if (!utf8_is_valid((struct str){ out, (size_t)(d - out) }))
		return err_set(err, EBADMSG, "request target: not UTF-8");
	*ret = out;
	return 0;
}

/* The part of *rest before `end`, which is skipped; all of it when there is none. */
static struct str cut(struct str *rest, char end)
{
	const char *at = rest->n ? memchr(rest->p, end, rest->n) : NULL;
	struct str part = { rest->p, at ? (size_t)(at - rest->p) : rest->n };
	size_t skip = part.n + (at ? 1 : 0);

	rest->p += skip;
	rest->n -= skip;
	return part;
}

int api_pairs_parse(const char *(*ret)[2], size_t max, size_t *ret_n, struct arena *arena,
		    struct str text, struct err *err)
{
	size_t n = 0;
	int r;

	while (text.n) {
		struct str pair = cut(&text, '&'), key = cut(&pair, '=');

		if (!key.n)
			return err_set(err, EBADMSG, "request target: a query part without a name");
		if (n == max)
			return err_set(err, EBADMSG, "request target: more than %zu query parts",
				       max);
		r = decode(&ret[n][0], arena, key, true, err);
		if (r == 0)
			r = decode(&ret[n][1], arena, pair, true, err);
		if (r < 0)
			return r;
		for (size_t i = 0; i < n; i++)
			if (!strcmp(ret[i][0], ret[n][0]))
				return err_set(err, EBADMSG, "query '%.80s' is given twice",
					       ret[n][0]);
		n++;
	}
	*ret_n = n;
	return 0;
}

static int add_segment(struct api_target *t, struct arena *arena, struct str s, struct err *err)
{
	const char *z;
	int r;

	if (t->segments_n == API_SEGMENTS_MAX)
		return err_set(err, EBADMSG, "request target: path too deep");
	r = decode(&z, arena, s, false, err);
	if (r < 0)
		return r;
	if (!*z || !strcmp(z, ".") || !strcmp(z, "..") || strchr(z, '/'))
		return err_set(err, EBADMSG, "request target: '%.40s' is no part of a path", z);
	t->segment[t->segments_n++] = z;
	return 0;
}

int api_target_parse(struct api_target *ret, struct arena *arena, struct str text, struct err *err)
{
	const char *pair[API_QUERY_MAX][2];
	struct api_target t = { 0 };
	struct str path;
	int r = 0;

	if (text.n > API_TARGET_MAX)
		return err_set(err, EBADMSG, "request target: more than %d bytes", API_TARGET_MAX);
	path = cut(&text, '?');
	if (!path.n || path.p[0] != '/')
		return err_set(err, EBADMSG,
			       "request target: expected a path that begins with '/'");
	path.p++;
	path.n--;
	while (r == 0 && path.n) {
		bool more = memchr(path.p, '/', path.n);

		r = add_segment(&t, arena, cut(&path, '/'), err);
		if (r == 0 && more && !path.n)
			r = err_set(err, EBADMSG, "request target: a '/' at its end");
	}
	if (r == 0)
		r = api_pairs_parse(pair, API_QUERY_MAX, &t.query_n, arena, text, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < t.query_n; i++) {
		t.query[i].key = pair[i][0];
		t.query[i].value = pair[i][1];
	}
	*ret = t;
	return 0;
}

const char *api_target_query(const struct api_target *t, const char *key)
{
	for (size_t i = 0; i < t->query_n; i++)
		if (!strcmp(t->query[i].key, key))
			return t->query[i].value;
	return NULL;
}
