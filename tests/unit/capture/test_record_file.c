/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "userspace/base/auto.h"
#include "userspace/capture/capture.h"

static struct {
	size_t n, len[16];
	uint64_t seq[16];
	int fail_at;
} seen;

static int on_record(void *arg, const void *rec, size_t len)
{
	struct wire_hdr h;

	(void)arg;
	memcpy(&h, rec, sizeof(h));
	if ((int)seen.n == seen.fail_at)
		return -ECANCELED;
	seen.seq[seen.n] = h.seq;
	seen.len[seen.n++] = len;
	return 0;
}

static void add(FILE *f, size_t extra)
{
	uint8_t rec[600] = { 0 };
	struct wire_hdr h = { .kind = WIRE_EXIT, .seq = extra + 1000 };

	h.len = (uint32_t)(sizeof(h) + extra);
	memcpy(rec, &h, sizeof(h));
	memset(rec + sizeof(h), 0xa5, extra);
	assert_int_equal(record_file_write(f, rec, h.len), 0);
}

static FILE *recorded(void)
{
	FILE *f = tmpfile();

	assert_non_null(f);
	assert_int_equal(record_file_begin(f), 0);
	add(f, 0);
	add(f, 1);
	add(f, 500);
	memset(&seen, 0, sizeof(seen));
	seen.fail_at = -1;
	return f;
}

static void what_was_written_comes_back(void **state)
{
	auto_file FILE *f = recorded();

	(void)state;
	rewind(f);
	assert_int_equal(record_file_replay(f, on_record, NULL, NULL), 0);
	assert_int_equal(seen.n, 3);
	assert_int_equal(seen.seq[0], 1000);
	assert_int_equal(seen.seq[1], 1001);
	assert_int_equal(seen.len[1], sizeof(struct wire_hdr) + 1);
	assert_int_equal(seen.len[2], sizeof(struct wire_hdr) + 500);
}

static void cut_file_names_the_offset(void **state)
{
	auto_file FILE *f = recorded();
	struct err err = { 0 };
	char want[32];
	long end = ftell(f);

	(void)state;
	for (long cut = end - 1; cut > 16; cut -= 7) {
		int r;

		assert_int_equal(ftruncate(fileno(f), cut), 0);
		rewind(f);
		seen.n = 0;
		r = record_file_replay(f, on_record, NULL, &err);
		if (r == 0) /* cut between two records */
			continue;
		assert_int_equal(r, -EBADMSG);
		snprintf(want, sizeof(want), "offset %d",
			 seen.n == 2   ? 16 + 96 + 104
			 : seen.n == 1 ? 16 + 96
				       : 16);
		assert_non_null(strstr(err.text, want));
	}
}

static void foreign_and_lying_files(void **state)
{
	auto_file FILE *f = recorded();
	struct err err = { 0 };
	uint32_t lies[] = { 0, 8, sizeof(struct wire_hdr) - 1, WIRE_RECORD_MAX + 1, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		fseek(f, 16 + 96, SEEK_SET);
		fwrite(&lies[i], 4, 1, f);
		rewind(f);
		seen.n = 0;
		assert_int_equal(record_file_replay(f, on_record, NULL, &err), -EBADMSG);
		assert_int_equal(seen.n, 1);
		assert_non_null(strstr(err.text, "offset 112"));
	}
	rewind(f);
	fputs("{\"json\":1}\n\n\n\n\n\n\n", f);
	rewind(f);
	assert_int_equal(record_file_replay(f, on_record, NULL, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "WARDERREC"));
}

static void callback_can_stop_it(void **state)
{
	auto_file FILE *f = recorded();

	(void)state;
	rewind(f);
	seen.fail_at = 1;
	assert_int_equal(record_file_replay(f, on_record, NULL, NULL), -ECANCELED);
	assert_int_equal(seen.n, 1);
}

static void refuses_to_write_nonsense(void **state)
{
	auto_file FILE *f = recorded();
	struct wire_hdr h = { .len = 96 };

	(void)state;
	assert_int_equal(record_file_write(f, &h, 95), -EINVAL);
	assert_int_equal(record_file_write(f, &h, 200), -EINVAL);
	h.len = WIRE_RECORD_MAX + 8;
	assert_int_equal(record_file_write(f, &h, WIRE_RECORD_MAX + 8), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_written_comes_back),
		cmocka_unit_test(cut_file_names_the_offset),
		cmocka_unit_test(foreign_and_lying_files),
		cmocka_unit_test(callback_can_stop_it),
		cmocka_unit_test(refuses_to_write_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
