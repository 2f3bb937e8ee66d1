// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "userspace/base/buf.h"

static void appends_and_consumes(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 0);
	assert_int_equal(buf_addz(&b, "ab"), 0);
	assert_int_equal(buf_addc(&b, 'c'), 0);
	assert_int_equal(buf_printf(&b, "%03d", 7), 0);
	assert_int_equal(buf_add(&b, NULL, 0), 0);
	assert_int_equal(b.n, 6);
	assert_memory_equal(b.p, "abc007", 6);
	buf_consume(&b, 2);
	assert_memory_equal(b.p, "c007", 4);
	buf_consume(&b, 100);
	assert_int_equal(b.n, 0);
	for (int i = 0; i < 100000; i++)
		buf_addc(&b, (char)i);
	assert_int_equal(b.n, 100000);
	assert_false(b.failed);
	buf_done(&b);
}

static void a_failed_append_changes_nothing(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 10);
	assert_int_equal(buf_addz(&b, "12345678"), 0);
	assert_int_equal(buf_addz(&b, "abc"), -EMSGSIZE);
	assert_true(b.failed);
	assert_int_equal(b.n, 8);
	assert_int_equal(buf_addz(&b, "90"), 0);
	assert_int_equal(buf_addc(&b, 'x'), -EMSGSIZE);
	assert_int_equal(buf_printf(&b, "x"), -EMSGSIZE);
	assert_int_equal(buf_reserve(&b, SIZE_MAX), -EMSGSIZE);
	assert_memory_equal(b.p, "1234567890", 10);
	assert_true(b.failed);
	buf_reset(&b);
	assert_false(b.failed);
	assert_int_equal(b.n, 0);
	buf_done(&b);
	assert_int_equal(b.max, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(appends_and_consumes),
		cmocka_unit_test(a_failed_append_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
