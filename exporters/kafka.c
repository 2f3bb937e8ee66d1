// SPDX-License-Identifier: Apache-2.0
/* Kafka by librdkafka: idempotent, acks=all, in session order. The library keeps what is in flight
 * through outages. When it gives up (fatal error, refused batch, stall), the producer is made anew and
 * the fan-out goes back to the cursor: at least once, duplicates have equal ids. */
#include "exporters/kafka.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/classes.h"
#include "exporters/kafka_end.h"
#include "exporters/kafka_window.h"
#include "exporters/prefix.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/option.h"

/* The watchdog doubles its patience up to this, should a broker really be that slow. */
#define KAFKA_STALL_MAX_NS (600 * NSEC_PER_SEC)

struct kafka_sink {
	struct exporter x;
	const struct exporter_host *host;
	char *names[KAFKA_TOPICS]; /* NULL = none */
	struct kafka_topics topics;
	const struct format *format;
	char name[64]; /* of the sink */
	rd_kafka_conf_t *conf;
	struct kafka_link *link; /* of rk */
	rd_kafka_t *rk;		 /* NULL between the end of one producer and the next write */
	struct prefix prefix;
	struct kafka_window window;
	bool limited; /* by the window, since the last acknowledgement */

	uint64_t half_seq, half_ticket; /* record that is in the alerts topic, not in the other */
	bool broken;			/* give the producer up at the end of poll */
	bool careful;			/* this producer sends messages one by one */
	uint64_t careful_until;		/* up to here: a refused batch had records of up to here */
	uint64_t dead_seq;		/* last record dead-lettered by a delivery report */

	int32_t last_partition; /* of what was delivered last */
	int64_t last_offset;
	bool reported;	   /* by the poll that runs */
	bool up;	   /* a broker is connected, as far as we know */
	uint64_t alive_at; /* last delivery report, or when there was nothing to report */
	uint64_t stall_ns; /* patience of the watchdog */
	uint64_t stall_ns_config;
	char text[256];
};

__attribute__((format(printf, 2, 3))) static void set_text(struct kafka_sink *s, const char *fmt,
							   ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->text, sizeof(s->text), fmt, ap);
	va_end(ap);
}

/* ---- what the library tells us; all in our poll ---- */

static void dead_letter_copy(struct kafka_sink *s, struct kafka_dead_letter *d)
{
	d->sink = s->name;
	d->is_json = s->format->is_json;
	kafka_send_dead_letter(s->rk, s->topics.v[KAFKA_DLQ], d);
}

static void on_refused(struct kafka_sink *s, const rd_kafka_message_t *m, uint64_t ticket)
{
	uint64_t seq = prefix_seq(&s->prefix, ticket);
	struct str json = { m->payload, m->len };

	if (!s->careful) {
		/* Any record of the batch may be the bad one: send them one by one. */
		s->careful_until = MAX(s->careful_until, seq);
		s->broken = true;
		set_text(s, "a batch was refused (%s): sending its records one by one",
			 rd_kafka_err2str(m->err));
		return;
	}
	if (seq && seq != s->dead_seq) {
		struct kafka_dead_letter d = { .seq = seq, .why = rd_kafka_err2str(m->err) };

		kafka_dead_letter_of(&d, m);
		dead_letter_copy(s, &d);
		if (s->host && s->host->dead_letter)
			s->host->dead_letter(s->host->arg, seq, json, d.why);
	}
	s->dead_seq = seq;
	prefix_mark(&s->prefix, ticket);
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *m, void *opaque)
{
	uint64_t ticket = (uint64_t)(uintptr_t)m->_private;
	struct kafka_sink *s = kafka_link_sink(opaque);

	(void)rk;
	if (!s)
		return;
	s->reported = true;
	if (!ticket) /* a copy of a dead letter: nothing waits for it */
		return;
	if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
		prefix_mark(&s->prefix, ticket);
		s->last_partition = m->partition;
		s->last_offset = m->offset;
		s->up = true;
		if (!s->broken)
			s->text[0] = 0;
		return;
	}
	switch (kafka_verdict(m->err)) {
	case KAFKA_REFUSED:
		on_refused(s, m, ticket);
		return;
	case KAFKA_UNAVAILABLE:
		set_text(s, "topic '%s': %s", rd_kafka_topic_name(m->rkt),
			 rd_kafka_err2str(m->err));
		break;
	case KAFKA_RETRY:
		set_text(s, "delivery failed: %s", rd_kafka_err2str(m->err));
		break;
	}
	s->broken = true;
}

