/* SPDX-License-Identifier: Apache-2.0 */
/* Draws a playback: on top what the terminal showed, then a bar of time, the last events, a line of state. Only
 * lines that changed are written. */
#ifndef WARDER_CLI_REPLAY_VIEW_H
#define WARDER_CLI_REPLAY_VIEW_H

#include "userspace/pipeline/playback.h"

#define VIEW_ROWS_MAX 512

struct view_state {
	bool playing, help, searching;
	uint64_t speed;	     /* thousandths */
	const char *prompt;  /* NULL = none; what is asked, and: */
	const char *typed;   /* what was answered so far */
	const char *message; /* "" = none */
};

struct view {
	unsigned rows, cols; /* of our own terminal */
	bool colour;
	struct buf shown[VIEW_ROWS_MAX]; /* what is on it now */
	struct buf line, out;
};

/* Everything is drawn anew next time. */
void view_forget(struct view *v);
void view_done(struct view *v);
/* Writes to stdout. 0 or -errno. */
int view_draw(struct view *v, const struct playback *p, const struct view_state *st);

/* "1:02.345"; at most 24 bytes. */
const char *view_time(uint64_t ns, char text[24]);

#endif
