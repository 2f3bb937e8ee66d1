/* SPDX-License-Identifier: Apache-2.0 */
/* Which records a sink is offered, and how fast: its `filter` and `rate` properties. */
#ifndef WARDER_EXPORTERS_GATE_H
#define WARDER_EXPORTERS_GATE_H

#include "exporters/exporter.h"

/* A sink that may take N records a second may take so much of a second's worth at once. */
#define GATE_BURST_NS 100000000ull

struct gate {
	const struct export_filter_ops *ops;
	void *filter;	      /* NULL = every record */
	uint64_t interval_ns; /* between records; 0 = no limit */
	uint64_t due;	      /* CLOCK_MONOTONIC ns when the next record would be on schedule */
	uint64_t skipped;     /* records that the filter kept from the sink */
};

/* `ops` may be NULL: then a filter is an error. */
int gate_open(struct gate *g, const struct exporter_config *cfg,
	      const struct export_filter_ops *ops, struct err *err);
void gate_close(struct gate *g);
/* Is the record for this sink? One that cannot be judged is: nothing gets lost by a filter. */
bool gate_wants(struct gate *g, struct str json);
/* May a record go now? Else *ret_at is when (ns). */
bool gate_is_open(const struct gate *g, uint64_t now, uint64_t *ret_at);
/* One went. */
void gate_passed(struct gate *g, uint64_t now);

#endif
