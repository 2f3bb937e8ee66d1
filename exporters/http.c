// SPDX-License-Identifier: Apache-2.0
#include "exporters/http.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/record.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/json.h"
#include "userspace/base/option.h"
#include "userspace/base/plain.h"

/* Answers of strangers: one line, printable. */
static void set_line(char *ret, size_t size, const char *text)
{
	snprintf(ret, size, "%.*s", (int)size - 1, text);
	plain_text(ret, ' ', "");
}

void http_set_text(struct http_sink *s, const char *text)
{
	set_line(s->text, sizeof(s->text), text);
}

static void set_said(struct http_sink *s, const struct http_answer *a)
{
	char text[256];

	snprintf(text, sizeof(text), "HTTP status %d%s%.*s", a->status, a->body.n ? ": " : "",
		 (int)MIN(a->body.n, (size_t)150), a->body.n ? a->body.p : "");
	set_line(s->said, sizeof(s->said), text);
}

void http_said(const struct exporter *x, char *ret, size_t size)
{
	snprintf(ret, size, "%s", ((const struct http_sink *)x)->said);
}

/* ---- the window of records ---- */

static struct str item_json(const struct http_sink *s, size_t i)
{
	return (struct str){ s->store.p + s->items[i].at, s->items[i].n };
}

/* Items done at the front leave; what they mean for the cursor. */
static void drop_done(struct http_sink *s)
{
	size_t n = 0, bytes;

	while (n < s->items_n && s->items[n].done)
		n++;
	if (!n)
		return;
	s->acked = s->items[n - 1].seq;
	bytes = n < s->items_n ? s->items[n].at : s->store.n;
	buf_consume(&s->store, bytes);
	if (!s->store.n)
		buf_done(&s->store); /* sinks rest for long, and an outage made it large */
	s->items_n -= n;
	memmove(s->items, s->items + n, s->items_n * sizeof(*s->items));
	for (size_t i = 0; i < s->items_n; i++)
		s->items[i].at -= bytes;
}

/* Index of the k-th record of the request. */
static size_t nth_sent(const struct http_sink *s, size_t k)
{
	size_t i = 0;

	for (; i < s->sent_n; i++)
		if (http_is_open(&s->items[i]) && !k--)
			break;
	return i;
}

size_t http_request_size(const struct http_sink *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->sent_n; i++)
		n += http_is_open(&s->items[i]);
	return n;
}

void http_item_done(struct http_sink *s, size_t i)
{
	if (i < s->sent_n)
		s->items[i].done = true;
}

void http_item_refused(struct http_sink *s, size_t i, const char *why)
{
	if (i >= s->sent_n || s->items[i].done)
		return;
	if (s->host && s->host->dead_letter)
		s->host->dead_letter(s->host->arg, s->items[i].seq, item_json(s, i), why);
	s->items[i].done = true;
}

enum export_result http_write(struct exporter *x, const struct export_record *rec)
{
	struct http_sink *s = (struct http_sink *)x;

	if (rec->json.n > HTTP_WINDOW_BYTES) {
		x->why = "larger than a request may be";
		return EXPORT_POISON;
	}
	if (s->items_n == HTTP_WINDOW || s->store.n + rec->json.n > HTTP_WINDOW_BYTES ||
	    buf_add(&s->store, rec->json.p, rec->json.n) < 0)
		return EXPORT_FULL;
	s->items[s->items_n++] = (struct http_item){ .seq = rec->seq,
						     .at = s->store.n - rec->json.n,
						     .n = rec->json.n };
	return EXPORT_OK;
}

/* ---- requests ---- */

static bool has_open(const struct http_sink *s)
{
	for (size_t i = 0; i < s->items_n; i++)
		if (http_is_open(&s->items[i]))
			return true;
	return false;
}

static bool may_send(const struct http_sink *s)
{
	if (s->waiting == (1u << HTTP_BATCHES) - 1)
		return false;
	if (!s->waiting)
		return s->items_n;
	return has_open(s);
}

static void pause_sink(struct http_sink *s, uint64_t at_least_ms)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), quarter, ns;

	s->retry_ns = s->retry_ns ? MIN(s->retry_ns * 2, HTTP_RETRY_MAX_NS) : HTTP_RETRY_MIN_NS;
	quarter = s->retry_ns / 4;
	/* The low bits of the clock spread senders that were told off together. */
	ns = s->retry_ns - quarter + now % (2 * quarter);
	s->retry_at = now + MAX(ns, at_least_ms * NSEC_PER_MSEC);
}

