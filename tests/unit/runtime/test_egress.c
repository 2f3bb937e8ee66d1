// SPDX-License-Identifier: Apache-2.0
/* What is decided about names, addresses and first bytes, without a network. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/egress/dns.h"
#include "runtime/egress/http.h"
#include "runtime/egress/tls.h"
#include "userspace/base/auto.h"

/* ---- addresses ---- */

static void test_ranges(void **state)
{
	static const struct {
		const char *text, *what;
	} rows[] = {
		{ "8.8.8.8", NULL },
		{ "93.184.216.34", NULL },
		{ "100.63.255.255", NULL },
		{ "100.128.0.0", NULL },
		{ "172.15.255.255", NULL },
		{ "172.32.0.0", NULL },
		{ "223.255.255.255", NULL },
		{ "2606:4700::1111", NULL },
		{ "2a00::1", NULL },
		{ "64:ff9b::8.8.8.8", NULL },
		{ "0.0.0.0", "reserved" },
		{ "10.255.255.255", "private" },
		{ "100.64.0.1", "private" },
		{ "100.100.100.200", "metadata" },
		{ "127.0.0.1", "loopback" },
		{ "168.63.129.16", "metadata" },
		{ "169.254.169.254", "metadata" },
		{ "169.254.1.1", "link_local" },
		{ "172.16.0.1", "private" },
		{ "172.31.255.255", "private" },
		{ "192.0.2.1", "reserved" },
		{ "192.168.1.1", "private" },
		{ "198.18.0.1", "reserved" },
		{ "198.19.255.255", "reserved" },
		{ "224.0.0.1", "multicast" },
		{ "255.255.255.255", "reserved" },
		{ "::", "reserved" },
		{ "::1", "loopback" },
		{ "::ffff:10.0.0.1", "private" },
		{ "::ffff:169.254.169.254", "metadata" },
		{ "::ffff:8.8.8.8", NULL },
		{ "::ffff:0:8.8.8.8", "reserved" },
		{ "::8.8.8.8", "reserved" },
		{ "64:ff9b::10.0.0.1", "private" },
		{ "64:ff9b::169.254.169.254", "metadata" },
		{ "64:ff9b:1::8.8.8.8", "reserved" },
		{ "2001::1", "tunnel" },
		{ "2001:db8::1", "reserved" },
		{ "2002:a00:1::", "tunnel" },
		{ "3fff::1", "reserved" },
		{ "4000::1", "reserved" },
		{ "fc00::1", "private" },
		{ "fd00:ec2::254", "metadata" },
		{ "fd12::1", "private" },
		{ "fe80::1", "link_local" },
		{ "fec0::1", "private" },
		{ "ff02::1", "multicast" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct egress_addr a;
		const char *what;

		assert_true(egress_addr_parse(&a, rows[i].text));
		what = egress_range_of(&a);
		if (!rows[i].what != !what || (what && strcmp(what, rows[i].what) != 0))
			fail_msg("%s: %s", rows[i].text, what ? what : "may be dialled");
	}
}

static void test_address_text(void **state)
{
	char text[EGRESS_TEXT_MAX];
	struct egress_addr a;
	uint16_t port;

	(void)state;
	assert_true(egress_addr_port_parse(&a, &port, "127.0.0.1:8080", true));
	assert_string_equal(egress_addr_text(&a, port, text), "127.0.0.1:8080");
	assert_true(egress_addr_port_parse(&a, &port, "[::1]:53", true));
	assert_string_equal(egress_addr_text(&a, port, text), "[::1]:53");
	assert_true(egress_addr_port_parse(&a, &port, "2606::1", false));
	assert_int_equal(port, 0);
	assert_false(egress_addr_port_parse(&a, &port, "127.0.0.1", true));
	assert_false(egress_addr_port_parse(&a, &port, "127.0.0.1:0", true));
	assert_false(egress_addr_port_parse(&a, &port, "127.0.0.1:65536", true));
	assert_false(egress_addr_port_parse(&a, &port, "localhost:80", true));
	assert_false(egress_addr_port_parse(&a, &port, "[::1]x:80", true));
	assert_false(egress_addr_port_parse(&a, &port, "", false));
}

/* ---- policy ---- */

struct fixture {
	struct arena mem;
	struct egress_policy p;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	arena_init(&f->mem, 1 << 20);
	egress_policy_init(&f->p);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	arena_done(&f->mem);
	free(f);
	return 0;
}

static void allow(struct fixture *f, const char *text)
{
	struct err err = { 0 };

	if (egress_policy_allow(&f->p, &f->mem, text, &err) < 0)
		fail_msg("%s", err_text(&err));
}

static void refuse(struct fixture *f, const char *text, const char *word)
{
	struct err err = { 0 };

	assert_int_equal(egress_policy_allow(&f->p, &f->mem, text, &err), -EINVAL);
	if (!strstr(err_text(&err), word))
		fail_msg("'%s': %s", text, err_text(&err));
}

static void test_allow(void **state)
{
	struct fixture *f = *state;
	const struct egress_row *row;

	allow(f, "Good.Example.");
	allow(f, "git.example:22");
	allow(f, "web.example:8443/tls");
	allow(f, "*.wild.example:443");
	allow(f, "*.deep.wild.example:443/opaque");
	row = egress_policy_find(&f->p, "good.example", 443);
	assert_non_null(row);
	assert_int_equal(row->check, EGRESS_TLS);
	assert_int_equal(egress_policy_find(&f->p, "good.example", 80)->check, EGRESS_HTTP);
	assert_null(egress_policy_find(&f->p, "good.example", 8080));
	assert_null(egress_policy_find(&f->p, "x.good.example", 443));
	assert_null(egress_policy_find(&f->p, "good.example.evil.example", 443));
	assert_int_equal(egress_policy_find(&f->p, "git.example", 22)->check, EGRESS_OPAQUE);
	assert_int_equal(egress_policy_find(&f->p, "web.example", 8443)->check, EGRESS_TLS);
	assert_non_null(egress_policy_find(&f->p, "a.wild.example", 443));
	assert_non_null(egress_policy_find(&f->p, "a.b.wild.example", 443));
	assert_null(egress_policy_find(&f->p, "wild.example", 443));
	assert_null(egress_policy_find(&f->p, "evilwild.example", 443));
	assert_int_equal(egress_policy_find(&f->p, "a.deep.wild.example", 443)->check,
			 EGRESS_OPAQUE);
	assert_true(egress_policy_has_name(&f->p, "a.wild.example", 14));
	assert_false(egress_policy_has_name(&f->p, "wild.example", 12));
}

static void test_refused_entries(void **state)
{
	struct fixture *f = *state;

	refuse(f, "", "HOST");
	refuse(f, "*", "name");
	refuse(f, "*.com", "wildcard");
	refuse(f, "a.*.com", "host name");
	refuse(f, "a b", "host name");
	refuse(f, "a..b", "host name");
	refuse(f, "10.0.0.1", "net-service");
	refuse(f, "10.0.0.1:80", "net-service");
	refuse(f, "[::1]:80", "net-service");
	refuse(f, "::1", "net-service");
	refuse(f, "2130706433", "host name");
	refuse(f, "0x7f.0x1", "host name");
	refuse(f, "a.example:0", "port");
	refuse(f, "a.example:65536", "port");
	refuse(f, "a.example:80x", "port");
	refuse(f, "a.example:443/ssl", "tls");
	allow(f, "a.example:443");
	refuse(f, "a.example:443/opaque", "differently");
	assert_int_equal(f->p.rows_n, 1);
}

static void test_services_and_limits(void **state)
{
	struct fixture *f = *state;
	const struct egress_row *row;
	struct err err = { 0 };

	assert_int_equal(egress_policy_service(&f->p, &f->mem, "db=127.0.0.1:5432", &err), 0);
	assert_int_equal(egress_policy_service(&f->p, &f->mem, "api:80=[fd00::1]:8080", &err), 0);
	row = egress_policy_find(&f->p, "api", 80);
	assert_non_null(row);
	assert_true(row->service);
	assert_int_equal(row->to_port, 8080);
	assert_int_equal(egress_policy_find(&f->p, "db", 5432)->to.b[0], 127);
	assert_int_equal(egress_policy_service(&f->p, &f->mem, "db=localhost:1", &err), -EINVAL);
	assert_int_equal(egress_policy_service(&f->p, &f->mem, "db", &err), -EINVAL);
	assert_int_equal(egress_policy_limits(&f->p, "connections=2,bytes=1M,dns=3", &err), 0);
	assert_int_equal(f->p.limits.connections, 2);
	assert_int_equal(f->p.limits.bytes, 1 << 20);
	assert_int_equal(egress_policy_limits(&f->p, "connections=0", &err), -EINVAL);
	assert_int_equal(egress_policy_limits(&f->p, "connections=4096", &err), -EINVAL);
	assert_int_equal(egress_policy_limits(&f->p, "sockets=1", &err), -EINVAL);
	assert_int_equal(egress_policy_dns(&f->p, "9.9.9.9", &err), 0);
	assert_int_equal(f->p.dns_port, 53);
	assert_int_equal(egress_policy_dns(&f->p, "dns.example", &err), -EINVAL);
}

static void test_too_many(void **state)
{
	struct fixture *f = *state;
	struct err err = { 0 };
	char text[32];
	int r = 0;

	for (int i = 1; i <= EGRESS_PORTS_MAX; i++) {
		snprintf(text, sizeof(text), "a.example:%d", i);
		allow(f, text);
	}
	assert_int_equal(egress_policy_allow(&f->p, &f->mem, "a.example:999", &err), -E2BIG);
	for (int i = 0; r == 0 && i <= EGRESS_ROWS_MAX; i++) {
		snprintf(text, sizeof(text), "n%d.example:1", i);
		r = egress_policy_allow(&f->p, &f->mem, text, &err);
	}
	assert_int_equal(r, -E2BIG);
	assert_int_equal(f->p.rows_n, EGRESS_ROWS_MAX);
}

/* ---- DNS ---- */

static const uint8_t query[] = "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
			       "\x04GooD\x07"
			       "example\x00\x00\x01\x00\x01";
#define QUERY_N (sizeof(query) - 1)

static void test_dns_question(void **state)
{
	const struct egress_addr a = { 4, { 198, 18, 1, 0 } };
	uint8_t out[EGRESS_DNS_MAX], p[QUERY_N];
	struct egress_question q;
	size_t n;

	(void)state;
	assert_int_equal(egress_dns_parse(&q, query, QUERY_N), 0);
	assert_string_equal(q.name, "good.example");
	assert_int_equal(q.type, DNS_TYPE_A);
	n = egress_dns_answer(out, &q, DNS_NOERROR, &a, 1);
	assert_int_equal(n, QUERY_N + 16);
	assert_memory_equal(out, "\x12\x34\x81\x80\x00\x01\x00\x01", 8);
	assert_memory_equal(out + 12, query + 12, QUERY_N - 12); /* in its own letters */
	assert_memory_equal(out + n - 4, a.b, 4);
	q.type = DNS_TYPE_AAAA;
	assert_int_equal(egress_dns_answer(out, &q, DNS_NOERROR, &a, 1), QUERY_N);
	memcpy(p, query, QUERY_N);
	p[2] = 0x81; /* an answer */
	assert_int_equal(egress_dns_parse(&q, p, QUERY_N), -EBADMSG);
	p[2] = 0x29; /* update */
	assert_int_equal(egress_dns_parse(&q, p, QUERY_N), DNS_NOTIMP);
	p[2] = 1;
	p[5] = 2; /* two questions */
	assert_int_equal(egress_dns_parse(&q, p, QUERY_N), DNS_FORMERR);
	p[5] = 1;
	p[12] = 0xc0; /* a pointer */
	assert_int_equal(egress_dns_parse(&q, p, QUERY_N), DNS_FORMERR);
	p[12] = 4;
	p[13] = 0;
	assert_int_equal(egress_dns_parse(&q, p, QUERY_N), 0);
	assert_true(q.odd);
	assert_string_equal(q.name, "?ood.example");
	for (size_t k = 0; k < QUERY_N; k++)
		assert_int_not_equal(egress_dns_parse(&q, query, k), 0);
}

/* ---- TLS ---- */

/* A ClientHello with these extensions, in records of at most `step` bytes. */
static size_t hello(uint8_t *out, const void *exts, size_t n, size_t step)
{
	uint8_t body[1024] = { 1 };
	size_t at = 4 + 2 + 32, done = 0, total = 0;

	body[4] = body[5] = 3;
	body[at++] = 0; /* session id */
	memcpy(body + at, "\x00\x02\x13\x01\x01\x00", 6);
	at += 6;
	body[at++] = (uint8_t)(n >> 8);
	body[at++] = (uint8_t)n;
	memcpy(body + at, exts, n);
	at += n;
	body[2] = (uint8_t)((at - 4) >> 8);
	body[3] = (uint8_t)(at - 4);
	while (done < at) {
		size_t k = MIN(step, at - done);

		memcpy(out + total, (uint8_t[]){ 22, 3, 1, (uint8_t)(k >> 8), (uint8_t)k }, 5);
		memcpy(out + total + 5, body + done, k);
		total += 5 + k;
		done += k;
	}
	return total;
}

#define SNI_GOOD "\x00\x00\x00\x11\x00\x0f\x00\x00\x0cGood.Example"
#define SNI_N	 21

static int tls(const void *exts, size_t n, size_t step, char name[EGRESS_NAME_MAX + 1],
	       const char **why)
{
	uint8_t p[2048];

	return egress_tls_name(p, hello(p, exts, n, step), name, why);
}

static void test_tls(void **state)
{
	char name[EGRESS_NAME_MAX + 1];
	const char *why = NULL;
	uint8_t p[2048];
	size_t n;

	(void)state;
	assert_int_equal(tls(SNI_GOOD, SNI_N, 1000, name, &why), 0);
	assert_string_equal(name, "good.example");
	assert_int_equal(tls(SNI_GOOD, SNI_N, 7, name, &why), 0);
	n = hello(p, SNI_GOOD, SNI_N, 20);
	for (size_t k = 0; k < n; k++)
		assert_int_equal(egress_tls_name(p, k, name, &why), -EAGAIN);
	assert_int_equal(tls("", 0, 1000, name, &why), -EBADMSG);
	assert_string_equal(why, "no_sni");
	assert_int_equal(tls(SNI_GOOD SNI_GOOD, 2 * SNI_N, 1000, name, &why), -EBADMSG);
	assert_int_equal(tls("\xfe\x0d\x00\x00" SNI_GOOD, 4 + SNI_N, 1000, name, &why), -EBADMSG);
	assert_string_equal(why, "ech");
	assert_int_equal(tls("\x00\x00\x00\x0c\x00\x0a\x00\x00\x07"
			     "1.2.3.4",
			     16, 1000, name, &why),
			 -EBADMSG);
	assert_int_equal(egress_tls_name((const uint8_t *)"GET / HTTP", 10, name, &why), -EBADMSG);
	assert_string_equal(why, "tls");
}

/* ---- HTTP ---- */

#define HOST "Host: good.example\r\n"

static const char *http(const char *text, ssize_t *ret_n)
{
	struct egress_http h = { 0 };
	const char *why = NULL;

	*ret_n =
		egress_http_feed(&h, (const uint8_t *)text, strlen(text), "good.example", 80, &why);
	return *ret_n < 0 ? why : NULL;
}

static void test_http_passes(void **state)
{
	static const char *const rows[] = {
		"GET / HTTP/1.1\r\n" HOST "\r\n",
		"GET / HTTP/1.0\r\nhost:good.example:80\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: GOOD.example.\r\n\r\n",
		"GET http://good.example/x HTTP/1.1\r\n" HOST "\r\n",
		"OPTIONS * HTTP/1.1\r\n" HOST "\r\n",
		"POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\n" HOST
		"\r\n",
		"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
		"3;a=b\r\nabc\r\n00\r\nX: y\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n",
	};
	ssize_t n;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *why = http(rows[i], &n);

		if (why || n != (ssize_t)strlen(rows[i]))
			fail_msg("%s: %s, %zd of %zu bytes", rows[i], why ? why : "", n,
				 strlen(rows[i]));
	}
	/* A head that is not all there waits, and the request before it passes. */
	assert_null(http("GET / HTTP/1.1\r\n" HOST "\r\nGET / HT", &n));
	assert_int_equal(n, strlen("GET / HTTP/1.1\r\n" HOST "\r\n"));
}

