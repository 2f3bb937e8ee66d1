// SPDX-License-Identifier: Apache-2.0
/* One JSON object -> event: the inverse of to_json.c. Strict: what event_to_json cannot have written is
 * an error (unknown or repeated members, wrong types, "raw" that contradicts the text). Free are only
 * white space, the order of members and dotted names ("proc.exe"), because people write fixtures. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/json.h"
#include "userspace/event/event.h"
#include "userspace/event/json_own.h"
#include "userspace/event/json_read.h"

#define PATH_LEN_MAX  64
#define DEPTH_MAX     4		/* objects by dots: "net.src.ip" has two */
#define LIST_MAX      (1 << 20) /* members of one list */
#define ANCESTORS_MAX 256
#define ANSWERS_MAX   256
#define RAW_MAX	      (1 << 18) /* strings that are not UTF-8 */

struct raw_member {
	struct str path, base64;
};

struct reader {
	struct json_reader in;
	struct event *ev;
	char path[PATH_LEN_MAX]; /* dotted name of what is being read */
	size_t path_n;
	struct raw_member *raw;
	size_t raw_n, raw_room;
	bool has_raw;
};

/* A growing array in the arena: doubles, the old copy is left behind. */
static void *grow_array(struct reader *r, void *old, size_t n, size_t *room, size_t size)
{
	void *p = old;

	if (n < *room)
		return old;
	*room = *room ? *room * 2 : 8;
	p = arena_alloc(r->in.arena, *room * size);
	if (!p)
		r->in.no_memory = true;
	else if (n)
		memcpy(p, old, n * size);
	return p;
}

/* ---- values ---- */

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

static bool read_time(struct reader *r, uint64_t *ret)
{
	char text[RFC3339_NS_LEN + 1];
	unsigned long ns = 0;
	struct str s;
	const char *p;
	int64_t sec;

	if (!json_read_string(&r->in, &s))
		return false;
	if (s.n < 20 || s.n > RFC3339_NS_LEN || s.p[s.n - 1] != 'Z')
		return json_problem(&r->in,
				    "expected a time such as 2026-01-31T12:34:56.000000000Z");
	sec = read_seconds(s.p);
	p = s.p + 19;
	if (*p == '.') {
		unsigned long scale = 100000000;

		for (p++; *p >= '0' && *p <= '9'; p++, scale /= 10)
			ns += (unsigned long)(*p - '0') * scale;
	}
	if (p != s.p + s.n - 1 || sec < 0)
		return json_problem(&r->in, "bad time");
	if (__builtin_mul_overflow((uint64_t)sec, NSEC_PER_SEC, ret) ||
	    __builtin_add_overflow(*ret, ns, ret))
		return json_problem(&r->in, "time out of range");
	rfc3339_ns(text, *ret); /* refuses what normalises to another time: February 30th, 24:00 */
	return memcmp(text, s.p, 19) ? json_problem(&r->in, "bad time") : true;
}

static bool read_hex(struct reader *r, uint64_t *ret)
{
	uint64_t v = 0;
	struct str s;

	if (!json_read_string(&r->in, &s))
		return false;
	if (s.n < 3 || s.n > 18 || s.p[0] != '0' || s.p[1] != 'x')
		return json_problem(&r->in, "expected hexadecimal such as \"0x1f\"");
	for (size_t i = 2; i < s.n; i++) {
		const char *digits = "0123456789abcdef", *at = strchr(digits, s.p[i] | 0x20);

		if (!s.p[i] || !at)
			return json_problem(&r->in, "bad hexadecimal digit");
		v = v << 4 | (uint64_t)(at - digits);
	}
	*ret = v;
	return true;
}

static bool read_ip(struct reader *r, struct ip_addr *ret)
{
	struct str s;

	if (!json_read_string(&r->in, &s))
		return false;
	return ip_addr_parse(s, ret) == 0 || json_problem(&r->in, "expected an IP address");
}

/* Behind the member in front: is there another one? Sets a problem on anything but ',' and `end`. */
static bool next_member(struct reader *r, size_t n, char end)
{
	if (json_take(&r->in, end))
		return false;
	if (n && !json_expect(&r->in, ',', "expected ',' or the end"))
		return false;
	if (n && json_peek(&r->in) == end)
		return json_problem(&r->in, "',' before the end");
	return true;
}

