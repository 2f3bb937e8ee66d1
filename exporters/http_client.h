/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP POST at a time, without blocking. libcurl is loaded when the first client is made, so that
 * nobody else pays for it. Redirects are not followed: they would carry our secrets elsewhere. */
#ifndef WARDER_EXPORTERS_HTTP_CLIENT_H
#define WARDER_EXPORTERS_HTTP_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include "userspace/base/buf.h"
#include "userspace/base/err.h"
#include "userspace/base/str.h"

/* No answer is longer: Elasticsearch's to a full batch has a tenth of it. */
#define HTTP_ANSWER_MAX	 (4 << 20)
#define HTTP_HEADERS_MAX 16

struct http_options {
	const char *url;
	const char *ca, *cert, *key; /* PEM files, NULL = none; read now */
	bool insecure;
	const char *proxy; /* NULL = from the environment, as curl does */
	uint64_t timeout_ms;
	bool gzip;
	const char *headers[HTTP_HEADERS_MAX]; /* "Name: value", ends with NULL */
};

struct http_answer {
	int status; /* 0 = there was none */
	struct str body;
	struct str type;	 /* Content-Type */
	uint64_t retry_after_ms; /* 0 = not said */
	const char *error;	 /* when status is 0 */
	bool too_long;		 /* that was the error */
};

struct http_client;

int http_client_new(struct http_client **ret, const struct http_options *opt, struct err *err);
void http_client_free(struct http_client *c);
/* `body` is copied (or packed). `extra`: one more header of this request, NULL = none. -ENOMEM. */
int http_client_post(struct http_client *c, struct str body, const char *extra);
bool http_client_is_busy(const struct http_client *c);
/* Go on. 1: the answer is there, valid until the next post; 0: not yet, or nothing was asked. */
int http_client_poll(struct http_client *c, struct http_answer *ret);
int http_client_fd(struct http_client *c, short *ret_events);

#endif
