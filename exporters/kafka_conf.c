// SPDX-License-Identifier: Apache-2.0
#include "exporters/kafka.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "userspace/base/auto.h"

#define KAFKA_TOPIC_MAX 249 /* the broker's own limit */

static const struct {
	const char *name;
	const char *value;
} DEFAULTS[] = {
	{ "client.id", "warder" },
	{ "acks", "all" },
	{ "enable.idempotence", "true" },
	/* Infinite: with a finite one the library drops what outlasts an outage, and sending it again
	 * ourselves breaks the order. The library keeps it. */
	{ "message.timeout.ms", "0" },
	{ "linger.ms", "50" },
	/* Half of the smallest window, so that one batch is filled while the other is on its way. */
	{ "batch.num.messages", "500" },
	/* Each record may be in two topics; what is under way is limited by kafka_window.h. */
	{ "queue.buffering.max.messages", "20000" },
	{ "queue.buffering.max.kbytes", "8192" },
	{ "compression.type", "zstd" },
	/* As small as level 3 on batches like ours, for half the time. */
	{ "compression.level", "1" },
	{ "partitioner", "murmur2_random" }, /* the Java clients' placement */
	{ "reconnect.backoff.ms", "100" },
	{ "reconnect.backoff.max.ms", "5000" },
	{ "socket.keepalive.enable", "true" },
	{ "log.connection.close", "false" },
	{ "log.queue", "true" },	      /* messages come to our poll, not to stderr */
	{ "statistics.interval.ms", "5000" }, /* tells whether any broker is up */
};

static int conf_set(rd_kafka_conf_t *conf, const char *name, const char *value, struct err *err)
{
	char text[512];

	if (rd_kafka_conf_set(conf, name, value, text, sizeof(text)) == RD_KAFKA_CONF_OK)
		return 0;
	return err_set(err, EINVAL, "kafka.%s: %s", name, text);
}

int kafka_conf_new(rd_kafka_conf_t **ret, const struct exporter_config *cfg, struct err *err)
{
	const size_t prefix = strlen(cfg->class->pass_prefix);
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	int r = 0;

	if (!conf)
		return err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(DEFAULTS); i++)
		r = conf_set(conf, DEFAULTS[i].name, DEFAULTS[i].value, err);
	if (r == 0)
		r = conf_set(conf, "bootstrap.servers", exporter_config_get(cfg, "brokers"), err);
	for (size_t i = 0; r == 0 && i < cfg->props_n; i++)
		if (!strncmp(cfg->props[i].key, cfg->class->pass_prefix, prefix))
			r = conf_set(conf, cfg->props[i].key + prefix, cfg->props[i].value, err);
	if (r < 0) {
		rd_kafka_conf_destroy(conf);
		return r;
	}
	*ret = conf;
	return 0;
}

int kafka_check_topic(const char *property, const char *topic, struct err *err)
{
	size_t n = strlen(topic);
	bool good = n && n <= KAFKA_TOPIC_MAX && strcmp(topic, ".") && strcmp(topic, "..");

	for (const char *p = topic; good && *p; p++)
		good = isalnum((unsigned char)*p) || strchr("._-", *p);
	if (good)
		return 0;
	return err_set(err, EINVAL,
		       "property '%s': '%s' is no topic name (at most %d letters, digits, '.', "
		       "'_', '-')",
		       property, topic, KAFKA_TOPIC_MAX);
}

int kafka_producer_new(rd_kafka_t **ret, const rd_kafka_conf_t *template, void *opaque,
		       bool careful, struct err *err)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_dup(template);
	char text[512];
	rd_kafka_t *rk;
	int r;

	if (!conf)
		return err_set(err, ENOMEM, "out of memory");
	rd_kafka_conf_set_opaque(conf, opaque);
	if (careful) {
		r = conf_set(conf, "batch.num.messages", "1", err);
		if (r < 0) {
			rd_kafka_conf_destroy(conf);
			return r;
		}
	}
	rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
	if (!rk) {
		rd_kafka_conf_destroy(conf); /* only a success takes it */
		return err_set(err, EINVAL, "kafka: %s", text);
	}
	rd_kafka_set_log_queue(rk, NULL);
	*ret = rk;
	return 0;
}

enum kafka_verdict kafka_verdict(rd_kafka_resp_err_t code)
{
	switch (code) {
	case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
	case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
	case RD_KAFKA_RESP_ERR_INVALID_MSG:
	case RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE:
	case RD_KAFKA_RESP_ERR_INVALID_RECORD:
	case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:
	case RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT:
	case RD_KAFKA_RESP_ERR__BAD_MSG:
		return KAFKA_REFUSED;
	case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
	case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
	case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
	case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
	case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
	case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
	case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
		return KAFKA_UNAVAILABLE;
	default:
		return KAFKA_RETRY;
	}
}

bool kafka_is_alert(struct str kind)
{
	static const char *const kinds[] = { "rule.alert", "action", "escape", "gap" };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (str_eqz(kind, kinds[i]))
			return true;
	return str_starts(kind, STR("session."));
}
