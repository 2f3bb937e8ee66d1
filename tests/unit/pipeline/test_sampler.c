// SPDX-License-Identifier: Apache-2.0
/* What the two ends of a period make. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "userspace/pipeline/sampler.h"

static void differences_are_of_the_period(void **state)
{
	const struct sandbox_result now = { .cpu_usec = 1500, .mem_now = 4000, .pids_now = 2 };
	struct wire_usage u = { 0 };

	(void)state;
	sampler_between(&u, 1000, &now, 500, 5000, 77);
	assert_int_equal(u.period_ns, 1000);
	assert_int_equal(u.cpu_ns, 1000000);
	assert_int_equal(u.mem, 4000);
	assert_int_equal(u.mem_growth, -1000);
	assert_int_equal(u.net, 77);
	assert_int_equal(u.pids, 2);
}

static void what_is_not_known_is_said(void **state)
{
	const struct sandbox_result now = { .cpu_usec = 400 };
	struct wire_usage u = { 0 };

	(void)state;
	sampler_between(&u, 1000, &now, 500, 5000, 0);
	assert_int_equal(u.cpu_ns, 0); /* never below nothing */
	assert_true(u.mem == WIRE_UNKNOWN && u.pids == WIRE_UNKNOWN);
	assert_int_equal(u.mem_growth, 0);
}

static void off_it_wakes_nobody(void **state)
{
	struct sampler s = { .period_ns = 1 };
	struct wire_usage u;

	(void)state;
	assert_int_equal(sampler_timeout(&s), -1);
	assert_false(sampler_take(&s, &u));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(differences_are_of_the_period),
		cmocka_unit_test(what_is_not_known_is_said),
		cmocka_unit_test(off_it_wakes_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
