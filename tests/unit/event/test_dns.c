// SPDX-License-Identifier: Apache-2.0
/* What golden/dns does not show: every cut of a message, every byte of one changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/event/decode.h"

/* host.example A -> CNAME x.host.example -> A, and an OPT record */
static const uint8_t message[] = "\x12\x34\x81\x80\x00\x01\x00\x02\x00\x00\x00\x01\x04host\x07"
				 "example\x00\x00\x01\x00\x01"
				 "\xc0\x0c\x00\x05\x00\x01\x00\x00\x00\x3c\x00\x04\x01x\xc0\x0c"
				 "\xc0\x2a\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\xc0\x00\x02\x01"
				 "\x00\x00\x29\x10\x00\x01\x00\x00\x00\x00\x00";

#define LEN (sizeof(message) - 1)

static struct arena arena;
static struct event ev;

static void decode(const uint8_t *p, size_t n, size_t total)
{
	uint8_t *exact = malloc(n ? n : 1); /* a sanitizer sees a byte too far */

	memcpy(exact, p, n);
	arena_reset(&arena);
	event_init(&ev, WIRE_DNS_ANSWER, &arena);
	dns_decode(&ev, exact, n, total);
	free(exact);
}

static void the_whole_message(void **state)
{
	(void)state;
	decode(message, LEN, LEN);
	assert_false(event_has(&ev, F_DNS_MALFORMED));
	assert_int_equal(event_u64(&ev, F_DNS_ID), 0x1234);
	assert_true(str_eqz(event_str(&ev, F_DNS_NAME), "host.example"));
	assert_true(str_eqz(event_str(&ev, F_DNS_RCODE), "BADVERS"));
	assert_int_equal(event_u64(&ev, F_DNS_EDNS), 4096);
	assert_false(event_has(&ev, F_DNS_TC));
	assert_int_equal(ev.v[F_DNS_ANSWERS].answers.n, 2);
	assert_true(str_eqz(ev.v[F_DNS_ANSWERS].answers.v[0].data, "x.host.example"));
	assert_true(str_eqz(ev.v[F_DNS_ANSWERS].answers.v[1].name, "x.host.example"));
	assert_true(str_eqz(ev.v[F_DNS_ANSWERS].answers.v[1].data, "192.0.2.1"));
}

static void the_flag_that_says_cut(void **state)
{
	uint8_t copy[LEN];

	(void)state;
	memcpy(copy, message, LEN);
	copy[2] |= 2;
	decode(copy, LEN, LEN);
	assert_true(event_u64(&ev, F_DNS_TC));
	assert_false(event_has(&ev, F_TRUNCATED)); /* that one is about us */
}

static void every_cut_is_malformed_or_truncated(void **state)
{
	(void)state;
	for (size_t n = 0; n < LEN; n++) {
		decode(message, n, n); /* the sender's fault */
		assert_true(event_has(&ev, F_DNS_MALFORMED));
		assert_false(event_has(&ev, F_TRUNCATED));
		decode(message, n, LEN); /* ours */
		assert_false(event_has(&ev, F_DNS_MALFORMED));
		assert_true(event_has(&ev, F_TRUNCATED));
	}
}

static void every_byte_changed(void **state)
{
	uint8_t copy[LEN];

	(void)state;
	for (size_t at = 0; at < LEN; at++) {
		for (unsigned c = 0; c < 256; c++) {
			memcpy(copy, message, LEN);
			copy[at] = (uint8_t)c;
			decode(copy, LEN, LEN);
			if (event_has(&ev, F_DNS_ANSWERS))
				assert_true(ev.v[F_DNS_ANSWERS].answers.n <= 64);
		}
	}
}

/* The deepest walk that pointers allow: each goes back by one label. The first record's data are the
 * stairs, the second record's owner is their top. It ends, and says why. */
static void a_staircase_of_pointers(void **state)
{
	uint8_t m[4096] = { 0, 1, 0x81, 0x80, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0x11, 0x11, 0, 1 };
	size_t n = 23, last = n;

	(void)state;
	memcpy(m + n, "\1a", 3);
	for (n += 3; n + 32 < sizeof(m); n += 4) {
		m[n] = 1;
		m[n + 1] = 'b';
		m[n + 2] = (uint8_t)(0xc0 | last >> 8);
		m[n + 3] = (uint8_t)last;
		last = n;
	}
	m[21] = (uint8_t)((n - 23) >> 8);
	m[22] = (uint8_t)(n - 23);
	m[n] = (uint8_t)(0xc0 | last >> 8);
	m[n + 1] = (uint8_t)last;
	n += 2 + 10;
	decode(m, n, n);
	assert_true(str_eqz(event_str(&ev, F_DNS_MALFORMED), "name longer than 255 bytes"));
	assert_int_equal(ev.v[F_DNS_ANSWERS].answers.n, 1);
}

static void a_full_arena_loses_answers_only(void **state)
{
	struct arena small;
	struct event e;

	(void)state;
	for (size_t limit = 8; limit < 400; limit += 8) {
		arena_init(&small, limit);
		event_init(&e, WIRE_DNS_ANSWER, &small);
		dns_decode(&e, message, LEN, LEN);
		assert_int_equal(event_u64(&e, F_DNS_ID), 0x1234);
		arena_done(&small);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_whole_message),
		cmocka_unit_test(the_flag_that_says_cut),
		cmocka_unit_test(every_cut_is_malformed_or_truncated),
		cmocka_unit_test(every_byte_changed),
		cmocka_unit_test(a_staircase_of_pointers),
		cmocka_unit_test(a_full_arena_loses_answers_only),
	};
	int r;

	arena_init(&arena, 1 << 20);
	r = cmocka_run_group_tests(tests, NULL, NULL);
	arena_done(&arena);
	return r;
}
