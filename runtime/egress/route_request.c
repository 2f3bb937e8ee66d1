// SPDX-License-Identifier: Apache-2.0
/* One request of the sandbox, asked anew of its upstream. Nothing of its framing is passed on: libmicrohttpd has read it,
 * libcurl writes its own, so what the two sides take for one request is the same. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "runtime/egress/route_priv.h"
#include "userspace/base/auto.h"
#include "userspace/base/buf.h"
#include "userspace/base/clock.h"
#include "userspace/base/option.h"

#define CONNECT_MS   10000l
#define TURN_MS	     200 /* between two looks whether anybody still waits */
#define PIECE	     (16 << 10)
#define HEADERS_SIZE (64 << 10) /* of an answer */

struct answer_header {
	char *name, *value;
};

struct request {
	const struct route_of *of;
	struct MHD_Connection *conn;
	char *target;
	const char *method;
	struct buf body;
	bool too_large, begun;
	struct egress_event ev;
	/* the way out */
	CURL *easy;
	CURLM *multi;
	struct curl_slist *list;
	struct buf out; /* of the answer, not yet taken */
	bool paused, done, cut;
	CURLcode result;
	/* the answer's head */
	unsigned status;
	bool head_done, head_bad;
	int64_t length; /* -1: it does not say */
	struct answer_header head[ROUTE_HEADERS];
	size_t head_n, head_size;
	char connection[256];
};

static void copy_text(char *to, size_t max, const char *from)
{
	snprintf(to, max, "%.*s", (int)max - 1, from);
}

void *route_on_target(void *cls, const char *target, struct MHD_Connection *c)
{
	struct request *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->of = cls;
	q->conn = c;
	q->length = -1;
	q->target = strndup(target, ROUTE_PATH_MAX + 1);
	buf_init(&q->body, ROUTE_BODY_MAX);
	buf_init(&q->out, ROUTE_QUEUE_MAX + CURL_MAX_WRITE_SIZE);
	q->ev = (struct egress_event){ .type = EGRESS_REQUEST,
				       .ts = clock_boot_ns(),
				       .dport = q->of->route->port };
	copy_text(q->ev.name, sizeof(q->ev.name), q->of->route->name);
	return q;
}

static void refuse(struct request *q, const char *reason)
{
	q->ev.error = EACCES;
	copy_text(q->ev.reason, sizeof(q->ev.reason), reason);
}

static enum MHD_Result say(struct request *q, unsigned status, const char *text)
{
	struct MHD_Response *r = route_lib.MHD_create_response_from_buffer(
		strlen(text), (void *)text, MHD_RESPMEM_MUST_COPY);
	enum MHD_Result ret;

	if (!r)
		return MHD_NO;
	route_lib.MHD_add_response_header(r, "Content-Type", "text/plain");
	ret = route_lib.MHD_queue_response(q->conn, status, r);
	route_lib.MHD_destroy_response(r);
	return ret;
}

/* ---- the request's headers ---- */

struct passing {
	struct request *q;
	const char *connection;
	bool has_type, has_accept, bad;
	size_t n;
};

static bool is_ours(const struct egress_route *r, const char *name)
{
	for (size_t i = 0; i < r->spec->headers; i++)
		if (!strcasecmp(r->spec->header[i].name, name))
			return true;
	return false;
}

static bool add_line(struct request *q, const char *name, const char *value)
{
	auto_buf struct buf line = { 0 };
	struct curl_slist *more;

	/* Of an empty one libcurl wants a semicolon. */
	buf_printf(&line, *value ? "%s: %s" : "%s;", name, value);
	buf_addc(&line, 0);
	more = line.failed ? NULL : route_lib.curl_slist_append(q->list, line.p);
	if (more)
		q->list = more;
	if (!line.failed)
		explicit_bzero(line.p, line.n);
	return more;
}

