/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of an event's JSON, made once from the names of fields.h: the dots of a name are the nesting. What the
 * writer puts in front of a value, and how the reader finds what a key means. */
#ifndef WARDER_EVENT_JSON_KEYS_H
#define WARDER_EVENT_JSON_KEYS_H

#include <string.h>

#include "userspace/event/event.h"

#define JSON_GROUPS_MAX 48 /* objects: the top one and one for each prefix */
#define JSON_KEY_MAX	32
#define JSON_NEST_MAX	4 /* objects in one another: "net.src.ip" has two */

/* Texts are padded to JSON_KEY_MAX so that a copy of constant size, without a call, writes any of them. */
struct json_group {
	uint8_t parent;
	uint8_t depth;
	uint8_t open_n;
	char open[JSON_KEY_MAX]; /* ,"proc":{ */
	struct str path;	 /* "net.src" */
};

struct json_field_key {
	uint8_t group;
	uint8_t type; /* enum field_type */
	uint8_t n;
	char key[JSON_KEY_MAX]; /* ,"exe": */
};

extern struct json_group json_groups[JSON_GROUPS_MAX]; /* 0 is the top object */
extern struct json_field_key json_keys[F_COUNT];

/* Fills the tables; before any use of them. */
void json_keys_init(void);

#define JSON_SLOTS 1024 /* a power of two, mostly empty */

/* A key inside an object: of a field, or of an object in it. */
struct json_slot {
	uint64_t head; /* its first eight bytes */
	const char *key;
	uint8_t n; /* 0 = a free slot */
	uint8_t group;
	int16_t what;	 /* field, or ~group */
	uint16_t likely; /* the slot of the key that came next the last time; by __atomic_* */
};

extern struct json_slot json_slots[JSON_SLOTS];
extern struct json_slot *json_first; /* of the key that our writer begins with */

static inline size_t json_slot_of(uint64_t head, size_t n, unsigned group)
{
	uint64_t x = (head ^ (n << 3 | (uint64_t)group << 56)) * 0x9e3779b97f4a7c15ull;

	return (size_t)(x >> 54);
}

/* The first n bytes of the eight in x, as they lie in memory; the rest zero. */
static inline uint64_t json_key_head(uint64_t x, size_t n)
{
	unsigned rest = n < 8 ? 8 * (8 - (unsigned)n) : 0;

	if (!n)
		return 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return x << rest >> rest;
#else
	return x >> rest << rest;
#endif
}

/* The slot of a key in the object of this group; NULL when there is none. `head` is what json_key_head makes of the
 * eight bytes from key.p on. */
static inline struct json_slot *json_key_find(uint64_t head, struct str key, unsigned group)
{
	for (size_t i = json_slot_of(head, key.n, group); json_slots[i].n;
	     i = (i + 1) % JSON_SLOTS) {
		struct json_slot *s = &json_slots[i];

		if (s->head == head && s->n == key.n && s->group == group &&
		    (key.n <= 8 || !memcmp(s->key + 8, key.p + 8, key.n - 8)))
			return s;
	}
	return NULL;
}

/* Is it this key that stands at p, in its quotes and with its colon? Looks at JSON_KEY_MAX bytes, no more. */
static inline bool json_key_is(const char *p, const struct json_slot *s)
{
	uint64_t x;

	memcpy(&x, p + 1, sizeof(x));
	return *p == '"' && json_key_head(x, s->n) == s->head &&
	       (s->n <= 8 || !memcmp(s->key + 8, p + 9, s->n - 8u)) && p[s->n + 1] == '"' &&
	       p[s->n + 2] == ':';
}
/* The object of this path ("net.src"); 0 when there is none. */
unsigned json_group_find(struct str path);

#endif
