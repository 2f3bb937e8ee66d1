/* SPDX-License-Identifier: Apache-2.0 */
/* Looks after the sinks of a session: what becomes of them is told in the record (audit.degraded) and in
 * the session's status, part "sinks". */
#ifndef WARDER_PIPELINE_SINK_WATCH_H
#define WARDER_PIPELINE_SINK_WATCH_H

#include "exporters/exporter.h"
#include "userspace/base/buf.h"

#define SINK_WATCH_NS (1000000000ull) /* between two looks */
/* A sink that takes nothing for so long is told of: a restarting broker is no news. */
#define SINK_DOWN_NS (5000000000ull)
/* Between two events about one sink, and most of them in a session: they go to the sinks, too. */
#define SINK_EVENT_NS	10000000000ull
#define SINK_EVENTS_MAX 256

struct sink_watch {
	uint64_t next; /* CLOCK_MONOTONIC ns */
	unsigned told; /* events so far */
	size_t rows_n;
	struct fanout_status rows[FANOUT_SINKS_MAX];
	struct sink_watched {
		uint64_t down_since; /* 0 = up */
		uint64_t told_at;
		bool told_down;
		uint64_t told_poison, told_errors;
		uint64_t acked; /* at the last look */
		double rate;	/* acknowledged a second, of the last few looks */
	} sinks[FANOUT_SINKS_MAX];
};

static inline bool sink_watch_is_due(const struct sink_watch *w, uint64_t now)
{
	return now >= w->next;
}

/* `rows`: how the sinks do now. `last`: newest seq in the journal. `say` writes an event with this
 * text. */
void sink_watch_look(struct sink_watch *w, const struct fanout_status *rows, size_t n,
		     uint64_t last, uint64_t now, void (*say)(void *arg, const char *text),
		     void *arg);
/* Is there anything to look after: a sink that is behind or down? */
bool sink_watch_is_needed(const struct sink_watch *w, uint64_t last);
/* The status, of the last look. */
int sink_watch_json(const struct sink_watch *w, uint64_t last, struct buf *out);

#endif
