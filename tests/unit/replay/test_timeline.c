// SPDX-License-Identifier: Apache-2.0
#include "userspace/replay/timeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static const char *safe(struct str s, size_t max)
{
	static struct buf out;

	buf_done(&out);
	buf_init(&out, 1 << 16);
	assert_int_equal(text_for_terminal(s, max, &out), 0);
	buf_addc(&out, 0);
	return out.p;
}

static void test_text_for_terminal(void **state)
{
	static const struct {
		struct str in;
		const char *out;
	} rows[] = {
		{ STR("plain /a b"), "plain /a b" },
		{ STR("\033[2J\007"), "\\x1b[2J\\x07" },
		{ STR("a\nb\rc\td"), "a\\x0ab\\x0dc\\x09d" },
		{ STR("a\0b"), "a\\x00b" },
		{ STR("back\\x1b"), "back\\\\x1b" },
		{ STR("\x7f"), "\\x7f" },
		{ STR("\xc2\x9b"
		      "31m"),
		  "\\u{009b}31m" }, /* CSI as one C1 character */
		{ STR("\x9b"
		      "31m"),
		  "\\x9b31m" },
		{ STR("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f" },
		{ STR("\xe2\x80\xae"
		      "gpj.exe"),
		  "\\u{202e}gpj.exe" }, /* right-to-left override */
		{ STR("a\xe2\x80\x8b"
		      "b"),
		  "a\\u{200b}b" },
		{ STR("\xf3\xa0\x81\x81"), "\\u{e0041}" },
		{ STR("\xf0\x9f\x98\x80"), "\xf0\x9f\x98\x80" },
		{ STR("\xed\xa0\x80\xff"), "\\xed\\xa0\\x80\\xff" },
		{ STR(""), "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(safe(rows[i].in, 400), rows[i].out);
	assert_string_equal(safe(STR("0123456789abcdefghij"), 15), "012345...");
}

static void line_of(struct timeline *t, const char *json, const char *want)
{
	static struct event ev;
	struct arena arena;
	struct err err = { 0 };
	struct buf out;

	arena_init(&arena, 1 << 20);
	buf_init(&out, 1 << 16);
	if (event_from_json(&ev, &arena, str_from(json), &err) < 0)
		fail_msg("%s", err_text(&err));
	assert_int_equal(timeline_line(t, &ev, &out), 0);
	buf_addc(&out, 0);
	assert_string_equal(out.p, want);
	buf_done(&out);
	arena_done(&arena);
}

static void test_lines(void **state)
{
	struct timeline t = { 0 };

	(void)state;
	line_of(&t,
		"{\"kind\":\"exec\",\"mono\":1000000000,\"outcome\":\"success\",\"proc\":{\"nspid\":2,"
		"\"comm\":\"sh\",\"args\":[\"sh\",\"-c\",\"echo \\u001b[31m\"],"
		"\"ancestors\":[{\"pid\":1,\"start\":1,\"comm\":\"init\"}]}}",
		"    0.000000      2   sh         exec sh -c 'echo \\x1b[31m'");
	line_of(&t,
		"{\"kind\":\"file.rename\",\"mono\":1001500000,\"outcome\":\"denied\",\"errno\":\"EACCES\","
		"\"proc\":{\"nspid\":3,\"comm\":\"mv\"},\"file\":{\"path\":\"/b\",\"old_path\":\"/a\"}}",
		"    0.001500      3 mv           file.rename /a to /b [denied EACCES]");
	/* no row of its own: every field of the kind */
	line_of(&t,
		"{\"kind\":\"oom\",\"mono\":3000000000,\"limit\":{\"type\":\"memory\",\"value\":4096}}",
		"    2.000000                     oom limit.type=memory limit.value=4096");
	/* an earlier time than the first event's is not before it */
	line_of(&t, "{\"kind\":\"gap\",\"mono\":5,\"gap\":{\"kind\":\"exec\",\"count\":7}}",
		"    0.000000                     gap lost 7 of kind exec");
}

static void test_colour(void **state)
{
	struct timeline t = { .colour = true };

	(void)state;
	line_of(&t, "{\"kind\":\"gap\",\"mono\":5,\"gap\":{\"count\":7}}",
		"    0.000000                     \033[33mgap lost 7\033[0m");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_for_terminal),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_colour),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
