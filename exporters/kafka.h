/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the Kafka sink: kafka_conf.c makes producers, kafka.c uses them. */
#ifndef WARDER_EXPORTERS_KAFKA_H
#define WARDER_EXPORTERS_KAFKA_H

#include <librdkafka/rdkafka.h>
#include "exporters/exporter.h"

/* Settings that differ from the library's own; `kafka.<property>` overrides them. */
int kafka_conf_new(rd_kafka_conf_t **ret, const struct exporter_config *cfg, struct err *err);
/* Broker, topic and other names that the broker would refuse later are refused now. */
int kafka_check_topic(const char *property, const char *topic, struct err *err);
/* Copies `template`. `opaque` is for its callbacks. `careful`: one message a request, so that a refused request
 * names the message. */
int kafka_producer_new(rd_kafka_t **ret, const rd_kafka_conf_t *template, void *opaque,
		       bool careful, struct err *err);

enum { KAFKA_EVENTS, KAFKA_ALERTS, KAFKA_DLQ, KAFKA_TOPICS };

/* Topics of one producer; NULL = not wanted. */
struct kafka_topics {
	rd_kafka_topic_t *v[KAFKA_TOPICS];
};
int kafka_topics_open(struct kafka_topics *t, rd_kafka_t *rk, const char *const names[KAFKA_TOPICS],
		      struct err *err);
void kafka_topics_close(struct kafka_topics *t);

/* `ticket` comes back with the delivery report. */
rd_kafka_resp_err_t kafka_send(rd_kafka_t *rk, rd_kafka_topic_t *topic,
			       const struct export_record *rec, const struct format *format,
			       uint64_t ticket);

struct kafka_dead_letter {
	struct str id, session, text;
	bool is_json; /* is the text? */
	uint64_t seq;
	const char *sink, *why;
};
/* Fill id, session and text from what was to be delivered. */
void kafka_dead_letter_of(struct kafka_dead_letter *d, const rd_kafka_message_t *m);
/* Best effort; its delivery report has ticket 0. */
void kafka_send_dead_letter(rd_kafka_t *rk, rd_kafka_topic_t *topic,
			    const struct kafka_dead_letter *d);

/* What a failed delivery says about the rest. */
enum kafka_verdict {
	KAFKA_RETRY,	   /* a new producer may do better */
	KAFKA_REFUSED,	   /* this message (or its whole batch) will never be taken */
	KAFKA_UNAVAILABLE, /* topic or rights are missing: for the operator to mend */
};
enum kafka_verdict kafka_verdict(rd_kafka_resp_err_t code);

/* Kinds that go to the alerts topic as well. */
bool kafka_is_alert(struct str kind);

#endif
