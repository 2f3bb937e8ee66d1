// SPDX-License-Identifier: Apache-2.0
#include "userspace/event/json_raw.h"

#include <string.h>

#include "userspace/base/json.h"
#include "userspace/event/json_read.h"

static bool parse_index(struct str *s, size_t n, size_t *ret)
{
	size_t v = 0, i = 0;

	for (; i < s->n && s->p[i] >= '0' && s->p[i] <= '9' && i < 8; i++)
		v = v * 10 + (size_t)(s->p[i] - '0');
	if (i == 0 || (i > 1 && s->p[0] == '0') || v >= n)
		return false;
	s->p += i;
	s->n -= i;
	*ret = v;
	return true;
}

static struct str *ancestor_string(const struct event_ancestor *a, struct str name)
{
	if (str_eqz(name, ".comm"))
		return (struct str *)&a->comm;
	return str_eqz(name, ".exe") ? (struct str *)&a->exe : NULL;
}

static struct str *answer_string(const struct event_dns_answer *a, struct str name)
{
	if (str_eqz(name, ".name"))
		return (struct str *)&a->name;
	if (str_eqz(name, ".type"))
		return (struct str *)&a->type;
	return str_eqz(name, ".data") ? (struct str *)&a->data : NULL;
}

/* The string that a path in "raw" names; NULL when there is none. All were made by this reader, so
 * writing through the list's const is fine. */
static struct str *raw_target(struct event *ev, struct str path)
{
	int f = event_field_find(path);
	union field_value *v;
	struct str rest;
	size_t i;

	if (f >= 0)
		return event_has(ev, f) && event_fields[f].type == FT_STR ? &ev->v[f].s : NULL;
	for (f = 0; f < F_COUNT; f++) {
		size_t n = strlen(event_fields[f].name);

		if (!event_has(ev, f) || path.n <= n || path.p[n] != '.' ||
		    memcmp(path.p, event_fields[f].name, n))
			continue;
		v = &ev->v[f];
		rest = (struct str){ path.p + n + 1, path.n - n - 1 };
		switch (event_fields[f].type) {
		case FT_STRLIST:
			if (!parse_index(&rest, v->list.n, &i) || rest.n)
				return NULL;
			return (struct str *)&v->list.v[i];
		case FT_ANCESTORS:
			if (!parse_index(&rest, v->ancestors.n, &i))
				return NULL;
			return ancestor_string(&v->ancestors.v[i], rest);
		case FT_ANSWERS:
			if (!parse_index(&rest, v->answers.n, &i))
				return NULL;
			return answer_string(&v->answers.v[i], rest);
		default:
			return NULL;
		}
	}
	return NULL;
}

/* The bytes must be what the text was made from: U+FFFD for each byte that is not UTF-8. */
static bool raw_fits(struct str bytes, struct str text)
{
	size_t at = 0;

	for (size_t i = 0; i < bytes.n;) {
		struct str left = { bytes.p + i, bytes.n - i };
		size_t k = utf8_length(left);

		if (k && (text.n - at < k || memcmp(text.p + at, left.p, k)))
			return false;
		if (!k && (text.n - at < 3 || memcmp(text.p + at, "\xef\xbf\xbd", 3)))
			return false;
		at += k ? k : 3;
		i += k ? k : 1;
	}
	return at == text.n && !utf8_is_valid(bytes);
}

const char *json_raw_apply(struct event *ev, struct str path, struct str base64)
{
	struct str *target = raw_target(ev, path), bytes;

	if (!target || !target->p)
		return "no such string in the event";
	if (!base64_decode(ev->arena, base64, &bytes))
		return "bad base64";
	if (!raw_fits(bytes, *target))
		return "bytes do not belong to the text";
	*target = bytes;
	return NULL;
}
