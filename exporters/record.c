// SPDX-License-Identifier: Apache-2.0
#include "exporters/record.h"

#include <errno.h>

#define RECORD_WANTED 5 /* members of `wanted` */

/* A cursor over JSON text (RFC 8259) that never reads past `end`. */
struct scan {
	const char *p;
	const char *end;
	bool cut; /* `end` is ours, not the text's: running into it is no error */
};

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

/* The body of a string as it stands; p is at the opening quote. */
static bool take_string(struct scan *s, struct str *ret, bool *ret_escaped)
{
	const char *start = s->p + 1, *from = start, *quote, *slash;

	*ret_escaped = false;
	for (;;) {
		quote = from < s->end ? memchr(from, '"', (size_t)(s->end - from)) : NULL;
		if (!quote)
			return false;
		slash = memchr(from, '\\', (size_t)(quote - from));
		if (!slash)
			break;
		*ret_escaped = true;
		from = slash + 2; /* what is escaped is part of the string */
	}
	*ret = (struct str){ start, (size_t)(quote - start) };
	s->p = quote + 1;
	return true;
}

/* Any value that is no string. */
static bool skip_value(struct scan *s)
{
	struct str ignored;
	bool escaped;
	int depth = 0;

	while (s->p < s->end) {
		char c = *s->p;

		if (c == '"') {
			if (!take_string(s, &ignored, &escaped))
				return false;
			continue;
		}
		if (depth == 0 && (c == ',' || c == '}'))
			return true;
		if (c == '{' || c == '[')
			depth++;
		else if (c == '}' || c == ']')
			depth--;
		if (depth < 0)
			return false;
		s->p++;
	}
	return false;
}

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

/* 1: go on, 0: the object ended, -EBADMSG */
static int take_member(struct scan *s, struct export_record *rec, int *found)
{
	struct str key, value, *slot;
	bool escaped;

	skip_space(s);
	if (s->p == s->end || *s->p != '"' || !take_string(s, &key, &escaped) || !take(s, ':'))
		return -EBADMSG;
	slot = escaped ? NULL : wanted(rec, key);
	skip_space(s);
	if (s->p < s->end && *s->p == '"') {
		if (!take_string(s, &value, &escaped))
			return -EBADMSG;
		if (slot && !escaped && !slot->p) { /* the first one wins */
			*slot = value;
			(*found)++;
		}
	} else if (!skip_value(s)) {
		return -EBADMSG;
	}
	if (take(s, ','))
		return 1;
	return take(s, '}') ? 0 : -EBADMSG;
}

int record_scan(struct export_record *rec, struct str json)
{
	bool cut = json.n > RECORD_SCAN_BYTES;
	struct scan s = { json.p, json.p + (cut ? RECORD_SCAN_BYTES : json.n), cut };
	int found = 0, r = 1;

	rec->json = json;
	rec->id = rec->kind = rec->session = rec->sandbox = rec->time = (struct str){ 0 };
	if (!take(&s, '{'))
		return -EBADMSG;
	if (take(&s, '}'))
		return 0;
	for (int i = 0; r == 1 && found < RECORD_WANTED && i < RECORD_SCAN_MEMBERS; i++)
		r = take_member(&s, rec, &found);
	if (r < 0 && !s.cut)
		return r;
	return 0;
}
