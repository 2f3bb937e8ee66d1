// SPDX-License-Identifier: Apache-2.0
#include "userspace/event/json_keys.h"

#include <pthread.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/json.h"

struct json_group json_groups[JSON_GROUPS_MAX];
struct json_field_key json_keys[F_COUNT];
struct json_slot json_slots[JSON_SLOTS], *json_first;
static size_t groups_n;
static pthread_once_t once = PTHREAD_ONCE_INIT;
_Static_assert(2 * (F_COUNT + JSON_GROUPS_MAX) < JSON_SLOTS, "table of keys too full");

static void add_slot(const char *key, size_t n, unsigned group, int what)
{
	uint64_t head = 0;
	size_t i;

	memcpy(&head, key, MIN(n, sizeof(head)));
	i = json_slot_of(head, n, group);
	while (json_slots[i].n)
		i = (i + 1) % JSON_SLOTS;
	json_slots[i] =
		(struct json_slot){ head, key, (uint8_t)n, (uint8_t)group, (int16_t)what, 0 };
}

unsigned json_group_find(struct str path)
{
	for (unsigned i = 1; i < groups_n; i++)
		if (str_eq(json_groups[i].path, path))
			return i;
	return 0;
}

/* Names come from fields.h and are short; a unit test checks that everything fits. */
static uint8_t make_key(char *out, const char *name, size_t n, const char *tail)
{
	size_t t = strlen(tail);

	if (n + t + 3 > JSON_KEY_MAX)
		return 0;
	out[0] = ',';
	out[1] = '"';
	memcpy(out + 2, name, n);
	out[2 + n] = '"';
	memcpy(out + 3 + n, tail, t);
	return (uint8_t)(n + t + 3);
}

/* The object of this path, which stands in `parent`. */
static uint8_t group_of(struct str path, uint8_t parent)
{
	size_t skip = parent ? json_groups[parent].path.n + 1 : 0;
	unsigned i = json_group_find(path);

	if (i || groups_n == JSON_GROUPS_MAX)
		return (uint8_t)i;
	i = (unsigned)groups_n++;
	json_groups[i] = (struct json_group){
		.parent = parent,
		.depth = (uint8_t)(json_groups[parent].depth + 1),
		.path = path,
	};
	json_groups[i].open_n = make_key(json_groups[i].open, path.p + skip, path.n - skip, ":{");
	add_slot(path.p + skip, path.n - skip, parent, ~(int)i);
	return (uint8_t)i;
}

static void fill(void)
{
	groups_n = 1;
	for (int f = 0; f < F_COUNT; f++) {
		const char *name = event_fields[f].name, *part = name, *dot;
		uint8_t g = 0;

		while ((dot = strchr(part, '.'))) {
			g = group_of((struct str){ name, (size_t)(dot - name) }, g);
			part = dot + 1;
		}
		json_keys[f].group = g;
		json_keys[f].type = (uint8_t)event_fields[f].type;
		json_keys[f].n = make_key(json_keys[f].key, part, strlen(part), ":");
		add_slot(part, strlen(part), g, f);
	}
	for (size_t i = 0; i < JSON_SLOTS; i++) { /* never a free one: it would be an empty key */
		if (json_slots[i].what == F_V && json_slots[i].n)
			json_first = &json_slots[i];
	}
	for (size_t i = 0; i < JSON_SLOTS; i++)
		json_slots[i].likely = (uint16_t)(json_first - json_slots);
}

void json_keys_init(void)
{
	pthread_once(&once, fill);
}
