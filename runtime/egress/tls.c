// SPDX-License-Identifier: Apache-2.0
#include "runtime/egress/tls.h"

#include <errno.h>
#include <string.h>

#define RECORD_HEAD	5
#define RECORD_MAX	16384
#define TYPE_HANDSHAKE	22
#define CLIENT_HELLO	1
#define HELLO_HEAD	4
#define RANDOM_LEN	32
#define SESSION_ID_MAX	32
#define EXT_SERVER_NAME 0
#define EXT_ECH		0xfe0d
#define EXT_ESNI	0xffce /* the draft before it */
#define NAME_TYPE_HOST	0

/* What is left to read. A read past the end sets `bad` and gives zeroes. */
struct reader {
	const uint8_t *p;
	size_t n;
	bool bad;
};

static struct reader take(struct reader *r, size_t n)
{
	struct reader part = { r->p, n, false };

	if (r->bad || n > r->n) {
		r->bad = true;
		return (struct reader){ r->p, 0, true };
	}
	r->p += n;
	r->n -= n;
	return part;
}

/* A number of `bytes` bytes. */
static size_t number(struct reader *r, size_t bytes)
{
	struct reader part = take(r, bytes);
	size_t v = 0;

	for (size_t i = 0; i < part.n; i++)
		v = v << 8 | part.p[i];
	return v;
}

/* Something with its length, of `bytes` bytes, in front. */
static struct reader vector(struct reader *r, size_t bytes)
{
	return take(r, number(r, bytes));
}

static int refuse(const char **why, const char *word)
{
	*why = word;
	return -EBADMSG;
}

/* server_name: exactly one host name. */
static bool parse_server_name(struct reader ext, char ret[EGRESS_NAME_MAX + 1])
{
	struct reader list = vector(&ext, 2), name;
	size_t type = number(&list, 1), n;

	name = vector(&list, 2);
	if (ext.bad || ext.n || list.bad || list.n || type != NAME_TYPE_HOST)
		return false;
	if (!egress_name_is_valid((const char *)name.p, name.n, &n) || n != name.n)
		return false;
	for (size_t i = 0; i < n; i++) {
		char c = (char)name.p[i];

		ret[i] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
	}
	ret[n] = 0;
	return true;
}

static int parse_hello(struct reader r, char ret[EGRESS_NAME_MAX + 1], const char **why)
{
	struct reader sid, suites, methods, exts;
	bool found = false;

	take(&r, 2 + RANDOM_LEN);
	sid = vector(&r, 1);
	suites = vector(&r, 2);
	methods = vector(&r, 1);
	if (r.bad || sid.n > SESSION_ID_MAX || suites.n < 2 || suites.n % 2 || methods.n < 1)
		return refuse(why, "tls");
	if (r.n == 0)
		return refuse(why, "no_sni");
	exts = vector(&r, 2);
	if (r.bad || r.n)
		return refuse(why, "tls");
	while (exts.n) {
		size_t type = number(&exts, 2);
		struct reader ext = vector(&exts, 2);

		if (exts.bad)
			return refuse(why, "tls");
		if (type == EXT_ECH || type == EXT_ESNI)
			return refuse(why, "ech");
		if (type != EXT_SERVER_NAME)
			continue;
		if (found || !parse_server_name(ext, ret))
			return refuse(why, "tls");
		found = true;
	}
	return found ? 0 : refuse(why, "no_sni");
}

int egress_tls_name(const uint8_t *p, size_t n, char ret[EGRESS_NAME_MAX + 1], const char **why)
{
	uint8_t hello[EGRESS_HELLO_MAX];
	size_t have = 0, at = 0;

	for (;;) {
		size_t len, got;

		if (n > at && p[at] != TYPE_HANDSHAKE)
			return refuse(why, "tls");
		if (n > at + 1 && p[at + 1] != 3)
			return refuse(why, "tls");
		if (n - at < RECORD_HEAD)
			break;
		len = (size_t)p[at + 3] << 8 | p[at + 4];
		if (len == 0 || len > RECORD_MAX)
			return refuse(why, "tls");
		at += RECORD_HEAD;
		got = len < n - at ? len : n - at;
		if (have + got > sizeof(hello))
			got = sizeof(hello) - have;
		memcpy(hello + have, p + at, got);
		have += got;
		if (have && hello[0] != CLIENT_HELLO)
			return refuse(why, "tls");
		if (have >= HELLO_HEAD) {
			size_t want = (size_t)hello[1] << 16 | (size_t)hello[2] << 8 | hello[3];

			if (want > sizeof(hello) - HELLO_HEAD)
				return refuse(why, "tls");
			if (have - HELLO_HEAD >= want)
				return parse_hello(
					(struct reader){ hello + HELLO_HEAD, want, false }, ret,
					why);
		}
		if (len > n - at)
			break;
		at += len;
	}
	return n >= EGRESS_HELLO_MAX ? refuse(why, "tls") : -EAGAIN;
}
