// SPDX-License-Identifier: Apache-2.0
/* The tables behind event.h, all made from the X-macros of wire.h and fields.h. */
#include "userspace/event/event.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "userspace/base/auto.h"

#define FIELD_ROW(id, name, type, families, doc) { name, type, families, doc },
const struct field_def event_fields[F_COUNT] = { EVENT_FIELDS(FIELD_ROW) };

#define KIND_ROW(id, name, text, family) { id, text, FAM_##family },
const struct kind_def event_kinds[] = { WIRE_KINDS(KIND_ROW) };
const size_t event_kinds_n = ARRAY_SIZE(event_kinds);

#define KIND_INDEX_ENUM(id, name, text, family) KIND_INDEX_##name,
enum { WIRE_KINDS(KIND_INDEX_ENUM) };

#define ESCAPE_ROW(id, name, text) [id] = text,
static const char *const escape_names[] = { WIRE_ESCAPES(ESCAPE_ROW) };

/* Open addressing over the field names: filled once, half empty, so a look-up is one probe or two. */
#define FIELD_INDEX_SIZE 512
_Static_assert(F_COUNT * 2 <= FIELD_INDEX_SIZE, "field index too full");

static int16_t field_index[FIELD_INDEX_SIZE]; /* field + 1; 0 = free */

#define KIND_INDEX_SIZE 128
_Static_assert(ARRAY_SIZE(event_kinds) * 2 <= KIND_INDEX_SIZE, "kind index too full");

static int16_t kind_index[KIND_INDEX_SIZE];
static pthread_once_t indices_once = PTHREAD_ONCE_INIT;

static uint32_t name_hash(struct str s)
{
	uint32_t h = 2166136261u; /* FNV-1a: names are ours, nobody can choose collisions */

	for (size_t i = 0; i < s.n; i++)
		h = (h ^ (unsigned char)s.p[i]) * 16777619u;
	return h ^ h >> 15;
}

static void indices_fill(void)
{
	for (size_t k = 0; k < event_kinds_n; k++) {
		uint32_t i = name_hash(str_from(event_kinds[k].name));

		while (kind_index[i % KIND_INDEX_SIZE])
			i++;
		kind_index[i % KIND_INDEX_SIZE] = (int16_t)(k + 1);
	}
	for (int f = 0; f < F_COUNT; f++) {
		uint32_t i = name_hash(str_from(event_fields[f].name));

		while (field_index[i % FIELD_INDEX_SIZE])
			i++;
		field_index[i % FIELD_INDEX_SIZE] = (int16_t)(f + 1);
	}
}

int event_field_find(struct str name)
{
	uint32_t i = name_hash(name);
	int16_t slot;

	pthread_once(&indices_once, indices_fill);
	while ((slot = field_index[i++ % FIELD_INDEX_SIZE]))
		if (str_eqz(name, event_fields[slot - 1].name))
			return slot - 1;
	return -1;
}

const struct kind_def *event_kind_by_id(uint16_t id)
{
#define KIND_CASE(id, name, text, family) \
	case id:                          \
		return &event_kinds[KIND_INDEX_##name];
	switch (id) {
		WIRE_KINDS(KIND_CASE)
	}
	return NULL;
}

const struct kind_def *event_kind_by_name(struct str name)
{
	uint32_t i = name_hash(name);
	int16_t slot;

	pthread_once(&indices_once, indices_fill);
	while ((slot = kind_index[i++ % KIND_INDEX_SIZE]))
		if (str_eqz(name, event_kinds[slot - 1].name))
			return &event_kinds[slot - 1];
	return NULL;
}

const char *event_escape_name(uint32_t type)
{
	return type < ARRAY_SIZE(escape_names) ? escape_names[type] : NULL;
}

int event_escape_by_name(struct str name)
{
	for (size_t i = 0; i < ARRAY_SIZE(escape_names); i++)
		if (escape_names[i] && str_eqz(name, escape_names[i]))
			return (int)i;
	return -1;
}

void event_init(struct event *ev, enum wire_kind kind, struct arena *arena)
{
	const struct kind_def *def = event_kind_by_id((uint16_t)kind);

	/* Values are only read where a present bit is set, so they need no clearing. */
	ev->kind = kind;
	memset(&ev->hdr, 0, sizeof(ev->hdr));
	ev->arena = arena;
	ev->is_clean = false;
	memset(ev->part, 0, sizeof(ev->part));
	memset(ev->present, 0, sizeof(ev->present));
	event_set_u64(ev, F_V, EVENT_SCHEMA_VERSION);
	if (def)
		event_set_strz(ev, F_KIND, def->name);
}

size_t ip_addr_text(const struct ip_addr *ip, char *out)
{
	if (!inet_ntop(ip->family == 4 ? AF_INET : AF_INET6, ip->b, out, INET6_ADDRSTRLEN))
		*out = 0; /* cannot happen: the family is one of two and the room is enough */
	return strlen(out);
}

int ip_addr_parse(struct str text, struct ip_addr *ret)
{
	static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct ip_addr ip = { .family = 4 };
	char z[INET6_ADDRSTRLEN];

	if (text.n == 0 || text.n >= sizeof(z) || memchr(text.p, 0, text.n))
		return -EINVAL;
	memcpy(z, text.p, text.n);
	z[text.n] = 0;
	if (inet_pton(AF_INET, z, ip.b) != 1) {
		if (inet_pton(AF_INET6, z, ip.b) != 1)
			return -EINVAL;
		ip.family = 6;
		if (!memcmp(ip.b, mapped, sizeof(mapped))) {
			ip.family = 4;
			memmove(ip.b, ip.b + 12, 4);
			memset(ip.b + 4, 0, 12);
		}
	}
	*ret = ip;
	return 0;
}
