// SPDX-License-Identifier: Apache-2.0
#include "userspace/api/target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include "userspace/base/auto.h"

static struct arena arena;

static int parse(struct api_target *t, const char *text, struct err *err)
{
	arena_reset(&arena);
	return api_target_parse(t, &arena, str_from(text), err);
}

static void parts_are_decoded(void **state)
{
	struct api_target t;

	(void)state;
	assert_int_equal(parse(&t, "/v1/a%20b+c/%C3%A4?path=%2Fx+y%2B&e=&f", NULL), 0);
	assert_int_equal(t.segments_n, 3);
	assert_string_equal(t.segment[1], "a b+c");
	assert_string_equal(t.segment[2], "\303\244");
	assert_string_equal(api_target_query(&t, "path"), "/x y+");
	assert_string_equal(api_target_query(&t, "e"), "");
	assert_string_equal(api_target_query(&t, "f"), "");
	assert_null(api_target_query(&t, "pat"));
	assert_int_equal(parse(&t, "/", NULL), 0);
	assert_int_equal(t.segments_n, 0);
}

static void what_is_not_clear_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"x",
		"*",
		"http://a/b",
		"//",
		"/a//b",
		"/a/",
		"/..",
		"/%2e",
		"/%2E.",
		"/a%2fb",
		"/%00",
		"/%",
		"/%4",
		"/%4g",
		"/a b",
		"/a#b",
		"/\x7f",
		"/\xff",
		"/%ff",
		"/a?=b",
		"/a?b&b",
		"/a?b=%0",
		"/a?&",
		"/a?b=\n",
		"/a/b/c/d/e/f/g/h/i",
		"/a?1&2&3&4&5&6&7&8&9&10&11&12&13&14&15&16&17",
	};
	struct api_target t;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct err err = { 0 };

		if (parse(&t, bad[i], &err) != -EBADMSG || !err.text[0])
			fail_msg("'%s' was taken", bad[i]);
	}
}

static void length_is_limited(void **state)
{
	static char text[API_TARGET_MAX + 2];
	struct api_target t;

	(void)state;
	memset(text, 'a', API_TARGET_MAX);
	text[0] = '/';
	assert_int_equal(parse(&t, text, NULL), 0);
	text[API_TARGET_MAX] = 'a';
	assert_int_equal(parse(&t, text, NULL), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_are_decoded),
		cmocka_unit_test(what_is_not_clear_is_refused),
		cmocka_unit_test(length_is_limited),
	};

	arena_init(&arena, 1 << 20);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
