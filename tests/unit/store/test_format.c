// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/store/bundle.h"

#include "userspace/store/crc32c.h"

static void test_crc32c(void **state)
{
	uint8_t bytes[67];

	(void)state;
	/* RFC 3720 appendix B.4 */
	assert_int_equal(crc32c("123456789", 9), 0xe3069283);
	memset(bytes, 0, 32);
	assert_int_equal(crc32c(bytes, 32), 0x8a9136aa);
	memset(bytes, 0xff, 32);
	assert_int_equal(crc32c(bytes, 32), 0x62a8ab43);
	for (size_t n = 0; n <= sizeof(bytes); n++) {
		memset(bytes, (int)n * 7, sizeof(bytes));
		assert_int_equal(crc32c(bytes, n), crc32c_portable(bytes, n));
	}
}

static void test_names(void **state)
{
	char name[SEGMENT_NAME_LEN + 1];

	(void)state;
	segment_name(name, 1);
	assert_string_equal(name, "events.0001.seg");
	segment_name(name, SEGMENT_NUMBER_MAX);
	assert_string_equal(name, "events.9999.seg");
	assert_true(session_is_valid("01JABC.x_y-z"));
	assert_false(session_is_valid(NULL));
	assert_false(session_is_valid(""));
	assert_false(session_is_valid("a/b"));
	assert_false(session_is_valid("a\"b"));
	assert_false(session_is_valid("a b"));
}

static void test_segment_header(void **state)
{
	struct segment_header h = { .kind = SEGMENT_EVENTS,
				    .number = 7,
				    .first_seq = 1ull << 40,
				    .created_ns = 5,
				    .session = "01JX" },
			      got;
	uint8_t bytes[SEGMENT_HEADER_LEN], copy[SEGMENT_HEADER_LEN];

	(void)state;
	memset(h.prev, 3, sizeof(h.prev));
	memset(h.head, 4, sizeof(h.head));
	segment_header_encode(bytes, &h);
	assert_null(segment_header_decode(&got, bytes));
	assert_memory_equal(&got, &h, sizeof(h));
	for (size_t i = 0; i < sizeof(bytes); i++) {
		bytes[i] ^= 0x10;
		assert_non_null(segment_header_decode(&got, bytes));
		bytes[i] ^= 0x10;
	}
	/* a right checksum does not make a wrong field right */
	static const struct {
		size_t at;
		uint8_t value;
	} wrong[] = { { 8, 2 },	 { 10, 1 },   { 12, 3 },   { 12, 0 },	 { 17, 0x40 }, { 20, 1 },
		      { 29, 0 }, { 40, '/' }, { 46, 'x' }, { 103, 'x' }, { 168, 1 },   { 187, 1 } };

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		memcpy(copy, bytes, sizeof(copy));
		copy[wrong[i].at] = wrong[i].value;
		put_le32(copy + 188, crc32c(copy, 188));
		if (!segment_header_decode(&got, copy))
			fail_msg("byte %zu", wrong[i].at);
	}
}

static void test_frame_header_limits(void **state)
{
	static const struct {
		struct frame_header h;
		bool good;
	} cases[] = {
		{ { .type = 1, .codec = 1, .n = 2, .raw_len = 10, .comp_len = 9 }, true },
		{ { .type = 1, .codec = 1, .n = 2, .raw_len = 9, .comp_len = 8 }, false },
		{ { .type = 1, .codec = 1, .n = 2, .raw_len = 10, .comp_len = 10 }, false },
		{ { .type = 1, .codec = 0, .n = 2, .raw_len = 10, .comp_len = 10 }, true },
		{ { .type = 1, .codec = 0, .n = 2, .raw_len = 10, .comp_len = 9 }, false },
		{ { .type = 1, .codec = 1, .n = 0, .raw_len = 10, .comp_len = 9 }, false },
		{ { .type = 1, .codec = 1, .n = 1, .raw_len = 10, .comp_len = 0 }, false },
		{ { .type = 1, .codec = 1, .n = 2, .raw_len = 262144, .comp_len = 9 }, true },
		{ { .type = 1, .codec = 1, .n = 2, .raw_len = 262145, .comp_len = 9 }, false },
		{ { .type = 1, .codec = 1, .n = 1, .raw_len = 1048580, .comp_len = 9 }, true },
		{ { .type = 1, .codec = 1, .n = 1, .raw_len = 1048581, .comp_len = 9 }, false },
		{ { .type = 1, .codec = 1, .n = UINT32_MAX, .raw_len = 100, .comp_len = 9 },
		  false },
		{ { .type = 1, .codec = 2, .n = 1, .raw_len = 10, .comp_len = 9 }, false },
		{ { .type = 2, .codec = 0, .n = 0, .raw_len = 160, .comp_len = 160 }, true },
		{ { .type = 2, .codec = 0, .n = 1, .raw_len = 160, .comp_len = 160 }, false },
		{ { .type = 2, .codec = 0, .n = 0, .raw_len = 161, .comp_len = 161 }, false },
		{ { .type = 3, .codec = 0, .n = 0, .raw_len = 5, .comp_len = 5 }, false },
		{ { .type = 128, .codec = 0, .n = 0, .raw_len = 5, .comp_len = 5 }, true },
		{ { .type = 255, .codec = 0, .n = 1, .raw_len = 5, .comp_len = 5 }, false },
	};
	uint8_t bytes[FRAME_HEADER_LEN];
	struct frame_header got;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		frame_header_encode(bytes, &cases[i].h);
		if (!frame_header_decode(&got, bytes) != cases[i].good)
			fail_msg("case %zu", i);
		if (cases[i].good)
			assert_memory_equal(&got, &cases[i].h, sizeof(got));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crc32c),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_segment_header),
		cmocka_unit_test(test_frame_header_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
