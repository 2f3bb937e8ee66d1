// SPDX-License-Identifier: Apache-2.0
#include "exporters/http_client.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <zlib.h>
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/base/trust.h"

#define PEM_MAX		(1 << 20)
#define CONNECT_MS	10000l
#define RETRY_AFTER_MAX 3600 /* s: a server that says more is not believed */

/* ---- libcurl, when it is needed ---- */

#define CURL_FUNCTIONS(X)           \
	X(curl_global_init)         \
	X(curl_easy_init)           \
	X(curl_easy_cleanup)        \
	X(curl_easy_setopt)         \
	X(curl_easy_getinfo)        \
	X(curl_easy_strerror)       \
	X(curl_getdate)             \
	X(curl_slist_append)        \
	X(curl_slist_free_all)      \
	X(curl_multi_init)          \
	X(curl_multi_cleanup)       \
	X(curl_multi_add_handle)    \
	X(curl_multi_remove_handle) \
	X(curl_multi_perform)       \
	X(curl_multi_info_read)     \
	X(curl_multi_fdset)

/* curl.h makes some of these macros of three arguments; the plain functions are what we want. */
#undef curl_easy_setopt
#undef curl_easy_getinfo

static struct {
#define X(name) __typeof__(name) *name;
	CURL_FUNCTIONS(X)
#undef X
} lib;
static char lib_problem[256];

static void load_library(void)
{
	void *so = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);

	if (!so) {
		snprintf(lib_problem, sizeof(lib_problem), "%.250s", dlerror());
		return;
	}
#define X(name)                                                                        \
	lib.name = (__typeof__(name) *)dlsym(so, #name);                               \
	if (!lib.name) {                                                               \
		snprintf(lib_problem, sizeof(lib_problem), "libcurl lacks %s", #name); \
		return;                                                                \
	}
	CURL_FUNCTIONS(X)
#undef X
	if (lib.curl_global_init(CURL_GLOBAL_ALL))
		snprintf(lib_problem, sizeof(lib_problem), "libcurl does not start");
}

static int need_library(struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load_library);
	if (lib_problem[0])
		return err_set(err, ENOTSUP, "HTTP needs libcurl: %s", lib_problem);
	return 0;
}

/* ---- client ---- */

struct http_client {
	CURLM *multi;
	CURL *easy;
	struct curl_slist *headers, *request_headers;
	bool busy;
	bool head_done; /* the answer's empty line came */
	bool too_long;	/* the answer is more than HTTP_ANSWER_MAX */
	time_t sent_at,
		retry_at; /* of the answer's head, by the other side's clock; -1 = not said */
	bool gzip;
	struct buf packed; /* the body as it is sent */
	struct buf answer;
	char type[128];
	char error[CURL_ERROR_SIZE];
};

/* What is longer fails the transfer: it is no answer, and reading on would keep us busy until the time-out. */
static size_t on_data(char *p, size_t size, size_t n, void *arg)
{
	struct http_client *c = arg;

	c->too_long = size * n > HTTP_ANSWER_MAX - c->answer.n;
	if (c->too_long || buf_add(&c->answer, p, size * n) < 0)
		return 0; /* tried again */
	return size * n;
}

/* The date that a header line gives; -1 when it is another header or no date. */
static time_t date_of(const char *p, size_t n, const char *name)
{
	size_t skip = strlen(name);
	char text[64];

	if (n <= skip || n - skip >= sizeof(text) || strncasecmp(p, name, skip))
		return -1;
	memcpy(text, p + skip, n - skip);
	text[n - skip] = 0;
	return lib.curl_getdate(text, NULL);
}

static void note_dates(struct http_client *c, const char *p, size_t n)
{
	time_t t = date_of(p, n, "date:");

	if (t != -1)
		c->sent_at = t;
	t = date_of(p, n, "retry-after:");
	if (t != -1)
		c->retry_at = t;
}

/* libcurl takes a connection that ends inside the head for a whole answer: a 200 that may never have been
 * meant as one. */
static size_t on_header(char *p, size_t size, size_t n, void *arg)
{
	struct http_client *c = arg;

	if (size * n >= 5 &&
	    !memcmp(p, "HTTP/", 5)) /* the first of several heads, or the only one */
		c->head_done = false;
	else if (size * n <= 2 && (*p == '\r' || *p == '\n'))
		c->head_done = true;
	note_dates(c, p, size * n);
	return size * n;
}

static int set_pem(struct http_client *c, CURLoption option, const char *path, const char *what,
		   struct err *err)
{
	auto_free char *text = NULL;
	struct curl_blob blob;
	size_t n;
	int r;

