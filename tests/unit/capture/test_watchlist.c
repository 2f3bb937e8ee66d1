// SPDX-License-Identifier: Apache-2.0
/* Entries of the watch list: which keys they make. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "userspace/base/auto.h"
#include "userspace/capture/watchlist.h"

static struct watchlist_tables t;

static void has_key(size_t i, const char *bytes, size_t n, uint32_t id)
{
	assert_true(i < t.paths_n);
	assert_int_equal(t.paths[i].key.prefixlen, 32 + 8 * n);
	assert_int_equal(t.paths[i].id, id);
	assert_memory_equal(t.paths[i].key.path, bytes, n);
}

static void keys_of_entries(void **state)
{
	const struct watch_entry v[] = {
		{ "/etc/a", NULL }, { "/etc/d/", NULL }, { "/tmp/x*", NULL }, { "/", NULL }
	};
	struct err err = { 0 };

	(void)state;
	assert_int_equal(watchlist_compile(&t, v, ARRAY_SIZE(v), &err), 0);
	assert_int_equal(t.paths_n, 5);
	has_key(0, "/etc/a", 7, 1);
	has_key(1, "/etc/d/", 7, 2);
	has_key(2, "/etc/d", 7, 2);
	has_key(3, "/tmp/x", 6, 3);
	has_key(4, "/", 1, 4);
	assert_int_equal(t.inodes_n, 0);
	assert_int_equal(t.mode, WATCHLIST_PATHS);
}

static void inodes_of_what_is_there(void **state)
{
	const struct watch_entry v[] = { { "/a", "/etc/passwd" },
					 { "/d/", "/etc" },
					 { "/e", "/etc" },
					 { "/n", "/nonexistent" },
					 { "/p*", "/etc/passwd" } };
	struct err err = { 0 };
	struct stat st;

	(void)state;
	assert_int_equal(stat("/etc/passwd", &st), 0);
	assert_int_equal(watchlist_compile(&t, v, ARRAY_SIZE(v), &err), 0);
	assert_int_equal(t.inodes_n, 3);
	assert_int_equal(t.inodes[0].key.ino, st.st_ino);
	assert_int_equal(t.inodes[0].key.below, 0);
	assert_int_equal(t.inodes[1].key.below, 1);
	assert_int_equal(t.inodes[2].key.below, 0);
	assert_int_equal(t.mode, WATCHLIST_PATHS | WATCHLIST_INODES | WATCHLIST_BELOW);
}

static void bad_entries(void **state)
{
	static const char *const bad[] = { "",	 "a",	"/a//b", "/a/..", "/./a",
					   "//", "/..", "/d/*x", "/a*/b", "/x**" };
	struct watch_entry many[WATCHLIST_MAX + 1];
	char longest[ENFORCE_PATH_MAX];
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(watchlist_check(bad[i], &err), -EINVAL);
	memset(longest, 'x', sizeof(longest));
	longest[0] = '/';
	longest[sizeof(longest) - 1] = 0;
	assert_int_equal(watchlist_check(longest, &err), -EINVAL);
	longest[sizeof(longest) - 2] = 0;
	assert_int_equal(watchlist_check(longest, &err), 0);
	longest[sizeof(longest) - 3] = '/'; /* the longest key there is */
	assert_int_equal(watchlist_compile(&t, &(struct watch_entry){ longest, NULL }, 1, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = (struct watch_entry){ "/a", NULL };
	assert_int_equal(watchlist_compile(&t, many, ARRAY_SIZE(many), &err), -E2BIG);
	assert_int_equal(watchlist_compile(&t, many, WATCHLIST_MAX, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_of_entries),
		cmocka_unit_test(inodes_of_what_is_there),
		cmocka_unit_test(bad_entries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
