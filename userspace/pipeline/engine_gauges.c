// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/engine_part.h"

#include <stdio.h>
#include <string.h>

enum gauge {
	G_URGENT_USED,
	G_BULK_USED,
	G_URGENT_SIZE,
	G_BULK_SIZE,
	G_RECORDS,
	G_LATE,
	G_FAILS,
	G_UNATTRIBUTED,
	G_OVERFLOW,
	GAUGES
};

_Static_assert(GAUGES == ENGINE_GAUGES, "room for them");

/* What metrics sinks show of the engine itself. */
static const struct exporter_gauge GAUGE_ROWS[GAUGES] = {
	[G_URGENT_USED] = { "warder_ring_used_bytes", "ring=\"urgent\"",
			    "Bytes waiting in the kernel's ring.", false, 0 },
	[G_BULK_USED] = { "warder_ring_used_bytes", "ring=\"bulk\"", "", false, 0 },
	[G_URGENT_SIZE] = { "warder_ring_size_bytes", "ring=\"urgent\"", "Size of that ring.",
			    false, 0 },
	[G_BULK_SIZE] = { "warder_ring_size_bytes", "ring=\"bulk\"", "", false, 0 },
	[G_RECORDS] = { "warder_probe_records_total", "", "Records taken from the rings.", true,
			0 },
	[G_LATE] = { "warder_probe_late_records_total", "",
		     "Records that came behind younger ones.", true, 0 },
	[G_FAILS] = { "warder_probe_failures_total", "", "Kernel helpers that failed in probes.",
		      true, 0 },
	[G_UNATTRIBUTED] = { "warder_unattributed_records_total", "",
			     "Records of no sandbox that is known.", true, 0 },
	[G_OVERFLOW] = { "warder_rule_matches_suppressed_total", "",
			 "Matches beyond what one event may have.", true, 0 },
};

static struct exporter_gauge *add_gauge(struct engine *e, const char *name, const char *labels,
					const char *help, uint64_t v)
{
	struct exporter_gauge *g = &e->gauges[e->gauges_n++];

	*g = (struct exporter_gauge){ name, labels, help, false, v };
	return g;
}

static void init_map_gauges(struct engine *e, const struct capture_usage *u)
{
	size_t n = 0, of[CAPTURE_MAPS_MAX]; /* rings have gauges of their own */

	for (size_t i = 0; i < u->maps_n; i++)
		if (!u->maps[i].is_ring)
			of[n++] = i;
	/* Rows of one name stand together. */
	for (size_t i = 0; i < n; i++) {
		const struct capture_map *m = &u->maps[of[i]];

		snprintf(e->map_labels[i], sizeof(e->map_labels[i]), "map=\"%s\"", m->name);
		e->map_used[of[i]] = add_gauge(e, "warder_map_entries", e->map_labels[i],
					       "Entries of a table in the kernel.", m->used);
	}
	for (size_t i = 0; i < n; i++)
		add_gauge(e, "warder_map_max_entries", e->map_labels[i], "Room in that table.",
			  u->maps[of[i]].max);
	for (size_t i = 0; i < n; i++)
		add_gauge(e, "warder_map_bytes", e->map_labels[i], "Kernel memory of that table.",
			  u->maps[of[i]].bytes);
	add_gauge(e, "warder_kernel_memory_bytes", "of=\"maps\"", "Kernel memory of the probes.",
		  u->map_bytes);
	add_gauge(e, "warder_kernel_memory_bytes", "of=\"programs\"", "", u->program_bytes);
}

void engine_gauges_init(struct engine *e)
{
	memcpy(e->gauges, GAUGE_ROWS, sizeof(GAUGE_ROWS));
	e->gauges_n = GAUGES;
	if (e->opt->usage)
		init_map_gauges(e, e->opt->usage);
}

void engine_gauges_usage(struct engine *e, const uint64_t *used)
{
	for (size_t i = 0; i < CAPTURE_MAPS_MAX; i++)
		if (e->map_used[i])
			exporter_gauge_set(e->map_used[i], used[i]);
}

void engine_gauges_update(struct engine *e)
{
	struct pipeline_counters counters;
	struct capture_stats stats;
	uint64_t fails = 0;

	capture_stats(e->opt->capture, &stats);
	pipeline_counters(e->pipeline, &counters);
	for (size_t i = 0; i < FAIL_SITE_COUNT; i++)
		fails += stats.fails[i];
	exporter_gauge_set(&e->gauges[G_URGENT_USED], stats.ring_used[0]);
	exporter_gauge_set(&e->gauges[G_BULK_USED], stats.ring_used[1]);
	exporter_gauge_set(&e->gauges[G_URGENT_SIZE], stats.ring_size[0]);
	exporter_gauge_set(&e->gauges[G_BULK_SIZE], stats.ring_size[1]);
	exporter_gauge_set(&e->gauges[G_RECORDS], stats.records);
	exporter_gauge_set(&e->gauges[G_LATE], stats.late);
	exporter_gauge_set(&e->gauges[G_FAILS], fails);
	exporter_gauge_set(&e->gauges[G_UNATTRIBUTED], counters.unattributed);
	exporter_gauge_set(&e->gauges[G_OVERFLOW], counters.rule_overflow);
}
