/* SPDX-License-Identifier: Apache-2.0 */
/* A session as lines for a person: when, who, what. Everything in an event that came from the sandbox
 * is hostile to the terminal: no byte that could move a cursor, colour a line or turn the direction of
 * writing is passed on. */
#ifndef WARDER_REPLAY_TIMELINE_H
#define WARDER_REPLAY_TIMELINE_H

#include <stdbool.h>
#include "userspace/event/event.h"

#define TIMELINE_VALUE_MAX 400 /* bytes of one value; longer ones end with "..." */

struct timeline {
	uint64_t start; /* `mono` of the first event; 0 = none yet */
	bool colour;
};

/* One line without newline: "    1.234  42 sh    exec   sh -c 'echo hi'"; the name is indented by the
 * depth of the process below the sandbox's first. 0 or -ENOMEM. */
int timeline_line(struct timeline *t, const struct event *ev, struct buf *out);

/* What an event says, without time and process. */
int timeline_what(const struct event *ev, struct buf *out);

/* One field's value, safe for a terminal, of at most about `max` bytes. The field must be there. */
int timeline_value(const struct event *ev, enum field_id f, size_t max, struct buf *out);

/* The i-th piece of what events of a kind say: a word that ends with '=' or ' ' stands before the field's value.
 * False behind the last; a kind without any is told by all its fields that are not common. */
bool timeline_part(enum wire_kind kind, size_t i, const char **ret_word, enum field_id *ret_field);

/* What every kind or every process has. */
bool timeline_is_common(enum field_id f);

/* Text of a sandbox for a terminal: control characters, invalid UTF-8, and characters that are invisible
 * or turn the direction (bidi controls, zero-width) come out as \xNN or \u{NNNN}; at most `max` bytes. */
int text_for_terminal(struct str s, size_t max, struct buf *out);

#endif
