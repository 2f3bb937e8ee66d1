// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "userspace/event/json_tree.h"

static struct arena mem;

static const struct json_node *good(const char *text)
{
	struct json_node *n = NULL;
	struct err err = { 0 };

	if (json_tree_parse(&n, &mem, "t", str_from(text), &err) < 0)
		fail_msg("%s: %s", text, err_text(&err));
	return n;
}

static void bad(const char *text, const char *message)
{
	struct json_node *n;
	struct err err = { 0 };

	assert_int_equal(json_tree_parse(&n, &mem, "t", str_from(text), &err), -EBADMSG);
	assert_string_equal(err_text(&err), message);
}

static void test_values(void **state)
{
	const struct json_node *n = good(
		" {\"a\": [1, -2, 3.5e-1, true, null], \"b\": {\"c\": \"\\u00fc\\n\"}, \"d\": null}\n");
	const struct json_node *a = json_given(n, "a"), *c;
	uint64_t u;
	int64_t i;
	struct str s;

	(void)state;
	assert_int_equal(n->n, 3);
	assert_int_equal(a->n, 5);
	assert_int_equal(a->at, 7); /* "[1, -2, 3.5e-1, true, null]" */
	assert_int_equal(a->end, 34);
	assert_int_equal(a->first->next->at, 11);
	assert_int_equal(a->first->next->end, 13);
	c = a->first;
	assert_true(json_u64_of(c, &u));
	assert_int_equal(u, 1);
	c = c->next;
	assert_false(json_u64_of(c, &u));
	assert_true(json_i64_of(c, &i));
	assert_int_equal(i, -2);
	c = c->next;
	assert_false(json_u64_of(c, &u));
	assert_true(str_eqz(c->text, "3.5e-1"));
	assert_true(c->next->truth);
	assert_int_equal(c->next->next->type, JSON_NULL);
	assert_true(json_text_of(json_given(n, "b"), "c", &s));
	assert_true(str_eqz(s, "\xc3\xbc\n"));
	assert_null(json_given(n, "d"));
	assert_non_null(json_member(n, "d"));
	assert_null(json_member(a, "x"));
	assert_true(json_text_of(n, "none", &s));
	assert_int_equal(s.n, 0);
	assert_false(json_text_of(n, "a", &s));
}

static void test_numbers(void **state)
{
	uint64_t u;

	(void)state;
	assert_true(json_u64_of(good("18446744073709551615"), &u));
	assert_true(u == UINT64_MAX);
	assert_false(json_u64_of(good("18446744073709551616"), &u));
	assert_true(json_u64_of(good("0"), &u));
}

static void test_mistakes_have_a_place(void **state)
{
	(void)state;
	bad("", "t:1:1: not a value");
	bad("{\n  \"a\": 1,\n  \"a\": 2}", "t:3:6: a key for the second time");
	bad("[1,]", "t:1:4: not a value");
	bad("[1 2]", "t:1:4: expected ',' or ']'");
	bad("{\"a\" 1}", "t:1:6: expected ':'");
	bad("{a:1}", "t:1:2: expected a key");
	bad("01", "t:1:1: not a value");
	bad("1.", "t:1:1: unfinished number");
	bad("nul", "t:1:1: not a value");
	bad("{} x", "t:1:4: something behind the value");
	bad("\"\xff\"", "t:1:2: string is not UTF-8");
	bad("[\"a\\u0000b\"]", "t:1:12: a NUL in a string");
	bad("{\"a\\u0000\": 1}", "t:1:11: a NUL in a string");
}

static void test_limits(void **state)
{
	char text[2 * JSON_TREE_DEPTH + 8];
	size_t n = JSON_TREE_DEPTH + 1;

	(void)state;
	memset(text, '[', n);
	memset(text + n, ']', n);
	text[2 * n] = 0;
	bad(text, "t:1:34: too deep");
	text[0] = ' ';
	text[2 * n - 1] = 0;
	good(text);
}

static int set_up(void **state)
{
	(void)state;
	arena_init(&mem, 1 << 20);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	arena_done(&mem);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_mistakes_have_a_place),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