static void on_error(rd_kafka_t *rk, int code, const char *reason, void *opaque)
{
	struct kafka_sink *s = kafka_link_sink(opaque);
	char text[256];

	if (!s)
		return;
	switch (code) {
	case RD_KAFKA_RESP_ERR__FATAL:
		rd_kafka_fatal_error(rk, text, sizeof(text));
		set_text(s, "producer failed: %.200s", text);
		s->broken = true;
		break;
	case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
		s->up = false;
		if (!s->text[0]) /* the error before it says more */
			set_text(s, "no broker can be reached: %.200s", reason);
		break;
	default:
		set_text(s, "%.250s", reason);
		break;
	}
}

static int on_stats(rd_kafka_t *rk, char *json, size_t n, void *opaque)
{
	static const char up[] = "\"state\":\"UP\"";
	struct kafka_sink *s = kafka_link_sink(opaque);

	(void)rk;
	if (!s)
		return 0;
	s->up = memmem(json, n, up, sizeof(up) - 1);
	if (!s->up && !s->text[0])
		set_text(s, "no broker is connected");
	else if (s->up && !prefix_outstanding(&s->prefix) && !s->broken)
		s->text[0] = 0;
	return 0; /* the library frees the text */
}

static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *line)
{
	struct kafka_sink *s = kafka_link_sink(rd_kafka_opaque(rk));

	if (level > 3 || !s) /* errors only: they explain why nothing is connected */
		return;
	if (!s->up || !s->text[0])
		set_text(s, "%.20s: %.220s", facility, line);
}

/* ---- the producer's life ---- */

/* Waits for its end at most `wait_ms`. Its reports mean nothing from here on. */
static void stop_producer(struct kafka_sink *s, int wait_ms)
{
	rd_kafka_queue_t *q;

	if (!s->rk)
		return;
	kafka_link_cut(s->link);
	q = rd_kafka_queue_get_main(s->rk);
	rd_kafka_queue_io_event_enable(q, -1, NULL, 0);
	rd_kafka_queue_destroy(q);
	rd_kafka_purge(s->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT |
				      RD_KAFKA_PURGE_F_NON_BLOCKING);
	rd_kafka_poll(s->rk, 0);
	kafka_topics_close(&s->topics);
	kafka_end(s->rk, s->link, wait_ms);
	s->rk = NULL;
	s->link = NULL;
}

static int start_producer(struct kafka_sink *s, struct err *err)
{
	static const uint64_t one = 1;
	rd_kafka_queue_t *q;
	int r;

	s->careful = s->careful_until > s->prefix.acked;
	s->link = kafka_link_new(s);
	if (!s->link)
		return err_set(err, EAGAIN, "kafka: earlier producers have not ended yet");
	r = kafka_producer_new(&s->rk, s->conf, s->link, s->careful, err);
	if (r < 0) {
		kafka_link_free(s->link);
		s->link = NULL;
		return r;
	}
	r = kafka_topics_open(&s->topics, s->rk, (const char *const *)s->names, err);
	if (r < 0) {
		stop_producer(s, KAFKA_END_MS);
		return r;
	}
	s->alive_at = clock_ns(CLOCK_MONOTONIC);
	if (s->host && s->host->wake_fd >= 0) {
		q = rd_kafka_queue_get_main(s->rk);
		rd_kafka_queue_io_event_enable(q, s->host->wake_fd, &one, sizeof(one));
		rd_kafka_queue_destroy(q);
	}
	return 0;
}

static void give_up_producer(struct kafka_sink *s)
{
	stop_producer(s, KAFKA_END_MS);
	prefix_reset(&s->prefix);
	s->half_seq = 0;
	s->broken = false;
	s->up = false;
	s->x.rewind = true;
}

/* No report for long, though a broker is there: the library is stuck (seen on 2.0.2). */
static void check_stall(struct kafka_sink *s)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (!prefix_outstanding(&s->prefix) || !s->up) {
		s->alive_at = now;
		return;
	}
	if (now - s->alive_at < s->stall_ns)
		return;
	set_text(s, "no delivery report for %llu s: starting the producer anew",
		 (unsigned long long)(s->stall_ns / NSEC_PER_SEC));
	s->stall_ns = MIN(s->stall_ns * 2, MAX(KAFKA_STALL_MAX_NS, s->stall_ns_config));
	s->broken = true;
}

/* ---- the sink ---- */

