// SPDX-License-Identifier: Apache-2.0
/* One JSON object -> event: the inverse of to_json.c. Strict: what event_to_json cannot have written is
 * an error (unknown or repeated members, wrong types, "raw" that contradicts the text). Free are only
 * white space, the order of members and dotted names ("proc.exe"), because people write fixtures. */
#include <errno.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/json.h"
#include "userspace/base/option.h"
#include "userspace/event/event.h"
#include "userspace/event/json_keys.h"
#include "userspace/event/json_raw.h"
#include "userspace/event/json_read.h"

#define PATH_LEN_MAX  64
#define LIST_MAX      (1 << 20) /* members of one list */
#define ANCESTORS_MAX 256
#define ANSWERS_MAX   256
#define RAW_MAX	      (1 << 18) /* strings that are not UTF-8 */
#define UNKNOWN	      INT16_MIN
#define RAW	      (INT16_MIN + 1)
#define SECOND_LEN    19 /* 2026-01-31T12:34:56 */
/* Problems that a near name helps with. */
#define UNKNOWN_MEMBER "unknown member"
#define UNKNOWN_KIND   "unknown kind"

struct raw_member {
	struct str path, base64;
};

struct reader {
	struct json_reader in;
	struct event *ev;
	const char *start;	  /* of the text */
	struct json_slot *before; /* the key before this one */
	struct str key;		  /* of what is being read, */
	unsigned group;		  /* and the object that it stands in */
	struct str raw_path;	  /* or what "raw" says about this string */
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

/* Seconds since 1970 of a time's first part. Events of one second come one after the other. */
static bool read_second(struct reader *r, const char *p, uint64_t *ret)
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
		return json_problem(&r->in, "bad time");
	if (__builtin_mul_overflow((uint64_t)sec, NSEC_PER_SEC, &ns))
		return json_problem(&r->in, "time out of range");
	rfc3339_ns(text, ns); /* refuses what normalises to another time: February 30th, 24:00 */
	if (memcmp(text, p, SECOND_LEN))
		return json_problem(&r->in, "bad time");
	memcpy(last.text, p, SECOND_LEN);
	*ret = last.second = (uint64_t)sec;
	return true;
}