void http_add_value(struct http_sink *s, struct buf *body, const struct export_record *rec)
{
	struct renderer *r = s->host ? s->host->renderer : NULL;
	struct json j;

	json_init(&j, body);
	if (r && !renderer_format(r)->is_json)
		json_str(&j, export_text(rec));
	else
		json_raw(&j, export_text(rec));
}

/* Adds the i-th item. false: dead-lettered, it cannot be put into the sink's format. */
static bool add_item(struct http_sink *s, size_t i, bool first)
{
	struct renderer *r = s->host ? s->host->renderer : NULL;
	struct export_record rec = { .seq = s->items[i].seq };
	struct err err = { 0 };

	record_scan(&rec, item_json(s, i)); /* it was one when it was taken */
	if (r && renderer_record(r, rec.json, &rec.text, &err) < 0) {
		if (s->host->dead_letter)
			s->host->dead_letter(s->host->arg, rec.seq, rec.json, err_text(&err));
		s->items[i].done = true;
		return false;
	}
	s->flavour->add(s, &s->body, &rec, first);
	return true;
}

static void start_request(struct http_sink *s)
{
	const struct http_flavour *f = s->flavour;
	size_t records = 0;
	const char *extra;

	buf_reset(&s->body);
	if (f->begin)
		f->begin(s, &s->body);
	for (s->sent_n = 0; s->sent_n < s->items_n && records < s->batch_max; s->sent_n++) {
		const struct http_item *it = &s->items[s->sent_n];
		if (!http_is_open(it))
			continue;
		if (records && s->body.n + it->n > HTTP_BATCH_BYTES)
			break;
		records += add_item(s, s->sent_n, !records);
	}
	if (!records) { /* all of them dead letters */
		s->sent_n = 0;
		drop_done(s);
		return;
	}
	if (f->end)
		f->end(s, &s->body);
	if (s->body.failed && records == 1)
		http_item_refused(s, nth_sent(s, 0), "larger than a request may be");
	if (s->body.failed) {
		s->batch_max = MAX(records / 2, (size_t)1);
		s->sent_n = 0;
		drop_done(s);
		return;
	}
	extra = f->sign ? f->sign(s, (struct str){ s->body.p, s->body.n }) : NULL;
	if (http_client_post(s->client, (struct str){ s->body.p, s->body.n }, extra) < 0) {
		http_set_text(s, "out of memory for a request");
		pause_sink(s, 0);
	}
	buf_done(&s->body); /* it was copied */
}

/* They are tried again, like all others. */
static void clear_suspects(struct http_sink *s)
{
	for (size_t i = 0; i < s->items_n && s->suspects; i++) {
		s->suspects -= s->items[i].suspect;
		s->items[i].suspect = false;
	}
}

static void went_well(struct http_sink *s)
{
	/* Where batches wait, one must leave room for others. */
	s->batch_max =
		MIN(s->batch_max * 2, (size_t)(s->ack ? HTTP_WINDOW / HTTP_BATCHES : HTTP_WINDOW));
	s->proven = true;
	clear_suspects(s); /* and what is refused now is a dead letter */
	s->retry_ns = 0;
	s->retry_at = 0;
}

static void taken(struct http_sink *s)
{
	for (size_t i = 0; i < s->sent_n; i++)
		s->items[i].done |= http_is_open(&s->items[i]);
	went_well(s);
	s->text[0] = 0;
}

/* The page of a proxy, or a port that wants TLS, refuses everything alike, and nothing of that may become a dead
 * letter: who has taken nothing yet and does not speak JSON must take another record first. */
static bool suspect(struct http_sink *s, const struct http_answer *a, const char *why)
{
	bool speaks = a->body.n && (*a->body.p == '{' || *a->body.p == '[');
	size_t i = nth_sent(s, 0);

	if (s->proven || a->status == 413 || speaks || i >= s->sent_n)
		return false;
	s->items[i].suspect = true;
	s->suspects++;
	http_set_text(s, why);
	if (s->suspects < HTTP_SUSPECTS_MAX && has_open(s))
		return true;
	clear_suspects(s);
	pause_sink(s, a->retry_after_ms);
	return true;
}

/* One bad record spoils its batch: halve until it is alone. */
static void refused(struct http_sink *s, const struct http_answer *a, const char *why)
{
	size_t n = http_request_size(s);

	if (n > 1) {
		s->batch_max = n / 2;
		http_set_text(s, why);
	} else if (!suspect(s, a, why)) {
		http_item_refused(s, nth_sent(s, 0), why);
		s->batch_max = 2;
	}
}

static enum http_verdict judge(struct http_sink *s, const struct http_answer *a, char why[256])
{
	struct str body = a->body;

