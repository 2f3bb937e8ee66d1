// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "exporters/kafka_window.h"
#include "userspace/base/clock.h"

/* A broker that is `rtt_ns` away and takes at most `max_rate`: batches of the window come back together. */
static void run(struct kafka_window *w, uint64_t *now, uint64_t seconds, uint64_t rtt_ns,
		uint64_t max_rate, bool limited)
{
	uint64_t end = *now + seconds * NSEC_PER_SEC;

	while (*now < end) {
		uint64_t n = w->size, took = n * NSEC_PER_SEC / max_rate;

		*now += took > rtt_ns ? took : rtt_ns;
		kafka_window_acked(w, *now, n, limited);
		assert_true(w->size >= WINDOW_MIN && w->size <= WINDOW_MAX);
	}
}

static void near_brokers_get_the_least(void **state)
{
	struct kafka_window w;
	uint64_t now = NSEC_PER_SEC, grown = 0;

	(void)state;
	kafka_window_init(&w);
	for (int i = 0; i < 600; i++) {
		run(&w, &now, 1, 1000000, 300000, true);
		grown += w.size > WINDOW_MIN;
	}
	assert_true(grown < 60); /* it tries, and comes back */
}

static void distant_brokers_get_what_they_need(void **state)
{
	struct kafka_window w;
	uint64_t now = NSEC_PER_SEC;

	(void)state;
	kafka_window_init(&w);
	run(&w, &now, 30, 40000000, 300000, true); /* 12,000 are on their way at 300,000/s */
	assert_int_equal(w.size, WINDOW_MAX);
	run(&w, &now, 60, 1000000, 300000, true); /* it came near again */
	assert_int_equal(w.size, WINDOW_MIN);
	run(&w, &now, 30, 10000000, 300000, true); /* 3,000 */
	assert_true(w.size >= 2000 && w.size <= 4000);
}

static void without_a_backlog_nothing_changes(void **state)
{
	struct kafka_window w;
	uint64_t now = NSEC_PER_SEC;

	(void)state;
	kafka_window_init(&w);
	run(&w, &now, 60, 40000000, 300000, false);
	assert_int_equal(w.size, WINDOW_MIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(near_brokers_get_the_least),
		cmocka_unit_test(distant_brokers_get_what_they_need),
		cmocka_unit_test(without_a_backlog_nothing_changes),
	};

	return cmocka_run_group_tests_name("kafka_window", tests, NULL, NULL);
}
