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
/* Copies `template`. `careful`: one message a request, so that a refused request names the message. */
int kafka_producer_new(rd_kafka_t **ret, const rd_kafka_conf_t *template, bool careful,
		       struct err *err);

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