	if (!path)
		return 0;
	r = file_read_trusted(path, PEM_MAX, &text, &n, what, err);
	if (r < 0)
		return r;
	blob = (struct curl_blob){ .data = text, .len = n, .flags = CURL_BLOB_COPY };
	r = lib.curl_easy_setopt(c->easy, option, &blob) ? -ENOTSUP : 0;
	explicit_bzero(text, n);
	return r < 0 ? err_set(err, -r, "%s '%s': libcurl cannot take it", what, path) : 0;
}

static int set_tls(struct http_client *c, const struct http_options *opt, struct err *err)
{
	int r;

	r = set_pem(c, CURLOPT_CAINFO_BLOB, opt->ca, "CA file", err);
	if (r == 0)
		r = set_pem(c, CURLOPT_SSLCERT_BLOB, opt->cert, "certificate", err);
	if (r == 0)
		r = set_pem(c, CURLOPT_SSLKEY_BLOB, opt->key ? opt->key : opt->cert, "key", err);
	lib.curl_easy_setopt(c->easy, CURLOPT_SSL_VERIFYPEER, opt->insecure ? 0l : 1l);
	lib.curl_easy_setopt(c->easy, CURLOPT_SSL_VERIFYHOST, opt->insecure ? 0l : 2l);
	lib.curl_easy_setopt(c->easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	return r;
}

static int add_header(struct curl_slist **list, const char *header)
{
	struct curl_slist *more = lib.curl_slist_append(*list, header);

	if (!more)
		return -ENOMEM;
	*list = more;
	return 0;
}

static int set_up(struct http_client *c, const struct http_options *opt, struct err *err)
{
	CURL *e = c->easy;
	int r = 0;

	lib.curl_easy_setopt(e, CURLOPT_URL, opt->url);
	lib.curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
	lib.curl_easy_setopt(e, CURLOPT_POST, 1l);
	lib.curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0l);
	lib.curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1l);
	/* Else the end of a request waits for the thread that asks a dead name server, and with it every sink of
	 * the session. What is not known to an older library is left out. */
	lib.curl_easy_setopt(e, CURLOPT_QUICK_EXIT, 1l);
	lib.curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	lib.curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)opt->timeout_ms);
	lib.curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1l);
	lib.curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_data);
	lib.curl_easy_setopt(e, CURLOPT_WRITEDATA, c);
	lib.curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
	lib.curl_easy_setopt(e, CURLOPT_HEADERDATA, c);
	lib.curl_easy_setopt(e, CURLOPT_ERRORBUFFER, c->error);
	lib.curl_easy_setopt(e, CURLOPT_USERAGENT, "warder");
	if (opt->proxy)
		lib.curl_easy_setopt(e, CURLOPT_PROXY, opt->proxy);
	/* No "100 Continue" pause before each batch. */
	r = add_header(&c->headers, "Expect:");
	for (size_t i = 0; r == 0 && opt->headers[i]; i++)
		r = add_header(&c->headers, opt->headers[i]);
	if (r == 0 && opt->gzip)
		r = add_header(&c->headers, "Content-Encoding: gzip");
	if (r < 0)
		return err_set(err, ENOMEM, "out of memory");
	return set_tls(c, opt, err);
}