static bool read_list(struct reader *r, union field_value *ret)
{
	size_t n = 0, room = 0;
	struct str *v = NULL;

	if (!json_expect(&r->in, '[', "expected a list"))
		return false;
	for (; next_member(r, n, ']'); n++) {
		if (n == LIST_MAX)
			return json_problem(&r->in, "list too long");
		v = grow_array(r, v, n, &room, sizeof(*v));
		if (!v || !json_read_string(&r->in, &v[n]))
			return json_problem(&r->in, "out of memory");
	}
	ret->list.v = v;
	ret->list.n = n;
	return !r->in.problem;
}

/* Members of the objects inside lists, by name; each at most once. */
struct member {
	const char *name;
	bool is_number;
	bool required;
	size_t offset;
	size_t size; /* of the number */
};

static bool read_number(struct reader *r, const struct member *m, void *object)
{
	uint64_t v;

	if (!json_read_u64(&r->in, &v))
		return false;
	if (m->size == 4 && v > UINT32_MAX)
		return json_problem(&r->in, "number too large");
	if (m->size == 4)
		*(uint32_t *)((char *)object + m->offset) = (uint32_t)v;
	else
		*(uint64_t *)((char *)object + m->offset) = v;
	return true;
}

static bool read_object(struct reader *r, const struct member *members, size_t n, void *object)
{
	unsigned seen = 0;
	size_t count = 0;
	struct str key;

	if (!json_expect(&r->in, '{', "expected an object"))
		return false;
	for (; next_member(r, count, '}'); count++) {
		size_t i = 0;

		if (!json_read_string(&r->in, &key) || !json_expect(&r->in, ':', "expected ':'"))
			return false;
		while (i < n && !str_eqz(key, members[i].name))
			i++;
		if (i == n || seen >> i & 1)
			return json_problem(&r->in, i == n ? "unknown member in the list"
							   : "member given twice in the list");
		seen |= 1u << i;
		if (members[i].is_number
			    ? !read_number(r, &members[i], object)
			    : !json_read_string(&r->in,
						(struct str *)((char *)object + members[i].offset)))
			return false;
	}
	for (size_t i = 0; i < n; i++)
		if (members[i].required && !(seen >> i & 1))
			return json_problem(&r->in, "member missing in the list");
	return !r->in.problem;
}

static bool read_ancestors(struct reader *r, union field_value *ret)
{
#define NUMBER(type, m)                                                                 \
	{                                                                               \
#m, true, true, offsetof(struct type, m), sizeof(((struct type *)0)->m) \
	}
#define STRING(type, m, required)                                \
	{                                                        \
#m, false, required, offsetof(struct type, m), 0 \
	}
	static const struct member members[] = {
		NUMBER(event_ancestor, pid),
		NUMBER(event_ancestor, start),
		STRING(event_ancestor, comm, false),
		STRING(event_ancestor, exe, false),
	};
	struct event_ancestor *v = NULL;
	size_t n = 0, room = 0;

	if (!json_expect(&r->in, '[', "expected a list"))
		return false;
	for (; next_member(r, n, ']'); n++) {
		if (n == ANCESTORS_MAX)
			return json_problem(&r->in, "list too long");
		v = grow_array(r, v, n, &room, sizeof(*v));
		if (!v)
			return json_problem(&r->in, "out of memory");
		v[n] = (struct event_ancestor){ 0 };
		if (!read_object(r, members, ARRAY_SIZE(members), &v[n]))
			return false;
	}
	ret->ancestors.v = v;
	ret->ancestors.n = n;
	return !r->in.problem;
}

