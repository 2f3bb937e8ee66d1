// SPDX-License-Identifier: Apache-2.0
#include "exporters/metrics.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/classes.h"
#include "userspace/base/auto.h"

/* Sinks of one address share the counters and the server; whoever is polled serves. */
struct exposition {
	struct exposition *next;
	char *address;
	struct metrics_server *server;
	struct metrics metrics;
	struct metrics_sink *sinks;
};

struct metrics_sink {
	struct exporter x;
	struct exposition *shared;
	struct metrics_sink *next;
	const struct exporter_host *host;
	char session[64];
	uint64_t seq;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all of what is shared */
static struct exposition *expositions;

/* One program has one set of them, whatever number of its sinks shows this page. */
static void render_gauges(const struct exposition *e, struct buf *out)
{
	for (const struct metrics_sink *s = e->sinks; s; s = s->next) {
		const struct exporter_gauge *g;
		size_t n;

		if (!s->host || !s->host->fanout)
			continue;
		g = fanout_gauges(s->host->fanout, &n);
		if (!n)
			continue;
		metrics_render_gauges(out, s->session, g, n);
		return;
	}
}

static void render_page(void *arg, struct buf *out)
{
	static const struct {
		const char *name, *type, *help;
	} heads[] = {
		{ "warder_sink_up", "gauge", "1 = the other side takes records." },
		{ "warder_sink_lag_records", "gauge", "Records not yet acknowledged." },
		{ "warder_sink_dead_letters_total", "counter", "Records refused for good." },
		{ "warder_sink_errors_total", "counter", "Errors of ours: journal, cursor." },
		{ "warder_sink_rewinds_total", "counter", "Times a sink started over." },
	};
	struct exposition *e = arg;
	auto_buf struct buf rows = { 0 };

	metrics_render(&e->metrics, out);
	metrics_render_process(out);
	render_gauges(e, out);
	buf_init(&rows, 0);
	for (struct metrics_sink *s = e->sinks; s; s = s->next) {
		struct fanout_status st[FANOUT_SINKS_MAX];
		size_t n;

		if (!s->host || !s->host->fanout)
			continue;
		n = MIN(fanout_status(s->host->fanout, st, ARRAY_SIZE(st)), ARRAY_SIZE(st));
		metrics_render_sinks(&rows, s->session, s->seq, st, n);
	}
	/* All lines of a metric must stand together. */
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		struct str left = { rows.p, rows.n };
		size_t name_n = strlen(heads[i].name);

		buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", heads[i].name, heads[i].help,
			   heads[i].name, heads[i].type);
		while (left.n) {
			const char *nl = memchr(left.p, '\n', left.n);
			size_t n = nl ? (size_t)(nl - left.p) + 1 : left.n;

			if (n > name_n && !memcmp(left.p, heads[i].name, name_n) &&
			    left.p[name_n] == '{')
				buf_add(out, left.p, n);
			left.p += n;
			left.n -= n;
		}
	}
}

static enum export_result metrics_write(struct exporter *x, const struct export_record *rec)
{
	struct metrics_sink *s = (struct metrics_sink *)x;

	pthread_mutex_lock(&lock);
	metrics_count(&s->shared->metrics, rec);
	if (!s->session[0] && rec->session.n < sizeof(s->session)) {
		memcpy(s->session, rec->session.p, rec->session.n);
		s->session[rec->session.n] = 0;
	}
	s->seq = rec->seq;
	pthread_mutex_unlock(&lock);
	return EXPORT_OK;
}

static uint64_t metrics_poll(struct exporter *x, int timeout_ms)
{
	struct metrics_sink *s = (struct metrics_sink *)x;

	(void)timeout_ms;
	pthread_mutex_lock(&lock);
	x->poll_in_ms = metrics_server_poll(s->shared->server, render_page, s->shared);
	x->fd = metrics_server_fd(s->shared->server);
	x->fd_events = x->fd < 0 ? 0 : POLLIN;
	pthread_mutex_unlock(&lock);
	return s->seq;
}

static const char *metrics_status(const struct exporter *x)
{
	(void)x;
	return "";
}

static void leave(struct metrics_sink *s)
{
	struct metrics_sink **at = &s->shared->sinks;
	struct exposition **e = &expositions;

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	if (s->shared->sinks)
		return;
	while (*e != s->shared)
		e = &(*e)->next;
	*e = s->shared->next;
	metrics_server_free(s->shared->server);
	free(s->shared->address);
	free(s->shared);
}

static void metrics_close(struct exporter *x)
{
	struct metrics_sink *s = (struct metrics_sink *)x;

	pthread_mutex_lock(&lock);
	leave(s);
	pthread_mutex_unlock(&lock);
	free(s);
}

/* The lock is held. */
static int find_exposition(struct exposition **ret, const char *address, bool anywhere,
			   struct err *err)
{
	struct exposition *e;
	int r;

	for (e = expositions; e; e = e->next) {
		if (strcmp(e->address, address))
			continue;
		*ret = e;
		return 0;
	}
	e = calloc(1, sizeof(*e));
	if (!e)
		return err_set(err, ENOMEM, "out of memory");
	e->address = strdup(address);
	r = e->address ? metrics_server_new(&e->server, address, anywhere, err)
		       : err_set(err, ENOMEM, "out of memory");
	if (r < 0) {
		free(e->address);
		free(e);
		return r;
	}
	e->next = expositions;
	expositions = e;
	*ret = e;
	return 0;
}

static int metrics_open(struct exporter **ret, const struct exporter_config *cfg, struct err *err)
{
	const char *anywhere = exporter_config_get(cfg, "anywhere");
	struct metrics_sink *s;
	int r;

	if (strcmp(anywhere, "yes") && strcmp(anywhere, "no"))
		return err_set(err, EINVAL, "property 'anywhere': '%s' is not yes or no", anywhere);
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(err, ENOMEM, "out of memory");
	s->x.class = &metrics_exporter;
	s->host = cfg->host;
	pthread_mutex_lock(&lock);
	r = find_exposition(&s->shared, exporter_config_get(cfg, "listen"),
			    !strcmp(anywhere, "yes"), err);
	if (r == 0) {
		s->next = s->shared->sinks;
		s->shared->sinks = s;
		s->x.fd = metrics_server_fd(s->shared->server);
		s->x.fd_events = POLLIN;
	}
	pthread_mutex_unlock(&lock);
	if (r < 0) {
		free(s);
		return r;
	}
	*ret = &s->x;
	return 0;
}

static const struct exporter_property properties[] = {
	{ "listen", "ADDRESS", "127.0.0.1:9464",
	  "ADDRESS:PORT in numbers, or unix:/PATH; /metrics answers there", true },
	{ "anywhere", "yes|no", "no", "allow an address that is not loopback", false },
	{ 0 },
};

const struct exporter_class metrics_exporter = {
	.name = "metrics",
	.doc = "Prometheus metrics at /metrics",
	.formats = EXPORT_NO_FORMAT,
	.properties = properties,
	.open = metrics_open,
	.write = metrics_write,
	.poll = metrics_poll,
	.status = metrics_status,
	.close = metrics_close,
};
