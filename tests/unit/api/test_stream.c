// SPDX-License-Identifier: Apache-2.0
#include "userspace/api/stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct call c;

static void expect(const char *text)
{
	assert_int_equal(buf_addc(&c.out, 0), 0);
	assert_string_equal(c.out.p, text);
	buf_reset(&c.out);
}

static void characters_are_not_cut(void **state)
{
	struct text_carry t = { 0 };

	(void)state;
	c.form = FORM_NDJSON;
	stream_data(&c, "x", &t, STR("a\360\237"), false, false);
	expect("{\"type\":\"x\",\"data\":\"a\"}\n");
	stream_data(&c, "x", &t, STR("\230"), false, false);
	expect("{\"type\":\"x\",\"data\":\"\"}\n");
	stream_data(&c, "x", &t, STR("\200!\303"), false, false);
	expect("{\"type\":\"x\",\"data\":\"\360\237\230\200!\"}\n");
	stream_data(&c, "x", &t, (struct str){ 0 }, false, true);
	expect("{\"type\":\"x\",\"data\":\"\357\277\275\"}\n");
	stream_data(&c, "x", &t, (struct str){ 0 }, false, true);
	expect("");
}

static void what_is_no_text_waits_for_nothing(void **state)
{
	struct text_carry t = { 0 };

	(void)state;
	c.form = FORM_NDJSON;
	stream_data(&c, "x", &t, STR("\200\200\200"), false, false);
	assert_int_equal(t.n, 0);
	buf_reset(&c.out);
	stream_data(&c, "x", &t, STR("\xff"), false, false);
	expect("{\"type\":\"x\",\"data\":\"\357\277\275\"}\n");
	stream_data(&c, "x", &t, STR("\303\244\303"), true, false);
	expect("{\"type\":\"x\",\"data\":\"w6TD\"}\n");
}

static void events_have_their_own_form(void **state)
{
	struct text_carry t = { 0 };

	(void)state;
	c.form = FORM_SSE;
	stream_data(&c, "stdout", &t, STR("a\n\nb"), false, false);
	expect("event: stdout\ndata: {\"type\":\"stdout\",\"data\":\"a\\n\\nb\"}\n\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(characters_are_not_cut),
		cmocka_unit_test(what_is_no_text_waits_for_nothing),
		cmocka_unit_test(events_have_their_own_form),
	};

	buf_init(&c.out, 1 << 16);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
