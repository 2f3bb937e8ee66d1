// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/store/bundle.h"

#include "userspace/store/chain.h"
#include "userspace/store/terminal.h"

static struct terminal_record output(const char *z, uint64_t mono)
{
	return (struct terminal_record){ .type = TERMINAL_OUTPUT,
					 .mono = mono,
					 .data = str_from(z) };
}

static void test_records(void **state)
{
	const struct terminal_record rows[] = {
		{ .type = TERMINAL_OUTPUT, .mono = 1, .data = STR("\xff\0x") },
		{ .type = TERMINAL_OUTPUT, .stream = TERMINAL_STDERR, .mono = 7, .data = STR("e") },
		{ .type = TERMINAL_INPUT, .mono = 1ull << 60, .data = STR("ls\r") },
		{ .type = TERMINAL_RESIZE, .cols = 132, .rows = 50 },
		{ .type = TERMINAL_CUT,
		  .stream = TERMINAL_STDOUT,
		  .reason = TERMINAL_FOR_LIMIT,
		  .bytes = 1ull << 40 },
		{ .type = TERMINAL_WITHHELD, .bytes = 9 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		auto_buf struct buf b = { 0 };
		struct terminal_record got;

		assert_int_equal(terminal_record_encode(&b, &rows[i]), 0);
		assert_null(terminal_record_decode(&got, (struct str){ b.p, b.n }));
		assert_int_equal(got.type, rows[i].type);
		assert_int_equal(got.stream, rows[i].stream);
		assert_int_equal(got.reason, rows[i].reason);
		assert_int_equal(got.mono, rows[i].mono);
		assert_int_equal(got.bytes, rows[i].bytes);
		assert_int_equal(got.cols, rows[i].cols);
		assert_int_equal(got.rows, rows[i].rows);
		assert_true(str_eq(got.data, rows[i].data));
		/* nothing shorter, and no reserved byte that is not zero */
		for (size_t n = 0; n < b.n && rows[i].data.n < 2; n++)
			assert_non_null(terminal_record_decode(&got, (struct str){ b.p, n }));
		for (size_t at = 3; at < 8; at++) {
			b.p[at] = 1;
			assert_non_null(terminal_record_decode(&got, (struct str){ b.p, b.n }));
			b.p[at] = 0;
		}
	}
}

static void test_no_such_record(void **state)
{
	const struct terminal_record rows[] = {
		{ .type = 0, .data = STR("x") },
		{ .type = TERMINAL_WITHHELD + 1 },
		{ .type = TERMINAL_OUTPUT },
		{ .type = TERMINAL_OUTPUT, .stream = TERMINAL_STREAMS, .data = STR("x") },
		{ .type = TERMINAL_INPUT, .stream = TERMINAL_STDOUT, .data = STR("x") },
		{ .type = TERMINAL_CUT, .bytes = 4 },
		{ .type = TERMINAL_OUTPUT, .reason = TERMINAL_FOR_DISK, .data = STR("x") },
	};
	auto_buf struct buf b = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows) - 1; i++)
		assert_int_equal(terminal_record_encode(&b, &rows[i]), -EINVAL);
	assert_int_equal(b.n, 0);
}

static void mark_json(char *out, size_t cap, uint64_t seq, const struct terminal_mark *m)
{
	char head[2 * STORE_HASH_LEN + 1];

	hash_to_hex(head, m->head);
	snprintf(out, cap,
		 "{\"v\":1,\"seq\":%llu,\"kind\":\"terminal\",\"terminal\":{\"first\":%llu,"
		 "\"last\":%llu,\"bytes\":%llu,\"head\":\"%s\"}}",
		 (unsigned long long)seq, (unsigned long long)m->first, (unsigned long long)m->last,
		 (unsigned long long)m->bytes, head);
}

