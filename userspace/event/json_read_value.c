// SPDX-License-Identifier: Apache-2.0
/* The values of an event's fields from JSON, by their types: times, addresses, lists, objects in lists. */
#include "userspace/event/json_read_value.h"

#include <string.h>

#include "userspace/base/clock.h"
#include "userspace/event/event.h"

#define LIST_MAX      (1 << 20) /* members of one list */
#define ANCESTORS_MAX 256
#define ANSWERS_MAX   256
#define SECOND_LEN    19 /* 2026-01-31T12:34:56 */

void *json_grow(struct json_reader *in, void *old, size_t n, size_t *room, size_t size)
{
	void *p = old;

	if (n < *room)
		return old;
	*room = *room ? *room * 2 : 8;
	p = arena_alloc(in->arena, *room * size);
	if (!p)
		in->no_memory = true;
	else if (n)
		memcpy(p, old, n * size);
	return p;
}

/* `n` digits at p; -1 when they are not. */
static int64_t read_digits(const char *p, int n)
{
	int64_t v = 0;

	for (; n; n--, p++) {
		if (*p < '0' || *p > '9')
			return -1;
		v = v * 10 + (*p - '0');
	}
	return v;
}

/* Seconds since 1970 of "2026-01-31T12:34:56"; -1 when it is none. Days count from 0000-03-01, so that the leap
 * day is the last of a year. Months of 32 days pass: the caller writes the result out and compares. */
static int64_t read_seconds(const char *p)
{
	int64_t year = read_digits(p, 4), month = read_digits(p + 5, 2),
		day = read_digits(p + 8, 2), hour = read_digits(p + 11, 2),
		minute = read_digits(p + 14, 2), second = read_digits(p + 17, 2), days;

	if (p[4] != '-' || p[7] != '-' || p[10] != 'T' || p[13] != ':' || p[16] != ':' ||
	    year < 1970 || month < 1 || day < 1 || hour < 0 || minute < 0 || second < 0)
		return -1;
	if (month <= 2) {
		year--;
		month += 12;
	}
	days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * (month - 3) + 2) / 5 + day -
	       1 - 719468;
	return ((days * 24 + hour) * 60 + minute) * 60 + second;
}

/* Seconds since 1970 of a time's first part. Events of one second come one after the other. */
static bool read_second(struct json_reader *in, const char *p, uint64_t *ret)
{
	static __thread struct {
		char text[SECOND_LEN + 1];
		uint64_t second;
	} last = { "1970-01-01T00:00:00", 0 };
	char text[RFC3339_NS_LEN + 1];
	uint64_t ns;
	int64_t sec;

	if (!memcmp(p, last.text, SECOND_LEN)) {
		*ret = last.second;
		return true;
	}
	sec = read_seconds(p);
	if (sec < 0)
		return json_problem(in, "bad time");
	if (__builtin_mul_overflow((uint64_t)sec, NSEC_PER_SEC, &ns))
		return json_problem(in, "time out of range");
	rfc3339_ns(text, ns); /* refuses what normalises to another time: February 30th, 24:00 */
	if (memcmp(text, p, SECOND_LEN))
		return json_problem(in, "bad time");
	memcpy(last.text, p, SECOND_LEN);
	*ret = last.second = (uint64_t)sec;
	return true;
}

static bool read_time(struct json_reader *in, uint64_t *ret)
{
	uint64_t ns = 0, second = 0;
	struct str s;
	const char *p;

	if (!json_read_string(in, &s))
		return false;
	if (s.n < 20 || s.n > RFC3339_NS_LEN || s.p[s.n - 1] != 'Z')
		return json_problem(in, "expected a time such as 2026-01-31T12:34:56.000000000Z");
	p = s.p + SECOND_LEN;
	if (*p == '.') {
		static const unsigned scales[] = { 100000000, 10000000, 1000000, 100000, 10000,
						   1000,      100,	10,	 1 };

		p++; /* at most nine digits: the length is checked */
		for (size_t i = 0; *p >= '0' && *p <= '9'; p++, i++)
			ns += (unsigned)(*p - '0') * scales[i];
	}
	if (p != s.p + s.n - 1)
		return json_problem(in, "bad time");
	if (!read_second(in, s.p, &second))
		return false;
	if (__builtin_add_overflow(second * NSEC_PER_SEC, ns, ret))
		return json_problem(in, "time out of range");
	return true;
}

static bool read_hex(struct json_reader *in, uint64_t *ret)
{
	uint64_t v = 0;
	struct str s;

	if (!json_read_string(in, &s))
		return false;
	if (s.n < 3 || s.n > 18 || s.p[0] != '0' || s.p[1] != 'x')
		return json_problem(in, "expected hexadecimal such as \"0x1f\"");
	for (size_t i = 2; i < s.n; i++) {
		unsigned c = (unsigned char)s.p[i], letter = (c | 0x20) - 'a';

		if (c - '0' >= 10 && letter >= 6)
			return json_problem(in, "bad hexadecimal digit");
		v = v << 4 | (c - '0' < 10 ? c - '0' : letter + 10);
	}
	*ret = v;
	return true;
}

static bool read_ip(struct json_reader *in, struct ip_addr *ret)
{
	struct str s;

	if (!json_read_string(in, &s))
		return false;
	return ip_addr_parse(s, ret) == 0 || json_problem(in, "expected an IP address");
}

