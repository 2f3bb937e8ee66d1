// SPDX-License-Identifier: Apache-2.0
/* What a server says to a batch, as Elasticsearch, Splunk, a collector of OTLP or a webhook would: any bytes. First byte:
 * which of them, and the status. A record counts as taken, refused or neither, and the reason is a text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/http.h"
#include "exporters/scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RECORDS 4
#define SINKS	4

static struct http_sink *sink(unsigned i)
{
	static const char *const words[SINKS] = { "elastic:http://127.0.0.1:9",
						  "splunk:http://127.0.0.1:9,token=t,ack=yes",
						  "otlp:http://127.0.0.1:9",
						  "webhook:http://127.0.0.1:9/" };
	static struct exporter *made[SINKS];
	struct exporter_config cfg;
	struct err err = { 0 };

	if (made[i])
		return (struct http_sink *)made[i];
	if (exporter_config_parse(&cfg, words[i], &err) < 0 ||
	    cfg.class->open(&made[i], &cfg, &err) < 0)
		abort();
	exporter_config_done(&cfg);
	return (struct http_sink *)made[i];
}

static void check_walk(struct str body)
{
	struct scan s = scan_of(body);
	struct str key, value;
	char text[16];

	while (scan_member(&s, &key, &value))
		if (key.p < body.p || value.p < key.p || value.p + value.n > body.p + body.n)
			abort();
	s = scan_of(body);
	while (scan_element(&s, &value))
		if (value.p < body.p || value.p + value.n > body.p + body.n)
			abort();
	if (strlen(scan_text(body, "text", text, sizeof(text))) >= sizeof(text))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct export_record rec = { .seq = 1, .json = { "{\"id\":\"a\"}", 10 } };
	struct http_answer a = { .type = STR("application/json") };
	struct http_sink *s;
	char why[256] = "", *copy;
	size_t open;

	if (!size)
		return 0;
	s = sink(data[0] % SINKS);
	copy = malloc(size);
	if (!copy)
		abort();
	memcpy(copy, data + 1, size - 1);
	a.status = data[0] & 64 ? 400 : 200;
	a.body = (struct str){ copy, size - 1 };
	s->store.n = s->items_n = s->waiting = 0;
	for (int i = 0; i < RECORDS; i++)
		if (http_write(&s->x, &rec) != EXPORT_OK)
			abort();
	s->items[1].done = true; /* of an earlier request */
	s->sent_n = RECORDS;
	check_walk(a.body);
	if (a.status == 200 && s->flavour->judge) {
		enum http_verdict v = s->flavour->judge(s, &a, why);

		open = http_request_size(s);
		if (v > HTTP_WAITS || (v == HTTP_WAITS) != (s->waiting != 0) ||
		    (v == HTTP_WAITS && open))
			abort();
	} else if (a.status != 200 && s->flavour->for_operator) {
		(void)s->flavour->for_operator(&a);
	}
	if (!memchr(why, 0, sizeof(why)))
		abort();
	free(copy);
	return 0;
}