static bool read_time(struct reader *r, uint64_t *ret)
{
	uint64_t ns = 0, second = 0;
	struct str s;
	const char *p;

	if (!json_read_string(&r->in, &s))
		return false;
	if (s.n < 20 || s.n > RFC3339_NS_LEN || s.p[s.n - 1] != 'Z')
		return json_problem(&r->in,
				    "expected a time such as 2026-01-31T12:34:56.000000000Z");
	p = s.p + SECOND_LEN;
	if (*p == '.') {
		static const unsigned scales[] = { 100000000, 10000000, 1000000, 100000, 10000,
						   1000,      100,	10,	 1 };

		p++; /* at most nine digits: the length is checked */
		for (size_t i = 0; *p >= '0' && *p <= '9'; p++, i++)
			ns += (unsigned)(*p - '0') * scales[i];
	}
	if (p != s.p + s.n - 1)
		return json_problem(&r->in, "bad time");
	if (!read_second(r, s.p, &second))
		return false;
	if (__builtin_add_overflow(second * NSEC_PER_SEC, ns, ret))
		return json_problem(&r->in, "time out of range");
	return true;
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
		unsigned c = (unsigned char)s.p[i], letter = (c | 0x20) - 'a';

		if (c - '0' >= 10 && letter >= 6)
			return json_problem(&r->in, "bad hexadecimal digit");
		v = v << 4 | (c - '0' < 10 ? c - '0' : letter + 10);
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
static inline bool next_member(struct reader *r, size_t n, char end)
{
	if (n && *r->in.p == ',' && r->in.p[1] == '"') { /* most often */
		r->in.p++;
		return true;
	}
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
	struct str name;
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
	size_t count = 0, likely = 0; /* they come in our order */
	unsigned seen = 0;
	struct str key;

	if (!json_expect(&r->in, '{', "expected an object"))
		return false;
	for (; next_member(r, count, '}'); count++) {
		size_t i;

		if (!json_read_string(&r->in, &key) || !json_expect(&r->in, ':', "expected ':'"))
			return false;
		for (i = likely; i < n && !str_eq(key, members[i].name);)
			i++;
		if (i == n)
			for (i = 0; i < n && !str_eq(key, members[i].name);)
				i++;
		likely = i + 1;
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

#define NUMBER(type, m)                                                                      \
	{                                                                                    \
		STR(#m), true, true, offsetof(struct type, m), sizeof(((struct type *)0)->m) \
	}
#define STRING(type, m, required)                                     \
	{                                                             \
		STR(#m), false, required, offsetof(struct type, m), 0 \
	}

static bool read_ancestors(struct reader *r, union field_value *ret)
{
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
	case FT_MEMBERS:
		return json_read_members(&r->in, &ret->s);
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

/* The whole name of what is being read; empty when it is too long to be one. */
static struct str path_of(const struct reader *r, char out[PATH_LEN_MAX])
{
	struct str group = r->group ? json_groups[r->group].path : STR(""), key = r->key;
	size_t n;

	if (r->raw_path.n) {
		group = STR("raw");
		key = r->raw_path;
	}
	n = group.n;
	if (n + key.n + 2 > PATH_LEN_MAX)
		return STR("");
	memcpy(out, group.p, n);
	if (n && key.n)
		out[n++] = '.';
	memcpy(out + n, key.p, key.n);
	return (struct str){ out, n + key.n };
}

/* A field, ~group or UNKNOWN: as json_key_find, and with dots in the key. */
static int find_dotted(const struct reader *r)
{
	char text[PATH_LEN_MAX];
	struct str path = path_of(r, text);
	int f = event_field_find(path);
	unsigned group;

	if (f >= 0)
		return f;
	group = json_group_find(path);
	return group ? ~(int)group : UNKNOWN;
}

static bool read_field(struct reader *r, enum field_id f)
{
	if (event_has(r->ev, f))
		return json_problem(&r->in, "member given twice");
	if (!read_value(r, json_keys[f].type, &r->ev->v[f]))
		return json_problem(&r->in, "bad value");
	event_mark(r->ev, f);
	return true;
}

/* Its head is loaded before anything is stored beside it: a load that has to wait for a store costs more than all else
 * here. So a key gets no NUL, either. */
static bool read_key(struct reader *r, uint64_t *ret_head)
{
	struct json_reader *in = &r->in;
	char *start, *end;
	uint64_t x;

	if (json_peek(in) == '"') {
		start = in->p + 1;
		x = json_load8(start);
		end = json_plain_end(start);
		if (*end == '"') {
			r->key = (struct str){ start, (size_t)(end - start) };
			in->p = end + 1;
			*ret_head = json_key_head(x, r->key.n);
			return true;
		}
	}
	if (!json_read_string(in, &r->key))
		return false;
	*ret_head = json_key_head(json_load8(r->key.p), r->key.n);
	return true;
}

static bool find_key(struct reader *r, int *ret_what)
{
	struct json_slot *s;
	uint64_t head;

	if (!read_key(r, &head) || !json_expect(&r->in, ':', "expected ':'"))
		return false;
	s = json_key_find(head, r->key, r->group);
	if (!s) {
		*ret_what = !r->group && str_eq(r->key, STR("raw")) ? RAW : find_dotted(r);
		return *ret_what != UNKNOWN || json_problem(&r->in, UNKNOWN_MEMBER);
	}
	__atomic_store_n(&r->before->likely, (uint16_t)(s - json_slots), __ATOMIC_RELAXED);
	r->before = s;
	*ret_what = s->what;
	return true;
}

/* A key and its colon. Keys come in the same order in one record after the other, so the one that followed the last
 * time is tried first: nothing that comes later has to wait until the end of this one is found. */
static inline bool take_key(struct reader *r, int *ret_what)
{
	struct json_slot *s = &json_slots[__atomic_load_n(&r->before->likely, __ATOMIC_RELAXED)];

	if (s->group != r->group || !json_key_is(r->in.p, s))
		return find_key(r, ret_what);
	r->key = (struct str){ r->in.p + 1, s->n };
	r->in.p += s->n + 3;
	r->before = s;
	*ret_what = s->what;
	return true;
}

/* One member. *ret_open: the object to go into; 0 when it is none. */
static inline bool read_member(struct reader *r, unsigned *ret_open)
{
	int what;

	*ret_open = 0;
	if (!take_key(r, &what))
		return false;
	if (what >= 0)
		return read_field(r, (enum field_id)what);
	if (what == RAW)
		return read_raw(r);
	*ret_open = (unsigned)~what;
	return json_expect(&r->in, '{', "expected an object");
}

/* The nested objects without recursion. A repeated object is fine as long as no field comes twice. */
static bool read_members(struct reader *r)
{
	unsigned groups[JSON_NEST_MAX + 1] = { 0 }, open;
	size_t counts[JSON_NEST_MAX + 1] = { 0 }, depth = 0;

	if (!json_expect(&r->in, '{', "expected an object"))
		return false;
	for (;;) {
		r->group = groups[depth];
		r->key = STR("");
		if (!next_member(r, counts[depth], '}')) {
			if (r->in.problem)
				return false;
			if (depth-- == 0)
				return true;
			continue;
		}
		counts[depth]++;
		if (!read_member(r, &open))
			return false;
		if (!open)
			continue;
		if (depth == JSON_NEST_MAX)
			return json_problem(&r->in, "objects too deep");
		groups[++depth] = open;
		counts[depth] = 0;
	}
}

/* ---- the whole ---- */

static bool apply_raw(struct reader *r)
{
	for (size_t i = 0; i < r->raw_n; i++) {
		const char *problem;

		r->raw_path = r->raw[i].path;
		problem = json_raw_apply(r->ev, r->raw[i].path, r->raw[i].base64);
		if (problem)
			return json_problem(&r->in, problem);
	}
	r->raw_path = STR("");
	return true;
}

static bool check(struct reader *r)
{
	const struct kind_def *kind = event_kind_by_name(event_str(r->ev, F_KIND));

	if (json_peek(&r->in))
		return json_problem(&r->in, "text behind the event");
	if (r->in.p != r->in.end)
		return json_problem(&r->in, "NUL behind the event");
	if (r->raw_n && !apply_raw(r))
		return false;
	if (!event_has(r->ev, F_KIND))
		return json_problem(&r->in, "no \"kind\"");
	r->key = STR("kind");
	if (!kind)
		return json_problem(&r->in, UNKNOWN_KIND);
	r->ev->kind = kind->id;
	event_set_strz(r->ev, F_KIND, kind->name);
	if (!event_has(r->ev, F_V))
		event_set_u64(r->ev, F_V, EVENT_SCHEMA_VERSION);
	r->key = STR("v");
	return event_u64(r->ev, F_V) == EVENT_SCHEMA_VERSION ||
	       json_problem(&r->in, "unknown schema version");
}

/* " (did you mean 'proc.comm'?)" or "". */
static const char *hint_of(const struct reader *r, struct str path, char *out, size_t size)
{
	const char *names[F_COUNT > 256 ? F_COUNT : 256], *near = NULL;
	char word[PATH_LEN_MAX + 1];
	size_t n = 0;

	out[0] = 0;
	if (!strcmp(r->in.problem, UNKNOWN_KIND)) {
		path = event_str(r->ev, F_KIND);
		for (; n < event_kinds_n && n < ARRAY_SIZE(names); n++)
			names[n] = event_kinds[n].name;
	} else if (!strcmp(r->in.problem, UNKNOWN_MEMBER)) {
		for (; n < F_COUNT; n++)
			names[n] = event_fields[n].name;
	}
	snprintf(word, sizeof(word), "%.*s", (int)MIN(path.n, PATH_LEN_MAX), path.n ? path.p : "");
	if (n)
		near = closest_name(word, names, n);
	if (near)
		snprintf(out, size, " (did you mean '%s'?)", near);
	return out;
}

static int explain(const struct reader *r, struct err *err)
{
	char text[PATH_LEN_MAX], hint[96];
	struct str path = path_of(r, text);
	size_t at = (size_t)(r->in.p - r->start);

	if (r->in.no_memory)
		return err_set(err, ENOMEM, "event: out of memory");
	if (path.n)
		return err_set(err, EINVAL, "event, byte %zu, '%.*s': %s%s", at, (int)path.n,
			       path.p, r->in.problem, hint_of(r, path, hint, sizeof(hint)));
	return err_set(err, EINVAL, "event, byte %zu: %s", at, r->in.problem);
}

int event_from_json(struct event *ret, struct arena *arena, struct str json, struct err *err)
{
	struct reader r = { .ev = ret, .key = STR("") };

	json_keys_init();
	if (json_reader_init(&r.in, arena, json) < 0)
		return err_set(err, ENOMEM, "event: out of memory");
	r.start = r.in.p;
	r.before = json_first;
	event_init(ret, 0, arena);
	event_unset(ret, F_V);
	if (read_members(&r) && check(&r))
		return 0;
	return explain(&r, err);
}