/* `marks` commits of three records each, every one bound by an event; a segment each few. */
static void make(struct bundle *b, unsigned marks, bool sealed)
{
	struct journal_options opt = { .session = TEST_SESSION,
				       .segment_max = 700,
				       .no_sync = true };
	struct journal *j = create(b, 900);
	struct terminal_log *t = NULL;
	struct terminal_end end;
	struct journal_seal s = { .terminal = &end };

	assert_int_equal(terminal_log_create(&t, b->fd, &opt, NULL), 0);
	for (unsigned i = 0; i < marks; i++) {
		struct terminal_mark m;
		char text[32], rec[512];

		append_records(j, 2);
		for (unsigned k = 0; k < 3; k++) {
			struct terminal_record r;

			snprintf(text, sizeof(text), "line %u.%u\r\n", i, k);
			r = output(text, 1000 * (i + 1) + k);
			assert_int_equal(terminal_log_append(t, &r), 0);
		}
		assert_int_equal(terminal_log_commit(t, &m), 0);
		assert_int_equal(m.first, 3 * i + 1);
		assert_int_equal(m.last, 3 * i + 3);
		assert_true(m.bytes >= 30);
		mark_json(rec, sizeof(rec), journal_next_seq(j), &m);
		assert_int_equal(journal_append(j, str_from(rec)), 0);
		if (i % 2)
			assert_int_equal(journal_commit(j), 0);
	}
	terminal_log_end(t, &end);
	assert_int_equal(end.records, 3 * marks);
	assert_int_equal(sealed ? journal_seal(j, &s) : journal_commit(j), 0);
	terminal_log_free(t);
	journal_free(j);
}

static enum verify_state check(const struct bundle *b, struct verify_report *ret)
{
	struct err err = { 0 };

	assert_int_equal(store_verify(b->fd, ret, NULL, NULL, &err), 0);
	return ret->state;
}

static void test_read_back(void **state)
{
	struct bundle b = bundle_new();
	struct terminal_reader *r = NULL;
	struct terminal_record rec;
	uint64_t seq = 0, n = 0;
	struct verify_report rep;

	(void)state;
	assert_int_equal(terminal_reader_open(&r, b.fd, NULL), 0);
	assert_int_equal(terminal_reader_next(r, &rec, &seq, NULL), 0); /* nothing recorded */
	make(&b, 20, true);
	assert_int_equal(check(&b, &rep), VERIFY_OK);
	assert_int_equal(rep.terminal_records, 60);
	assert_non_null(strstr(rep.text, "60 records of its terminal"));
	assert_int_equal(faccessat(b.fd, "tty.0003.seg", F_OK, 0), 0);
	while (terminal_reader_next(r, &rec, &seq, NULL) == 1) {
		assert_int_equal(seq, ++n);
		assert_int_equal(rec.mono, 1000 * ((n - 1) / 3 + 1) + (n - 1) % 3);
	}
	assert_int_equal(n, 60);
	for (uint64_t t = 0; t < 21; t++) { /* these clocks are long past: all frames are read */
		assert_int_equal(terminal_reader_seek_time(r, 1000 * t + 1, NULL), 0);
		if (t == 20)
			assert_int_equal(terminal_reader_next(r, &rec, &seq, NULL), 1);
		else
			assert_int_equal(terminal_reader_next(r, &rec, &seq, NULL), 1);
		assert_int_equal(rec.mono, t ? 1000 * t + 1 : 1000);
	}
	assert_int_equal(terminal_reader_seek_time(r, 20003, NULL), 0);
	assert_int_equal(terminal_reader_next(r, &rec, &seq, NULL), 0);
	assert_int_equal(terminal_reader_seek(r, 58, NULL), 0);
	assert_int_equal(terminal_reader_next(r, &rec, &seq, NULL), 1);
	assert_int_equal(seq, 59);
	terminal_reader_free(r);
	bundle_free(&b);
}

static void test_every_byte_counts(void **state)
{
	struct bundle b = bundle_new();
	struct verify_report rep;
	size_t n = 0;
	char *p;

	(void)state;
	make(&b, 4, true);
	p = slurp(b.fd, "tty.0001.seg", &n);
	for (size_t i = 0; i < n; i += i < 200 ? 1 : 7) {
		p[i] ^= 0x21;
		spit(b.fd, "tty.0001.seg", p, n);
		if (check(&b, &rep) != VERIFY_ALTERED)
			fail_msg("byte %zu: %s", i, rep.text);
		p[i] ^= 0x21;
	}
	/* cut at any byte, in a sealed bundle and with events that know better */
	for (size_t i = 0; i < n; i += 13) {
		spit(b.fd, "tty.0001.seg", p, i);
		if (check(&b, &rep) != VERIFY_ALTERED)
			fail_msg("cut at %zu: %s", i, rep.text);
	}
	free(p);
	bundle_free(&b);
}

