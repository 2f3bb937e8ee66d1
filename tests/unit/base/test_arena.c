// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "userspace/base/arena.h"

static void pieces_are_aligned_and_apart(void **state)
{
	struct arena a;
	char *last = NULL;

	(void)state;
	arena_init(&a, 0);
	for (size_t i = 0; i < 20000; i++) {
		char *p = arena_alloc(&a, i % 37);

		assert_non_null(p);
		assert_int_equal((uintptr_t)p % 8, 0);
		memset(p, 0xa5, i % 37); /* a sanitizer sees an overlap with the block's end */
		if (i % 37)
			assert_ptr_not_equal(p, last);
		if (i % 37)
			last = p;
	}
	arena_done(&a);
}

static void the_limit_holds(void **state)
{
	struct arena a;

	(void)state;
	arena_init(&a, 100);
	assert_non_null(arena_alloc(&a, 50)); /* 56 with alignment */
	assert_false(a.full);
	assert_null(arena_alloc(&a, 50));
	assert_true(a.full);
	assert_non_null(arena_alloc(&a, 40));
	assert_null(arena_alloc(&a, 8));
	assert_null(arena_strndup(&a, "0123456789", 10).p);
	assert_null(arena_printf(&a, "%d", 1234567).p);
	arena_reset(&a);
	assert_non_null(arena_alloc(&a, 96));
	assert_null(arena_alloc(&a, SIZE_MAX));
	assert_null(arena_alloc(&a, SIZE_MAX - 3));
	assert_null(arena_strndup(&a, "", SIZE_MAX).p);
	arena_done(&a);
}

static void strings_end_with_a_nul(void **state)
{
	struct arena a;
	struct str s;

	(void)state;
	arena_init(&a, 0);
	s = arena_strndup(&a, "a\0b", 3);
	assert_int_equal(s.n, 3);
	assert_memory_equal(s.p, "a\0b\0", 4);
	s = arena_strndup(&a, NULL, 0);
	assert_string_equal(s.p, "");
	s = arena_printf(&a, "%s-%d", "x", 7);
	assert_string_equal(s.p, "x-7");
	assert_int_equal(s.n, 3);
	assert_int_equal(((char *)arena_zalloc(&a, 3))[2], 0);
	arena_done(&a);
}

/* The steady state keeps a block, one huge string does not pin its memory. */
static void reset_keeps_one_ordinary_block(void **state)
{
	struct arena a;
	void *first;

	(void)state;
	arena_init(&a, 0);
	first = arena_alloc(&a, 100);
	arena_reset(&a);
	assert_ptr_equal(arena_alloc(&a, 100), first);
	arena_alloc(&a, 1 << 20);
	arena_reset(&a);
	assert_ptr_equal(arena_alloc(&a, 100), first);
	arena_done(&a);
	arena_alloc(&a, 1 << 20);
	arena_reset(&a);
	assert_null(a.head);
	assert_non_null(arena_alloc(&a, 8));
	arena_done(&a);
	arena_done(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_are_aligned_and_apart),
		cmocka_unit_test(the_limit_holds),
		cmocka_unit_test(strings_end_with_a_nul),
		cmocka_unit_test(reset_keeps_one_ordinary_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