static void test_http_refused(void **state)
{
	static const struct {
		const char *why, *text;
	} rows[] = {
		{ "host", "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n" },
		{ "host", "GET / HTTP/1.1\r\nHost: good.example.evil.example\r\n\r\n" },
		{ "host", "GET / HTTP/1.1\r\nHost: good.example:8080\r\n\r\n" },
		{ "host", "GET / HTTP/1.1\r\nHost: good.example:\r\n\r\n" },
		{ "host", "GET / HTTP/1.1\r\n\r\n" },
		{ "host", "GET http://evil.example/ HTTP/1.1\r\n" HOST "\r\n" },
		{ "host", "GET http://good.example@evil.example/ HTTP/1.1\r\n" HOST "\r\n" },
		{ "host", "GET / HTTP/1.1\r\n" HOST "\r\nGET / HTTP/1.1\r\nHost: e\r\n\r\n" },
		{ "http", "GET / HTTP/1.1\r\n" HOST HOST "\r\n" },
		{ "http", "GET / HTTP/1.1\n" HOST "\r\n\r\n" },
		{ "http", "GET / HTTP/1.1\r\nHost: good.example\n\r\n\r\n" },
		{ "http", "GET / HTTP/1.1\r\n" HOST " folded\r\n\r\n" },
		{ "http", "GET / HTTP/1.1\r\nHost : good.example\r\n\r\n" },
		{ "http", "GET  / HTTP/1.1\r\n" HOST "\r\n" },
		{ "http", "GET / HTTP/2.0\r\n" HOST "\r\n" },
		{ "http", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" },
		{ "http", "POST / HTTP/1.1\r\n" HOST
			  "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n" },
		{ "http",
		  "POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\nContent-Length: 3\r\n\r\n" },
		{ "http", "POST / HTTP/1.1\r\n" HOST "Content-Length: +3\r\n\r\n" },
		{ "http", "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n" },
		{ "http", "POST / HTTP/1.1\r\n" HOST
			  "Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n" },
		{ "http",
		  "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n" },
		{ "http", "POST / HTTP/1.1\r\n" HOST
			  "Transfer-Encoding: chunked\r\n\r\n1000000000000\r\n" },
		{ "upgrade", "GET / HTTP/1.1\r\n" HOST "Upgrade: h2c\r\n\r\n" },
		{ "connect", "CONNECT good.example:80 HTTP/1.1\r\n" HOST "\r\n" },
	};
	ssize_t n;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *why = http(rows[i].text, &n);

		if (!why || strcmp(why, rows[i].why) != 0)
			fail_msg("%s: %s", rows[i].text, why ? why : "passed");
	}
}

static void test_http_long_head(void **state)
{
	static char text[EGRESS_HEAD_MAX + 1];
	ssize_t n;

	(void)state;
	memset(text, 'a', sizeof(text) - 1);
	assert_string_equal(http(text, &n), "http");
	text[EGRESS_HEAD_MAX - 1] = 0;
	assert_null(http(text, &n));
	assert_int_equal(n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_address_text),
		cmocka_unit_test_setup_teardown(test_allow, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused_entries, setup, teardown),
		cmocka_unit_test_setup_teardown(test_services_and_limits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_many, setup, teardown),
		cmocka_unit_test(test_dns_question),
		cmocka_unit_test(test_tls),
		cmocka_unit_test(test_http_passes),
		cmocka_unit_test(test_http_refused),
		cmocka_unit_test(test_http_long_head),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
