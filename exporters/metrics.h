/* SPDX-License-Identifier: Apache-2.0 */
/* Prometheus metrics out of the records that pass: counters, and the small server that shows them. One
 * address is one exposition, whatever number of sinks (sessions) of this process feed it. */
#ifndef WARDER_EXPORTERS_METRICS_H
#define WARDER_EXPORTERS_METRICS_H

#include "exporters/exporter.h"
#include "userspace/base/buf.h"

/* Rule names come from rule files: beyond this many series, what is new counts under "other". */
#define METRICS_SERIES_MAX 1024
#define METRICS_LABELS_MAX 192
#define METRICS_LATENCIES  10

enum metric {
	METRIC_EVENTS,
	METRIC_LOST,
	METRIC_ALERTS,
	METRIC_ACTIONS,
	METRIC_ESCAPES,
	METRIC_LIMITS,
	METRIC_MAX,
};

struct metric_series {
	enum metric metric;
	char labels[METRICS_LABELS_MAX]; /* kind="exec"; empty = free slot */
	uint64_t value;
};

struct metrics {
	struct metric_series series[2 * METRICS_SERIES_MAX]; /* open hash */
	size_t series_n;
	uint64_t overflow[METRIC_MAX];
	uint64_t latency[METRICS_LATENCIES + 1]; /* the last one: longer than all */
	uint64_t latency_sum_ns, latency_n;
	uint64_t last_event_ns;
	uint64_t delay[METRICS_LATENCIES + 1]; /* like latency: from the event to here */
	uint64_t delay_sum_ns, delay_n;
};

/* Count one record. */
void metrics_count(struct metrics *m, const struct export_record *rec);
/* Text format 0.0.4 of Prometheus. */
void metrics_render(const struct metrics *m, struct buf *out);
/* Add `name{labels} value` lines of sinks: lag, errors, ... `seq`: the newest record seen. */
void metrics_render_sinks(struct buf *out, const char *session, uint64_t seq,
			  const struct fanout_status *rows, size_t n);
void metrics_render_process(struct buf *out);
/* Gauges of one fan-out; `session` becomes a label. */
void metrics_render_gauges(struct buf *out, const char *session, const struct exporter_gauge *g,
			   size_t n);
/* A label value with what must be escaped escaped; cut at `max` bytes. */
void metrics_label(struct buf *out, const char *name, struct str value, size_t max);

/* ---- the server: never blocks, bounded ---- */

struct metrics_server;
typedef void (*metrics_page_fn)(void *arg, struct buf *out);

/* "127.0.0.1:9464", "[::1]:9464", "unix:/path". Other addresses than loopback are refused unless
 * `anywhere`: names of rules and sandboxes are nobody's business. */
int metrics_server_new(struct metrics_server **ret, const char *address, bool anywhere,
		       struct err *err);
void metrics_server_free(struct metrics_server *s);
/* Take connections, answer requests. Returns ms until it wants to be called again, 0 = only for fd. The
 * descriptor to wait for is -1 while no more can be taken. */
int metrics_server_poll(struct metrics_server *s, metrics_page_fn page, void *arg);
int metrics_server_fd(const struct metrics_server *s);

#endif
