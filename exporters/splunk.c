// SPDX-License-Identifier: Apache-2.0
/* Splunk HTTP Event Collector: objects one after another, time in seconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/classes.h"
#include "exporters/http.h"
#include "exporters/record.h"
#include "exporters/scan.h"
#include "exporters/splunk_ack.h"
#include "userspace/base/clock.h"
#include "userspace/base/json.h"

static int set_up(struct http_sink *s, const struct exporter_config *cfg, struct err *err)
{
	const char *index = http_given(cfg, "index");
	int r;

	s->source = strdup(exporter_config_get(cfg, "sourcetype"));
	s->secret = index ? strdup(index) : NULL; /* the index goes into the body, not the URL */
	if (!s->source || (index && !s->secret))
		return err_set(err, ENOMEM, "out of memory");
	r = http_add_header(s, err, "Authorization: Splunk %s", exporter_config_get(cfg, "token"));
	return r < 0 ? r : splunk_ack_set_up(s, cfg, err);
}

static void add(struct http_sink *s, struct buf *body, const struct export_record *rec, bool first)
{
	uint64_t ns = record_time_ns(rec);
	struct json j;

	(void)first;
	json_init(&j, body);
	json_object_begin(&j);
	if (ns) {
		json_key(&j, "time");
		buf_printf(body, "%llu.%06llu", (unsigned long long)(ns / NSEC_PER_SEC),
			   (unsigned long long)(ns % NSEC_PER_SEC / 1000));
		j.after_key = false;
	}
	json_key(&j, "source");
	json_strz(&j, "warder");
	json_key(&j, "sourcetype");
	json_strz(&j, s->source);
	if (s->secret) {
		json_key(&j, "index");
		json_strz(&j, s->secret);
	}
	json_key(&j, "fields");
	json_object_begin(&j);
	json_key(&j, "id");
	json_str(&j, rec->id);
	json_key(&j, "kind");
	json_str(&j, rec->kind);
	json_key(&j, "session");
	json_str(&j, rec->session);
	json_object_end(&j);
	json_key(&j, "event");
	http_add_value(s, body, rec);
	j.after_key = false;
	json_object_end(&j);
}

static enum http_verdict judge(struct http_sink *s, const struct http_answer *a, char *why)
{
	struct str value;
	uint64_t code;

	if (scan_find(a->body, "code", &value) && scan_u64(value, &code) && code == 0)
		return splunk_ack_judge(s, a, why);
	snprintf(why, 256, "not an answer of Splunk's collector: %.*s",
		 (int)(a->body.n < 120 ? a->body.n : 120), a->body.n ? a->body.p : "");
	return HTTP_CONFIG;
}

/* Codes of the collector that no other record would change: index (7), channel (10, 11), acknowledgement (14),
 * token in the query (16). */
static bool for_operator(const struct http_answer *a)
{
	struct str value;
	uint64_t code;

	return scan_find(a->body, "code", &value) && scan_u64(value, &code) &&
	       (code == 7 || code == 10 || code == 11 || code == 14 || code == 16);
}

static const struct http_flavour flavour = {
	.class = &splunk_exporter,
	.default_path = "/services/collector/event",
	.content_type = "application/json",
	.set_up = set_up,
	.add = add,
	.judge = judge,
	.for_operator = for_operator,
	.opened = splunk_ack_opened,
	.tick = splunk_ack_tick,
	.close = splunk_ack_close,
};

static int open_sink(struct exporter **ret, const struct exporter_config *cfg, struct err *err)
{
	return http_open(ret, &flavour, cfg, err);
}

static const struct exporter_property properties[] = {
	{ "url", "URL", NULL, "https://HOST:8088", true },
	{ "token", "TOKEN", NULL, "HEC token; @FILE", false },
	{ "index", "NAME", "", "index; default: the token's", true },
	{ "sourcetype", "NAME", "warder:event", "sourcetype of the events", false },
	{ "ack", "yes|no", "no", "count as sent only what the indexers acknowledged", false },
	{ "ack-timeout", "DURATION", "60s", "send again what was not acknowledged for so long",
	  false },
	HTTP_PROPERTIES,
	{ 0 },
};

const struct exporter_class splunk_exporter = {
	.name = "splunk",
	.doc = "Splunk HTTP Event Collector",
	.properties = properties,
	.open = open_sink,
	HTTP_OPS,
};