static enum MHD_Result pass_header(void *cls, enum MHD_ValueKind kind, const char *name,
				   const char *value)
{
	struct passing *p = cls;

	(void)kind;
	value = value ? value : "";
	if (!route_header_passes(name, p->connection) || is_ours(p->q->of->route, name))
		return MHD_YES;
	if (!route_value_is_good(value) || ++p->n > ROUTE_HEADERS || !add_line(p->q, name, value)) {
		p->bad = true;
		return MHD_NO;
	}
	p->has_type |= !strcasecmp(name, "Content-Type");
	p->has_accept |= !strcasecmp(name, "Accept");
	return MHD_YES;
}

static bool make_headers(struct request *q)
{
	const struct sandbox_route *s = q->of->route->spec;
	struct passing p = { .q = q,
			     .connection = route_lib.MHD_lookup_connection_value(
				     q->conn, MHD_HEADER_KIND, "Connection") };
	struct curl_slist *more;

	route_lib.MHD_get_connection_values(q->conn, MHD_HEADER_KIND, pass_header, &p);
	if (p.bad)
		return false;
	for (size_t i = 0; i < s->headers; i++)
		if (!add_line(q, s->header[i].name, s->header[i].value))
			return false;
	/* libcurl's own additions, which nobody asked for. */
	more = route_lib.curl_slist_append(q->list, "Expect:");
	if (more && !p.has_type)
		more = route_lib.curl_slist_append(more, "Content-Type:");
	if (more && !p.has_accept)
		more = route_lib.curl_slist_append(more, "Accept:");
	q->list = more ? more : q->list;
	return more;
}

/* ---- the answer ---- */

static bool keep_header(struct request *q, const char *line, size_t n)
{
	const char *colon = memchr(line, ':', n);
	auto_free char *name = NULL, *value = NULL;
	uint64_t length;
	size_t k;

	if (!colon || q->head_n == ROUTE_HEADERS || (q->head_size += n) > HEADERS_SIZE)
		return false;
	name = strndup(line, (size_t)(colon - line));
	k = (size_t)(line + n - ++colon);
	while (k && (*colon == ' ' || *colon == '\t')) {
		colon++;
		k--;
	}
	while (k && (colon[k - 1] == '\r' || colon[k - 1] == '\n' || colon[k - 1] == ' '))
		k--;
	value = strndup(colon, k);
	if (!name || !value || strlen(value) != k || !route_value_is_good(value))
		return false;
	if (!strcasecmp(name, "Connection"))
		copy_text(q->connection, sizeof(q->connection), value);
	if (!strcasecmp(name, "Content-Length") && parse_u64(value, &length) == 0 &&
	    length <= INT64_MAX)
		q->length = (int64_t)length;
	q->head[q->head_n++] = (struct answer_header){ take_ptr(name), take_ptr(value) };
	return true;
}

static void drop_head(struct request *q)
{
	while (q->head_n) {
		q->head_n--;
		free(q->head[q->head_n].name);
		free(q->head[q->head_n].value);
	}
	q->length = -1;
	q->head_size = 0;
}

/* A line each, of interim answers, too. */
static size_t on_header(char *p, size_t size, size_t n, void *arg)
{
	struct request *q = arg;
	long status = 0;

	(void)size;
	if (n >= 5 && !strncmp(p, "HTTP/", 5)) {
		drop_head(q);
		return n;
	}
	if (n > 2) {
		if (!q->head_done && !keep_header(q, p, n))
			q->head_bad = true;
		return q->head_bad ? 0 : n;
	}
	route_lib.curl_easy_getinfo(q->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status >= 200) {
		q->status = (unsigned)status;
		q->head_done = true;
	}
	return n;
}

