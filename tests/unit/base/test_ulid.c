// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "userspace/base/ulid.h"

static void they_sort_by_time(void **state)
{
	char a[ULID_LEN + 1], b[ULID_LEN + 1];

	(void)state;
	ulid_make(a, 1469918176385000000); /* the example of the specification: 01ARYZ6S41... */
	assert_memory_equal(a, "01ARYZ6S41", 10);
	assert_int_equal(strlen(a), ULID_LEN);
	assert_true(ulid_is_valid(a));
	for (uint64_t ms = 1; ms < 1000; ms++) {
		ulid_make(b, 1469918176385000000 + ms * 1000000);
		assert_true(strcmp(a, b) < 0);
		memcpy(a, b, sizeof(a));
	}
	ulid_make(a, 0);
	ulid_make(b, 0);
	assert_string_not_equal(a, b);
	assert_memory_equal(a, "0000000000", 10);
}

static void what_is_none_is_refused(void **state)
{
	(void)state;
	assert_true(ulid_is_valid("7ZZZZZZZZZZZZZZZZZZZZZZZZZ"));
	assert_false(ulid_is_valid("8ZZZZZZZZZZZZZZZZZZZZZZZZZ")); /* more than 128 bits */
	assert_false(ulid_is_valid(""));
	assert_false(ulid_is_valid("01ARYZ6S410000000000000000X"));
	assert_false(ulid_is_valid("01ARYZ6S41000000000000000"));
	assert_false(ulid_is_valid("01ARYZ6S41000000000000000I"));
	assert_false(ulid_is_valid("../ARYZ6S41000000000000000"));
	assert_false(ulid_is_valid("01aryz6s410000000000000000"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(they_sort_by_time),
		cmocka_unit_test(what_is_none_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
