// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "exporters/gate.h"

#define MS 1000000ull

static int open_rate(struct gate *g, const char *rate)
{
	struct exporter_config cfg;
	char text[64];
	int r;

	snprintf(text, sizeof(text), "file:/x,rate=%s", rate);
	assert_int_equal(exporter_config_parse(&cfg, text, NULL), 0);
	r = gate_open(g, &cfg, NULL, NULL);
	exporter_config_done(&cfg);
	return r;
}

/* How many may go between two times. */
static int count(struct gate *g, uint64_t from, uint64_t to)
{
	uint64_t at;
	int n = 0;

	for (uint64_t now = from; now < to; now += MS / 10)
		while (gate_is_open(g, now, &at)) {
			gate_passed(g, now);
			n++;
		}
	return n;
}

static void test_rate(void **state)
{
	uint64_t start = 1000000 * MS, at = 0;
	struct gate g;

	(void)state;
	assert_int_equal(open_rate(&g, "1000"), 0);
	assert_in_range(count(&g, start, start + 1000 * MS), 1099,
			1102); /* a second and the burst */
	assert_in_range(count(&g, start + 1000 * MS, start + 2000 * MS), 999, 1001);
	/* After a long rest there is one burst, not all that was saved. */
	assert_in_range(count(&g, start + 90000 * MS, start + 90001 * MS), 99, 103);
	start += 90001 * MS;
	while (gate_is_open(&g, start, &at))
		gate_passed(&g, start);
	assert_true(at > start && at <= start + 2 * MS);
}

static void test_slow(void **state)
{
	struct gate g;

	(void)state;
	assert_int_equal(open_rate(&g, "1"), 0);
	assert_in_range(count(&g, 5000000 * MS, 5005000 * MS), 5, 6);
}

static void test_bad(void **state)
{
	static const char *const bad[] = { "0", "-1", "x", "1.5", "2000000000" };
	struct gate g;
	uint64_t at;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(open_rate(&g, bad[i]), -EINVAL);
	assert_int_equal(open_rate(&g, ""), 0); /* no limit */
	for (int i = 0; i < 100000; i++) {
		assert_true(gate_is_open(&g, 1, &at));
		gate_passed(&g, 1);
	}
	assert_true(gate_wants(&g, STR("{}")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_slow),
		cmocka_unit_test(test_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