	if (!a->status) {
		snprintf(why, 256, "%.250s", a->error);
		return HTTP_RETRY;
	}
	if (a->status / 100 == 2)
		return s->flavour->judge ? s->flavour->judge(s, a, why) : HTTP_TAKEN;
	snprintf(why, 256, "HTTP status %d: %.*s", a->status, (int)MIN(body.n, (size_t)150),
		 body.n ? body.p : "");
	switch (a->status) {
	case 408:
	case 425:
	case 429:
		return HTTP_RETRY;
	case 401:
	case 402:
	case 403:
	case 404:
	case 405:
	case 407:
	case 415: /* a body that the other side cannot read at all, packed perhaps */
		return HTTP_CONFIG;
	default:
		if (a->status / 100 == 4)
			return s->flavour->for_operator && s->flavour->for_operator(a)
				       ? HTTP_CONFIG
				       : HTTP_REFUSED;
		return a->status / 100 == 5 ? HTTP_RETRY : HTTP_CONFIG;
	}
}

static void finish_request(struct http_sink *s, const struct http_answer *a)
{
	char why[256] = "";

	switch (judge(s, a, why)) {
	case HTTP_TAKEN:
		set_said(s, a);
		taken(s);
		break;
	case HTTP_WAITS:
		set_said(s, a);
		went_well(s);
		break;
	case HTTP_REFUSED:
		refused(s, a, why);
		break;
	case HTTP_CONFIG:
	case HTTP_RETRY:
		if (a->too_long) /* to fewer records less is said */
			s->batch_max = MAX(http_request_size(s) / 2, (size_t)1);
		http_set_text(s, why);
		pause_sink(s, a->retry_after_ms);
		break;
	}
	s->sent_n = 0;
	drop_done(s);
}

uint64_t http_poll(struct exporter *x, int timeout_ms)
{
	struct http_sink *s = (struct http_sink *)x;
	uint64_t now, next = UINT64_MAX;
	struct http_answer answer;

	(void)timeout_ms;
	if (http_client_poll(s->client, &answer))
		finish_request(s, &answer);
	now = clock_ns(CLOCK_MONOTONIC);
	/* Not while a request runs: it counts on which items are open. */
	if (s->flavour->tick && !http_client_is_busy(s->client)) {
		next = s->flavour->tick(s, now);
		drop_done(s);
	}
	if (!http_client_is_busy(s->client) && now >= s->retry_at && may_send(s))
		start_request(s);
	x->fd = http_client_fd(s->client, &x->fd_events);
	if (http_client_is_busy(s->client))
		next = MIN(next, now + HTTP_POLL_MS * NSEC_PER_MSEC);
	else if (may_send(s))
		next = MIN(next, MAX(s->retry_at, now));
	if (next == UINT64_MAX)
		x->poll_in_ms = 0;
	else
		x->poll_in_ms = (int)MIN((MAX(next, now) - now) / NSEC_PER_MSEC + 1, 60000ull);
	return s->acked;
}

const char *http_status(const struct exporter *x)
{
	return ((const struct http_sink *)x)->text;
}

void http_close(struct exporter *x)
{
	struct http_sink *s = (struct http_sink *)x;

	if (s->flavour->close)
		s->flavour->close(s);
	http_client_free(s->client);
	buf_done(&s->store);
	buf_done(&s->body);
	for (size_t i = 0; i < s->headers_n; i++) {
		explicit_bzero(s->headers[i], strlen(s->headers[i]));
		free(s->headers[i]);
	}
	free(s->index);
	free(s->source);
	if (s->secret)
		explicit_bzero(s->secret, strlen(s->secret));
	free(s->secret);
	free(s);
}

/* ---- set-up ---- */

const char *http_given(const struct exporter_config *cfg, const char *key)
{
	const char *v = exporter_config_get(cfg, key);

	return v && *v ? v : NULL;
}

int http_add_header(struct http_sink *s, struct err *err, const char *fmt, ...)
{
	va_list ap;
	char *text;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0 || s->headers_n >= HTTP_HEADERS_MAX - 1) {
		free(n < 0 ? NULL : text);
		return err_set(err, E2BIG, "too many headers");
	}
	s->headers[s->headers_n++] = text;
	if (strpbrk(text, "\r\n"))
		return err_set(err, EINVAL, "header '%.20s...': holds a line end", text);
	return 0;
}

const char *http_warning(const struct exporter_config *cfg)
{
	if (!strcmp(exporter_config_get(cfg, "verify"), "no"))
		return "the server's certificate is not checked: anybody on the way can read and "
		       "swallow events";
	return NULL;
}

