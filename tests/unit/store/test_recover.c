// SPDX-License-Identifier: Apache-2.0
/* A writer may die at any byte. */
#include "tests/unit/store/bundle.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static struct journal *recover(struct bundle *b, uint64_t *ret_cut)
{
	struct journal_options opt = { .session = TEST_SESSION, .no_sync = true };
	struct journal *j = NULL;
	struct err err = { 0 };
	int r = journal_recover(&j, b->fd, &opt, ret_cut, &err);

	if (r < 0)
		fail_msg("%s", err.text);
	return j;
}

static void check_intact(struct bundle *b, uint64_t records)
{
	struct journal_reader *r = NULL;
	struct verify_report rep;

	assert_int_equal(store_verify(b->fd, &rep, NULL, NULL, NULL), 0);
	if (rep.state != VERIFY_OK)
		fail_msg("%s", rep.text);
	assert_int_equal(rep.records, records);
	assert_int_equal(journal_reader_open(&r, b->fd, NULL), 0);
	assert_int_equal(read_all(r, 1), records);
	assert_true(journal_reader_at_end(r));
	journal_reader_free(r);
}

/* How many records frames complete within the first `keep` bytes hold. */
static uint64_t records_within(const char *p, size_t keep)
{
	struct frame_header h;
	size_t at = SEGMENT_HEADER_LEN;
	uint64_t n = 0;

	while (keep >= at + FRAME_HEADER_LEN) {
		assert_null(frame_header_decode(&h, (const uint8_t *)p + at));
		at += FRAME_HEADER_LEN + h.comp_len;
		if (at <= keep)
			n += h.n;
	}
	return n;
}

static void test_cut_at_every_byte(void **state)
{
	struct bundle b = bundle_new();
	struct journal *j = create(&b, 0);
	size_t n = 0;
	char *p;

	(void)state;
	for (int i = 0; i < 5; i++) {
		append_records(j, 8);
		if (i % 2)
			assert_int_equal(journal_put_aside(j, STR("sealed for somebody else")), 0);
		journal_commit(j);
	}
	journal_free(j);
	p = slurp(b.fd, "events.0001.seg", &n);
	for (size_t keep = 0; keep <= n; keep++) {
		uint64_t left = records_within(p, keep), cut = 99;
		struct verify_report rep;
		struct stat st;

		spit(b.fd, "events.0001.seg", p, keep);
		assert_int_equal(store_verify(b.fd, &rep, NULL, NULL, NULL), 0);
		if (rep.state != VERIFY_OPEN)
			fail_msg("cut to %zu: state %d: %s", keep, rep.state, rep.text);
		assert_int_equal(rep.records, left);
		j = recover(&b, &cut);
		assert_int_equal(journal_next_seq(j), left + 1);
		assert_int_equal(journal_durable_seq(j), left);
		assert_int_equal(fstatat(b.fd, "events.0001.seg", &st, 0), 0);
		if (keep >= SEGMENT_HEADER_LEN)
			assert_int_equal(st.st_size + cut, keep);
		else
			assert_int_equal(cut, keep);
		append_records(j, 3);
		seal(j, 0);
		journal_free(j);
		check_intact(&b, left + 3);
		unlinkat(b.fd, MANIFEST_NAME, 0);
	}
	free(p);
	bundle_free(&b);
}

