// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/store/bundle.h"

#include <errno.h>

#include "userspace/store/manifest.h"

static int parse(const char *text, struct manifest_info *ret)
{
	return manifest_parse(str_from(text), ret);
}

static void test_written_and_read_back(void **state)
{
	struct manifest_segment seg = { .first_seq = 1, .records = 5, .frames = 2, .bytes = 999 };
	static const uint8_t root[STORE_HASH_LEN] = { 0xab };
	struct manifest m = { .session = "01JX",
			      .tool = "warder \"1\"",
			      .sealed = true,
			      .records = 5,
			      .frames = 2,
			      .gaps = 3,
			      .bytes = 999,
			      .segments = &seg,
			      .n_segments = 1,
			      .root = root,
			      .host_key = root,
			      .summary = STR(" {\"a\":[{\"b\":\"}\\\"]\"}]} ") };
	struct manifest_info got;
	auto_buf struct buf out = { 0 };

	(void)state;
	buf_init(&out, 0);
	assert_int_equal(manifest_write(&out, &m), 0);
	assert_int_equal(manifest_parse((struct str){ out.p, out.n }, &got), 0);
	assert_true(got.sealed && got.records == 5 && got.frames == 2 && got.gaps == 3);
	assert_true(got.bytes == 999 && got.segments == 1);
	assert_string_equal(got.session, "01JX");
	for (size_t n = 0; n < out.n - 1; n++)
		assert_int_equal(manifest_parse((struct str){ out.p, n }, &got), -EBADMSG);
}

#define OPEN(rest) "{\"format\":\"warder-bundle\",\"version\":1,\"state\":\"open\"" rest

#define SEALED(rest)                                                                                        \
	"{\"format\":\"warder-bundle\",\"version\":1,\"state\":\"sealed\",\"session\":\"x\",\"records\":1," \
	"\"frames\":1,\"gaps\":0,\"bytes\":9,\"segment_count\":1,\"head\":\"00\"" rest

static void test_what_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"{}",
		"[]",
		"null",
		OPEN("}"),
		OPEN(",\"session\":\"\"}"),
		OPEN(",\"session\":\"a/b\"}"),
		OPEN(",\"session\":\"a\\u0062\"}"),
		OPEN(",\"session\":3}"),
		OPEN(",\"session\":\"x\",\"session\":\"x\"}"),
		OPEN(",\"session\":\"x\",\"state\":\"sealed\"}"),
		OPEN(",\"session\":\"x\"} x"),
		OPEN(",\"session\":\"x\",}"),
		OPEN(",\"session\":\"x\",\"y\":}"),
		OPEN(",\"session\":\"x\",\"y\":[1}"),
		OPEN(",\"session\":\"x\" \"y\":1}"),
		"{\"format\":\"warder-bundle\",\"version\":2,\"state\":\"open\",\"session\":\"x\"}",
		"{\"format\":\"other\",\"version\":1,\"state\":\"open\",\"session\":\"x\"}",
		"{\"format\":\"warder-bundle\",\"version\":1,\"state\":\"sealed\",\"session\":\"x\"}",
		"{\"format\":\"warder-bundle\",\"version\":1,\"state\":\"other\",\"session\":\"x\"}",
		SEALED(",\"terminal\":1}"),
		SEALED(",\"terminal\":{}}"),
		SEALED(",\"terminal\":{\"bytes\":-1,\"segment_count\":1}}"),
		SEALED(",\"terminal\":{\"bytes\":1,\"segment_count\":1},\"terminal\":{}}"),
	};
	struct manifest_info got;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (parse(bad[i], &got) != -EBADMSG)
			fail_msg("taken: %s", bad[i]);
	assert_int_equal(
		parse(SEALED(",\"terminal\":{\"records\":1,\"bytes\":70,\"segment_count\":2}}"),
		      &got),
		0);
	assert_true(got.tty_bytes == 70 && got.tty_segments == 2);
	assert_int_equal(parse(SEALED("}"), &got), 0);
	assert_true(got.tty_bytes == 0 && got.tty_segments == 0);
	assert_int_equal(parse(" " OPEN(" , \"x\" : [ {\"state\":\"sealed\"} , \"}\" ] ,\n"
					"\"session\" : \"x\" }\n"),
			       &got),
			 0);
	assert_false(got.sealed);
}

/* Nesting without end costs nothing: it is counted, not followed. */
static void test_deep_nesting(void **state)
{
	size_t n = 4 << 20;
	char *text = malloc(n);
	struct manifest_info got;

	(void)state;
	memset(text, '[', n);
	memcpy(text, "{\"a\":", 5);
	assert_int_equal(manifest_parse((struct str){ text, n }, &got), -EBADMSG);
	free(text);
}

static void test_summary_must_be_an_object(void **state)
{
	struct manifest m = { .session = "x", .tool = "t", .sealed = true };
	static const char *const bad[] = { "1", "[]", "{", "{}}", "{},", "\"{}\"", "{\"a\":\"}" };
	auto_buf struct buf out = { 0 };

	(void)state;
	buf_init(&out, 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		m.summary = str_from(bad[i]);
		if (manifest_write(&out, &m) != -EINVAL)
			fail_msg("taken: %s", bad[i]);
	}
	m.summary = STR("{}");
	assert_int_equal(manifest_write(&out, &m), 0);
	out.max = 10;
	buf_reset(&out);
	out.cap = 10;
	assert_int_equal(manifest_write(&out, &m), -EMSGSIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_written_and_read_back),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_deep_nesting),
		cmocka_unit_test(test_summary_must_be_an_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