/* Room for the record? Makes a producer when there is none. */
static bool is_ready(struct kafka_sink *s)
{
	struct err err = { 0 };

	if (s->broken)
		return false;
	if (prefix_outstanding(&s->prefix) >= s->window.size) {
		s->limited = true;
		return false;
	}
	/* Done with the careful part: let it run dry, then go on with a normal producer. */
	if (s->careful && s->prefix.acked >= s->careful_until) {
		if (prefix_outstanding(&s->prefix))
			return false;
		stop_producer(s, KAFKA_END_MS);
	}
	if (s->rk)
		return true;
	if (start_producer(s, &err) == 0)
		return true;
	set_text(s, "%.250s", err_text(&err));
	return false;
}

/* What a failed produce() means; the record was sent to nobody, or to the alerts topic only. */
static enum export_result not_produced(struct kafka_sink *s, const struct export_record *rec,
				       rd_kafka_resp_err_t code)
{
	if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL)
		return EXPORT_FULL;
	if (kafka_verdict(code) == KAFKA_REFUSED || code == RD_KAFKA_RESP_ERR__INVALID_ARG) {
		struct kafka_dead_letter d = { rec->id, rec->session, export_text(rec),
					       .seq = rec->seq };

		d.why = s->x.why = rd_kafka_err2str(code);
		if (rec->seq > s->dead_seq) { /* not again behind a rewind */
			s->dead_seq = rec->seq;
			dead_letter_copy(s, &d);
		}
		return EXPORT_POISON;
	}
	set_text(s, "cannot produce: %s", rd_kafka_err2str(code));
	s->broken = code == RD_KAFKA_RESP_ERR__FATAL;
	return EXPORT_FULL;
}

static enum export_result kafka_write(struct exporter *x, const struct export_record *rec)
{
	struct kafka_sink *s = (struct kafka_sink *)x;
	bool alert = s->names[KAFKA_ALERTS] && kafka_is_alert(rec->kind);
	rd_kafka_resp_err_t code;
	enum export_result res;
	uint64_t ticket;

	if (!is_ready(s))
		return EXPORT_FULL;
	if (s->half_seq == rec->seq) { /* only the second half is left */
		ticket = s->half_ticket;
		alert = false;
	} else if (prefix_add(&s->prefix, rec->seq, alert ? 2 : 1, &ticket) < 0) {
		return EXPORT_FULL;
	}
	if (alert) {
		code = kafka_send(s->rk, s->topics.v[KAFKA_ALERTS], rec, s->format, ticket);
		if (code) {
			prefix_cancel(&s->prefix, ticket);
			return not_produced(s, rec, code);
		}
		s->half_seq = rec->seq;
		s->half_ticket = ticket;
	}
	code = kafka_send(s->rk, s->topics.v[KAFKA_EVENTS], rec, s->format, ticket);
	if (!code) {
		s->half_seq = 0;
		return EXPORT_OK;
	}
	res = not_produced(s, rec, code);
	if (s->half_seq != rec->seq) {
		prefix_cancel(&s->prefix, ticket);
	} else if (res == EXPORT_POISON) { /* same bytes, same limits: does not happen */
		prefix_mark(&s->prefix, ticket);
		s->half_seq = 0;
	}
	return res;
}

static uint64_t kafka_poll(struct exporter *x, int timeout_ms)
{
	struct kafka_sink *s = (struct kafka_sink *)x;
	uint64_t acked = s->prefix.acked, head = s->prefix.head;

	s->reported = false;
	if (s->rk)
		rd_kafka_poll(s->rk, timeout_ms);
	if (s->reported)
		s->alive_at = clock_ns(CLOCK_MONOTONIC);
	if (s->prefix.head != head) {
		kafka_window_acked(&s->window, s->alive_at, s->prefix.head - head, s->limited);
		s->limited = false;
	}
	if (s->prefix.acked != acked)
		s->stall_ns = s->stall_ns_config;
	check_stall(s);
	if (s->broken)
		give_up_producer(s);
	return s->prefix.acked;
}

static const char *kafka_status(const struct exporter *x)
{
	return ((const struct kafka_sink *)x)->text;
}

static void kafka_said(const struct exporter *x, char *ret, size_t size)
{
	const struct kafka_sink *s = (const struct kafka_sink *)x;

	snprintf(ret, size, "topic %s, partition %d, offset %lld", s->names[KAFKA_EVENTS],
		 s->last_partition, (long long)s->last_offset);
}