static size_t on_data(char *p, size_t size, size_t n, void *arg)
{
	struct request *q = arg;

	(void)size;
	if (q->out.n > ROUTE_QUEUE_MAX) {
		q->paused = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	q->ev.bytes_in += n;
	q->of->server->bytes += n;
	return buf_add(&q->out, p, n) == 0 ? n : 0;
}

/* Who asked may have gone, and the sandbox may be over. */
static bool is_wanted(struct request *q)
{
	const union MHD_ConnectionInfo *info =
		route_lib.MHD_get_connection_info(q->conn, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct pollfd p = { .fd = info ? info->connect_fd : -1, .events = POLLRDHUP };

	return !q->of->server->over &&
	       !(poll(&p, 1, 0) == 1 && p.revents & (POLLHUP | POLLERR | POLLRDHUP));
}

/* One turn. False: nothing more is to come. */
static bool turn(struct request *q)
{
	int running = 0, left;
	CURLMsg *m;

	if (q->done)
		return false;
	if (q->paused && q->out.n <= ROUTE_QUEUE_MAX) {
		q->paused = false;
		route_lib.curl_easy_pause(q->easy, CURLPAUSE_CONT);
	}
	route_lib.curl_multi_perform(q->multi, &running);
	while ((m = route_lib.curl_multi_info_read(q->multi, &left)))
		if (m->msg == CURLMSG_DONE) {
			q->done = true;
			q->result = m->data.result;
		}
	if (!q->done && !is_wanted(q)) {
		q->done = q->cut = true;
		q->result = CURLE_ABORTED_BY_CALLBACK;
	}
	if (q->of->server->bytes > q->of->server->policy->limits.bytes) {
		q->done = q->cut = true;
		q->result = CURLE_ABORTED_BY_CALLBACK;
		refuse(q, "limit.bytes");
	}
	return !q->done;
}

static void wait_turn(struct request *q)
{
	route_lib.curl_multi_poll(q->multi, NULL, 0, TURN_MS, NULL);
}

static ssize_t give(void *cls, uint64_t at, char *p, size_t max)
{
	struct request *q = cls;
	size_t n;

	(void)at;
	while (!q->out.n && turn(q))
		if (!q->out.n)
			wait_turn(q);
	if (!q->out.n)
		return q->result == CURLE_OK ? MHD_CONTENT_READER_END_OF_STREAM
					     : MHD_CONTENT_READER_END_WITH_ERROR;
	n = MIN(max, q->out.n);
	memcpy(p, q->out.p, n);
	buf_consume(&q->out, n);
	return (ssize_t)n;
}

/* Where it leads to is the upstream itself: by the name that the sandbox has for it. */
static const char *location(const struct request *q, const char *value, struct buf *own)
{
	const struct egress_route *r = q->of->route;
	size_t n = strlen(r->origin), k = strlen(r->prefix);

	if (strncasecmp(value, r->origin, n) != 0 || (value[n] && !strchr("/?", value[n])) ||
	    strncmp(value + n, r->prefix, k) != 0)
		return value;
	buf_printf(own, "http://%s%s", r->name, value + n + k);
	buf_addc(own, 0);
	return own->failed ? value : own->p;
}

static enum MHD_Result pass_answer(struct request *q)
{
	bool sized = q->length >= 0;
	struct MHD_Response *r = route_lib.MHD_create_response_from_callback(
		sized ? (uint64_t)q->length : MHD_SIZE_UNKNOWN, PIECE, give, q, NULL);
	enum MHD_Result ret;

	if (!r)
		return MHD_NO;
	for (size_t i = 0; i < q->head_n; i++) {
		auto_buf struct buf own = { 0 };
		const char *name = q->head[i].name, *value = q->head[i].value;

		if (!route_header_passes(name, q->connection))
			continue;
		if (!strcasecmp(name, "Location"))
			value = location(q, value, &own);
		route_lib.MHD_add_response_header(r, name, value);
	}
	q->ev.status = (uint16_t)q->status;
	ret = route_lib.MHD_queue_response(q->conn, q->status, r);
	route_lib.MHD_destroy_response(r);
	return ret;
}

/* ---- from the one to the other ---- */

static const char *trouble(CURLcode r)
{
	switch (r) {
	case CURLE_COULDNT_RESOLVE_HOST:
		return "resolve";
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_SSL_CACERT_BADFILE:
		return "tls";
	case CURLE_OPERATION_TIMEDOUT:
		return "timeout";
	default:
		return "dial";
	}
}

#define SET(q, option, value) route_lib.curl_easy_setopt((q)->easy, option, value)

static bool set_upstream(struct request *q, struct curl_slist **ret_resolve)
{
	const struct egress_route *r = q->of->route;
	auto_buf struct buf url = { 0 };
	struct egress_addr a;
	uint16_t port = 0;

	buf_printf(&url, "%s%s%s", r->origin, r->prefix, q->target);
	buf_addc(&url, 0);
	if (url.failed || SET(q, CURLOPT_URL, url.p) != CURLE_OK)
		return false;
	if (r->spec->ca) {
		struct curl_blob pem = { (void *)r->spec->ca, strlen(r->spec->ca), CURL_BLOB_COPY };

		if (SET(q, CURLOPT_CAINFO_BLOB, &pem) != CURLE_OK)
			return false;
	}
	if (r->spec->to && egress_addr_port_parse(&a, &port, r->spec->to, false)) {
		char text[EGRESS_TEXT_MAX], line[EGRESS_TEXT_MAX + EGRESS_NAME_MAX + 32];

		snprintf(line, sizeof(line), "%s:%u:%s", r->host, r->port,
			 egress_addr_text(&a, port ? port : r->port, text));
		*ret_resolve = route_lib.curl_slist_append(NULL, line);
		SET(q, CURLOPT_CONNECT_TO, *ret_resolve);
	}
	return true;
}

static void set_safety(struct request *q)
{
	SET(q, CURLOPT_PROTOCOLS_STR, "https");
	SET(q, CURLOPT_FOLLOWLOCATION, 0l); /* the header is for this upstream alone */
	SET(q, CURLOPT_PROXY, "");
	SET(q, CURLOPT_NETRC, 0l);
	SET(q, CURLOPT_NOSIGNAL, 1l);
	SET(q, CURLOPT_PATH_AS_IS, 1l);
	SET(q, CURLOPT_SSL_VERIFYPEER, 1l);
	SET(q, CURLOPT_SSL_VERIFYHOST, 2l);
	SET(q, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	SET(q, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	SET(q, CURLOPT_LOW_SPEED_LIMIT, 1l);
	SET(q, CURLOPT_LOW_SPEED_TIME, (long)q->of->server->policy->limits.idle_s);
	SET(q, CURLOPT_HTTP_CONTENT_DECODING, 0l);
}

static void set_method(struct request *q)
{
	bool body = q->body.n || !strcmp(q->method, "POST") || !strcmp(q->method, "PUT") ||
		    !strcmp(q->method, "PATCH");

	if (!strcmp(q->method, "HEAD")) {
		SET(q, CURLOPT_NOBODY, 1l);
		return;
	}
	if (body) {
		SET(q, CURLOPT_POST, 1l);
		SET(q, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body.n);
		SET(q, CURLOPT_POSTFIELDS, q->body.n ? q->body.p : "");
	}
	SET(q, CURLOPT_CUSTOMREQUEST, q->method);
}

static enum MHD_Result ask(struct request *q)
{
	struct curl_slist *resolve = NULL;
	enum MHD_Result ret;

	q->easy = route_lib.curl_easy_init();
	q->multi = q->easy ? route_lib.curl_multi_init() : NULL;
	if (!q->multi || !set_upstream(q, &resolve) || !make_headers(q)) {
		route_lib.curl_slist_free_all(resolve);
		q->ev.error = EIO;
		return say(q, 502, "the request cannot be passed on\n");
	}
	set_safety(q);
	set_method(q);
	SET(q, CURLOPT_HTTPHEADER, q->list);
	SET(q, CURLOPT_HEADERFUNCTION, on_header);
	SET(q, CURLOPT_HEADERDATA, (void *)q);
	SET(q, CURLOPT_WRITEFUNCTION, on_data);
	SET(q, CURLOPT_WRITEDATA, (void *)q);
	route_lib.curl_multi_add_handle(q->multi, q->easy);
	while (!q->head_done && turn(q))
		wait_turn(q);
	/* Its connection is made: libcurl has read the list. */
	SET(q, CURLOPT_CONNECT_TO, NULL);
	route_lib.curl_slist_free_all(resolve);
	if (q->head_done && !q->head_bad && (!q->done || q->result == CURLE_OK))
		return pass_answer(q);
	if (!q->ev.error)
		q->ev.error = q->cut ? ECANCELED : EHOSTUNREACH;
	if (!q->ev.reason[0])
		copy_text(q->ev.reason, sizeof(q->ev.reason), q->cut ? "over" : trouble(q->result));
	ret = say(q, 502, "the upstream does not answer as it should\n");
	return ret;
}

/* Before it is asked. NULL: it may; else what is wrong. */
static const char *judge(struct request *q, const char *method, unsigned *ret_status)
{
	const struct egress_route *r = q->of->route;
	const char *host = route_lib.MHD_lookup_connection_value(q->conn, MHD_HEADER_KIND, "Host");

	q->method = route_method(method);
	copy_text(q->ev.method, sizeof(q->ev.method), q->method ? q->method : "?");
	*ret_status = 400;
	if (!q->target || !route_target_is_good(q->target, r->prefix))
		return "target";
	*ret_status = 405;
	if (!q->method)
		return "method";
	*ret_status = 421;
	if (!route_host_is(host, r->name))
		return "host";
	*ret_status = 413;
	if (q->too_large)
		return "size";
	*ret_status = 429;
	if (q->of->server->bytes > q->of->server->policy->limits.bytes)
		return "limit.bytes";
	return NULL;
}

static void take_body(struct request *q, const char *data, size_t n)
{
	q->ev.bytes_out += n;
	q->of->server->bytes += n;
	if (!q->too_large && buf_add(&q->body, data, n) < 0) {
		q->too_large = true;
		buf_done(&q->body);
	}
}

enum MHD_Result route_on_request(void *cls, struct MHD_Connection *c, const char *url,
				 const char *method, const char *version, const char *data,
				 size_t *data_n, void **request)
{
	struct request *q = *request;
	unsigned status;
	const char *why;

	(void)cls;
	(void)c;
	(void)url;
	(void)version;
	if (!q)
		return MHD_NO;
	if (!q->begun) { /* the head is there, the body comes */
		q->begun = true;
		why = judge(q, method, &status);
		if (why) {
			refuse(q, why);
			return say(q, status, "not for this route\n");
		}
		return MHD_YES;
	}
	if (*data_n) {
		take_body(q, data, *data_n);
		*data_n = 0;
		return MHD_YES;
	}
	why = judge(q, method, &status);
	if (why) {
		refuse(q, why);
		return say(q, status, "not for this route\n");
	}
	return ask(q);
}

static void tell_request(struct request *q)
{
	struct egress_event *ev = &q->ev;
	size_t n = q->target ? strcspn(q->target, "?") : 0;

	if (!ev->method[0]) /* nothing was asked */
		return;
	if (q->easy && q->head_done && !ev->error && !(q->done && q->result == CURLE_OK)) {
		ev->error = ECANCELED;
		copy_text(ev->reason, sizeof(ev->reason), "cut");
	}
	ev->data_n = (uint16_t)MIN(n, sizeof(ev->data));
	if (ev->data_n)
		memcpy(ev->data, q->target, ev->data_n);
	if (q->of->server->events >= 0)
		(void)!send(q->of->server->events, ev, sizeof(*ev), MSG_NOSIGNAL);
}

void route_on_done(void *cls, struct MHD_Connection *c, void **request,
		   enum MHD_RequestTerminationCode how)
{
	struct request *q = *request;

	(void)cls;
	(void)c;
	(void)how;
	if (!q)
		return;
	if (q->easy && q->head_done && !q->done) /* its last bytes were taken; perhaps all */
		turn(q);
	tell_request(q);
	if (q->multi && q->easy)
		route_lib.curl_multi_remove_handle(q->multi, q->easy);
	if (q->easy)
		route_lib.curl_easy_cleanup(q->easy);
	if (q->multi)
		route_lib.curl_multi_cleanup(q->multi);
	for (struct curl_slist *l = q->list; l; l = l->next)
		explicit_bzero(l->data, strlen(l->data));
	route_lib.curl_slist_free_all(q->list);
	drop_head(q);
	buf_done(&q->body);
	buf_done(&q->out);
	free(q->target);
	free(q);
	*request = NULL;
}