static bool read_list(struct json_reader *in, union field_value *ret)
{
	size_t n = 0, room = 0;
	struct str *v = NULL;

	if (!json_expect(in, '[', "expected a list"))
		return false;
	for (; json_next_member(in, n, ']'); n++) {
		if (n == LIST_MAX)
			return json_problem(in, "list too long");
		v = json_grow(in, v, n, &room, sizeof(*v));
		if (!v || !json_read_string(in, &v[n]))
			return json_problem(in, "out of memory");
	}
	ret->list.v = v;
	ret->list.n = n;
	return !in->problem;
}

/* Members of the objects inside lists, by name; each at most once. */
struct member {
	struct str name;
	bool is_number;
	bool required;
	size_t offset;
	size_t size; /* of the number */
};

static bool read_number(struct json_reader *in, const struct member *m, void *object)
{
	uint64_t v;

	if (!json_read_u64(in, &v))
		return false;
	if (m->size == 4 && v > UINT32_MAX)
		return json_problem(in, "number too large");
	if (m->size == 4)
		*(uint32_t *)((char *)object + m->offset) = (uint32_t)v;
	else
		*(uint64_t *)((char *)object + m->offset) = v;
	return true;
}

static bool read_object(struct json_reader *in, const struct member *members, size_t n,
			void *object)
{
	size_t count = 0, likely = 0; /* they come in our order */
	unsigned seen = 0;
	struct str key;

	if (!json_expect(in, '{', "expected an object"))
		return false;
	for (; json_next_member(in, count, '}'); count++) {
		size_t i;

		if (!json_read_string(in, &key) || !json_expect(in, ':', "expected ':'"))
			return false;
		for (i = likely; i < n && !str_eq(key, members[i].name);)
			i++;
		if (i == n)
			for (i = 0; i < n && !str_eq(key, members[i].name);)
				i++;
		likely = i + 1;
		if (i == n || seen >> i & 1)
			return json_problem(in, i == n ? "unknown member in the list"
						       : "member given twice in the list");
		seen |= 1u << i;
		if (members[i].is_number ? !read_number(in, &members[i], object)
					 : !json_read_string(in, (struct str *)((char *)object +
										members[i].offset)))
			return false;
	}
	for (size_t i = 0; i < n; i++)
		if (members[i].required && !(seen >> i & 1))
			return json_problem(in, "member missing in the list");
	return !in->problem;
}

#define NUMBER(type, m)                                                                      \
	{                                                                                    \
		STR(#m), true, true, offsetof(struct type, m), sizeof(((struct type *)0)->m) \
	}
#define STRING(type, m, required)                                     \
	{                                                             \
		STR(#m), false, required, offsetof(struct type, m), 0 \
	}

static bool read_ancestors(struct json_reader *in, union field_value *ret)
{
	static const struct member members[] = {
		NUMBER(event_ancestor, pid),
		NUMBER(event_ancestor, start),
		STRING(event_ancestor, comm, false),
		STRING(event_ancestor, exe, false),
	};
	struct event_ancestor *v = NULL;
	size_t n = 0, room = 0;

	if (!json_expect(in, '[', "expected a list"))
		return false;
	for (; json_next_member(in, n, ']'); n++) {
		if (n == ANCESTORS_MAX)
			return json_problem(in, "list too long");
		v = json_grow(in, v, n, &room, sizeof(*v));
		if (!v)
			return json_problem(in, "out of memory");
		v[n] = (struct event_ancestor){ 0 };
		if (!read_object(in, members, ARRAY_SIZE(members), &v[n]))
			return false;
	}
	ret->ancestors.v = v;
	ret->ancestors.n = n;
	return !in->problem;
}

static bool read_answers(struct json_reader *in, union field_value *ret)
{
	static const struct member members[] = {
		STRING(event_dns_answer, name, true),
		STRING(event_dns_answer, type, true),
		NUMBER(event_dns_answer, ttl),
		STRING(event_dns_answer, data, true),
	};
	struct event_dns_answer *v = NULL;
	size_t n = 0, room = 0;

	if (!json_expect(in, '[', "expected a list"))
		return false;
	for (; json_next_member(in, n, ']'); n++) {
		if (n == ANSWERS_MAX)
			return json_problem(in, "list too long");
		v = json_grow(in, v, n, &room, sizeof(*v));
		if (!v)
			return json_problem(in, "out of memory");
		v[n] = (struct event_dns_answer){ 0 };
		if (!read_object(in, members, ARRAY_SIZE(members), &v[n]))
			return false;
	}
	ret->answers.v = v;
	ret->answers.n = n;
	return !in->problem;
}

bool json_read_value(struct json_reader *in, enum field_type type, union field_value *ret)
{
	bool b;

	switch (type) {
	case FT_STR:
		return json_read_string(in, &ret->s);
	case FT_MEMBERS:
		return json_read_members(in, &ret->s);
	case FT_U64:
		return json_read_u64(in, &ret->u);
	case FT_I64:
		return json_read_i64(in, &ret->i);
	case FT_BOOL:
		if (!json_read_bool(in, &b))
			return false;
		ret->u = b;
		return true;
	case FT_TIME:
		return read_time(in, &ret->u);
	case FT_HEX:
		return read_hex(in, &ret->u);
	case FT_IP:
		return read_ip(in, &ret->ip);
	case FT_STRLIST:
		return read_list(in, ret);
	case FT_ANCESTORS:
		return read_ancestors(in, ret);
	case FT_ANSWERS:
		return read_answers(in, ret);
	}
	return false;
}
