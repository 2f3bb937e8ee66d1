// SPDX-License-Identifier: Apache-2.0
#include "exporters/metrics.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporters/record.h"
#include "exporters/scan.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"

static const struct {
	const char *name;
	const char *help;
} METRICS[METRIC_MAX] = {
	[METRIC_EVENTS] = { "warder_events_total", "Events by kind." },
	[METRIC_LOST] = { "warder_lost_events_total", "Events declared lost by gap records." },
	[METRIC_ALERTS] = { "warder_rule_alerts_total", "Rules that fired." },
	[METRIC_ACTIONS] = { "warder_actions_total", "Actions taken, by type and result." },
	[METRIC_ESCAPES] = { "warder_escapes_total", "Escape signals by type." },
	[METRIC_LIMITS] = { "warder_limits_total", "Limits that were hit." },
};

/* Seconds as Prometheus wants them, and the same in ns. */
static const struct {
	const char *le;
	uint64_t ns;
} BUCKETS[METRICS_LATENCIES] = {
	{ "0.0001", 100000 }, { "0.0005", 500000 }, { "0.001", 1000000 }, { "0.005", 5000000 },
	{ "0.01", 10000000 }, { "0.05", 50000000 }, { "0.1", 100000000 }, { "0.5", 500000000 },
	{ "1", 1000000000 },  { "5", 5000000000 },
};

void metrics_label(struct buf *out, const char *name, struct str value, size_t max)
{
	size_t end = out->n + strlen(name) + 2 + max;

	buf_addz(out, name);
	buf_addz(out, "=\"");
	for (size_t i = 0; i < value.n && out->n + 2 < end; i++) {
		unsigned char c = (unsigned char)value.p[i];

		if (c == '"' || c == '\\')
			buf_addc(out, '\\');
		buf_addc(out, c < 32 || c == 127 ? '?' : (char)c);
	}
	/* Never half a UTF-8 sequence at the cut. */
	while (out->n && ((unsigned char)out->p[out->n - 1] & 0x80) && value.n >= max / 2)
		out->n--;
	buf_addc(out, '"');
}

static void count(struct metrics *m, enum metric metric, const char *labels, uint64_t n)
{
	size_t slots = ARRAY_SIZE(m->series), at;
	uint64_t h = 14695981039346656037ull + metric;

	for (const char *p = labels; *p; p++)
		h = (h ^ (unsigned char)*p) * 1099511628211ull;
	for (at = h % slots; m->series[at].labels[0]; at = (at + 1) % slots) {
		if (m->series[at].metric != metric || strcmp(m->series[at].labels, labels))
			continue;
		m->series[at].value += n;
		return;
	}
	if (m->series_n == METRICS_SERIES_MAX) {
		m->overflow[metric] += n;
		return;
	}
	m->series_n++;
	m->series[at].metric = metric;
	snprintf(m->series[at].labels, METRICS_LABELS_MAX, "%s", labels);
	m->series[at].value = n;
}

/* A string member of the record's sub-object, up to the first character no word has. */
static struct str member(struct str object, const char *key)
{
	struct str value, s;

	if (!scan_find(object, key, &value) || value.n < 2 || value.p[0] != '"')
		return STR("");
	s = (struct str){ value.p + 1, value.n - 2 }; /* escapes stand as they are */
	return s;
}

static void count_two(struct metrics *m, enum metric metric, const char *a, struct str va,
		      const char *b, struct str vb)
{
	struct buf labels;

	buf_init(&labels, METRICS_LABELS_MAX);
	metrics_label(&labels, a, va, 80);
	if (b) {
		buf_addc(&labels, ',');
		metrics_label(&labels, b, vb, 40);
	}
	buf_addc(&labels, 0);
	if (!labels.failed)
		count(m, metric, labels.p, 1);
	buf_done(&labels);
}

static size_t bucket_of(uint64_t ns)
{
	size_t i = 0;

	while (i < METRICS_LATENCIES && ns > BUCKETS[i].ns)
		i++;
	return i;
}

