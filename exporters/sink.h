/* SPDX-License-Identifier: Apache-2.0 */
/* One sink of the fan-out: its source, its cursor, and the rules by which the cursor moves. No
 * threads here: the fan-out's thread calls sink_turn for each sink in turn. */
#ifndef WARDER_EXPORTERS_SINK_H
#define WARDER_EXPORTERS_SINK_H

#include "exporters/exporter.h"
#include "exporters/gate.h"

/* Records offered to one sink before the others get their turn. */
#define SINK_TURN_RECORDS 2048
/* The cursor file is written at most this often, except when somebody waits in fanout_drain. */
#define SINK_CURSOR_NS 1000000000ull
/* Look after a sink this often while it owes acknowledgements, even if nothing wakes us. */
#define SINK_TICK_NS 1000000000ull
/* Pause of a sink that is full (grows to the second) or had to start over (grows to the third). */
#define SINK_PAUSE_MIN_NS  20000000ull
#define SINK_FULL_MAX_NS   1000000000ull
#define SINK_REWIND_MAX_NS 30000000000ull
#define SINK_CALM_NS	   60000000000ull /* without a rewind: the next pause is short again */
#define SINK_NEVER	   UINT64_MAX
#define SINK_ID_MAX	   128

struct sink {
	char name[64];
	const struct exporter_class *class;
	struct exporter *x;
	struct export_source src;
	struct exporter_host host;
	const char *session;
	int cursor_dirfd;
	bool from_start; /* its cursor is neither read nor written */
	struct gate gate;
	bool required;
	bool stored_required;
	bool own_seq;

	struct export_record rec; /* read, not taken yet */
	bool have_rec;
	bool at_end;	      /* the source had nothing more when it was last asked */
	char id[SINK_ID_MAX]; /* for a record that has none */

	uint64_t cursor;  /* everything up to here is safe at the other side, or dead-lettered */
	uint64_t stored;  /* the cursor on disk */
	uint64_t passed;  /* last seq that was taken or refused */
	uint64_t taken;	  /* last seq that was taken */
	uint64_t refused; /* highest seq refused at write: counted once, rewinds notwithstanding */

	uint64_t not_before;   /* CLOCK_MONOTONIC ns; 0 = no pause */
	uint64_t full_pause;   /* ns; doubled each time, 0 again when the cursor moves */
	uint64_t rewind_pause; /* ns; 0 again after a good while without trouble */
	uint64_t rewound_at;
	uint64_t stored_at;
	uint64_t rng;

	uint64_t poison, errors, rewinds;
	bool source_down;
	char why[128];	     /* of the last dead letter */
	const char *trouble; /* what `text` is about */
	char text[256]; /* last error of our own, until it is over: source, cursor, dead letters */
};

/* Opens source and sink and loads the cursor. `s` must not move afterwards. */
int sink_open(struct sink *s, const struct exporter_config *cfg, const struct fanout_options *opt,
	      int wake_fd, struct err *err);
void sink_close(struct sink *s);

/* Serve, offer, serve. Returns true when there is more to do at once; else *ret_deadline is when to
 * come back even if nothing happens (CLOCK_MONOTONIC ns, SINK_NEVER = no need). `hurry`: store the
 * cursor now. */
bool sink_turn(struct sink *s, uint64_t now, bool hurry, uint64_t *ret_deadline);
void sink_store_cursor(struct sink *s, uint64_t now);
void sink_status(const struct sink *s, struct fanout_status *ret);

#endif
