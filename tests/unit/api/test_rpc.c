// SPDX-License-Identifier: Apache-2.0
#include "userspace/api/rpc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "userspace/base/auto.h"

static struct arena arena;

static void json_is_json(void **state)
{
	static const char *const good[] = {
		"1",	       "-0",   "0.5",	    "1e5",
		"-1.25E-3",    "true", "null",	    "\"\"",
		"[]",	       "{}",   "[1,[],{}]", "{\"a\":{\"b\":[1,2]},\"c\":\"\\u12aB\\n\"}",
		" [ 1 , 2 ] ",
	};
	static const char *const bad[] = {
		"",	 "01",	    "-",	"1.",	      ".5",	     "1e",	 "tru",
		"nul",	 "\"",	    "\"\\x\"",	"\"\\u12\"",  "\"\\u12g4\"", "[1,]",	 "[,1]",
		"[1 2]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{1:2}",	     "[}",	 "{]",
		"[1}",	 "1 2",	    "[",	"{",	      "{\"a\":1",    "\"\x01\"", "\"\xff\"",
		"]",	 "}",	    ",",	"[1]]",	      "\"\\",	     "\"\\u1\"",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		if (!rpc_is_json(str_from(good[i])))
			fail_msg("'%s' was refused", good[i]);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (rpc_is_json(str_from(bad[i])))
			fail_msg("'%s' was taken", bad[i]);
}

static void depth_is_limited(void **state)
{
	char text[2 * RPC_DEPTH_MAX + 3] = "";

	(void)state;
	memset(text, '[', RPC_DEPTH_MAX);
	memset(text + RPC_DEPTH_MAX, ']', RPC_DEPTH_MAX);
	assert_true(rpc_is_json(str_from(text)));
	memset(text, '[', RPC_DEPTH_MAX + 1);
	memset(text + RPC_DEPTH_MAX + 1, ']', RPC_DEPTH_MAX + 1);
	assert_false(rpc_is_json(str_from(text)));
}

static void messages(void **state)
{
	static const struct {
		const char *text;
		int r;
	} rows[] = {
		{ "{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}", 0 },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", 0 },
		{ "{\"jsonrpc\":\"1.0\",\"method\":\"ping\"}", -EINVAL },
		{ "{\"method\":\"ping\"}", -EINVAL },
		{ "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", -EINVAL },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", -EINVAL },
		{ "{\"jsonrpc\":\"2.0\",\"id\":[],\"method\":\"ping\"}", -EINVAL },
		{ "{\"jsonrpc\":\"2.0\",\"method\":7}", -EINVAL },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1}", -EINVAL },
		{ "{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":[]}", -EINVAL },
		{ "[]", -EINVAL },
		{ "{", -EBADMSG },
	};
	struct rpc_message m;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err err = { 0 };

		arena_reset(&arena);
		if (rpc_parse(&m, &arena, str_from(rows[i].text), &err) != rows[i].r)
			fail_msg("'%s': %s", rows[i].text, err.text);
	}
	assert_int_equal(
		rpc_parse(&m, &arena,
			  STR(" {\"jsonrpc\":\"2.0\",\"id\":\"a\\\"b\",\"method\":\"t\\u002fc\","
			      "\"params\":{\"a\":1} } "),
			  NULL),
		0);
	assert_string_equal(m.method, "t/c");
	assert_int_equal(m.id.n, 6);
	assert_true(str_eq(m.params, STR("{\"a\":1}")));
}

static void arguments(void **state)
{
	struct rpc_arguments a;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(
		rpc_arguments_parse(&a, &arena, STR("{\"command\":\"x\\ny\",\"timeout\":5}"), NULL),
		0);
	assert_string_equal(a.command, "x\ny");
	assert_int_equal(a.timeout, 5);
	assert_int_equal(rpc_arguments_parse(&a, &arena, (struct str){ 0 }, NULL), 0);
	assert_int_equal(rpc_arguments_parse(&a, &arena, STR("{\"cmd\":\"x\"}"), &err), -EINVAL);
	assert_string_equal(err.text, "unknown argument 'cmd'");
	assert_int_equal(rpc_arguments_parse(&a, &arena, STR("{\"code\":1}"), NULL), -EINVAL);
	assert_int_equal(rpc_arguments_parse(&a, &arena, STR("{\"code\":\"\\u0000\"}"), NULL),
			 -EINVAL);
	assert_int_equal(rpc_arguments_parse(&a, &arena, STR("{\"timeout\":0}"), NULL), -EINVAL);
	assert_int_equal(rpc_arguments_parse(&a, &arena, STR("{\"timeout\":1.5}"), NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_is_json),
		cmocka_unit_test(depth_is_limited),
		cmocka_unit_test(messages),
		cmocka_unit_test(arguments),
	};

	arena_init(&arena, 1 << 20);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