static void count_latency(struct metrics *m, struct str action)
{
	struct str value;
	uint64_t ns;

	if (!scan_find(action, "latency_ns", &value) || !scan_u64(value, &ns))
		return;
	m->latency[bucket_of(ns)]++;
	m->latency_n++;
	m->latency_sum_ns += ns;
}

/* From what happened to its record being read for the sinks: decoded, judged, on disk. */
static void count_delay(struct metrics *m, uint64_t event_ns)
{
	uint64_t now = clock_real_ns(), ns = now > event_ns ? now - event_ns : 0;

	if (!event_ns)
		return;
	m->delay[bucket_of(ns)]++;
	m->delay_n++;
	m->delay_sum_ns += ns;
}

static void count_gap(struct metrics *m, struct str gap)
{
	struct str value, reason = member(gap, "reason");
	struct buf labels;
	uint64_t n = 1;

	if (scan_find(gap, "count", &value))
		scan_u64(value, &n);
	buf_init(&labels, METRICS_LABELS_MAX);
	metrics_label(&labels, "reason", reason, 40);
	buf_addc(&labels, 0);
	if (!labels.failed)
		count(m, METRIC_LOST, labels.p, n);
	buf_done(&labels);
}

/* "failed: why" and "done" -> the first word. */
static struct str first_word(struct str s)
{
	size_t n = 0;

	while (n < s.n && s.p[n] != ' ' && s.p[n] != ':' && s.p[n] != ',')
		n++;
	return (struct str){ s.p, n };
}

void metrics_count(struct metrics *m, const struct export_record *rec)
{
	struct str o, p;
	uint64_t ns = record_time_ns(rec);

	count_two(m, METRIC_EVENTS, "kind", rec->kind, NULL, STR(""));
	m->last_event_ns = MAX(m->last_event_ns, ns);
	count_delay(m, ns);
	if (str_eq(rec->kind, STR("rule.alert"))) {
		if (scan_find(rec->json, "rule", &o))
			count_two(m, METRIC_ALERTS, "rule", member(o, "name"), "priority",
				  member(o, "priority"));
	} else if (str_eq(rec->kind, STR("action"))) {
		if (!scan_find(rec->json, "action", &p))
			return;
		count_two(m, METRIC_ACTIONS, "type", member(p, "type"), "result",
			  first_word(member(p, "result")));
		count_latency(m, p);
	} else if (str_eq(rec->kind, STR("escape"))) {
		if (scan_find(rec->json, "escape", &o))
			count_two(m, METRIC_ESCAPES, "type", member(o, "type"), NULL, STR(""));
	} else if (str_eq(rec->kind, STR("limit"))) {
		if (scan_find(rec->json, "limit", &o))
			count_two(m, METRIC_LIMITS, "type", member(o, "type"), NULL, STR(""));
	} else if (str_eq(rec->kind, STR("gap"))) {
		if (scan_find(rec->json, "gap", &o))
			count_gap(m, o);
	}
}

/* ---- text ---- */

