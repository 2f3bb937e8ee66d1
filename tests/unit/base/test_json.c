// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/json.h"

static const char *text(struct buf *b)
{
	assert_false(b->failed);
	buf_addc(b, 0);
	b->n--;
	return b->p;
}

static void nesting_and_commas(void **state)
{
	struct buf b;
	struct json j;

	(void)state;
	buf_init(&b, 0);
	json_init(&j, &b);
	json_object_begin(&j);
	json_key(&j, "a");
	json_array_begin(&j);
	json_u64(&j, 0);
	json_u64(&j, UINT64_MAX);
	json_i64(&j, INT64_MIN);
	json_i64(&j, 5);
	json_array_begin(&j);
	json_array_end(&j);
	json_array_end(&j);
	json_key_str(&j, STR("k\n"));
	json_bool(&j, true);
	json_key(&j, "n");
	json_null(&j);
	json_key(&j, "r");
	json_raw(&j, STR("{}"));
	json_key(&j, "o");
	json_object_begin(&j);
	json_object_end(&j);
	json_object_end(&j);
	assert_string_equal(text(&b), "{\"a\":[0,18446744073709551615,-9223372036854775808,5,[]],"
				      "\"k\\n\":true,\"n\":null,\"r\":{},\"o\":{}}");
	buf_done(&b);
}

static void too_deep_is_a_failure(void **state)
{
	struct buf b;
	struct json j;

	(void)state;
	buf_init(&b, 0);
	json_init(&j, &b);
	for (int i = 0; i < JSON_DEPTH_MAX; i++)
		json_array_begin(&j);
	assert_false(b.failed);
	json_array_begin(&j);
	assert_true(b.failed);
	buf_done(&b);
}

static void assert_str(const char *in, size_t n, const char *want, bool valid)
{
	char *exact = malloc(n); /* a block of that size: a sanitizer sees every overrun */
	struct buf b;
	struct json j;

	memcpy(exact, in, n);
	buf_init(&b, 0);
	json_init(&j, &b);
	assert_int_equal(json_str(&j, (struct str){ exact, n }), valid);
	assert_string_equal(text(&b), want);
	assert_int_equal(utf8_is_valid((struct str){ exact, n }), valid);
	buf_done(&b);
	free(exact);
}

#define BAD "\xef\xbf\xbd"

static void strings_are_escaped(void **state)
{
	(void)state;
	assert_str("", 0, "\"\"", true);
	assert_str("a\"\\/\b\f\n\r\t\x01\x1f\x7f", 13 - 1,
		   "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\\u007f\"", true);
	assert_str("\0", 1, "\"\\u0000\"", true);
	assert_str("12345678\n", 9, "\"12345678\\n\"", true);
	assert_str("1234567\n", 8, "\"1234567\\n\"", true);
	assert_str("\n123456789abcdef", 16, "\"\\n123456789abcdef\"", true);
}

/* What a terminal obeys or an eye misses is written out, so that a line of JSON can be shown as it is. */
static void nothing_deceptive_stays(void **state)
{
	(void)state;
	assert_str("\xc2\x9b"
		   "31m",
		   5, "\"\\u009b31m\"", true); /* CSI of 8 bits */
	assert_str("\xe2\x80\xae.txt", 7, "\"\\u202e.txt\"", true);
	assert_str("\xf3\xa0\x81\x81", 4, "\"\\udb40\\udc41\"", true); /* a tag, U+E0041 */
	assert_str("\xc2\xa0", 2, "\"\xc2\xa0\"", true);
}

/* RFC 3629: shortest forms, no surrogates, nothing above U+10FFFF. */
static void utf8_is_judged_exactly(void **state)
{
	(void)state;
	assert_str("\xc3\xa9", 2, "\"\xc3\xa9\"", true);
	assert_str("\xe2\x82\xac", 3, "\"\xe2\x82\xac\"", true);
	assert_str("\xf0\x9f\x98\x80", 4, "\"\xf0\x9f\x98\x80\"", true);
	assert_str("\xf4\x8f\xbf\xbf", 4, "\"\xf4\x8f\xbf\xbf\"", true);
	assert_str("\xed\x9f\xbf", 3, "\"\xed\x9f\xbf\"", true);
	assert_str("\xff", 1, "\"" BAD "\"", false);
	assert_str("\x80", 1, "\"" BAD "\"", false);
	assert_str("\xc3", 1, "\"" BAD "\"", false);
	assert_str("\xc0\xaf", 2, "\"" BAD BAD "\"", false);
	assert_str("\xc1\xbf", 2, "\"" BAD BAD "\"", false);
	assert_str("\xe0\x9f\xbf", 3, "\"" BAD BAD BAD "\"", false);
	assert_str("\xed\xa0\x80", 3, "\"" BAD BAD BAD "\"", false);
	assert_str("\xf0\x8f\xbf\xbf", 4, "\"" BAD BAD BAD BAD "\"", false);
	assert_str("\xf4\x90\x80\x80", 4, "\"" BAD BAD BAD BAD "\"", false);
	assert_str("\xf5\x80\x80\x80", 4, "\"" BAD BAD BAD BAD "\"", false);
	assert_str("\xe2\x82", 2, "\"" BAD BAD "\"", false);
	assert_str("\xe2\x82z", 3, "\"" BAD BAD "z\"", false);
}

