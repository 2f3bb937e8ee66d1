/* SPDX-License-Identifier: Apache-2.0 */
/* What all sinks that POST batches share. A flavour says how a batch is written and what an answer
 * means; batching, retries and the hunt for a refused record are here. */
#ifndef WARDER_EXPORTERS_HTTP_H
#define WARDER_EXPORTERS_HTTP_H

#include "exporters/exporter.h"
#include "exporters/http_client.h"

/* Records that wait for or are in a request. */
#define HTTP_WINDOW	  4096
#define HTTP_WINDOW_BYTES (8 << 20)
#define HTTP_BATCH_BYTES  (1 << 20)
/* Requests whose answer is in but whose records the other side has yet to make safe. */
#define HTTP_BATCHES 8
/* Records that a side which has taken nothing yet must refuse one by one, until that is for the operator. */
#define HTTP_SUSPECTS_MAX 8
#define HTTP_POLL_MS	  20 /* while a request runs: for libcurl's own timers */
#define HTTP_RETRY_MIN_NS 250000000ull
#define HTTP_RETRY_MAX_NS 30000000000ull

enum http_verdict {
	HTTP_TAKEN,   /* all of the batch, or what http_item_done / _refused did not say */
	HTTP_RETRY,   /* nothing, or only what http_item_done said: again after a pause */
	HTTP_REFUSED, /* the batch holds something that will never be taken */
	HTTP_CONFIG,  /* for the operator: again after a long pause */
	HTTP_WAITS,   /* judge said http_batch_wait: http_batch_done or _again follows */
};

struct http_sink;

struct http_flavour {
	const struct exporter_class *class;
	const char *default_path; /* put behind a URL that has no path */
	const char *content_type;
	/* Headers for authentication etc., by http_add_header. May be NULL. */
	int (*set_up)(struct http_sink *s, const struct exporter_config *cfg, struct err *err);
	void (*begin)(struct http_sink *s, struct buf *body); /* may be NULL */
	void (*add)(struct http_sink *s, struct buf *body, const struct export_record *rec,
		    bool first);
	void (*end)(struct http_sink *s, struct buf *body); /* may be NULL */
	/* A 2xx answer. `why` (256 bytes) is for a person when it is not HTTP_TAKEN. */
	enum http_verdict (*judge)(struct http_sink *s, const struct http_answer *a, char *why);
	/* A 4xx answer in the protocol's own words: does it speak of settings rather than of records? May be
	 * NULL. */
	bool (*for_operator)(const struct http_answer *a);
	/* One more header for a body, or NULL. */
	const char *(*sign)(struct http_sink *s, struct str body);
	/* For requests of its own beside the batches; all three or none. `opened`: the options of
	 * the sink's client. `tick`: goes on with them, returns when it wants to be called again
	 * (CLOCK_MONOTONIC, UINT64_MAX = when something happens). */
	int (*opened)(struct http_sink *s, struct http_options opt, struct err *err);
	uint64_t (*tick)(struct http_sink *s, uint64_t now);
	void (*close)(struct http_sink *s);
};

struct http_item {
	uint64_t seq;
	size_t at, n; /* in `store` */
	bool done;
	bool suspect;  /* refused by a side that has taken nothing yet */
	uint8_t batch; /* that it waits in, + 1; 0 = none */
};

/* Neither done nor waiting nor suspect: what requests are made of. */
static inline bool http_is_open(const struct http_item *it)
{
	return !it->done && !it->batch && !it->suspect;
}

struct http_sink {
	struct exporter x;
	const struct http_flavour *flavour;
	const struct exporter_host *host;
	struct http_client *client;

	struct buf store; /* records as they came */
	struct http_item items[HTTP_WINDOW];
	size_t items_n;
	size_t sent_n; /* items of the request that runs, from the first; done ones are left out */
	uint32_t waiting; /* batches that wait, a bit each */
	bool proven;	  /* the other side took something: it is the right one */
	size_t suspects;
	size_t batch_max; /* records in the next request: halved by refusals, doubled by success */
	struct buf body;
	uint64_t acked;
	uint64_t retry_at, retry_ns;
	char text[256];
	char said[192]; /* with the last batch that was taken */

	char *headers[HTTP_HEADERS_MAX];
	size_t headers_n;
	char *index, *secret, *source; /* flavours' own */
	struct splunk_ack *ack;
	char signature[128];
};

#define HTTP_PROPERTIES                                                                          \
	{ "ca", "FILE", "", "CAs to trust (PEM); default: the system's", false },                \
		{ "cert", "FILE", "", "our certificate (PEM)", false },                          \
		{ "key", "FILE", "", "its key; default: in the same file", false },              \
		{ "verify", "yes|no", "yes", "check the other side's certificate and name",      \
		  false },                                                                       \
		{ "proxy", "URL", "", "proxy; default: http_proxy, https_proxy, no_proxy",       \
		  false },                                                                       \
		{ "gzip", "yes|no", "yes", "pack request bodies", false },                       \
		{ "timeout", "DURATION", "30s", "longest time a request may take", false },      \
	{                                                                                        \
		"header", "TEXT", "", "one more header, 'Name: value'; @FILE for secrets", false \
	}

int http_open(struct exporter **ret, const struct http_flavour *flavour,
	      const struct exporter_config *cfg, struct err *err);
enum export_result http_write(struct exporter *x, const struct export_record *rec);
uint64_t http_poll(struct exporter *x, int timeout_ms);
const char *http_status(const struct exporter *x);
void http_close(struct exporter *x);

void http_said(const struct exporter *x, char *ret, size_t size);
const char *http_warning(const struct exporter_config *cfg);

#define HTTP_OPS                                                                        \
	.renders = true, .write = http_write, .poll = http_poll, .status = http_status, \
	.close = http_close, .warning = http_warning, .said = http_said

int http_add_header(struct http_sink *s, struct err *err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* For judge: the i-th record of the request was taken / will never be taken. */
void http_item_done(struct http_sink *s, size_t i);
void http_item_refused(struct http_sink *s, size_t i, const char *why);
/* For judge: what of the request was not refused waits as a batch, whose number is returned. One is free
 * whenever a request runs. */
unsigned http_batch_wait(struct http_sink *s);
/* The batch is safe at the other side / is to be sent again. */
void http_batch_done(struct http_sink *s, unsigned batch);
void http_batch_again(struct http_sink *s, unsigned batch);
/* The status, made printable. */
void http_set_text(struct http_sink *s, const char *text);
int http_yes_no(const struct exporter_config *cfg, const char *key, bool *ret, struct err *err);
/* Records in the request. */
size_t http_request_size(const struct http_sink *s);
/* Adds what goes out of the record as a JSON value: a string when its format is no JSON. */
void http_add_value(struct http_sink *s, struct buf *body, const struct export_record *rec);
/* Non-empty value or NULL. */
const char *http_given(const struct exporter_config *cfg, const char *key);

#endif