static void head(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void render_histogram(struct buf *out, const char *name, const char *help,
			     const uint64_t *counts, uint64_t n, uint64_t sum_ns)
{
	uint64_t sum = 0;

	head(out, name, "histogram", help);
	for (size_t i = 0; i < METRICS_LATENCIES; i++) {
		sum += counts[i];
		buf_printf(out, "%s_bucket{le=\"%s\"} %llu\n", name, BUCKETS[i].le,
			   (unsigned long long)sum);
	}
	buf_printf(out, "%s_bucket{le=\"+Inf\"} %llu\n", name, (unsigned long long)n);
	buf_printf(out, "%s_sum %llu.%09llu\n", name, (unsigned long long)(sum_ns / NSEC_PER_SEC),
		   (unsigned long long)(sum_ns % NSEC_PER_SEC));
	buf_printf(out, "%s_count %llu\n", name, (unsigned long long)n);
}

void metrics_render(const struct metrics *m, struct buf *out)
{
	for (int k = 0; k < METRIC_MAX; k++) {
		head(out, METRICS[k].name, "counter", METRICS[k].help);
		for (size_t i = 0; i < ARRAY_SIZE(m->series); i++) {
			const struct metric_series *s = &m->series[i];

			if (s->labels[0] && s->metric == (enum metric)k)
				buf_printf(out, "%s{%s} %llu\n", METRICS[k].name, s->labels,
					   (unsigned long long)s->value);
		}
		if (m->overflow[k])
			buf_printf(out, "%s{other=\"true\"} %llu\n", METRICS[k].name,
				   (unsigned long long)m->overflow[k]);
	}
	render_histogram(out, "warder_action_latency_seconds",
			 "From the event's time to the action's end.", m->latency, m->latency_n,
			 m->latency_sum_ns);
	render_histogram(out, "warder_event_delay_seconds",
			 "From the event's time to its record being on disk and read.", m->delay,
			 m->delay_n, m->delay_sum_ns);
	head(out, "warder_last_event_time_seconds", "gauge", "Time of the newest event.");
	buf_printf(out, "warder_last_event_time_seconds %llu.%03llu\n",
		   (unsigned long long)(m->last_event_ns / NSEC_PER_SEC),
		   (unsigned long long)(m->last_event_ns % NSEC_PER_SEC / NSEC_PER_MSEC));
}

void metrics_render_sinks(struct buf *out, const char *session, uint64_t seq,
			  const struct fanout_status *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct fanout_status *r = &rows[i];
		struct buf labels;
		const struct {
			const char *name;
			uint64_t value;
		} lines[] = {
			{ "warder_sink_up", r->up },
			{ "warder_sink_lag_records", seq > r->acked ? seq - r->acked : 0 },
			{ "warder_sink_dead_letters_total", r->poison },
			{ "warder_sink_errors_total", r->errors },
			{ "warder_sink_rewinds_total", r->rewinds },
		};

		buf_init(&labels, 512);
		metrics_label(&labels, "sink", str_from(r->name), 64);
		buf_addc(&labels, ',');
		metrics_label(&labels, "class", str_from(r->class_name), 32);
		buf_addc(&labels, ',');
		metrics_label(&labels, "session", str_from(session), 64);
		for (size_t k = 0; k < ARRAY_SIZE(lines) && !labels.failed; k++)
			buf_printf(out, "%s{%.*s} %llu\n", lines[k].name, (int)labels.n, labels.p,
				   (unsigned long long)lines[k].value);
		buf_done(&labels);
	}
}

void metrics_render_gauges(struct buf *out, const char *session, const struct exporter_gauge *g,
			   size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!i || strcmp(g[i].name, g[i - 1].name))
			head(out, g[i].name, g[i].counter ? "counter" : "gauge", g[i].help);
		buf_printf(out, "%s{%s%s", g[i].name, g[i].labels, *g[i].labels ? "," : "");
		metrics_label(out, "session", str_from(session), 64);
		buf_printf(out, "} %llu\n",
			   (unsigned long long)__atomic_load_n(&g[i].value, __ATOMIC_RELAXED));
	}
}

static uint64_t count_fds(void)
{
	auto_dir DIR *d = opendir("/proc/self/fd");
	uint64_t n = 0;

	while (d && readdir(d))
		n++;
	return n > 3 ? n - 3 : 0; /* ".", "..", and the one we read by */
}

void metrics_render_process(struct buf *out)
{
	uint64_t cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	auto_free char *statm = NULL;
	unsigned long long size, rss = 0;

	if (file_read_at(AT_FDCWD, "/proc/self/statm", 256, &statm, NULL) == 0 &&
	    sscanf(statm, "%llu %llu", &size, &rss) == 2)
		rss *= (unsigned long long)sysconf(_SC_PAGESIZE);
	head(out, "process_cpu_seconds_total", "counter", "CPU time of this process.");
	buf_printf(out, "process_cpu_seconds_total %llu.%03llu\n",
		   (unsigned long long)(cpu / NSEC_PER_SEC),
		   (unsigned long long)(cpu % NSEC_PER_SEC / NSEC_PER_MSEC));
	head(out, "process_resident_memory_bytes", "gauge", "Resident memory.");
	buf_printf(out, "process_resident_memory_bytes %llu\n", rss);
	head(out, "process_open_fds", "gauge", "Open file descriptors.");
	buf_printf(out, "process_open_fds %llu\n", (unsigned long long)count_fds());
}