static void test_cut_in_the_last_of_many_segments(void **state)
{
	struct bundle b = bundle_new();
	struct verify_report rep;
	char last[SEGMENT_NAME_LEN + 1];
	uint64_t cut;
	struct journal *j = create(&b, 1000);
	size_t n = 0;
	char *p;

	(void)state;
	for (int i = 0; i < 10; i++) {
		append_records(j, 10);
		journal_commit(j);
	}
	journal_free(j);
	store_verify(b.fd, &rep, NULL, NULL, NULL);
	assert_true(rep.segments >= 3);
	segment_name(last, (unsigned)rep.segments);
	p = slurp(b.fd, last, &n);
	for (size_t keep = 0; keep < n; keep++) {
		uint64_t next;

		spit(b.fd, last, p, keep);
		j = recover(&b, &cut);
		next = journal_next_seq(j);
		assert_true(next > 30 && next <= 101);
		if (keep >= SEGMENT_HEADER_LEN) { /* else it would go into the segment before */
			append_records(j, 5);
			next += 5;
		}
		journal_commit(j);
		assert_int_equal(store_verify(b.fd, &rep, NULL, NULL, NULL), 0);
		assert_int_equal(rep.state, VERIFY_OPEN);
		assert_int_equal(rep.records, next - 1);
		journal_free(j);
	}
	/* a middle segment is never cut */
	free(p);
	p = slurp(b.fd, "events.0001.seg", &n);
	spit(b.fd, "events.0001.seg", p, n - 1);
	{
		struct journal_options opt = { .session = TEST_SESSION };

		assert_int_equal(journal_recover(&j, b.fd, &opt, &cut, NULL), -EBADMSG);
	}
	free(p);
	bundle_free(&b);
}

static void test_refusals(void **state)
{
	struct journal_options opt = { .session = TEST_SESSION };
	struct bundle b = bundle_new();
	struct journal *j = NULL, *live;
	uint64_t cut;
	size_t n = 0, m = 0;
	char *p, *manifest;

	(void)state;
	assert_int_equal(journal_recover(&j, b.fd, &opt, &cut, NULL), -ENOENT);
	live = create(&b, 0);
	assert_int_equal(journal_recover(&j, b.fd, &opt, &cut, NULL), -EBUSY);
	append_records(live, 10);
	journal_commit(live);
	append_records(live, 10);
	seal(live, 0);
	journal_free(live);
	assert_int_equal(journal_recover(&j, b.fd, &opt, &cut, NULL), -EALREADY);
	/* a crash between manifest and seal: go on; records lost after sealing: no */
	p = slurp(b.fd, "events.0001.seg", &n);
	manifest = slurp(b.fd, MANIFEST_NAME, &m);
	spit(b.fd, "events.0001.seg", p, n - 1);
	j = recover(&b, &cut);
	assert_int_equal(cut, FRAME_HEADER_LEN + SEAL_LEN - 1);
	assert_int_equal(journal_next_seq(j), 21);
	journal_free(j);
	spit(b.fd, MANIFEST_NAME, manifest, m);
	spit(b.fd, "events.0001.seg", p, n - 1 - FRAME_HEADER_LEN - SEAL_LEN);
	assert_int_equal(journal_recover(&j, b.fd, &opt, &cut, NULL), -EBADMSG);
	free(p);
	p = slurp(b.fd, "events.0001.seg", &m);
	assert_int_equal(m, n - 1 - FRAME_HEADER_LEN - SEAL_LEN); /* nothing was cut */
	opt.session = "01JOTHER";
	assert_int_equal(journal_recover(&j, b.fd, &opt, &cut, NULL), -EBADMSG);
	free(manifest);
	free(p);
	bundle_free(&b);
}

/* Records whose commit was reported: the child writes the number through a pipe. */
static void writer_child(struct bundle *b, int pipe_fd, unsigned seed)
{
	struct journal_options opt = { .session = TEST_SESSION,
				       .segment_max = 20000,
				       .no_sync = true };
	struct journal *j = NULL;
	uint64_t cut, seq;
	char room[256];

	if (journal_recover(&j, b->fd, &opt, &cut, NULL) < 0)
		_exit(1);
	for (unsigned i = seed;; i++) {
		unsigned n = 1 + i * 7919 % 900;

		while (n--)
			if (journal_append(
				    j, record_text(journal_next_seq(j), room, sizeof(room))) < 0)
				_exit(2);
		if (i % 3 == 0 && journal_put_aside(j, STR("sealed for somebody else")) < 0)
			_exit(2);
		if (journal_commit(j) < 0)
			_exit(3);
		seq = journal_durable_seq(j);
		if (write(pipe_fd, &seq, sizeof(seq)) != sizeof(seq))
			_exit(4);
	}
}

