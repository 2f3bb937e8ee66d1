// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "exporters/syslog.h"

static void expect(const struct export_record *rec, const char *expected)
{
	const struct syslog_header h = { .facility = 16, .host = "node 7", .app_name = "warder" };
	struct buf out;

	buf_init(&out, 0);
	assert_int_equal(syslog_format(&out, &h, rec), 0);
	buf_addc(&out, 0);
	assert_string_equal(out.p, expected);
	buf_done(&out);
}

static void test_plain(void **state)
{
	struct export_record rec = {
		.seq = 7,
		.session = STR("S1"),
		.id = STR("S1-7"),
		.kind = STR("rule.alert"),
		.sandbox = STR("b"),
		.time = STR("2026-01-31T12:34:56.123456789Z"),
		.json = STR("{\"a\":1}"),
	};

	(void)state;
	expect(&rec, "<130>1 2026-01-31T12:34:56.123456Z node7 warder - rule.alert "
		     "[warder@32473 id=\"S1-7\" session=\"S1\" seq=\"7\" sandbox=\"b\"] {\"a\":1}");
	rec.kind = STR("exec");
	rec.time = STR("2026-01-31T12:34:56+02:00");
	rec.sandbox.n = 0;
	expect(&rec, "<134>1 2026-01-31T12:34:56+02:00 node7 warder - exec "
		     "[warder@32473 id=\"S1-7\" session=\"S1\" seq=\"7\"] {\"a\":1}");
}

/* Nothing a record holds breaks out of its field. */
static void test_hostile(void **state)
{
	struct export_record rec = {
		.seq = 1,
		.session = STR("a\"]\\\n b"),
		.kind = STR("x y\r\n<1>zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"),
		.time = STR("2026-01-31T x\n] \"junk\""),
		.json = STR("{}"),
	};

	(void)state;
	expect(&rec, "<134>1 - node7 warder - "
		     "xy<1>zzzzzzzzzzzzzzzzzzzzzzzzzzz "
		     "[warder@32473 session=\"a\\\"\\]\\\\? b\" seq=\"1\"] {}");
	rec = (struct export_record){ .seq = 1, .time = STR("short"), .json = STR("{}") };
	expect(&rec, "<134>1 - node7 warder - - [warder@32473 seq=\"1\"] {}");
}

static void test_too_large(void **state)
{
	const struct syslog_header h = { .facility = 1 };
	struct export_record rec = { .json = STR(
					     "{\"a\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}") };
	struct buf out;

	(void)state;
	buf_init(&out, 64);
	assert_int_equal(syslog_format(&out, &h, &rec), -EMSGSIZE);
	buf_done(&out);
}

static void test_facility(void **state)
{
	int f = -1;

	(void)state;
	assert_int_equal(syslog_facility("local7", &f), 0);
	assert_int_equal(f, 23);
	assert_int_equal(syslog_facility("13", &f), 0);
	assert_int_equal(f, 13);
	assert_int_equal(syslog_facility("24", &f), -EINVAL);
	assert_int_equal(syslog_facility("", &f), -EINVAL);
	assert_int_equal(syslog_facility("locale", &f), -EINVAL);
	assert_int_equal(f, 13);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_facility),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
