/* SPDX-License-Identifier: Apache-2.0 */
/* A decoded event: a slot per field of the schema, strings in an arena. Siblings meet here: every
 * stage reads and writes slots, none knows another. */
#ifndef WARDER_EVENT_EVENT_H
#define WARDER_EVENT_EVENT_H

#include <stdbool.h>
#include <stdint.h>
#include "bpf/abi/wire.h"
#include "userspace/base/arena.h"
#include "userspace/base/buf.h"
#include "userspace/base/err.h"
#include "userspace/base/str.h"
#include "userspace/event/fields.h"

#define EVENT_FIELD_ENUM(id, name, type, families, doc) F_##id,
enum field_id { EVENT_FIELDS(EVENT_FIELD_ENUM) F_COUNT };

#define EVENT_PRESENT_WORDS  ((F_COUNT + 63) / 64)
#define EVENT_SCHEMA_VERSION 1

struct ip_addr {
	uint8_t family; /* 4 or 6 */
	uint8_t b[16];	/* network order; IPv4 in the first four */
};

struct event_ancestor {
	uint64_t pid;
	uint64_t start;
	struct str comm;
	struct str exe; /* p == NULL where unknown */
};

struct event_dns_answer {
	struct str name;
	struct str type; /* "A", "AAAA", "CNAME", ... "TYPE65" style when unknown */
	struct str data; /* text form: address, name, or \# hex (RFC 3597) */
	uint32_t ttl;
};

union field_value {
	struct str s;
	uint64_t u; /* U64, TIME, HEX, BOOL (0/1) */
	int64_t i;
	struct ip_addr ip;
	struct {
		const struct str *v;
		size_t n;
	} list;
	struct {
		const struct event_ancestor *v;
		size_t n;
	} ancestors;
	struct {
		const struct event_dns_answer *v;
		size_t n;
	} answers;
};

struct event_part;

enum { EVENT_PART_SESSION, EVENT_PART_WHO, EVENT_PARTS };

struct event {
	enum wire_kind kind;
	struct wire_hdr hdr; /* as decoded; zero for events the agent makes itself */
	bool is_clean;	     /* has no secret in it any more */
	/* Runs of fields that it has in common with others (event/part.h); NULL: none. */
	const struct event_part *part[EVENT_PARTS];
	struct arena *arena; /* owns every pointer below */
	uint64_t present[EVENT_PRESENT_WORDS];
	union field_value v[F_COUNT];
};

struct field_def {
	const char *name;
	enum field_type type;
	uint32_t families;
	const char *doc;
};

struct kind_def {
	uint16_t id;
	const char *name;
	uint32_t family; /* FAM_* bit */
};

extern const struct field_def event_fields[F_COUNT];
extern const struct kind_def event_kinds[];
extern const size_t event_kinds_n;

/* Field by full name ("proc.exe"); -1 when there is none. */
int event_field_find(struct str name);
/* Kind by id or by name; NULL when there is none. */
const struct kind_def *event_kind_by_id(uint16_t id);
const struct kind_def *event_kind_by_name(struct str name);
/* Text of an escape type; NULL when the number is unknown. -1 for an unknown name. */
const char *event_escape_name(uint32_t type);
int event_escape_by_name(struct str name);

/* Text of an enum wire_limit ("pids"); NULL when the number is unknown. */
const char *event_limit_name(uint32_t type);

/* Empties the event; the arena is not reset. Kind's slots (KIND, V) are filled in. */
void event_init(struct event *ev, enum wire_kind kind, struct arena *arena);

static inline bool event_has(const struct event *ev, enum field_id f)
{
	return ev->present[f / 64] >> (f % 64) & 1;
}

static inline void event_mark(struct event *ev, enum field_id f)
{
	ev->present[f / 64] |= (uint64_t)1 << (f % 64);
}

static inline void event_unset(struct event *ev, enum field_id f)
{
	ev->present[f / 64] &= ~((uint64_t)1 << (f % 64));
}

static inline void event_set_u64(struct event *ev, enum field_id f, uint64_t v)
{
	ev->v[f].u = v;
	event_mark(ev, f);
}

static inline void event_set_i64(struct event *ev, enum field_id f, int64_t v)
{
	ev->v[f].i = v;
	event_mark(ev, f);
}

static inline void event_set_bool(struct event *ev, enum field_id f, bool v)
{
	event_set_u64(ev, f, v);
}

/* Keeps the pointer: s must live in the arena or longer. A NULL p leaves the field absent. */
static inline void event_set_str(struct event *ev, enum field_id f, struct str s)
{
	if (!s.p)
		return;
	ev->v[f].s = s;
	event_mark(ev, f);
}

static inline void event_set_strz(struct event *ev, enum field_id f, const char *z)
{
	event_set_str(ev, f, str_from(z));
}

static inline void event_set_list(struct event *ev, enum field_id f, const struct str *v, size_t n)
{
	ev->v[f].list.v = v;
	ev->v[f].list.n = n;
	event_mark(ev, f);
}

static inline void event_set_ip(struct event *ev, enum field_id f, struct ip_addr ip)
{
	ev->v[f].ip = ip;
	event_mark(ev, f);
}

/* Absent fields read as empty. */
static inline struct str event_str(const struct event *ev, enum field_id f)
{
	return event_has(ev, f) ? ev->v[f].s : (struct str){ 0 };
}

static inline uint64_t event_u64(const struct event *ev, enum field_id f)
{
	return event_has(ev, f) ? ev->v[f].u : 0;
}

/* Text form (RFC 5952 for v6). Returns the length; out has room for 46 bytes. */
size_t ip_addr_text(const struct ip_addr *ip, char *out);
/* "10.0.0.1" or "fd00::1"; v4-mapped v6 comes out as v4. -EINVAL. */
int ip_addr_parse(struct str text, struct ip_addr *ret);

/* One JSON object, no newline. Always valid UTF-8; a string that was not has its bytes in
 * "raw":{"<field>":"<base64>"} (list members as "<field>.<index>"). 0 or -ENOMEM/-EMSGSIZE. */
int event_to_json(const struct event *ev, struct buf *out);
/* The object "raw" alone. */
void event_raw_to_json(const struct event *ev, struct buf *out);

/* The way back: one JSON object as event_to_json writes it, strings copied into `arena`. Unknown or
 * repeated members are an error that names them; dotted names ("proc.exe") and any order are fine. Used by `rules test`, `events --filter` and re-judging. */
int event_from_json(struct event *ret, struct arena *arena, struct str json, struct err *err);

#endif
