/* SPDX-License-Identifier: Apache-2.0 */
/* The quick half of event_from_json: JSON as event_to_json writes it. */
#ifndef WARDER_EVENT_JSON_OWN_H
#define WARDER_EVENT_JSON_OWN_H

#include "userspace/event/event.h"

/* true: read. false: something in it is not as our own writer has it in the usual case (white space, dotted
 * names, "raw", any mistake): the slow reader decides what it is, and `ret` holds nothing of use. What this one
 * accepts the other accepts with the same event; tests/fuzz/fuzz_event_json.c holds them against each other. */
bool event_from_own_json(struct event *ret, struct arena *arena, struct str json);
/* The other half: all that event_from_json takes. */
int event_from_json_slowly(struct event *ret, struct arena *arena, struct str json,
			   struct err *err);

#endif
