// SPDX-License-Identifier: Apache-2.0
/* One JSON object -> event: the inverse of to_json.c. Strict: what event_to_json cannot have written is
 * an error (unknown or repeated members, wrong types, "raw" that contradicts the text). Free are only
 * white space, the order of members and dotted names ("proc.exe"), because people write fixtures. */
#include <errno.h>
#include <string.h>

#include "userspace/base/json.h"
#include "userspace/base/option.h"
#include "userspace/event/event.h"
#include "userspace/event/json_keys.h"
#include "userspace/event/json_raw.h"
#include "userspace/event/json_read.h"
#include "userspace/event/json_read_value.h"

#define PATH_LEN_MAX 64
#define RAW_MAX	     (1 << 18) /* strings that are not UTF-8 */
#define UNKNOWN	     INT16_MIN
#define RAW	     (INT16_MIN + 1)
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

/* ---- members ---- */

static bool read_raw(struct reader *r)
{
	if (r->has_raw)
		return json_problem(&r->in, "member given twice");
	r->has_raw = true;
	if (!json_expect(&r->in, '{', "expected an object"))
		return false;
	for (; json_next_member(&r->in, r->raw_n, '}'); r->raw_n++) {
		struct raw_member *m;

		if (r->raw_n == RAW_MAX)
			return json_problem(&r->in, "too many members");
		r->raw = json_grow(&r->in, r->raw, r->raw_n, &r->raw_room, sizeof(*r->raw));
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
	if (!json_read_value(&r->in, json_keys[f].type, &r->ev->v[f]))
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
		if (!json_next_member(&r->in, counts[depth], '}')) {
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
