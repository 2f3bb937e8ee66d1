// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "exporters/record.h"

/* In memory of its exact size, so that a sanitizer sees any step too far. */
static int scan(struct export_record *rec, char **ret_copy, const char *text)
{
	size_t n = strlen(text);

	*ret_copy = malloc(n ? n : 1);
	memcpy(*ret_copy, text, n);
	*rec = (struct export_record){ 0 };
	return record_scan(rec, (struct str){ *ret_copy, n });
}

static void expect(const char *text, const char *id, const char *kind, const char *session,
		   const char *sandbox)
{
	struct export_record rec;
	char *copy;

	assert_int_equal(scan(&rec, &copy, text), 0);
	assert_true(str_eqz(rec.id, id));
	assert_true(str_eqz(rec.kind, kind));
	assert_true(str_eqz(rec.session, session));
	assert_true(str_eqz(rec.sandbox, sandbox));
	free(copy);
}

static void test_ours(void **state)
{
	(void)state;
	expect("{\"v\":1,\"id\":\"i1\",\"seq\":7,\"kind\":\"exec\",\"vantage\":\"kernel\","
	       "\"session\":\"s1\",\"sandbox\":\"b1\",\"proc\":{\"pid\":1}}",
	       "i1", "exec", "s1", "b1");
	expect(" { \"id\" : \"i\" , \"kind\":\t\"k\"\n, \"seq\" : -1.5e3 } ", "i", "k", "", "");
	expect("{}", "", "", "", "");
}

/* What a sandbox can put into strings and nested members must not be taken for ours. */
static void test_hostile_values(void **state)
{
	(void)state;
	expect("{\"proc\":{\"kind\":\"evil\",\"a\":[{\"id\":\"evil\"}]},"
	       "\"x\":\"\\\",\\\"kind\\\":\\\"evil\\\",\\\"id\\\":\\\"evil\",\"kind\":\"exec\"}",
	       "", "exec", "", "");
	expect("{\"a\":[\"]\",\"}\",\"\\\\\"],\"kind\":\"k\"}", "", "k", "", "");
	expect("{\"kind\":\"first\",\"kind\":\"second\"}", "", "first", "", "");
	expect("{\"kind\":\"with\\u0041\",\"id\":5}", "", "", "", "");
	expect("{\"ki\\u006ed\":\"x\"}", "", "", "", "");
}

/* The same with so much behind it that the quick way is taken as far as it goes. */
static void test_quick(void **state)
{
#define TAIL ",\"pad\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}"
#define OURS "\"id\":\"i\",\"time\":\"t\",\"kind\":\"k\",\"session\":\"s\",\"sandbox\":\"b\""
	(void)state;
	expect("{\"v\":1," OURS TAIL, "i", "k", "s", "b");
	expect("{" OURS ",\"kind\":\"second\",\"id\":\"second\"" TAIL, "i", "k", "s", "b");
	expect("{\"long\":\"0123456789abcdef\",\"mono\":18446744073709551615," OURS TAIL, "i", "k",
	       "s", "b");
	expect("{\"x\":\"\\\",\\\"id\\\":\\\"evil\\\",\\\"kind\\\":\\\"evil\"," OURS TAIL, "i", "k",
	       "s", "b");
	expect("{\"x\\\":\":\"evil\"," OURS TAIL, "i", "k", "s", "b");
	expect("{\"x\":true," OURS TAIL, "i", "k", "s", "b");
	expect("{\"x\":{\"id\":\"evil\"}," OURS TAIL, "i", "k", "s", "b");
	expect("{\"a_long_key_of_ours\":1," OURS TAIL, "i", "k", "s", "b");
	expect("{ " OURS TAIL, "i", "k", "s", "b");
	expect("{\"id\":\"with\\u0041\",\"kind\":7,\"session\":\"\",\"sandbox\":\"b\"" TAIL, "", "",
	       "", "b");
}

/* All lengths of strings, cut at every place: it never looks past the end. */
static void test_cut(void **state)
{
	static const char text[] =
		"{\"v\":1,\"id\":\"0123456\",\"seq\":12345,\"time\":\"01234567\",\"kind\":\"012345678\","
		"\"session\":\"0123456789abcdef\",\"sandbox\":\"012345678901234567\"" TAIL;

	(void)state;
	for (size_t n = 0; n < sizeof(text) - 1; n++) {
		struct export_record rec;
		char *copy = malloc(n + 1), *exact = malloc(n ? n : 1), *other;
		int r;

		memcpy(copy, text, n);
		copy[n] = 0;
		memcpy(exact, text, n);
		r = record_scan(&rec, (struct str){ exact, n });
		assert_int_equal(r, scan(&rec, &other, copy));
		free(other);
		free(copy);
		free(exact);
	}
}

static void test_broken(void **state)
{
	static const char *const texts[] = {
		"",
		"[]",
		"x",
		"{",
		"{\"",
		"{\"a",
		"{\"a\"",
		"{\"a\":",
		"{\"a\":1",
		"{\"a\":\"\\",
		"{\"a\":\"b\"",
		"{\"a\":1,",
		"{\"a\":1,}",
		"{\"a\":[1,2}",
		"{\"a\":]}",
		"{a:1}",
		"{\"a\" 1}",
		"{\"a\":{\"b\":1}",
		"{\"a\":\"b\\\"}",
		"{\"a\":\"b\" \"c\":1}",
		("{\"a\":,\"id\":\"i\",\"time\":\"t\",\"kind\":\"k\",\"session\":\"s\",\"sandbox\":\"b\"" TAIL),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct export_record rec;
		char *copy;

		if (scan(&rec, &copy, texts[i]) != -EBADMSG)
			fail_msg("'%s' was taken", texts[i]);
		free(copy);
	}
}

static void test_bounded(void **state)
{
	char text[3 * RECORD_SCAN_BYTES];
	struct export_record rec;
	char *copy;
	size_t n;

	(void)state;
	/* A member beyond the window is not found, and being cut there is no error. */
	n = (size_t)snprintf(text, sizeof(text), "{\"kind\":\"exec\",\"big\":\"");
	memset(text + n, 'x', 2 * RECORD_SCAN_BYTES);
	n += 2 * RECORD_SCAN_BYTES;
	snprintf(text + n, sizeof(text) - n, "\",\"id\":\"late\"}");
	assert_int_equal(scan(&rec, &copy, text), 0);
	assert_true(str_eqz(rec.kind, "exec"));
	assert_int_equal(rec.id.n, 0);
	free(copy);
}

static void test_time(void **state)
{
	struct export_record rec = { .time = STR("2026-01-31T12:34:56.123456789Z") };

	(void)state;
	assert_true(record_time_ns(&rec) == 1769862896123456789ull);
	rec.time = STR("1970-01-01T00:00:01Z");
	assert_true(record_time_ns(&rec) == 1000000000ull);
	rec.time = STR("1970-01-01T00:00:00.5Z");
	assert_true(record_time_ns(&rec) == 500000000ull);
	rec.time = STR("yyyy-01-31T12:34:56Z");
	assert_true(record_time_ns(&rec) == 0);
	rec.time = STR("2026-01-31T12:34:56+02:00");
	assert_true(record_time_ns(&rec) == 0);
	rec.time.n = 0;
	assert_true(record_time_ns(&rec) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ours),   cmocka_unit_test(test_hostile_values),
		cmocka_unit_test(test_quick),  cmocka_unit_test(test_cut),
		cmocka_unit_test(test_broken), cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
