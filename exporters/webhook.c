// SPDX-License-Identifier: Apache-2.0
/* Any HTTP endpoint: a JSON array of records, signed with a shared secret. Any 2xx means taken. */
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exporters/classes.h"
#include "exporters/http.h"

static int set_up(struct http_sink *s, const struct exporter_config *cfg, struct err *err)
{
	const char *secret = http_given(cfg, "secret");

	if (secret) {
		s->secret = strdup(secret);
		if (!s->secret)
			return err_set(err, ENOMEM, "out of memory");
	}
	return 0;
}

static void begin(struct http_sink *s, struct buf *body)
{
	(void)s;
	buf_addc(body, '[');
}

static void add(struct http_sink *s, struct buf *body, const struct export_record *rec, bool first)
{
	if (!first)
		buf_addz(body, ",\n");
	http_add_value(s, body, rec);
}

static void end(struct http_sink *s, struct buf *body)
{
	(void)s;
	buf_addz(body, "]\n");
}

/* X-Warder-Signature: t=SECONDS,v1=hex(HMAC-SHA-256(secret, "SECONDS." body)): the body before it is
 * packed; the time stops replays. */
static const char *sign(struct http_sink *s, struct str body)
{
	unsigned char mac[EVP_MAX_MD_SIZE];
	struct buf text = { 0 };
	unsigned mac_n = 0;
	long long now = (long long)time(NULL);
	int n;

	if (!s->secret)
		return NULL;
	buf_printf(&text, "%lld.", now);
	buf_add(&text, body.p, body.n);
	n = snprintf(s->signature, sizeof(s->signature), "X-Warder-Signature: t=%lld,v1=", now);
	if (!text.failed)
		HMAC(EVP_sha256(), s->secret, (int)strlen(s->secret), (unsigned char *)text.p,
		     text.n, mac, &mac_n);
	for (unsigned i = 0; i < mac_n && (size_t)n + 2 < sizeof(s->signature); i++)
		n += snprintf(s->signature + n, sizeof(s->signature) - (size_t)n, "%02x", mac[i]);
	buf_done(&text);
	return s->signature;
}

static const struct http_flavour flavour = {
	.class = &webhook_exporter,
	.default_path = "/",
	.content_type = "application/json",
	.set_up = set_up,
	.begin = begin,
	.add = add,
	.end = end,
	.sign = sign,
};

static int open_sink(struct exporter **ret, const struct exporter_config *cfg, struct err *err)
{
	return http_open(ret, &flavour, cfg, err);
}

static const struct exporter_property properties[] = {
	{ "url", "URL", NULL, "where to POST", true },
	{ "secret", "TEXT", "", "key of the signature (X-Warder-Signature); @FILE", false },
	HTTP_PROPERTIES,
	{ 0 },
};

const struct exporter_class webhook_exporter = {
	.name = "webhook",
	.doc = "any HTTP endpoint: JSON arrays, signed",
	.properties = properties,
	.open = open_sink,
	HTTP_OPS,
};
