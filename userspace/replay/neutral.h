/* SPDX-License-Identifier: Apache-2.0 */
/* Output of a hostile program, made harmless for a terminal: text, colours, cursor movement, erasing and the
 * alternate screen pass; whatever asks the terminal something, sets a title or the clipboard, switches modes or
 * starts a string does not. A stream: sequences and characters may be split anywhere. */
#ifndef WARDER_REPLAY_NEUTRAL_H
#define WARDER_REPLAY_NEUTRAL_H

#include <stdbool.h>
#include <stdint.h>
#include "userspace/base/buf.h"
#include "userspace/base/str.h"

#define NEUTRAL_SEQUENCE_MAX 64 /* a longer one is dropped whole */

struct neutral {
	bool plain; /* text only: no escape sequence at all */
	enum {
		NEUTRAL_TEXT,
		NEUTRAL_ESC,
		NEUTRAL_CSI,
		NEUTRAL_SKIP_CSI, /* of one that is dropped */
		NEUTRAL_SKIP_ONE, /* character sets and the like: one byte more */
		NEUTRAL_STRING,	  /* OSC, DCS, APC, PM, SOS */
		NEUTRAL_STRING_ESC,
	} state;
	char seq[NEUTRAL_SEQUENCE_MAX];
	uint8_t seq_n;
	char utf8[4];
	uint8_t utf8_n;
	bool coloured, other_screen, no_cursor, region;
};

/* Appends to `out` valid UTF-8. 0 or -ENOMEM. */
int neutral_feed(struct neutral *v, struct str in, struct buf *out);
/* The stream has ended: undoes what would stay (colours, alternate screen, cursor, margins). */
int neutral_end(struct neutral *v, struct buf *out);

#endif
