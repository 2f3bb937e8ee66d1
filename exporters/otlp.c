// SPDX-License-Identifier: Apache-2.0
/* OpenTelemetry logs over HTTP in the JSON encoding (OTLP 1.x): 64-bit numbers are decimal strings. */
#include <stdio.h>
#include <string.h>

#include "exporters/classes.h"
#include "exporters/http.h"
#include "exporters/record.h"
#include "exporters/scan.h"
#include "exporters/syslog.h"
#include "userspace/base/json.h"

/* OpenTelemetry's severity numbers by ours of syslog (0 emergency .. 7 debug). */
static const struct {
	int number;
	const char *text;
} SEVERITIES[8] = {
	{ 24, "FATAL4" }, { 21, "FATAL" }, { 18, "ERROR2" }, { 17, "ERROR" },
	{ 13, "WARN" },	  { 10, "INFO2" }, { 9, "INFO" },    { 5, "DEBUG" },
};

static void begin(struct http_sink *s, struct buf *body)
{
	(void)s;
	buf_addz(body,
		 "{\"resourceLogs\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\","
		 "\"value\":{\"stringValue\":\"warder\"}}]},\"scopeLogs\":[{\"scope\":{\"name\":"
		 "\"warder\"},\"logRecords\":[");
}

static void attribute(struct json *j, const char *key, struct str value)
{
	if (!value.n)
		return;
	json_object_begin(j);
	json_key(j, "key");
	json_strz(j, key);
	json_key(j, "value");
	json_object_begin(j);
	json_key(j, "stringValue");
	json_str(j, value);
	json_object_end(j);
	json_object_end(j);
}

static void add(struct http_sink *s, struct buf *body, const struct export_record *rec, bool first)
{
	int severity = syslog_severity(rec->kind);
	uint64_t ns = record_time_ns(rec);
	char number[24];
	struct json j;

	(void)s;
	if (!first)
		buf_addc(body, ',');
	json_init(&j, body);
	json_object_begin(&j);
	snprintf(number, sizeof(number), "%llu", (unsigned long long)ns);
	json_key(&j, "timeUnixNano");
	json_strz(&j, number);
	json_key(&j, "severityNumber");
	json_i64(&j, SEVERITIES[severity].number);
	json_key(&j, "severityText");
	json_strz(&j, SEVERITIES[severity].text);
	json_key(&j, "body");
	json_object_begin(&j);
	json_key(&j, "stringValue");
	json_str(&j, export_text(rec));
	json_object_end(&j);
	json_key(&j, "attributes");
	json_array_begin(&j);
	attribute(&j, "event.name", rec->kind);
	attribute(&j, "warder.id", rec->id);
	attribute(&j, "warder.session", rec->session);
	attribute(&j, "warder.sandbox", rec->sandbox);
	json_array_end(&j);
	json_object_end(&j);
}

static void end(struct http_sink *s, struct buf *body)
{
	(void)s;
	buf_addz(body, "]}]}]}");
}

static enum http_verdict judge(struct http_sink *s, const struct http_answer *a, char *why)
{
	struct str partial, value, number, message = STR("");
	uint64_t rejected = 0;

	(void)s;
	if (a->body.n && a->body.p[0] != '{') {
		snprintf(why, 256, "not an answer of an OTLP collector: %.*s",
			 (int)(a->body.n < 120 ? a->body.n : 120), a->body.p);
		return HTTP_CONFIG;
	}
	if (!a->body.n || !scan_find(a->body, "partialSuccess", &partial))
		return HTTP_TAKEN;
	if (!scan_find(partial, "rejectedLogRecords", &value))
		return HTTP_TAKEN;
	if (!scan_u64(value, &rejected) &&
	    !(scan_string(value, &number) && scan_u64(number, &rejected)))
		rejected = 1;
	if (!rejected)
		return HTTP_TAKEN;
	/* It does not say which: find out by halves. */
	if (scan_find(partial, "errorMessage", &value))
		scan_string(value, &message);
	snprintf(why, 256, "%llu records rejected: %.*s", (unsigned long long)rejected,
		 (int)(message.n < 150 ? message.n : 150), message.p);
	return HTTP_REFUSED;
}

static const struct http_flavour flavour = {
	.class = &otlp_exporter,
	.default_path = "/v1/logs",
	.content_type = "application/json",
	.begin = begin,
	.add = add,
	.end = end,
	.judge = judge,
};

static int open_sink(struct exporter **ret, const struct exporter_config *cfg, struct err *err)
{
	return http_open(ret, &flavour, cfg, err);
}

static const struct exporter_property properties[] = {
	{ "url", "URL", NULL, "http://HOST:4318", true },
	HTTP_PROPERTIES,
	{ 0 },
};

const struct exporter_class otlp_exporter = {
	.name = "otlp",
	.doc = "OpenTelemetry logs (OTLP/HTTP, JSON)",
	.properties = properties,
	.open = open_sink,
	HTTP_OPS,
};
