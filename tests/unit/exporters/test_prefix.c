// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <errno.h>
#include "exporters/prefix.h"

static void test_out_of_order(void **state)
{
	struct prefix p;
	uint64_t t[4];

	(void)state;
	assert_int_equal(prefix_init(&p, 4), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(prefix_add(&p, 10 + 2 * i, 1, &t[i]), 0);
	assert_int_equal(prefix_add(&p, 20, 1, &t[0]), -ENOBUFS);
	assert_true(prefix_mark(&p, t[2]));
	assert_int_equal(p.acked, 0);
	assert_true(prefix_mark(&p, t[0]));
	assert_int_equal(p.acked, 10);
	assert_true(prefix_mark(&p, t[1]));
	assert_int_equal(p.acked, 14);
	assert_false(prefix_mark(&p, t[1])); /* twice */
	assert_int_equal(prefix_seq(&p, t[3]), 16);
	assert_int_equal(prefix_seq(&p, t[1]), 0);
	prefix_done(&p);
}

static void test_parts(void **state)
{
	struct prefix p;
	uint64_t a, b;

	(void)state;
	assert_int_equal(prefix_init(&p, 4), 0);
	prefix_add(&p, 1, 2, &a);
	prefix_add(&p, 2, 1, &b);
	prefix_mark(&p, a);
	prefix_mark(&p, b);
	assert_int_equal(p.acked, 0); /* the second topic has not answered */
	assert_false(prefix_mark(&p, b));
	prefix_mark(&p, a);
	assert_int_equal(p.acked, 2);
	prefix_done(&p);
}

static void test_reset(void **state)
{
	struct prefix p;
	uint64_t old, t;

	(void)state;
	assert_int_equal(prefix_init(&p, 2), 0);
	prefix_add(&p, 5, 1, &old);
	prefix_reset(&p);
	assert_false(prefix_mark(&p, old));
	assert_int_equal(p.acked, 0);
	prefix_add(&p, 5, 1, &t);
	assert_true(t != old);
	assert_false(prefix_mark(&p, old)); /* a late report of the old producer */
	assert_false(prefix_mark(&p, 12345));
	prefix_mark(&p, t);
	assert_int_equal(p.acked, 5);
	prefix_done(&p);
}

/* Against the obvious model: acked = everything below the first unmarked one. */
static void test_random(void **state)
{
	enum { N = 20000 };
	struct prefix p;
	static bool done[N + 1];
	uint64_t ticket[N + 1], next = 1, first = 1;

	(void)state;
	srandom(1);
	assert_int_equal(prefix_init(&p, 64), 0);
	while (first <= N) {
		if (next <= N && random() % 2 && !prefix_is_full(&p)) {
			assert_int_equal(prefix_add(&p, next, 1, &ticket[next]), 0);
			next++;
		} else if (next > first) {
			uint64_t i = first + (uint64_t)random() % (next - first);

			assert_int_equal(prefix_mark(&p, ticket[i]), !done[i]);
			done[i] = true;
			while (first < next && done[first])
				first++;
			assert_int_equal(p.acked, first - 1);
		}
	}
	prefix_done(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_out_of_order),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
