// SPDX-License-Identifier: Apache-2.0
#include "runtime/egress/http.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/types.h>

#include "userspace/base/str.h"

#define SIZE_DIGITS_MAX 12
#define SIZE_LINE_MAX	256
#define TRAILER_MAX	8192

struct head {
	struct str host;
	bool has_host, has_length, chunked, old;
	uint64_t length;
	struct str asked; /* the name that it is for */
	const char *why;
};

static bool is_token(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_text(char c)
{
	return c == '\t' || ((unsigned char)c >= 0x20 && c != 0x7f);
}

static bool all(struct str s, bool (*is)(char))
{
	for (size_t i = 0; i < s.n; i++)
		if (!is(s.p[i]))
			return false;
	return s.n > 0;
}

static bool same(struct str s, const char *word)
{
	return s.n == strlen(word) && !strncasecmp(s.p, word, s.n);
}

static struct str trim(struct str s)
{
	while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
		s = (struct str){ s.p + 1, s.n - 1 };
	while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	return s;
}

/* Up to `c`, which is taken off, too; all of it when there is none. */
static struct str cut(struct str *rest, char c)
{
	const char *at = memchr(rest->p, c, rest->n);
	struct str s = { rest->p, at ? (size_t)(at - rest->p) : rest->n };

	rest->p += s.n + (at ? 1 : 0);
	rest->n -= s.n + (at ? 1 : 0);
	return s;
}

/* "NAME" or "NAME:PORT". */
static bool is_for(struct str authority, const char *name, uint16_t port)
{
	bool has_port = memchr(authority.p, ':', authority.n) != NULL;
	struct str host = cut(&authority, ':');
	char text[8];

	if (host.n && host.p[host.n - 1] == '.')
		host.n--;
	snprintf(text, sizeof(text), "%u", port);
	return same(host, name) && (!has_port || str_eqz(authority, text));
}

static bool parse_length(struct head *h, struct str v)
{
	if (h->has_length || v.n == 0 || v.n > 15)
		return false;
	for (size_t i = 0; i < v.n; i++) {
		if (v.p[i] < '0' || v.p[i] > '9')
			return false;
		h->length = h->length * 10 + (uint64_t)(v.p[i] - '0');
	}
	h->has_length = true;
	return true;
}

static bool parse_request_line(struct head *h, struct str line, const char *name, uint16_t port)
{
	struct str method = cut(&line, ' '), target = cut(&line, ' ');

	h->why = "http";
	h->old = str_eqz(line, "HTTP/1.0");
	if (!all(method, is_token) || target.n == 0 || (!h->old && !str_eqz(line, "HTTP/1.1")))
		return false;
	for (size_t i = 0; i < target.n; i++)
		if ((unsigned char)target.p[i] <= 0x20 || target.p[i] == 0x7f)
			return false;
	if (same(method, "CONNECT")) {
		h->why = "connect";
		return false;
	}
	if (target.p[0] == '/' || (str_eqz(target, "*") && str_eqz(method, "OPTIONS")))
		return true;
	if (target.n < 7 || strncasecmp(target.p, "http://", 7) != 0)
		return false;
	/* With a whole URL its name counts, not the Host. */
	target = (struct str){ target.p + 7, target.n - 7 };
	h->why = "host";
	h->asked = cut(&target, '/');
	return is_for(h->asked, name, port);
}

static bool parse_field(struct head *h, struct str line)
{
	struct str key = cut(&line, ':'), v = trim(line);

	h->why = "http";
	if (!all(key, is_token) || line.p == key.p + key.n)
		return false;
	if (same(key, "Host")) {
		if (h->has_host)
			return false;
		h->has_host = true;
		h->host = v;
	} else if (same(key, "Content-Length")) {
		return parse_length(h, v);
	} else if (same(key, "Transfer-Encoding")) {
		if (h->chunked || h->old || !same(v, "chunked"))
			return false;
		h->chunked = true;
	} else if (same(key, "Upgrade") || same(key, "HTTP2-Settings")) {
		h->why = "upgrade";
		return false;
	}
	return true;
}

/* A line up to its CR LF. False: something that only some take for the end of a line. */
static bool next_line(struct str *rest, struct str *ret)
{
	const char *lf = memchr(rest->p, '\n', rest->n);
	size_t n = lf ? (size_t)(lf - rest->p) : 0;

	if (!lf || n == 0 || rest->p[n - 1] != '\r')
		return false;
	*ret = (struct str){ rest->p, n - 1 };
	*rest = (struct str){ lf + 1, rest->n - n - 1 };
	for (size_t i = 0; i < ret->n; i++)
		if (!is_text(ret->p[i]))
			return false;
	return true;
}

/* `head` ends with an empty line. */
static bool parse_head(struct head *h, struct str head, const char *name, uint16_t port)
{
	struct str line;

	h->why = "http";
	if (!next_line(&head, &line) || !parse_request_line(h, line, name, port))
		return false;
	for (;;) {
		h->why = "http";
		if (!next_line(&head, &line))
			return false;
		if (line.n == 0)
			break;
		if (!parse_field(h, line))
			return false;
	}
	h->why = "http";
	if (head.n || (h->chunked && h->has_length))
		return false;
	h->why = "host";
	h->asked = h->host;
	return h->has_host && is_for(h->host, name, port);
}

/* Length of a head with its empty line; 0: it is not all there. */
static size_t head_length(const uint8_t *p, size_t n)
{
	const uint8_t *end = memmem(p, n, "\r\n\r\n", 4);

	return end ? (size_t)(end - p) + 4 : 0;
}

static int chunk_begins(struct egress_http *h)
{
	h->state = HTTP_CHUNK_SIZE;
	h->left = 0;
	h->line = 0;
	h->digits = true;
	h->cr = false;
	return 0;
}

static int size_byte(struct egress_http *h, uint8_t c)
{
	int v = c >= '0' && c <= '9'   ? c - '0'
		: c >= 'a' && c <= 'f' ? c - 'a' + 10
		: c >= 'A' && c <= 'F' ? c - 'A' + 10
				       : -1;

	if (h->cr) {
		if (c != '\n')
			return -1;
		h->state = h->left ? HTTP_CHUNK_DATA : HTTP_TRAILER;
		h->line = h->trailer = 0;
		h->cr = false;
		return 0;
	}
	if (c == '\r') {
		h->cr = true;
		return h->line ? 0 : -1;
	}
	if (++h->line > SIZE_LINE_MAX || !is_text((char)c))
		return -1;
	if (h->digits && v >= 0) {
		h->left = h->left << 4 | (unsigned)v;
		return h->line > SIZE_DIGITS_MAX ? -1 : 0;
	}
	if (h->digits && (h->line == 1 || c != ';'))
		return -1;
	h->digits = false;
	return 0;
}

/* CR LF, and nothing else. */
static int end_byte(struct egress_http *h, uint8_t c)
{
	if (!h->cr) {
		h->cr = true;
		return c == '\r' ? 0 : -1;
	}
	return c == '\n' ? chunk_begins(h) : -1;
}

static int trailer_byte(struct egress_http *h, uint8_t c)
{
	if (++h->trailer > TRAILER_MAX)
		return -1;
	if (h->cr) {
		if (c != '\n')
			return -1;
		h->cr = false;
		if (h->line == 0)
			h->state = HTTP_HEAD;
		h->line = 0;
		return 0;
	}
	if (c == '\r') {
		h->cr = true;
		return 0;
	}
	/* A line that goes on is none of ours to join. */
	if (!is_text((char)c) || (h->line == 0 && (c == ' ' || c == '\t')))
		return -1;
	h->line++;
	return 0;
}

static void keep_asked(struct egress_http *h, struct str asked)
{
	size_t n = asked.n < sizeof(h->asked) ? asked.n : sizeof(h->asked) - 1;

	for (size_t i = 0; i < n; i++)
		h->asked[i] = asked.p[i] > 0x20 && asked.p[i] < 0x7f ? asked.p[i] : '?';
	h->asked[n] = 0;
}

static int head_done(struct egress_http *h, const struct head *head)
{
	h->requests++;
	if (head->chunked)
		return chunk_begins(h);
	h->left = head->length;
	h->state = h->left ? HTTP_BODY : HTTP_HEAD;
	return 0;
}

/* Bytes of the current state that may pass. 0: more is needed; -1: refused. */
static ssize_t step(struct egress_http *h, const uint8_t *p, size_t n, const char *name,
		    uint16_t port, const char **why)
{
	struct head head = { 0 };
	size_t k;

	switch (h->state) {
	case HTTP_HEAD:
		k = head_length(p, n < EGRESS_HEAD_MAX ? n : EGRESS_HEAD_MAX);
		if (k == 0)
			return n >= EGRESS_HEAD_MAX ? -1 : 0;
		if (!parse_head(&head, (struct str){ (const char *)p, k }, name, port)) {
			*why = head.why;
			keep_asked(h, head.asked);
			return -1;
		}
		head_done(h, &head);
		return (ssize_t)k;
	case HTTP_BODY:
	case HTTP_CHUNK_DATA:
		k = h->left < n ? (size_t)h->left : n;
		h->left -= k;
		if (h->left == 0) {
			h->state = h->state == HTTP_BODY ? HTTP_HEAD : HTTP_CHUNK_END;
			h->cr = false;
		}
		return (ssize_t)k;
	case HTTP_CHUNK_SIZE:
		return size_byte(h, *p) < 0 ? -1 : 1;
	case HTTP_CHUNK_END:
		return end_byte(h, *p) < 0 ? -1 : 1;
	case HTTP_TRAILER:
		return trailer_byte(h, *p) < 0 ? -1 : 1;
	}
	return -1;
}

ssize_t egress_http_feed(struct egress_http *h, const uint8_t *p, size_t n, const char *name,
			 uint16_t port, const char **why)
{
	size_t at = 0;

	*why = "http";
	while (at < n) {
		ssize_t k = step(h, p + at, n - at, name, port, why);

		if (k < 0)
			return -EBADMSG;
		if (k == 0)
			break;
		at += (size_t)k;
	}
	return (ssize_t)at;
}
