// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include "userspace/pipeline/source.h"

static bool matches(const char *filter, const char *json)
{
	struct err err = { 0 };
	void *f;
	bool r;

	assert_int_equal(sink_filters.open(&f, filter, &err), 0);
	r = sink_filters.match(f, str_from(json));
	sink_filters.free(f);
	return r;
}

static void test_match(void **state)
{
	const char *exec = "{\"v\":1,\"id\":\"a:1\",\"seq\":1,\"kind\":\"exec\",\"session\":\"a\","
			   "\"proc\":{\"pid\":7,\"exe\":\"/tmp/x\"}}";

	(void)state;
	assert_true(matches("kind = exec", exec));
	assert_true(matches("kind in (exec, exit) and proc.exe startswith /tmp/", exec));
	assert_false(matches("kind = escape", exec));
	assert_false(matches("proc.exe startswith /usr", exec));
}

/* Nothing is lost by a filter: what it cannot judge goes through. */
static void test_no_event_of_ours(void **state)
{
	(void)state;
	assert_true(matches("kind = escape", "{\"kind\":\"nonsense\"}"));
	assert_true(matches("kind = escape", "{\"kind\":"));
	assert_true(matches("kind = escape", ""));
}

static void test_bad_condition(void **state)
{
	struct err err = { 0 };
	void *f = NULL;

	(void)state;
	assert_true(sink_filters.open(&f, "kind = ", &err) < 0);
	assert_true(err.text[0]);
	assert_true(sink_filters.open(&f, "proc.nmae = x", &err) < 0);
	assert_non_null(strstr(err.text, "proc.nmae"));
	assert_null(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_match),
		cmocka_unit_test(test_no_event_of_ours),
		cmocka_unit_test(test_bad_condition),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
