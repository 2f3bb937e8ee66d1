// SPDX-License-Identifier: Apache-2.0
/* Known values as programs write them, and the parts of them that programs use. */
#include "tests/unit/redact/redact_test.h"
#include "userspace/base/arena.h"
#include "userspace/event/event.h"

struct form {
	const char *p;
	size_t n; /* 0: up to its NUL */
};

/* How other writers write one that has all that they escape. */
static void test_forms_of_writers(void **state)
{
	static const char value[] = "k/q&w\"e'r<t> y+u";
	static const struct form forms[] = {
		{ "k/q%26w%22e%27r%3Ct%3E%20y%2Bu", 0 },	/* Python: quote */
		{ "k%2Fq%26w%22e'r%3Ct%3E%20y%2Bu", 0 },	/* JavaScript: encodeURIComponent */
		{ "k/q&w%22e'r%3Ct%3E%20y+u", 0 },		/* and encodeURI */
		{ "k\\/q&w\\\"e'r<t> y+u", 0 },			/* PHP: json_encode */
		{ "k/q\\u0026w\\\"e'r\\u003ct\\u003e y+u", 0 }, /* Go: json.Marshal */
		{ "k/q&amp;w&quot;e&#x27;r&lt;t&gt; y+u", 0 },
		{ "k/q&amp;w&#34;e&#39;r&lt;t&gt; y+u", 0 },
		{ "k/q&amp;w\"e'r&lt;t&gt; y+u", 0 },
		{ "k/q&w\"e\\'r<t> y+u", 0 }, /* Python: repr */
		{ "k\0/\0q\0&\0w\0\"\0e\0'\0r\0<\0t\0>\0 \0y\0+\0u\0", 32 },
		{ "\0k\0/\0q\0&\0w\0\"\0e\0'\0r\0<\0t\0>\0 \0y\0+\0u", 32 },
		{ "awAvAHEAJgB3ACIAZQAnAHIAPAB0AD4AIAB5ACsAdQA=", 0 }, /* of that */
	};
	struct fixture f;

	(void)state;
	fixture_start(&f, "v", value, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		struct str s = { forms[i].p, forms[i].n ? forms[i].n : strlen(forms[i].p) };

		if (!strstr(shown_n(&f, s), "[v]") && shown_n(&f, s)[1] != '[')
			fail_msg("form %zu: %s", i, shown_n(&f, s));
	}
	fixture_end(&f);
}

/* A program reads the file and leaves out what is around its text, or takes one string of it. */
static void test_parts_that_are_used(void **state)
{
	static const char account[] =
		"{ \"type\": \"account\", \"apikey\" : \"xx-first-one\",\n \"list\": [\"se\\u0063ond\\/one\"],"
		" \"name-of-member\": \"short\" }\n";
	struct fixture f;

	(void)state;
	fixture_start(&f, "v", "\xef\xbb\xbf \tinner text\r\n \n", NULL);
	assert_string_equal(shown(&f, "a inner text b"), "a [v] b");
	fixture_end(&f);
	fixture_start(&f, "v", account, NULL);
	assert_string_equal(shown(&f, "a xx-first-one b"), "a [v] b");
	assert_string_equal(shown(&f, "a eHgtZmlyc3Qtb25l b"), "a [v] b");
	assert_string_equal(shown(&f, "a second/one b"), "a [v] b");
	assert_string_equal(shown(&f, "a short name-of-member b"), "a short name-of-member b");
	fixture_end(&f);
}

/* However many strings there are, others have room. */
static void test_json_without_end(void **state)
{
	auto_buf struct buf text = { 0 };
	struct err err = { 0 };
	struct fixture f;

	(void)state;
	buf_addc(&text, '[');
	for (int i = 0; i < 100; i++)
		buf_printf(&text, "\"string-%05d\",", i);
	buf_addc(&text, 0);
	f = (struct fixture){ 0 };
	assert_int_equal(redactor_new(&f.r, TEST_KEY, &err), 0);
	for (int i = 0; i < REDACT_VALUES_MAX / 2; i++)
		assert_int_equal(redactor_add_value(f.r, "v", str_from(text.p)), 0);
	redactor_free(f.r);
}

/* The hash of a file with the secret alone is as good as the secret, for who can guess. */
static void test_hash_of_a_value(void **state)
{
	/* printf 'SECRETMARK-q7Zk2Lm9Xv4Tn8\n' | sha256sum; and without the line's end */
	static const char *const hashes[] = {
		"cf781dd13925cc3752b00e5bdc3a371f0bce28195c2e27e040d61d11c82a27ff",
		"831761e68ed3cf4c49c70de694b2ebdcb96bd3ca0eccdf3a9bfaea917ce1c649",
	};
	struct event ev, *made;
	struct arena arena;
	struct fixture f;

	(void)state;
	arena_init(&arena, 1 << 20);
	fixture_start(&f, "v", "SECRETMARK-q7Zk2Lm9Xv4Tn8", NULL);
	for (size_t i = 0; i < ARRAY_SIZE(hashes); i++) {
		event_init(&ev, WIRE_WORKSPACE_CHANGE, &arena);
		event_set_strz(&ev, i ? F_FILE_SHA256_BEFORE : F_FILE_SHA256, hashes[i]);
		assert_int_equal(redact_event(f.x, &ev, &made), 1);
		assert_false(event_has(made, F_FILE_SHA256));
		assert_false(event_has(made, F_FILE_SHA256_BEFORE));
		assert_true(str_eqz(event_str(made, F_FILE_UNHASHED), "redacted"));
		assert_int_equal(event_u64(made, F_REDACTIONS), 1);
	}
	event_init(&ev, WIRE_WORKSPACE_CHANGE, &arena);
	event_set_strz(&ev, F_FILE_SHA256,
		       "0000000000000000000000000000000000000000000000000000000000000000");
	assert_int_equal(redact_event(f.x, &ev, &made), 0);
	fixture_end(&f);
	arena_done(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms_of_writers),
		cmocka_unit_test(test_parts_that_are_used),
		cmocka_unit_test(test_json_without_end),
		cmocka_unit_test(test_hash_of_a_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
