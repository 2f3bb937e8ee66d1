/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of from_json.c: what is common to the values of fields and the object around them. */
#ifndef WARDER_EVENT_JSON_READ_VALUE_H
#define WARDER_EVENT_JSON_READ_VALUE_H

#include "userspace/event/event.h"
#include "userspace/event/json_read.h"

/* False: in->problem says why, or there is no memory. */
bool json_read_value(struct json_reader *in, enum field_type type, union field_value *ret);

/* A growing array in the arena: doubles, the old copy is left behind. */
void *json_grow(struct json_reader *in, void *old, size_t n, size_t *room, size_t size);

/* Behind the member in front: is there another one? Sets a problem on anything but ',' and `end`. */
static inline bool json_next_member(struct json_reader *in, size_t n, char end)
{
	if (n && *in->p == ',' && in->p[1] == '"') { /* most often */
		in->p++;
		return true;
	}
	if (json_take(in, end))
		return false;
	if (n && !json_expect(in, ',', "expected ',' or the end"))
		return false;
	if (n && json_peek(in) == end)
		return json_problem(in, "',' before the end");
	return true;
}

#endif