static void kafka_close(struct exporter *x)
{
	struct kafka_sink *s = (struct kafka_sink *)x;

	stop_producer(s, KAFKA_END_CLOSE_MS);
	if (s->conf)
		rd_kafka_conf_destroy(s->conf);
	prefix_done(&s->prefix);
	for (int i = 0; i < KAFKA_TOPICS; i++)
		free(s->names[i]);
	free(s);
}

static int set_names(struct kafka_sink *s, const struct exporter_config *cfg, struct err *err)
{
	static const char *const keys[KAFKA_TOPICS] = { "topic", "alerts-topic", "dlq-topic" };

	for (int i = 0; i < KAFKA_TOPICS; i++) {
		const char *name = exporter_config_get(cfg, keys[i]);
		int r;

		if (!*name && i != KAFKA_EVENTS)
			continue;
		r = kafka_check_topic(keys[i], name, err);
		if (r < 0)
			return r;
		s->names[i] = strdup(name);
		if (!s->names[i])
			return err_set(err, ENOMEM, "out of memory");
	}
	return 0;
}

static int set_up(struct kafka_sink *s, const struct exporter_config *cfg, struct err *err)
{
	const char *stall = exporter_config_get(cfg, "stall");
	int r;

	r = set_names(s, cfg, err);
	if (r < 0)
		return r;
	s->format =
		s->host && s->host->renderer ? renderer_format(s->host->renderer) : render_formats;
	memcpy(s->name, cfg->name, sizeof(s->name));
	if (parse_duration_ns(stall, &s->stall_ns_config) < 0 || !s->stall_ns_config)
		return err_set(err, EINVAL, "property 'stall': '%s' is no duration such as 30s",
			       stall);
	s->stall_ns = s->stall_ns_config;
	r = kafka_conf_new(&s->conf, cfg, err);
	if (r < 0)
		return r;
	rd_kafka_conf_set_dr_msg_cb(s->conf, on_delivery);
	rd_kafka_conf_set_error_cb(s->conf, on_error);
	rd_kafka_conf_set_stats_cb(s->conf, on_stats);
	rd_kafka_conf_set_log_cb(s->conf, on_log);
	kafka_window_init(&s->window);
	if (prefix_init(&s->prefix, WINDOW_MAX) < 0)
		return err_set(err, ENOMEM, "out of memory");
	set_text(s, "connecting to %.200s", exporter_config_get(cfg, "brokers"));
	return start_producer(s, err); /* now: errors in settings show at once */
}

static int kafka_open(struct exporter **ret, const struct exporter_config *cfg, struct err *err)
{
	struct kafka_sink *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_set(err, ENOMEM, "out of memory");
	s->x.class = &kafka_exporter;
	s->host = cfg->host;
	r = set_up(s, cfg, err);
	if (r < 0) {
		kafka_close(&s->x);
		return r;
	}
	*ret = &s->x;
	return 0;
}

static const char *warning(const struct exporter_config *cfg)
{
	static const char *const promises[] = {
		"kafka.acks",
		"kafka.request.required.acks",
		"kafka.enable.idempotence",
		"kafka.message.timeout.ms",
		"kafka.delivery.timeout.ms",
	};

	for (size_t i = 0; i < ARRAY_SIZE(promises); i++)
		if (exporter_config_get(cfg, promises[i]))
			return "acks, enable.idempotence and message.timeout.ms are what keeps events "
			       "whole and in order; they are set otherwise";
	return NULL;
}

static const struct exporter_property properties[] = {
	{ "brokers", "HOST:PORT,...", NULL, "brokers to start from", true },
	{ "topic", "NAME", "warder.events", "topic of every event", true },
	{ "alerts-topic", "NAME", "warder.alerts",
	  "topic that gets alerts, actions, escapes, gaps and session events as well; empty = none",
	  true },
	{ "dlq-topic", "NAME", "warder.dlq",
	  "topic that gets a copy of what was refused for good, and why; empty = none", false },
	{ "checkpoints-topic", "NAME", "warder.checkpoints",
	  "topic of a signed record's checkpoints, an outside witness; empty = none", false },
	{ "stall", "DURATION", "30s",
	  "start the producer anew when a connected broker acknowledges nothing for so long",
	  false },
	{ 0 },
};

const struct exporter_class kafka_exporter = {
	.name = "kafka",
	.doc = "Apache Kafka; kafka.<property> sets any librdkafka property",
	.properties = properties,
	.pass_prefix = "kafka.",
	.open = kafka_open,
	.write = kafka_write,
	.poll = kafka_poll,
	.status = kafka_status,
	.said = kafka_said,
	.close = kafka_close,
	.warning = warning,
};
