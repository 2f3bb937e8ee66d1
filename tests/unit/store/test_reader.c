// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/store/bundle.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

static void check_seek(struct journal_reader *r, uint64_t seq, uint64_t last)
{
	char room[256];
	uint64_t got = 0;
	struct str rec;

	assert_int_equal(journal_reader_seek(r, seq, NULL), 0);
	if (seq >= last) {
		assert_int_equal(journal_reader_next(r, &rec, &got, NULL), 0);
		return;
	}
	assert_int_equal(journal_reader_next(r, &rec, &got, NULL), 1);
	assert_int_equal(got, seq + 1);
	assert_true(str_eq(rec, record_text(got, room, sizeof(room))));
}

static void test_seek(void **state)
{
	struct bundle b = bundle_new();
	struct journal_reader *r = NULL;
	unsigned x = 1;

	(void)state;
	sealed_bundle(&b, 3000, 23, 5000, 0);
	assert_int_equal(faccessat(b.fd, "events.0009.seg", F_OK, 0), 0);
	assert_int_equal(journal_reader_open(&r, b.fd, NULL), 0);
	for (uint64_t seq = 0; seq <= 3001; seq += 1 + seq % 3)
		check_seek(r, seq, 3000);
	for (uint64_t seq = 3001; seq > 0; seq--)
		check_seek(r, seq, 3000);
	for (int i = 0; i < 1000; i++) {
		x = x * 1103515245 + 12345;
		check_seek(r, (x >> 8) % 3002, 3000);
	}
	assert_int_equal(journal_reader_seek(r, 0, NULL), 0);
	assert_int_equal(read_all(r, 1), 3000);
	assert_true(journal_reader_at_end(r));
	assert_int_equal(journal_reader_seek(r, 2990, NULL), 0);
	assert_int_equal(read_all(r, 2991), 10);
	assert_int_equal(journal_reader_seek(r, UINT64_MAX, NULL), -EINVAL);
	journal_reader_free(r);
	bundle_free(&b);
}

#define ASIDE "sealed for somebody else"

/* Frames without records: in the chain, found by who looks for them, and in nobody's way. */
static void test_aside(void **state)
{
	struct bundle b = bundle_new();
	struct journal_reader *r = NULL;
	struct verify_report rep;
	struct journal *j;
	struct str got;
	bool start;
	char *text;
	size_t n;

	(void)state;
	j = create(&b, 4000);
	for (int i = 0; i < 40; i++) {
		append_records(j, 20);
		if (i % 3 == 0)
			assert_int_equal(journal_put_aside(j, STR(ASIDE)), 0);
		if (i % 6 == 0)
			assert_int_equal(journal_put_aside(j, STR(ASIDE)), 0);
		assert_int_equal(journal_commit(j), 0);
	}
	assert_int_equal(journal_put_aside(j, (struct str){ ASIDE, 0 }), -EMSGSIZE);
	assert_int_equal(journal_put_aside(j, (struct str){ ASIDE, STORE_ASIDE_MAX + 1 }),
			 -EMSGSIZE);
	assert_int_equal(journal_put_aside(j, STR(ASIDE)), 0); /* nothing but the seal follows */
	seal(j, 0);
	assert_int_equal(journal_put_aside(j, STR(ASIDE)), -EROFS);
	journal_free(j);
	assert_int_equal(store_verify(b.fd, &rep, NULL, NULL, NULL), 0);
	assert_int_equal(rep.state, VERIFY_OK);
	assert_true(rep.segments > 2);
	assert_int_equal(journal_reader_open(&r, b.fd, NULL), 0);
	for (n = 0; journal_reader_next_aside(r, &got, NULL) == 1; n++)
		assert_true(str_eqz(got, ASIDE));
	assert_int_equal(n, 14 + 7 + 1);
	for (uint64_t seq = 801; seq-- > 0;)
		check_seek(r, seq, 800);
	assert_int_equal(journal_reader_seek(r, 0, NULL), 0);
	assert_int_equal(read_all(r, 1), 800);
	assert_int_equal(journal_reader_seek_time(r, UINT64_MAX, NULL), 0);
	assert_int_equal(journal_reader_next(r, &got, NULL, NULL), 0);
	assert_int_equal(journal_reader_seek_back(r, UINT64_MAX, 1, &start, NULL), 0);
	assert_int_equal(journal_reader_next(r, &got, NULL, NULL), 1);
	journal_reader_free(r);
	/* another one in its place is found */
	text = slurp(b.fd, "events.0001.seg", &n);
	*(char *)memmem(text, n, ASIDE, 6) ^= 1;
	spit(b.fd, "events.0001.seg", text, n);
	free(text);
	assert_int_equal(store_verify(b.fd, &rep, NULL, NULL, NULL), 0);
	assert_int_equal(rep.state, VERIFY_ALTERED);
	bundle_free(&b);
}

