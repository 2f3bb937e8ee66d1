/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WARDER_PIPELINE_PLAYBACK_INTERNAL_H
#define WARDER_PIPELINE_PLAYBACK_INTERNAL_H

#include "userspace/base/auto.h"
#include "userspace/pipeline/playback.h"
#include "userspace/replay/neutral.h"
#include "userspace/replay/timeline.h"
#include "userspace/store/terminal.h"

DEFINE_AUTO(journal_reader, journal_reader_free)
DEFINE_AUTO(terminal_reader, terminal_reader_free)

#define EVENT_MEM_MAX (16u << 20)
#define SHOWN_MAX     256 /* bytes of a stream in which a searched text is found across records */

/* Events one after the other, decoded. */
struct event_cursor {
	struct journal_reader *reader;
	struct arena arena;
	struct event *ev; /* the next one */
	uint64_t at, seq; /* its time and number; PLAYBACK_NEVER: none left */
};

/* Terminal records one after the other. */
struct tty_cursor {
	struct terminal_reader *reader;
	struct terminal_record rec; /* the next one */
	uint64_t at, seq;
};

struct shown {
	struct neutral plain;
	char tail[SHOWN_MAX + 1];
	size_t n;
};

struct search {
	enum playback_find what;
	char text[PLAYBACK_TEXT_MAX + 1];
	uint64_t from;
	bool active;
	struct event_cursor events;
	struct tty_cursor tty;
	struct shown shown[TERMINAL_STREAMS];
};

struct playback {
	int bundle;
	struct playback_options opt;
	struct timeline timeline;
	uint64_t start, length, now;
	struct event_cursor events;
	struct tty_cursor tty;
	struct screen *screen; /* NULL: no recording */
	bool partial;
	struct playback_line lines[PLAYBACK_LINES];
	size_t lines_n; /* in all */
	char typed[64];
	struct buf text;

	struct {
		uint16_t rows, cols;
		uint64_t at;
	} * sizes; /* in order of time */
	size_t sizes_n;

	uint64_t *marks; /* times of alerts, in order of the record */
	size_t marks_n;
	struct journal_reader *index; /* NULL: all was looked at */
	uint64_t indexed;	      /* up to there */
	struct arena index_arena;
	struct event *index_ev;

	struct search search;
};

int event_cursor_open(struct event_cursor *c, int bundle, struct err *err);
void event_cursor_done(struct event_cursor *c);
/* Decodes the next one; `start` is the session's first `mono`. */
int event_cursor_next(struct event_cursor *c, uint64_t start, struct err *err);
int tty_cursor_open(struct tty_cursor *c, int bundle, struct err *err);
void tty_cursor_done(struct tty_cursor *c);
int tty_cursor_next(struct tty_cursor *c, uint64_t start, struct err *err);

bool playback_is_alert(enum wire_kind kind);
void playback_find_done(struct playback *p);

#endif
