/* SPDX-License-Identifier: Apache-2.0 */
/* A recorded session as a place in time: the terminal's screen and the last events up to there. Moves on and
 * jumps; knows nothing of keys or of who looks. All in a bundle is hostile: what cannot be read is told, and
 * ends it there. */
#ifndef WARDER_PIPELINE_PLAYBACK_H
#define WARDER_PIPELINE_PLAYBACK_H

#include "userspace/event/event.h"
#include "userspace/replay/screen.h"

#define PLAYBACK_LINES	   64	 /* the last events, as lines */
#define PLAYBACK_MARKS_MAX 65536 /* alerts that n and N find */
#define PLAYBACK_NEVER	   UINT64_MAX

struct playback_options {
	bool colour;
	uint64_t to; /* nothing after that, ns since the start; 0 = all */
	/* Which events are shown; NULL = all. */
	bool (*wanted)(void *arg, const struct event *ev);
	void *arg;
};

struct playback;

/* At 0, nothing applied. `bundle` is borrowed. */
int playback_open(struct playback **ret, int bundle, const struct playback_options *opt,
		  struct err *err);
void playback_free(struct playback *p);

/* Times are ns since the session's first event. */
uint64_t playback_now(const struct playback *p);
uint64_t playback_length(const struct playback *p);
/* When something happens next; PLAYBACK_NEVER: nothing any more. */
uint64_t playback_next(const struct playback *p);

/* On to `to`, at most about `budget` bytes of records. 1: there is more until then, and now is where it stopped. */
int playback_step(struct playback *p, uint64_t to, size_t budget, struct err *err);
/* There at once: the screen out of the last SCREEN_CONTEXT of output before, or of all of it with `exact`, when it
 * is only begun: playback_step goes the way from the start. */
int playback_seek(struct playback *p, uint64_t to, bool exact, struct err *err);
/* The screen may lack what was shown before the context. */
bool playback_is_partial(const struct playback *p);

/* NULL: nothing was recorded of a terminal or of output. */
const struct screen *playback_screen(const struct playback *p);
/* Keys typed, the last ones, safe to show; "" when they were not recorded. */
const char *playback_typed(const struct playback *p);

struct playback_line {
	char *text; /* for a terminal, no newline */
	bool grave; /* an alert, action, escape, limit or gap */
};
/* The i-th last event line, 0 = the last; NULL: none. */
const struct playback_line *playback_line(const struct playback *p, size_t i);

/* ---- to find something ---- */

enum playback_find {
	PLAYBACK_FIND_NEXT, /* alert after now */
	PLAYBACK_FIND_PREVIOUS,
	PLAYBACK_FIND_TEXT, /* in event lines and in what the terminal showed, after now; ASCII in any case */
};
#define PLAYBACK_TEXT_MAX 100

/* Begins; replaces one under way. `text`: FIND_TEXT only. */
int playback_find(struct playback *p, enum playback_find what, const char *text, struct err *err);
/* Goes on for about `budget_ns`. 1: found, *ret_at; 0: not there; -EAGAIN: not done yet. */
int playback_find_more(struct playback *p, uint64_t budget_ns, uint64_t *ret_at, struct err *err);
/* Of the session so much was searched, ns. */
uint64_t playback_find_at(const struct playback *p);

/* Looks for alerts ahead of time. False: all are known. */
bool playback_index(struct playback *p, uint64_t budget_ns);
size_t playback_alerts(const struct playback *p);
/* One is known from `from` to before `to`. */
bool playback_alert_within(const struct playback *p, uint64_t from, uint64_t to);

#endif
