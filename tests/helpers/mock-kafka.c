// libs: -lrdkafka
// SPDX-License-Identifier: Apache-2.0
/* librdkafka's mock cluster as a process. Prints its bootstrap servers, then obeys stdin:
 *   topic NAME PARTS   create a topic (others come into being when used, with 4 partitions)
 *   down | up          all brokers refuse and cut connections | accept again
 *   rtt MS             delay of every reply
 *   err API CODE N     the next N requests of that API (0 = Produce) fail with that error code
 *   quit
 * Each command is answered with "ok" or "error TEXT". Ends at end of file. Limits: loopback, no TLS or
 * SASL, memory only, a partition keeps 5 MiB, duplicates of a plain idempotent producer are stored. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#define BROKERS	   1
#define ERRORS_MAX 1000

static rd_kafka_resp_err_t push_errors(rd_kafka_mock_cluster_t *c, int api, int code, int n)
{
	rd_kafka_resp_err_t errors[ERRORS_MAX];

	if (n < 1 || n > ERRORS_MAX)
		return RD_KAFKA_RESP_ERR__INVALID_ARG;
	for (int i = 0; i < n; i++)
		errors[i] = (rd_kafka_resp_err_t)code;
	rd_kafka_mock_push_request_errors_array(c, (int16_t)api, (size_t)n, errors);
	return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t obey(rd_kafka_mock_cluster_t *c, const char *line)
{
	char word[32] = "", name[256];
	int a, b, n;

	sscanf(line, "%31s", word);
	if (!strcmp(word, "topic") && sscanf(line, "%*s %255s %d", name, &n) == 2)
		return rd_kafka_mock_topic_create(c, name, n, 1);
	if (!strcmp(word, "down"))
		return rd_kafka_mock_broker_set_down(c, -1);
	if (!strcmp(word, "up"))
		return rd_kafka_mock_broker_set_up(c, -1);
	if (!strcmp(word, "rtt") && sscanf(line, "%*s %d", &n) == 1)
		return rd_kafka_mock_broker_set_rtt(c, -1, n);
	if (!strcmp(word, "err") && sscanf(line, "%*s %d %d %d", &a, &b, &n) == 3)
		return push_errors(c, a, b, n);
	return RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED;
}

int main(void)
{
	char text[512], line[512];
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_mock_cluster_t *cluster;
	rd_kafka_t *rk;

	rd_kafka_conf_set(conf, "log_level", "0", NULL, 0); /* "no bootstrap.servers": it is one */
	setvbuf(stdout, NULL, _IOLBF, 0);
	rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
	if (!rk) {
		fprintf(stderr, "mock-kafka: %s\n", text);
		return 1;
	}
	cluster = rd_kafka_mock_cluster_new(rk, BROKERS);
	if (!cluster) {
		fprintf(stderr, "mock-kafka: cannot create the cluster\n");
		return 1;
	}
	printf("%s\n", rd_kafka_mock_cluster_bootstraps(cluster));
	while (fgets(line, sizeof(line), stdin)) {
		rd_kafka_resp_err_t r;

		if (!strncmp(line, "quit", 4))
			break;
		r = obey(cluster, line);
		if (r)
			printf("error %s\n", rd_kafka_err2str(r));
		else
			printf("ok\n");
	}
	rd_kafka_mock_cluster_destroy(cluster);
	rd_kafka_destroy(rk);
	return 0;
}