static bool read_answers(struct reader *r, union field_value *ret)
{
	static const struct member members[] = {
		STRING(event_dns_answer, name, true),
		STRING(event_dns_answer, type, true),
		NUMBER(event_dns_answer, ttl),
		STRING(event_dns_answer, data, true),
	};
	struct event_dns_answer *v = NULL;
	size_t n = 0, room = 0;

	if (!json_expect(&r->in, '[', "expected a list"))
		return false;
	for (; next_member(r, n, ']'); n++) {
		if (n == ANSWERS_MAX)
			return json_problem(&r->in, "list too long");
		v = grow_array(r, v, n, &room, sizeof(*v));
		if (!v)
			return json_problem(&r->in, "out of memory");
		v[n] = (struct event_dns_answer){ 0 };
		if (!read_object(r, members, ARRAY_SIZE(members), &v[n]))
			return false;
	}
	ret->answers.v = v;
	ret->answers.n = n;
	return !r->in.problem;
}

static bool read_value(struct reader *r, enum field_type type, union field_value *ret)
{
	bool b;

	switch (type) {
	case FT_STR:
		return json_read_string(&r->in, &ret->s);
	case FT_U64:
		return json_read_u64(&r->in, &ret->u);
	case FT_I64:
		return json_read_i64(&r->in, &ret->i);
	case FT_BOOL:
		if (!json_read_bool(&r->in, &b))
			return false;
		ret->u = b;
		return true;
	case FT_TIME:
		return read_time(r, &ret->u);
	case FT_HEX:
		return read_hex(r, &ret->u);
	case FT_IP:
		return read_ip(r, &ret->ip);
	case FT_STRLIST:
		return read_list(r, ret);
	case FT_ANCESTORS:
		return read_ancestors(r, ret);
	case FT_ANSWERS:
		return read_answers(r, ret);
	}
	return false;
}

/* ---- members ---- */

static bool read_raw(struct reader *r)
{
	if (r->has_raw)
		return json_problem(&r->in, "member given twice");
	r->has_raw = true;
	if (!json_expect(&r->in, '{', "expected an object"))
		return false;
	for (; next_member(r, r->raw_n, '}'); r->raw_n++) {
		struct raw_member *m;

		if (r->raw_n == RAW_MAX)
			return json_problem(&r->in, "too many members");
		r->raw = grow_array(r, r->raw, r->raw_n, &r->raw_room, sizeof(*r->raw));
		if (!r->raw)
			return json_problem(&r->in, "out of memory");
		m = &r->raw[r->raw_n];
		if (!json_read_string(&r->in, &m->path) ||
		    !json_expect(&r->in, ':', "expected ':'") ||
		    !json_read_string(&r->in, &m->base64))
			return false;
	}
	return !r->in.problem;
}

/* What stands before a dot in a field's name: few, so they are looked up one after the other. */
#define GROUPS_MAX 48

static struct str groups[GROUPS_MAX];
static size_t groups_n;
static pthread_once_t groups_once = PTHREAD_ONCE_INIT;

static bool find_group(struct str path)
{
	for (size_t i = 0; i < groups_n; i++)
		if (str_eq(groups[i], path))
			return true;
	return false;
}

static void groups_fill(void)
{
	for (int f = 0; f < F_COUNT; f++) {
		const char *name = event_fields[f].name;

		for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) {
			struct str path = { name, (size_t)(dot - name) };

			if (!find_group(path) && groups_n < GROUPS_MAX)
				groups[groups_n++] = path;
		}
	}
}

static bool is_group(struct str path)
{
	pthread_once(&groups_once, groups_fill);
	return find_group(path);
}

/* Appends a key to the path. */
static bool push_key(struct reader *r, struct str key)
{
	if (r->path_n + key.n + 2 > sizeof(r->path))
		return json_problem(&r->in, "unknown member");
	if (r->path_n)
		r->path[r->path_n++] = '.';
	memcpy(r->path + r->path_n, key.p, key.n);
	r->path_n += key.n;
	return true;
}

/* One member: its value is read when the path is a field. *ret_open: it is an object to go into. */
static bool read_member(struct reader *r, bool *ret_open)
{
	struct str path;
	int f;

	*ret_open = false;
	path = (struct str){ r->path, r->path_n };
	if (str_eqz(path, "raw"))
		return read_raw(r);
	f = event_field_find(path);
	if (f >= 0) {
		if (event_has(r->ev, (enum field_id)f))
			return json_problem(&r->in, "member given twice");
		if (!read_value(r, event_fields[f].type, &r->ev->v[f]))
			return json_problem(&r->in, "bad value");
		event_mark(r->ev, (enum field_id)f);
		return true;
	}
	if (!is_group(path))
		return json_problem(&r->in, "unknown member");
	*ret_open = true;
	return json_expect(&r->in, '{', "expected an object");
}

