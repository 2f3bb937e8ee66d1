// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/store/bundle.h"

#include <errno.h>

static void test_create_refuses_a_second_journal(void **state)
{
	struct journal_options opt = { .session = TEST_SESSION };
	struct bundle b = bundle_new();
	struct journal *j = create(&b, 0), *other = NULL;

	(void)state;
	assert_int_equal(journal_create(&other, b.fd, &opt, NULL), -EBUSY);
	journal_free(j);
	assert_int_equal(journal_create(&other, b.fd, &opt, NULL), -EEXIST);
	bundle_empty(&b);
	opt.session = "../x";
	assert_int_equal(journal_create(&other, b.fd, &opt, NULL), -EINVAL);
	opt.session = "";
	assert_int_equal(journal_create(&other, b.fd, &opt, NULL), -EINVAL);
	opt.session = "a123456789b123456789c123456789d123456789e123456789f123456789g123";
	assert_int_equal(journal_create(&other, b.fd, &opt, NULL), -EINVAL);
	assert_null(other);
	bundle_free(&b);
}

static void test_append_commit_read(void **state)
{
	struct bundle b = bundle_new();
	struct journal *j = create(&b, 0);
	struct journal_reader *r = NULL;

	(void)state;
	assert_int_equal(journal_reader_open(&r, b.fd, NULL), 0);
	assert_int_equal(read_all(r, 1), 0);
	assert_int_equal(journal_next_seq(j), 1);
	assert_int_equal(journal_deadline(j), 0);
	append_records(j, 10);
	assert_int_equal(journal_next_seq(j), 11);
	assert_true(journal_deadline(j) != 0);
	assert_true(journal_behind(j) > 0);
	assert_int_equal(read_all(r, 1), 0);
	assert_int_equal(journal_durable_seq(j), 0);
	assert_int_equal(journal_commit(j), 0);
	assert_int_equal(journal_behind(j), 0);
	assert_int_equal(journal_deadline(j), 0);
	assert_int_equal(journal_durable_seq(j), 10);
	assert_int_equal(read_all(r, 1), 10);
	append_records(j, 5000);
	assert_int_equal(journal_commit(j), 0);
	assert_int_equal(read_all(r, 11), 5000);
	assert_false(journal_reader_at_end(r));
	seal(j, 0);
	assert_int_equal(journal_append(j, STR("{}")), -EROFS);
	assert_int_equal(read_all(r, 5011), 0);
	assert_true(journal_reader_at_end(r));
	journal_reader_free(r);
	journal_free(j);
	bundle_free(&b);
}

static void test_record_sizes(void **state)
{
	struct bundle b = bundle_new();
	struct journal *j = create(&b, 0);
	struct journal_reader *r = NULL;
	static const size_t sizes[] = { STORE_RECORD_MAX,	 1,
					STORE_FRAME_RAW_MAX - 4, STORE_FRAME_RAW_MAX - 3,
					STORE_FRAME_RAW_MAX,	 2,
					STORE_RECORD_MAX };
	char *big = malloc(STORE_RECORD_MAX + 1);
	uint64_t x = 88172645463325252ull;
	struct str rec;

	(void)state;
	/* noise: must end up stored, zstd cannot make it smaller */
	for (size_t i = 0; i <= STORE_RECORD_MAX; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		big[i] = (char)x;
	}
	assert_int_equal(journal_append(j, (struct str){ big, STORE_RECORD_MAX + 1 }), -EMSGSIZE);
	assert_int_equal(journal_append(j, (struct str){ big, 0 }), -EINVAL);
	assert_int_equal(journal_next_seq(j), 1);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		assert_int_equal(journal_append(j, (struct str){ big, sizes[i] }), 0);
	seal(j, 0);
	journal_free(j);
	assert_int_equal(journal_reader_open(&r, b.fd, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		assert_int_equal(journal_reader_next(r, &rec, NULL, NULL), 1);
		assert_true(str_eq(rec, (struct str){ big, sizes[i] }));
	}
	assert_int_equal(journal_reader_next(r, &rec, NULL, NULL), 0);
	assert_true(journal_reader_at_end(r));
	journal_reader_free(r);
	free(big);
	bundle_free(&b);
}

static void test_rotation_and_reading_across(void **state)
{
	struct bundle b = bundle_new();
	struct journal *j = create(&b, 4096);
	struct journal_reader *r = NULL, *late = NULL;
	uint64_t got = 0;

	(void)state;
	assert_int_equal(journal_reader_open(&r, b.fd, NULL), 0);
	for (int i = 0; i < 200; i++) {
		append_records(j, 20);
		assert_int_equal(journal_commit(j), 0);
		if (i % 7 == 0)
			got += read_all(r, got + 1);
	}
	got += read_all(r, got + 1);
	assert_int_equal(got, 4000);
	assert_int_equal(faccessat(b.fd, "events.0003.seg", F_OK, 0), 0);
	assert_int_equal(journal_reader_open(&late, b.fd, NULL), 0);
	assert_int_equal(read_all(late, 1), 4000);
	journal_reader_free(late);
	journal_reader_free(r);
	journal_free(j);
	bundle_free(&b);
}

static void test_seal_refuses_a_summary_that_is_no_object(void **state)
{
	struct journal_seal s = { .summary = STR("{\"a\":1},\"state\":\"x\"") };
	struct bundle b = bundle_new();
	struct journal *j = create(&b, 0);

	(void)state;
	assert_int_equal(journal_seal(j, &s), -EINVAL);
	s.summary = STR("[1]");
	assert_int_equal(journal_seal(j, &s), -EINVAL);
	s.summary = STR("");
	assert_int_equal(journal_seal(j, &s), 0);
	assert_int_equal(journal_seal(j, &s), 0);
	journal_free(j);
	bundle_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create_refuses_a_second_journal),
		cmocka_unit_test(test_append_commit_read),
		cmocka_unit_test(test_record_sizes),
		cmocka_unit_test(test_rotation_and_reading_across),
		cmocka_unit_test(test_seal_refuses_a_summary_that_is_no_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