int http_client_new(struct http_client **ret, const struct http_options *opt, struct err *err)
{
	struct http_client *c;
	int r = need_library(err);

	if (r < 0)
		return r;
	c = calloc(1, sizeof(*c));
	if (!c)
		return err_set(err, ENOMEM, "out of memory");
	buf_init(&c->answer, HTTP_ANSWER_MAX);
	c->gzip = opt->gzip;
	c->multi = lib.curl_multi_init();
	c->easy = lib.curl_easy_init();
	if (c->multi && c->easy)
		r = set_up(c, opt, err);
	else
		r = err_set(err, ENOMEM, "out of memory");
	if (r < 0) {
		http_client_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

static void free_extra(struct http_client *c)
{
	/* The request's list is the common one with one more in front. */
	if (c->request_headers) {
		c->request_headers->next = NULL;
		lib.curl_slist_free_all(c->request_headers);
	}
	c->request_headers = NULL;
}

void http_client_free(struct http_client *c)
{
	if (!c)
		return;
	if (c->busy)
		lib.curl_multi_remove_handle(c->multi, c->easy);
	if (c->easy)
		lib.curl_easy_cleanup(c->easy);
	if (c->multi)
		lib.curl_multi_cleanup(c->multi);
	free_extra(c);
	lib.curl_slist_free_all(c->headers);
	buf_done(&c->packed);
	buf_done(&c->answer);
	free(c);
}

static int pack(struct buf *out, struct str body, bool gzip)
{
	z_stream z = { .next_in = (Bytef *)body.p, .avail_in = (uInt)body.n };
	int r;

	buf_reset(out);
	if (!gzip)
		return buf_add(out, body.p, body.n);
	if (deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	r = buf_reserve(out, deflateBound(&z, body.n));
	if (r == 0) {
		z.next_out = (Bytef *)out->p;
		z.avail_out = (uInt)out->cap;
		r = deflate(&z, Z_FINISH) == Z_STREAM_END ? 0 : -ENOMEM;
		out->n = z.total_out;
	}
	deflateEnd(&z);
	return r;
}

int http_client_post(struct http_client *c, struct str body, const char *extra)
{
	struct curl_slist *headers = c->headers;
	int r = pack(&c->packed, body, c->gzip);

	if (r < 0)
		return r;
	free_extra(c);
	if (extra) {
		r = add_header(&c->request_headers, extra);
		if (r < 0)
			return r;
		c->request_headers->next = c->headers;
		headers = c->request_headers;
	}
	buf_done(&c->answer);
	c->head_done = c->too_long = false;
	c->sent_at = c->retry_at = -1;
	c->error[0] = 0;
	lib.curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, headers);
	lib.curl_easy_setopt(c->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->packed.n);
	lib.curl_easy_setopt(c->easy, CURLOPT_POSTFIELDS, c->packed.p);
	if (lib.curl_multi_add_handle(c->multi, c->easy))
		return -ENOMEM;
	c->busy = true;
	return 0;
}

bool http_client_is_busy(const struct http_client *c)
{
	return c->busy;
}

static void read_answer(struct http_client *c, CURLcode code, struct http_answer *ret)
{
	const char *type = NULL;
	curl_off_t retry = 0;
	long status = 0;

	*ret = (struct http_answer){ .body = { c->answer.p, c->answer.n } };
	if (code && c->too_long) {
		ret->too_long = true;
		ret->error = "the answer is longer than any should be (4 MiB)";
		return;
	}
	if (code) {
		ret->error = c->error[0] ? c->error : lib.curl_easy_strerror(code);
		return;
	}
	if (!c->head_done) {
		ret->error = "the answer was cut off in its head";
		return;
	}
	lib.curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
	lib.curl_easy_getinfo(c->easy, CURLINFO_CONTENT_TYPE, &type);
	lib.curl_easy_getinfo(c->easy, CURLINFO_RETRY_AFTER, &retry);
	/* libcurl compares the date with our clock. It may be off by years: by the server's own. */
	if (c->retry_at != -1 && c->sent_at != -1)
		retry = (curl_off_t)(c->retry_at - c->sent_at);
	snprintf(c->type, sizeof(c->type), "%.120s", type ? type : "");
	ret->status = (int)status;
	ret->type = str_from(c->type);
	ret->retry_after_ms = (uint64_t)MIN(MAX(retry, 0), RETRY_AFTER_MAX) * 1000;
}

int http_client_poll(struct http_client *c, struct http_answer *ret)
{
	int running, left;
	CURLMsg *m;

	if (!c->busy)
		return 0;
	lib.curl_multi_perform(c->multi, &running);
	while ((m = lib.curl_multi_info_read(c->multi, &left))) {
		CURLcode code = m->data.result;

		if (m->msg != CURLMSG_DONE)
			continue;
		lib.curl_multi_remove_handle(c->multi, c->easy); /* m is gone with it */
		c->busy = false;
		buf_done(&c->packed); /* not kept: many sinks rest for long */
		read_answer(c, code, ret);
		return 1;
	}
	return 0;
}

int http_client_fd(struct http_client *c, short *ret_events)
{
	fd_set rd, wr, ex;
	int max = -1;

	*ret_events = 0;
	if (!c->busy)
		return -1;
	FD_ZERO(&rd);
	FD_ZERO(&wr);
	FD_ZERO(&ex);
	if (lib.curl_multi_fdset(c->multi, &rd, &wr, &ex, &max) || max < 0)
		return -1;
	/* One request at a time: the highest is the connection. */
	*ret_events =
		(short)((FD_ISSET(max, &rd) ? POLLIN : 0) | (FD_ISSET(max, &wr) ? POLLOUT : 0));
	return max;
}
