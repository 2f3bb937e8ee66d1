// SPDX-License-Identifier: Apache-2.0
#include "userspace/api/body.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "userspace/base/auto.h"

static struct arena arena;

static void all_members_are_read(void **state)
{
	struct api_create c;
	struct api_command k;

	(void)state;
	assert_int_equal(
		api_create_parse(
			&c, &arena,
			STR(" { \"name\" : \"b\", \"timeout\":5, \"cpus\": 0.25, \"pids\":7,"
			    "\"envs\":{\"A\":\"1\",\"B\":\"\\u00e4=\"}, \"command\":[\"x\",\"\"],"
			    "\"network\":{\"mode\":\"allow\",\"allowOut\":[\"h:1\"]} } "),
			NULL),
		0);
	assert_string_equal(c.name, "b");
	assert_true(c.timeout.given && c.timeout.v == 5 && !c.memory_mb.given);
	assert_string_equal(c.cpus, "0.25");
	assert_int_equal(c.envs.n, 2);
	assert_string_equal(c.envs.v[1], "B=\303\244=");
	assert_int_equal(c.command.n, 2);
	assert_string_equal(c.net_mode, "allow");
	assert_string_equal(c.net_allow.v[0], "h:1");
	assert_int_equal(api_create_parse(&c, &arena, STR(""), NULL), 0);
	assert_false(c.timeout.given);
	assert_int_equal(
		api_command_parse(&k, &arena, STR("{\"args\":[\"a\"],\"background\":true}"), NULL),
		0);
	assert_true(k.background.v && k.args.n == 1 && !k.cmd);
}

static void mistakes_are_named(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "{\"nam\":\"x\"}", "'nam': unknown member" },
		{ "{\"name\":1}", "'name': expected a string" },
		{ "{\"name\":\"a\\u0000\"}", "'name': NUL in a string" },
		{ "{\"name\":\"a\",\"name\":\"a\"}", "'name': it is given twice" },
		{ "{\"timeout\":1.5}", "'timeout': expected a whole number" },
		{ "{\"cpus\":.5}", "'cpus': expected a number like 0.5" },
		{ "{\"envs\":{\"A\":\"1\",\"A\":\"2\"}}", "'envs': a name that is given twice" },
		{ "{\"envs\":{\"A=B\":\"1\"}}", "'envs': a name that is empty or has a '='" },
		{ "{\"envs\":[]}", "'envs': expected an object" },
		{ "{\"command\":{}}", "'command': expected a list" },
		{ "{\"command\":[[]]}", "'command': expected a string" },
		{ "{\"network\":{\"network\":{}}}", "'network': unknown member" },
		{ "{\"allowInternetAccess\":false,\"network\":{\"mode\":\"open\"}}", "contradict" },
		{ "{\"name\":\"a\"} x", "text behind it" },
		{ "{\"name\":\"a\"", "expected ',' or '}'" },
		{ "{,}", "expected the name of a member" },
		{ "[]", "expected an object" },
		{ "x", "expected an object" },
	};
	struct api_create c;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct err err = { 0 };

		arena_reset(&arena);
		assert_int_equal(api_create_parse(&c, &arena, str_from(bad[i].text), &err),
				 -EBADMSG);
		if (!strstr(err.text, bad[i].says))
			fail_msg("'%s' does not say '%s'", err.text, bad[i].says);
	}
}

static void a_command_is_one_thing(void **state)
{
	static const char *const bad[] = { "", "{}", "{\"args\":[]}",
					   "{\"cmd\":\"a\",\"args\":[\"b\"]}",
					   "{\"cmd\":\"a\",\"encoding\":\"latin1\"}" };
	struct api_command k;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(api_command_parse(&k, &arena, str_from(bad[i]), NULL), -EBADMSG);
}

static void sizes_are_limited(void **state)
{
	static char text[API_BODY_MAX + 1];
	struct api_create c;

	(void)state;
	memset(text, '[', sizeof(text));
	assert_int_equal(api_create_parse(&c, &arena, (struct str){ text, sizeof(text) }, NULL),
			 -EMSGSIZE);
	strcpy(text, "{\"command\":[\"\"");
	for (int i = 1; i < API_WORDS_MAX; i++)
		strcat(text, ",\"\"");
	strcat(text, "]}");
	arena_reset(&arena);
	assert_int_equal(api_create_parse(&c, &arena, str_from(text), NULL), 0);
	strcpy(strstr(text, "]"), ",\"\"]}");
	assert_int_equal(api_create_parse(&c, &arena, str_from(text), NULL), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_members_are_read),
		cmocka_unit_test(mistakes_are_named),
		cmocka_unit_test(a_command_is_one_thing),
		cmocka_unit_test(sizes_are_limited),
	};

	arena_init(&arena, 1 << 20);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