static uint64_t drain(int fd, uint64_t seq)
{
	uint64_t v;

	while (read(fd, &v, sizeof(v)) == sizeof(v))
		seq = v;
	return seq;
}

static void test_killed_writers(void **state)
{
	struct bundle b = bundle_new();
	uint64_t reported = 0, cut, torn = 0;
	unsigned rng = 12345;
	struct journal *j = create(&b, 0);

	(void)state;
	journal_free(j);
	for (unsigned round = 0; round < 200; round++) {
		uint64_t first = 0;
		int fds[2], status;
		pid_t pid;

		assert_int_equal(pipe(fds), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			close(fds[0]);
			writer_child(&b, fds[1], round);
		}
		close(fds[1]);
		/* it is at work; then some random while of its work */
		assert_int_equal(read(fds[0], &first, sizeof(first)), sizeof(first));
		rng = rng * 1103515245 + 12345;
		usleep(rng >> 16 & 1023);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		reported = drain(fds[0], first);
		close(fds[0]);
		j = recover(&b, &cut);
		torn += cut != 0;
		assert_true(journal_next_seq(j) > reported);
		journal_free(j);
		if (round % 20 == 19) { /* keep the test short */
			j = recover(&b, &cut);
			reported = journal_next_seq(j) - 1;
			seal(j, 0);
			journal_free(j);
			check_intact(&b, reported);
			bundle_empty(&b);
			journal_free(create(&b, 0));
		}
	}
	print_message("# %llu of 200 kills tore a frame\n", (unsigned long long)torn);
	bundle_free(&b);
}

/* A full disk, by the limit on file size: it cuts a write short and then fails, as ENOSPC does. */
static void test_disk_full(void **state)
{
	struct rlimit old, small;
	struct bundle b = bundle_new();
	struct journal *j = create(&b, 0);
	struct journal_reader *r = NULL;
	struct verify_report rep;
	uint64_t before;
	char room[256];
	int s = 0;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	small = old;
	small.rlim_cur = 100001;
	assert_int_equal(journal_reader_open(&r, b.fd, NULL), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	for (int i = 0; i < 200 && s == 0; i++) {
		for (int k = 0; k < 500; k++)
			journal_append(j, record_text(journal_next_seq(j), room, sizeof(room)));
		s = journal_commit(j);
	}
	assert_int_equal(s, -EFBIG);
	assert_true(journal_behind(j) > 0 && journal_deadline(j) != 0);
	/* what is there is whole, and the record is in although the disk is behind */
	assert_int_equal(store_verify(b.fd, &rep, NULL, NULL, NULL), 0);
	assert_int_equal(rep.state, VERIFY_OPEN);
	assert_non_null(strstr(rep.text, "all"));
	assert_int_equal(read_all(r, 1), rep.records);
	before = journal_next_seq(j);
	assert_int_equal(journal_append(j, record_text(before, room, sizeof(room))), -EFBIG);
	assert_int_equal(journal_next_seq(j), before + 1);
	assert_int_equal(journal_commit(j), -EFBIG);
	/* to the limit of the buffer */
	for (s = 0; s != -ENOBUFS;)
		s = journal_append(j, record_text(journal_next_seq(j), room, sizeof(room)));
	before = journal_next_seq(j);
	assert_true(journal_behind(j) <= 16 << 20 && journal_behind(j) > 15 << 20);
	assert_int_equal(journal_append(j, (struct str){ room, sizeof(room) }), -ENOBUFS);
	assert_int_equal(journal_next_seq(j), before);
	{
		struct journal_seal seal_with = { .summary = STR("{}") };

		assert_int_equal(journal_seal(j, &seal_with), -EFBIG);
	}
	setrlimit(RLIMIT_FSIZE, &old);
	seal(j, 0);
	journal_free(j);
	assert_int_equal(read_all(r, rep.records + 1), before - 1 - rep.records);
	assert_true(journal_reader_at_end(r));
	journal_reader_free(r);
	check_intact(&b, before - 1);
	bundle_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut_at_every_byte),
		cmocka_unit_test(test_cut_in_the_last_of_many_segments),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_killed_writers),
		cmocka_unit_test(test_disk_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
