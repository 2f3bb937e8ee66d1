// SPDX-License-Identifier: Apache-2.0
/* What golden/dns_tcp does not show: every way to split, limits, memory given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/event/dns_stream.h"

#define BODY 40u

static struct dns_streams s;

static int setup(void **state)
{
	(void)state;
	memset(&s, 0, sizeof(s));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	dns_streams_done(&s);
	return 0;
}

static struct wire_dns piece_of(uint32_t sandbox, uint64_t cookie, uint32_t seq)
{
	return (struct wire_dns){
		.h.kind = WIRE_DNS_QUERY, .h.sandbox = sandbox, .cookie = cookie, .tcp_seq = seq
	};
}

static void feed(uint32_t sandbox, uint64_t cookie, uint32_t seq, const uint8_t *p, size_t n)
{
	struct wire_dns w = piece_of(sandbox, cookie, seq);

	assert_int_equal(dns_stream_feed(&s, &w, (struct str){ (const char *)p, n }), 0);
}

/* Two messages of BODY bytes, all of the first 1, of the second 2. */
static void make_two(uint8_t p[2 * (BODY + 2)])
{
	for (unsigned i = 0; i < 2; i++) {
		p[0] = 0;
		p[1] = BODY;
		memset(p + 2, (int)i + 1, BODY);
		p += BODY + 2;
	}
}

static unsigned take(uint8_t expect)
{
	struct dns_message m;
	unsigned n = 0;

	for (; dns_stream_next(&s, &m); n++) {
		assert_null(m.bad);
		assert_int_equal(m.n, BODY);
		assert_int_equal(m.total, BODY);
		assert_int_equal(m.p[0], expect + n);
		assert_int_equal(m.p[BODY - 1], expect + n);
	}
	return n;
}

static void two_cuts_anywhere_in_any_order(void **state)
{
	static const int orders[][3] = { { 0, 1, 2 }, { 0, 2, 1 } };
	uint8_t both[2 * (BODY + 2)];
	uint64_t cookie = 0;

	(void)state;
	make_two(both);
	for (size_t x = 1; x < sizeof(both); x++) {
		for (size_t y = x; y < sizeof(both); y++) {
			size_t at[4] = { 0, x, y, sizeof(both) };

			for (size_t o = 0; o < 2; o++) {
				unsigned got = 0;

				cookie++;
				for (size_t i = 0; i < 3; i++) {
					int k = orders[o][i];

					feed(1, cookie, (uint32_t)at[k], both + at[k],
					     at[k + 1] - at[k]);
					got += take((uint8_t)(got + 1));
				}
				assert_int_equal(got, 2);
			}
		}
	}
}

static void the_longest_message(void **state)
{
	uint8_t *p = calloc(1, 65537);
	struct dns_message m;

	(void)state;
	p[0] = p[1] = 0xff;
	p[65536] = 7;
	for (uint32_t at = 0; at < 65537; at += WIRE_DNS_MAX) {
		assert_false(dns_stream_next(&s, &m));
		feed(1, 1, at, p + at, at + WIRE_DNS_MAX < 65537 ? WIRE_DNS_MAX : 65537 - at);
	}
	assert_true(dns_stream_next(&s, &m));
	assert_int_equal(m.n, 65535);
	assert_int_equal(m.p[65534], 7);
	assert_false(dns_stream_next(&s, &m));
	free(p);
}

/* A piece in front of which one was lost: the stream goes on once too much waits behind the hole. */
static void a_hole_that_is_never_filled(void **state)
{
	uint8_t both[2 * (BODY + 2)];
	uint32_t seq = 5000;
	struct dns_message m;
	unsigned got = 0;

	(void)state;
	make_two(both);
	feed(1, 1, 0, both, 10);
	for (int i = 0; i < 20; i++, seq += sizeof(both)) {
		feed(1, 1, seq, both, sizeof(both));
		while (dns_stream_next(&s, &m))
			got++;
	}
	assert_true(got >= 2 * (20 - DNS_ISLANDS_MAX - 1));
	for (int i = 0; i < 300; i++) { /* and far ahead */
		seq += 1000000000;
		feed(1, 1, seq, both, sizeof(both));
		assert_int_equal(take(1), 2);
	}
}

static void one_sandbox_does_not_push_out_another(void **state)
{
	uint8_t both[2 * (BODY + 2)];

	(void)state;
	make_two(both);
	feed(2, 1, 0, both, 10);
	for (uint64_t cookie = 1; cookie < 1000; cookie++)
		feed(1, cookie, 0, both, 10);
	assert_int_equal(s.lost, 999 - DNS_STREAMS_SANDBOX);
	feed(2, 1, 10, both + 10, sizeof(both) - 10);
	assert_int_equal(take(1), 2);
	for (uint32_t sandbox = 3; sandbox < 100; sandbox++)
		feed(sandbox, 1, 0, both, 10);
	assert_int_equal(take(0), 0);
}

static void an_end_gives_back_the_memory(void **state)
{
	uint8_t both[2 * (BODY + 2)];
	struct dns_message m;

	(void)state;
	make_two(both);
	feed(1, 9, 0, both, 10);
	dns_stream_close(&s, 2, 9);
	assert_false(dns_stream_next(&s, &m));
	dns_stream_close(&s, 1, 9);
	assert_true(dns_stream_next(&s, &m));
	assert_int_equal(m.n, 8);
	assert_int_equal(m.total, BODY);
	assert_false(dns_stream_next(&s, &m));
	for (size_t i = 0; i < DNS_STREAMS_MAX; i++)
		assert_null(s.v[i].p);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(two_cuts_anywhere_in_any_order), TEST(the_longest_message),
		TEST(a_hole_that_is_never_filled),    TEST(one_sandbox_does_not_push_out_another),
		TEST(an_end_gives_back_the_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