/* The nested objects without recursion: the path says where we are. A repeated object is fine as long
 * as no field comes twice. */
static bool read_members(struct reader *r)
{
	size_t lengths[DEPTH_MAX + 1] = { 0 }, counts[DEPTH_MAX + 1] = { 0 }, depth = 0;
	struct str key;
	bool open;

	if (!json_expect(&r->in, '{', "expected an object"))
		return false;
	for (;;) {
		r->path_n = lengths[depth];
		if (!next_member(r, counts[depth], '}')) {
			if (r->in.problem)
				return false;
			if (depth-- == 0)
				return true;
			continue;
		}
		counts[depth]++;
		if (!json_read_string(&r->in, &key) || !push_key(r, key) ||
		    !json_expect(&r->in, ':', "expected ':'") || !read_member(r, &open))
			return false;
		if (!open)
			continue;
		if (depth == DEPTH_MAX)
			return json_problem(&r->in, "objects too deep");
		depth++;
		lengths[depth] = r->path_n;
		counts[depth] = 0;
	}
}

/* ---- "raw" ---- */

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

static bool apply_raw(struct reader *r)
{
	for (size_t i = 0; i < r->raw_n; i++) {
		struct str *target = raw_target(r->ev, r->raw[i].path), bytes;

		r->path_n = 0;
		if (!push_key(r, STR("raw")) || !push_key(r, r->raw[i].path))
			return json_problem(&r->in, "unknown member");
		if (!target || !target->p)
			return json_problem(&r->in, "no such string in the event");
		if (!base64_decode(r->in.arena, r->raw[i].base64, &bytes))
			return json_problem(&r->in, "bad base64");
		if (!raw_fits(bytes, *target))
			return json_problem(&r->in, "bytes do not belong to the text");
		*target = bytes;
	}
	return true;
}

/* ---- the whole ---- */

static bool check(struct reader *r)
{
	const struct kind_def *kind = event_kind_by_name(event_str(r->ev, F_KIND));

	r->path_n = 0;
	if (json_peek(&r->in))
		return json_problem(&r->in, "text behind the event");
	if (r->in.p != r->in.end)
		return json_problem(&r->in, "NUL behind the event");
	if (!apply_raw(r))
		return false;
	r->path_n = 0;
	if (!event_has(r->ev, F_KIND))
		return json_problem(&r->in, "no \"kind\"");
	push_key(r, STR("kind"));
	if (!kind)
		return json_problem(&r->in, "unknown kind");
	r->ev->kind = kind->id;
	event_set_strz(r->ev, F_KIND, kind->name);
	r->path_n = 0;
	if (!event_has(r->ev, F_V))
		event_set_u64(r->ev, F_V, EVENT_SCHEMA_VERSION);
	if (event_u64(r->ev, F_V) == EVENT_SCHEMA_VERSION)
		return true;
	push_key(r, STR("v"));
	return json_problem(&r->in, "unknown schema version");
}

int event_from_json_slowly(struct event *ret, struct arena *arena, struct str json, struct err *err)
{
	struct reader r = {
		.in = { .p = json.p, .end = json.p + json.n, .arena = arena },
		.ev = ret,
	};

	event_init(ret, 0, arena);
	event_unset(ret, F_V);
	if (read_members(&r) && check(&r))
		return 0;
	if (r.in.no_memory)
		return err_set(err, ENOMEM, "event: out of memory");
	if (r.path_n)
		return err_set(err, EINVAL, "event, byte %zu, '%.*s': %s",
			       (size_t)(r.in.p - json.p), (int)r.path_n, r.path, r.in.problem);
	return err_set(err, EINVAL, "event, byte %zu: %s", (size_t)(r.in.p - json.p), r.in.problem);
}

int event_from_json(struct event *ret, struct arena *arena, struct str json, struct err *err)
{
	if (event_from_own_json(ret, arena, json))
		return 0;
	return event_from_json_slowly(ret, arena, json, err);
}
