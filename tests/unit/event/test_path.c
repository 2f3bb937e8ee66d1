// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "userspace/event/path.h"

static void joins(void **state)
{
	static const char *const cases[][3] = {
		{ "", "", "." },
		{ "/", "", "/" },
		{ "/", "..", "/" },
		{ "/a", "b", "/a/b" },
		{ "/a/", "b/", "/a/b" },
		{ "/a", "/b", "/b" },
		{ "/a/b/c", "../../d", "/a/d" },
		{ "/a", "../../../b", "/b" },
		{ "/a", "./././", "/a" },
		{ "/a", "b//c///d", "/a/b/c/d" },
		{ "/a", "...", "/a/..." },
		{ "/a", "..b/.c", "/a/..b/.c" },
		{ "", "a/../b", "b" },
		{ "", "../a", "../a" },
		{ "", "../../a/..", "../.." },
		{ "", "a/..", "." },
		{ "x/y", "../z", "x/z" },
		{ "x", "../../z", "../z" },
		{ "", "//..//", "/" },
	};
	struct arena a;

	(void)state;
	arena_init(&a, 1 << 20);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct str s = path_join(&a, str_from(cases[i][0]), str_from(cases[i][1]));

		assert_string_equal(s.p, cases[i][2]);
		assert_int_equal(s.n, strlen(cases[i][2]));
	}
	arena_done(&a);
	arena_init(&a, 8);
	assert_null(path_join(&a, STR("/aaaaaaaa"), STR("b")).p);
	arena_done(&a);
}

static bool is_clean(const char *text)
{
	size_t n = strlen(text);
	char *exact = malloc(n ? n : 1); /* a sanitizer sees a byte too far */
	bool clean;

	memcpy(exact, text, n);
	clean = path_is_clean((struct str){ exact, n });
	free(exact);
	return clean;
}

static void clean_or_not(void **state)
{
	static const char *const clean[] = { "/",    "/a",  "/a/b", "/..a",
					     "/a..", "/.a", "/...", "/a/.b" };
	static const char *const dirty[] = { "",     "a",     "//",    "/a/",  "/.",	"/..",
					     "/./a", "/../a", "/a//b", "/a/.", "/a/..", "/a/./b" };

	(void)state;
	for (size_t i = 0; i < sizeof(clean) / sizeof(clean[0]); i++)
		if (!is_clean(clean[i]))
			fail_msg("'%s'", clean[i]);
	for (size_t i = 0; i < sizeof(dirty) / sizeof(dirty[0]); i++)
		if (is_clean(dirty[i]))
			fail_msg("'%s'", dirty[i]);
}

/* Clean is exactly what a join leaves as it is: checked on every path of seven bytes out of three. */
static void clean_means_unchanged(void **state)
{
	struct arena a;
	char p[8] = "";

	(void)state;
	arena_init(&a, 1 << 20);
	for (int n = 1; n <= 7; n++) {
		int all = 1;

		for (int i = 0; i < n; i++)
			all *= 3;
		for (int k = 0; k < all; k++) {
			struct str s = { p, (size_t)n }, joined;

			for (int i = 0, v = k; i < n; i++, v /= 3)
				p[i] = "/.a"[v % 3];
			arena_reset(&a);
			joined = path_join(&a, (struct str){ 0 }, s);
			assert_int_equal(path_is_clean(s), p[0] == '/' && str_eq(s, joined));
			if (p[0] == '/')
				assert_true(path_is_clean(joined));
		}
	}
	arena_done(&a);
}

static void names(void **state)
{
	(void)state;
	assert_true(str_eqz(path_name(STR("/a/b")), "b"));
	assert_true(str_eqz(path_name(STR("b")), "b"));
	assert_int_equal(path_name(STR("/")).n, 0);
	assert_int_equal(path_name((struct str){ 0 }).n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(joins),
		cmocka_unit_test(clean_or_not),
		cmocka_unit_test(clean_means_unchanged),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
