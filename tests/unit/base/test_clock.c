// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "userspace/base/clock.h"

static void known_times(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} cases[] = {
		{ 0, "1970-01-01T00:00:00.000000000Z" },
		{ 951782399999999999, "2000-02-28T23:59:59.999999999Z" },
		{ 951782400000000000, "2000-02-29T00:00:00.000000000Z" },
		{ 951868800000000001, "2000-03-01T00:00:00.000000001Z" },
		{ 1234567890123456789, "2009-02-13T23:31:30.123456789Z" },
		{ 1769862896123456789, "2026-01-31T12:34:56.123456789Z" },
		{ 4107542400000000000, "2100-03-01T00:00:00.000000000Z" }, /* no leap year */
		{ UINT64_MAX, "2554-07-21T23:34:33.709551615Z" },
	};
	char out[RFC3339_NS_LEN + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		rfc3339_ns(out, cases[i].ns);
		assert_string_equal(out, cases[i].text);
	}
}

/* Every day of four centuries and a bit, against the C library. */
static void as_the_c_library_says(void **state)
{
	char out[RFC3339_NS_LEN + 1], want[64];

	(void)state;
	for (int64_t day = 0; day < 366 * 410; day++) {
		time_t t = day * 86400 + day % 86400;
		struct tm tm;

		gmtime_r(&t, &tm);
		strftime(want, sizeof(want), "%Y-%m-%dT%H:%M:%S.000000000Z", &tm);
		rfc3339_ns(out, (uint64_t)t * NSEC_PER_SEC);
		assert_string_equal(out, want);
	}
}

static void clocks_run(void **state)
{
	uint64_t a = clock_boot_ns(), b = clock_boot_ns();

	(void)state;
	assert_true(a > 0 && b >= a);
	assert_true(clock_real_ns() > 1600000000ull * NSEC_PER_SEC);
}

static void the_sooner_of_two(void **state)
{
	const uint64_t now = 5 * NSEC_PER_SEC;

	(void)state;
	assert_int_equal(clock_sooner_ms(-1, -1), -1);
	assert_int_equal(clock_sooner_ms(-1, 3), 3);
	assert_int_equal(clock_sooner_ms(3, -1), 3);
	assert_int_equal(clock_sooner_ms(3, 0), 0);
	assert_int_equal(clock_sooner(-1, now, UINT64_MAX), -1);
	assert_int_equal(clock_sooner(7, now, UINT64_MAX), 7);
	assert_int_equal(clock_sooner(-1, now, now), 0);
	assert_int_equal(clock_sooner(7, now, now - 1), 0);
	assert_int_equal(clock_sooner(-1, now, now + 1), 1); /* not before it */
	assert_int_equal(clock_sooner(-1, now, now + 3 * NSEC_PER_MSEC), 4);
	assert_int_equal(clock_sooner(2, now, now + 3 * NSEC_PER_MSEC), 2);
	assert_int_equal(clock_sooner(-1, 0, UINT64_MAX - 1), INT_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_times),
		cmocka_unit_test(as_the_c_library_says),
		cmocka_unit_test(clocks_run),
		cmocka_unit_test(the_sooner_of_two),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