static void test_files_moved(void **state)
{
	struct bundle b = bundle_new(), other = bundle_new();
	struct verify_report rep;
	size_t n = 0, m = 0;
	char *p, *q;

	(void)state;
	make(&b, 20, true);
	make(&other, 12, true);
	p = slurp(b.fd, "tty.0001.seg", &n);
	q = slurp(b.fd, "tty.0002.seg", &m);
	assert_int_equal(unlinkat(b.fd, "tty.0002.seg", 0), 0);
	assert_int_equal(check(&b, &rep), VERIFY_ALTERED);
	spit(b.fd, "tty.0002.seg", p, n); /* swapped */
	spit(b.fd, "tty.0001.seg", q, m);
	assert_int_equal(check(&b, &rep), VERIFY_ALTERED);
	spit(b.fd, "tty.0001.seg", p, n);
	spit(b.fd, "tty.0002.seg", q, m);
	assert_int_equal(check(&b, &rep), VERIFY_OK);
	spit(b.fd, "tty.1.seg", q, m);
	assert_int_equal(check(&b, &rep), VERIFY_ALTERED);
	assert_int_equal(unlinkat(b.fd, "tty.1.seg", 0), 0);
	spit(b.fd, "tty.9999.seg", q, m);
	assert_int_equal(check(&b, &rep), VERIFY_ALTERED);
	/* all of it gone, or added where there was none */
	bundle_empty(&b);
	sealed_bundle(&b, 9, 3, 0, 0);
	assert_int_equal(check(&b, &rep), VERIFY_OK);
	spit(b.fd, "tty.0001.seg", p, n);
	assert_int_equal(check(&b, &rep), VERIFY_ALTERED);
	for (unsigned i = 1; i < 20; i++) {
		char name[SEGMENT_NAME_LEN + 1];

		segment_kind_name(name, SEGMENT_TTY, i);
		unlinkat(other.fd, name, 0);
	}
	assert_int_equal(check(&other, &rep), VERIFY_ALTERED);
	free(p);
	free(q);
	bundle_free(&b);
	bundle_free(&other);
}

/* While it runs, the terminal may be ahead of the events; what events have told of must be there. */
static void test_open(void **state)
{
	struct bundle b = bundle_new();
	struct verify_report rep;
	size_t n = 0;
	char *p;

	(void)state;
	make(&b, 1, false);
	assert_int_equal(check(&b, &rep), VERIFY_OPEN);
	p = slurp(b.fd, "tty.0001.seg", &n);
	spit(b.fd, "tty.0001.seg", p, n - 1);
	assert_int_equal(check(&b, &rep), VERIFY_ALTERED);
	p = realloc(p, n + 20);
	memcpy(p + n, "WFRM", 4);
	memset(p + n + 4, 1, 16);
	spit(b.fd, "tty.0001.seg", p, n + 20); /* torn behind what was told */
	assert_int_equal(check(&b, &rep), VERIFY_OPEN);
	free(p);
	bundle_free(&b);
}

static void test_recovery_at_any_byte(void **state)
{
	struct bundle b = bundle_new();
	size_t n = 0;
	char *p;

	(void)state;
	make(&b, 1, false);
	p = slurp(b.fd, "tty.0001.seg", &n);
	p = realloc(p, 2 * n);
	memcpy(p + n, p + SEGMENT_HEADER_LEN, n - SEGMENT_HEADER_LEN);
	for (size_t extra = 0; extra < n - SEGMENT_HEADER_LEN; extra += 11) {
		struct journal_options opt = { .no_sync = true };
		struct journal_seal s = { .summary = STR("{}") };
		struct verify_report rep;
		struct journal *j = NULL;
		struct err err = { 0 };
		uint64_t cut;

		bundle_empty(&b);
		make(&b, 1, false);
		spit(b.fd, "tty.0001.seg", p, n + extra); /* begun and never finished */
		if (journal_recover(&j, b.fd, &opt, &cut, &err) < 0)
			fail_msg("%zu: %s", extra, err.text);
		assert_int_equal(journal_seal(j, &s), 0);
		journal_free(j);
		if (check(&b, &rep) != VERIFY_OK)
			fail_msg("%zu: %s", extra, rep.text);
		assert_int_equal(rep.terminal_records, 3);
	}
	free(p);
	bundle_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_no_such_record),
		cmocka_unit_test(test_read_back),
		cmocka_unit_test(test_every_byte_counts),
		cmocka_unit_test(test_files_moved),
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_recovery_at_any_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