int http_yes_no(const struct exporter_config *cfg, const char *key, bool *ret, struct err *err)
{
	const char *v = exporter_config_get(cfg, key);

	if (strcmp(v, "yes") && strcmp(v, "no"))
		return err_set(err, EINVAL, "property '%s': '%s' is not yes or no", key, v);
	*ret = !strcmp(v, "yes");
	return 0;
}

/* Path, query and what stands before an @ may be secrets: none of it is told. */
static int bad_url(const char *url, struct err *err)
{
	const char *host = strstr(url, "://"), *end, *at;
	int scheme = host ? (int)(host + 3 - url) : 0;

	host = url + scheme;
	end = host + strcspn(host, "/?#");
	at = memrchr(host, '@', (size_t)(end - host));
	host = at ? at + 1 : host;
	return err_set(err, EINVAL, "URL '%.*s%.*s%s': expected https://HOST[:PORT][/PATH]",
		       MIN(scheme, 16), url, (int)MIN(end - host, 100), host, *end ? "/..." : "");
}

/* The URL, with the flavour's path when it has none. */
static int full_url(const struct http_sink *s, const char *url, char *ret, size_t size,
		    struct err *err)
{
	const char *host = strstr(url, "://"), *path;
	int n;

	if (!host || (strncmp(url, "http://", 7) && strncmp(url, "https://", 8)) || !host[3])
		return bad_url(url, err);
	path = strchr(host + 3, '/');
	if (path && path[1])
		n = snprintf(ret, size, "%s", url);
	else
		n = snprintf(ret, size, "%.*s%s%s", (int)(path ? path - url : (int)strlen(url)),
			     url, s->flavour->default_path, s->index ? s->index : "");
	return (size_t)n < size
		       ? 0
		       : err_set(err, ENAMETOOLONG, "URL is longer than %zu bytes", size - 1);
}

static int set_up(struct http_sink *s, const struct exporter_config *cfg, struct err *err)
{
	const char *timeout = exporter_config_get(cfg, "timeout"), *header;
	struct http_options opt = { 0 };
	uint64_t timeout_ns;
	char url[2048];
	bool verify;
	int r;

	r = http_add_header(s, err, "Content-Type: %s", s->flavour->content_type);
	if (r == 0 && s->flavour->set_up)
		r = s->flavour->set_up(s, cfg, err);
	header = http_given(cfg, "header");
	if (r == 0 && header)
		r = strchr(header, ':')
			    ? http_add_header(s, err, "%s", header)
			    : err_set(err, EINVAL, "property 'header': expected 'Name: value'");
	if (r == 0)
		r = http_yes_no(cfg, "verify", &verify, err);
	if (r == 0)
		r = http_yes_no(cfg, "gzip", &opt.gzip, err);
	if (r == 0 && (parse_duration_ns(timeout, &timeout_ns) < 0 || timeout_ns < NSEC_PER_MSEC))
		r = err_set(err, EINVAL, "property 'timeout': '%s' is no duration such as 30s",
			    timeout);
	if (r == 0)
		r = full_url(s, exporter_config_get(cfg, "url"), url, sizeof(url), err);
	if (r < 0)
		return r;
	opt.url = url;
	opt.insecure = !verify;
	opt.timeout_ms = timeout_ns / NSEC_PER_MSEC;
	opt.ca = http_given(cfg, "ca");
	opt.cert = http_given(cfg, "cert");
	opt.key = http_given(cfg, "key");
	opt.proxy = http_given(cfg, "proxy");
	for (size_t i = 0; i < s->headers_n; i++)
		opt.headers[i] = s->headers[i];
	r = http_client_new(&s->client, &opt, err);
	return r == 0 && s->flavour->opened ? s->flavour->opened(s, opt, err) : r;
}

int http_open(struct exporter **ret, const struct http_flavour *flavour,
	      const struct exporter_config *cfg, struct err *err)
{
	struct http_sink *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_set(err, ENOMEM, "out of memory");
	s->x.class = flavour->class;
	s->flavour = flavour;
	s->host = cfg->host;
	s->batch_max = HTTP_WINDOW;
	buf_init(&s->store, HTTP_WINDOW_BYTES);
	/* Escaped a second time inside a JSON string, a record at most doubles and then some. */
	buf_init(&s->body, HTTP_BATCH_BYTES + 3 * HTTP_WINDOW_BYTES);
	r = set_up(s, cfg, err);
	if (r < 0) {
		http_close(&s->x);
		return r;
	}
	*ret = &s->x;
	return 0;
}
