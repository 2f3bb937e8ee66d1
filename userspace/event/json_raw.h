/* SPDX-License-Identifier: Apache-2.0 */
/* The member "raw" of an event's JSON: bytes of strings that are not UTF-8. */
#ifndef WARDER_EVENT_JSON_RAW_H
#define WARDER_EVENT_JSON_RAW_H

#include "userspace/event/event.h"

/* Puts the bytes in the place of the text that was made from them: `path` names a string of the event, "proc.exe",
 * "proc.args.2", "proc.ancestors.0.comm". NULL, or what is wrong with it. */
const char *json_raw_apply(struct event *ev, struct str path, struct str base64);

#endif
