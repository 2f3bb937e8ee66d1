// SPDX-License-Identifier: Apache-2.0
/* Elasticsearch and OpenSearch by _bulk. Data streams take only `create`; the _id is the event's, so what
 * comes twice is refused with 409, which means done. A 200 says nothing: each item has a status. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/classes.h"
#include "exporters/http.h"
#include "exporters/scan.h"
#include "userspace/base/auto.h"
#include "userspace/base/json.h"

static int set_up(struct http_sink *s, const struct exporter_config *cfg, struct err *err)
{
	const char *index = exporter_config_get(cfg, "index"), *key = http_given(cfg, "api-key");
	const char *user = http_given(cfg, "user"), *password = http_given(cfg, "password");
	struct buf basic = { 0 };
	struct json j;
	int r;

	if (strpbrk(index, "/?#&% "))
		return err_set(err, EINVAL, "property 'index': '%s' is no index name", index);
	if (asprintf(&s->index, "%s/_bulk", index) < 0) {
		s->index = NULL;
		return err_set(err, ENOMEM, "out of memory");
	}
	if (key)
		return http_add_header(s, err, "Authorization: ApiKey %s", key);
	if (!user)
		return 0;
	buf_printf(&basic, "%s:%s", user, password ? password : "");
	{
		struct buf coded = { 0 };

		json_init(&j, &coded);
		json_base64(&j, (struct str){ basic.p, basic.n });
		r = http_add_header(s, err, "Authorization: Basic %.*s", (int)coded.n - 2,
				    coded.p + 1);
		explicit_bzero(coded.p, coded.n);
		buf_done(&coded);
	}
	explicit_bzero(basic.p, basic.n);
	buf_done(&basic);
	return r;
}

static void add(struct http_sink *s, struct buf *body, const struct export_record *rec, bool first)
{
	static const struct str has_time = STR("{\"@timestamp\":");
	struct str text = export_text(rec);
	struct json j;

	(void)s;
	(void)first;
	buf_addz(body, "{\"create\":{");
	json_init(&j, body);
	if (rec->id.n) {
		json_key(&j, "_id");
		json_str(&j, rec->id);
	}
	buf_addz(body, "}}\n");
	if (str_starts(text, has_time)) { /* ECS begins with it */
		buf_add(body, text.p, text.n);
		buf_addc(body, '\n');
		return;
	}
	buf_add(body, has_time.p, has_time.n);
	json_init(&j, body);
	if (rec->time.n)
		json_str(&j, rec->time);
	else
		json_null(&j);
	if (text.n > 2)
		buf_addc(body, ',');
	buf_add(body, text.p + 1, text.n - 1);
	buf_addc(body, '\n');
}

/* Status of one item, {"create":{"status":201,"error":{...}}}; 0 when it is none. */
static uint64_t item_status(struct str item, struct str *ret_error)
{
	struct scan s = scan_of(item);
	struct str key, action, value;
	uint64_t status = 0;

	*ret_error = STR("");
	if (!scan_member(&s, &key, &action) || !scan_find(action, "status", &value))
		return 0;
	if (!scan_u64(value, &status))
		return 0;
	(void)scan_find(action, "error", ret_error);
	return status;
}

/* Refused for good? Not where the operator can mend it: rights, an index that is not there, closed or misnamed. */
static bool is_refused(uint64_t status, struct str error)
{
	static const char *const index[] = {
		"index_not_found_exception",
		"index_closed_exception",
		"invalid_index_name_exception",
	};

	for (size_t i = 0; i < ARRAY_SIZE(index); i++)
		if (error.n && memmem(error.p, error.n, index[i], strlen(index[i])))
			return false;
	return status / 100 == 4 && status != 429 && status != 401 && status != 403;
}

static enum http_verdict judge_items(struct http_sink *s, struct str items, char *why)
{
	size_t at = 0, n = http_request_size(s), retry = 0, seen = 0;
	struct scan scan = scan_of(items);
	struct str item, error;

	while (seen < n && scan_element(&scan, &item)) {
		uint64_t status = item_status(item, &error);
		char text[200];

		while (!http_is_open(&s->items[at])) /* was not in this request */
			at++;
		snprintf(text, sizeof(text), "item status %llu: %.*s", (unsigned long long)status,
			 (int)(error.n < 150 ? error.n : 150), error.n ? error.p : "");
		if (status / 100 == 2 || status == 409) {
			http_item_done(s, at);
		} else if (is_refused(status, error)) {
			http_item_refused(s, at, text);
		} else {
			retry++;
			snprintf(why, 256, "%s", text);
		}
		at++;
		seen++;
	}
	if (seen < n) {
		snprintf(why, 256, "the answer has %zu items for %zu records", seen, n);
		return HTTP_RETRY;
	}
	return retry ? HTTP_RETRY : HTTP_TAKEN;
}

static enum http_verdict judge(struct http_sink *s, const struct http_answer *a, char *why)
{
	struct str errors, items;

	if (!scan_find(a->body, "errors", &errors) || !scan_find(a->body, "items", &items)) {
		snprintf(why, 256, "not an answer of Elasticsearch: %.*s",
			 (int)(a->body.n < 120 ? a->body.n : 120), a->body.n ? a->body.p : "");
		return HTTP_CONFIG;
	}
	/* "errors": false is believed only with an item for each record: a wrong server says much */
	return judge_items(s, items, why);
}

static const struct http_flavour flavour = {
	.class = &elastic_exporter,
	.default_path = "/",
	.content_type = "application/x-ndjson",
	.set_up = set_up,
	.add = add,
	.judge = judge,
};

static int open_sink(struct exporter **ret, const struct exporter_config *cfg, struct err *err)
{
	return http_open(ret, &flavour, cfg, err);
}

static const struct exporter_property properties[] = {
	{ "url", "URL", NULL, "https://HOST:9200", true },
	{ "index", "NAME", "logs-warder-default", "index or data stream", true },
	{ "api-key", "KEY", "", "API key (encoded); @FILE", false },
	{ "user", "NAME", "", "user, when there is no API key", false },
	{ "password", "TEXT", "", "its password; @FILE", false },
	HTTP_PROPERTIES,
	{ 0 },
};

const struct exporter_class elastic_exporter = {
	.name = "elastic",
	.doc = "Elasticsearch or OpenSearch, by _bulk",
	.formats = EXPORT_JSON_FORMATS,
	.properties = properties,
	.open = open_sink,
	HTTP_OPS,
};