/* Every byte at every place of the eight that are looked at together. */
static void every_byte_at_every_place(void **state)
{
	(void)state;
	for (unsigned c = 0; c < 256; c++) {
		for (size_t at = 0; at < 20; at++) {
			char in[20], want[64] = "\"", one[8];

			memset(in, 'x', sizeof(in));
			in[at] = (char)c;
			if (c == '"' || c == '\\')
				snprintf(one, sizeof(one), "\\%c", c);
			else if (c && strchr("\b\f\n\r\t", (int)c))
				snprintf(one, sizeof(one), "\\%c",
					 "btnfr"[strchr("\b\t\n\f\r", (int)c) - "\b\t\n\f\r"]);
			else if (c < 0x20 || c == 0x7f)
				snprintf(one, sizeof(one), "\\u%04x", c);
			else if (c >= 0x80)
				snprintf(one, sizeof(one), BAD);
			else
				snprintf(one, sizeof(one), "%c", c);
			memset(want + 1, 'x', at);
			strcat(want, one);
			for (size_t i = at + 1; i < sizeof(in); i++)
				strcat(want, "x");
			strcat(want, "\"");
			assert_str(in, sizeof(in), want, c < 0x80);
		}
	}
}

/* Long strings are written in pieces of 4096 bytes: no character may be cut in two there. */
static void characters_on_the_edge_of_a_piece(void **state)
{
	static const char *const chars[] = { "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80" };
	static char in[9000], want[9002];

	(void)state;
	for (size_t k = 0; k < 3; k++) {
		size_t n = strlen(chars[k]);

		for (size_t at = 4090; at < 4100; at++) {
			memset(in, 'a', sizeof(in));
			memcpy(in + at, chars[k], n);
			memcpy(in + at + n, chars[k], n);
			want[0] = '"';
			memcpy(want + 1, in, 5000);
			memcpy(want + 5001, "\"", 2);
			assert_str(in, 5000, want, true);
		}
	}
	/* nothing but continuation bytes: each is replaced, none is lost */
	memset(in, 0x80, 4200);
	want[0] = 0;
	{
		static char bad[4200 * 3 + 3];
		char *p = bad;

		*p++ = '"';
		for (int i = 0; i < 4200; i++, p += 3)
			memcpy(p, BAD, 3);
		memcpy(p, "\"", 2);
		assert_str(in, 4200, bad, false);
	}
}

static void base64(void **state)
{
	static const char *const cases[][2] = {
		{ "", "\"\"" },	       { "f", "\"Zg==\"" },	   { "fo", "\"Zm8=\"" },
		{ "foo", "\"Zm9v\"" }, { "foob", "\"Zm9vYg==\"" }, { "\xff\xfe\xfd", "\"//79\"" }
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) { /* RFC 4648 section 10 */
		struct buf b;
		struct json j;

		buf_init(&b, 0);
		json_init(&j, &b);
		json_base64(&j, str_from(cases[i][0]));
		assert_string_equal(text(&b), cases[i][1]);
		buf_done(&b);
	}
}

#include "tests/unit/base/json_copy.h"

static void digits(void **state)
{
	(void)state;
	for (uint64_t v = 1, k = 0; k < 20; k++, v *= 10) {
		for (int64_t d = -1; d <= 1; d++) {
			char want[24], got[24];
			char *end = json_digits(got, v + (uint64_t)d);

			snprintf(want, sizeof(want), "%llu", (unsigned long long)(v + (uint64_t)d));
			*end = 0;
			assert_string_equal(got, want);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nesting_and_commas),
		cmocka_unit_test(too_deep_is_a_failure),
		cmocka_unit_test(strings_are_escaped),
		cmocka_unit_test(nothing_deceptive_stays),
		cmocka_unit_test(utf8_is_judged_exactly),
		cmocka_unit_test(every_byte_at_every_place),
		cmocka_unit_test(characters_on_the_edge_of_a_piece),
		cmocka_unit_test(base64),
		cmocka_unit_test(digits),
		cmocka_unit_test(copies_until_the_first_odd_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