/* After all records, so that they can be shown, and before anybody thinks that this is all. */
static void test_what_is_behind_the_seal_is_told(void **state)
{
	struct bundle b = bundle_new();
	struct journal_reader *r = NULL;
	struct err err = { 0 };
	struct str rec;
	size_t n;
	char *text;

	(void)state;
	sealed_bundle(&b, 3, 3, 0, 0);
	text = slurp(b.fd, "events.0001.seg", &n);
	spit(b.fd, "events.0002.seg", text, n);
	text[n] = 'x'; /* in place of the 0 behind it */
	for (int k = 0; k < 2; k++) {
		assert_int_equal(journal_reader_open(&r, b.fd, NULL), 0);
		for (int i = 0; i < 3; i++)
			assert_int_equal(journal_reader_next(r, &rec, NULL, NULL), 1);
		assert_int_equal(journal_reader_next(r, &rec, NULL, &err), -EBADMSG);
		assert_non_null(strstr(err.text, k ? "bytes were added behind the seal"
						   : "a segment was added behind the seal"));
		assert_false(journal_reader_at_end(r));
		journal_reader_free(r);
		spit(b.fd, "events.0001.seg", text, n + 1);
	}
	free(text);
	bundle_free(&b);
}

static void test_seek_ahead_of_the_writer(void **state)
{
	struct bundle b = bundle_new();
	struct journal_reader *r = NULL;
	struct journal *j;
	struct str rec;

	(void)state;
	assert_int_equal(journal_reader_open(&r, b.fd, NULL), 0);
	assert_int_equal(journal_reader_seek(r, 15, NULL), 0);
	assert_int_equal(journal_reader_next(r, &rec, NULL, NULL), 0);
	j = create(&b, 0);
	for (int i = 0; i < 4; i++) {
		append_records(j, 5);
		journal_commit(j);
		assert_int_equal(read_all(r, 16), i == 3 ? 5 : 0);
	}
	seal(j, 0);
	assert_int_equal(read_all(r, 21), 0);
	assert_true(journal_reader_at_end(r));
	journal_free(j);
	journal_reader_free(r);
	bundle_free(&b);
}

#define LIVE_RECORDS 60000

static void write_live(struct bundle *b)
{
	struct journal_options opt = { .session = TEST_SESSION,
				       .segment_max = 50000,
				       .no_sync = true };
	struct journal_seal s = { .gaps = 0 };
	struct journal *j = NULL;
	char room[256];
	unsigned left = LIVE_RECORDS;

	if (journal_create(&j, b->fd, &opt, NULL) < 0)
		_exit(1);
	for (unsigned i = 0; left; i++) {
		for (unsigned n = MIN(left, 1 + i * 31 % 400); n; n--, left--)
			if (journal_append(
				    j, record_text(journal_next_seq(j), room, sizeof(room))) < 0)
				_exit(2);
		if (journal_commit(j) < 0)
			_exit(3);
	}
	_exit(journal_seal(j, &s) < 0 ? 4 : 0);
}

static void test_reading_while_another_process_writes(void **state)
{
	struct bundle b = bundle_new();
	struct journal_reader *r = NULL, *seeker = NULL;
	uint64_t got = 0;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(journal_reader_open(&r, b.fd, NULL), 0);
	assert_int_equal(journal_reader_open(&seeker, b.fd, NULL), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		write_live(&b);
	while (!journal_reader_at_end(r)) {
		got += read_all(r, got + 1);
		if (got)
			check_seek(seeker, got * 7 / 11, got);
	}
	assert_int_equal(got, LIVE_RECORDS);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	journal_reader_free(seeker);
	journal_reader_free(r);
	bundle_free(&b);
}

static int drain_any(struct bundle *b, struct err *err)
{
	struct journal_reader *r = NULL;
	struct str rec;
	int s;

	assert_int_equal(journal_reader_open(&r, b->fd, err), 0);
	while ((s = journal_reader_next(r, &rec, NULL, err)) == 1)
		;
	journal_reader_free(r);
	return s;
}

/* Damage is named, never passed over, and never makes the reader wait for more. */
static void test_damage(void **state)
{
	struct bundle b = bundle_new();
	struct err err = { 0 };
	size_t n = 0;
	char *p;

	(void)state;
	sealed_bundle(&b, 100, 10, 1000, 0);
	p = slurp(b.fd, "events.0001.seg", &n);
	p[SEGMENT_HEADER_LEN + FRAME_HEADER_LEN + 5] ^= 1;
	spit(b.fd, "events.0001.seg", p, n);
	assert_int_equal(drain_any(&b, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "events.0001.seg, byte 192"));
	p[SEGMENT_HEADER_LEN + FRAME_HEADER_LEN + 5] ^= 1;
	for (size_t keep = SEGMENT_HEADER_LEN; keep < n; keep += 5) {
		spit(b.fd, "events.0001.seg", p, keep);
		assert_int_equal(drain_any(&b, &err), -EBADMSG);
	}
	spit(b.fd, "events.0001.seg", p, n);
	assert_int_equal(drain_any(&b, &err), 0);
	unlinkat(b.fd, "events.0002.seg", 0);
	assert_int_equal(symlinkat("/proc/self/mem", b.fd, "events.0002.seg"), 0);
	assert_int_equal(drain_any(&b, &err), -ELOOP);
	free(p);
	bundle_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_seek),
		cmocka_unit_test(test_aside),
		cmocka_unit_test(test_seek_ahead_of_the_writer),
		cmocka_unit_test(test_what_is_behind_the_seal_is_told),
		cmocka_unit_test(test_reading_while_another_process_writes),
		cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
