/* SPDX-License-Identifier: Apache-2.0 */
/* A run of fields that many events have in common, who acts or in which session: values that outlive the event, and
 * their JSON, made once. An event that has a part has the values too; the part only saves making text of them. */
#ifndef WARDER_EVENT_PART_H
#define WARDER_EVENT_PART_H

#include "userspace/event/event.h"

#define EVENT_PART_FIELDS 24
#define EVENT_PART_BYTES  (16 * 1024) /* strings, lists and JSON of one */

struct event_part {
	uint64_t serial; /* no other content ever has it; 0: there is none */
	uint64_t mask;	 /* its fields, all of one object, of the first 64 */
	uint64_t span;	 /* where no other field may be */
	uint8_t pairs;	 /* the first so many are a pointer and a length, the others numbers */
	uint8_t n;
	uint8_t field[EVENT_PART_FIELDS];
	union field_value v[EVENT_PART_FIELDS];
	struct str json; /* members with commas between */
	void *block;	 /* holds all that is pointed to */
};

/* Makes it anew of what the event has within `span`. What it held before is gone, also when this fails: -ENOMEM;
 * -EMSGSIZE: too much; -EILSEQ: not UTF-8, its bytes must stand in "raw". */
int event_part_make(struct event_part *p, const struct event *ev, uint64_t span);
void event_part_done(struct event_part *p);

/* The members of these fields of the event, all of one object, of the first 64: with commas between. 0, -ENOMEM or
 * -EMSGSIZE. */
int event_members_to_json(const struct event *ev, uint64_t mask, struct buf *out);

/* Gives the event all of its values. */
void event_part_give(const struct event_part *p, struct event *ev);
/* Does the event have all of its fields, its texts and lists, and no other field among them? */
bool event_part_holds(const struct event_part *p, const struct event *ev);

#endif
