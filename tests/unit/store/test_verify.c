// SPDX-License-Identifier: Apache-2.0
/* The tamper matrix, and every single byte of a sealed bundle. */
#include "tests/unit/store/bundle.h"

#include <errno.h>

static struct verify_report verify(struct bundle *b)
{
	struct verify_report rep = { .state = 99 };
	struct err err = { 0 };
	int r = store_verify(b->fd, &rep, NULL, NULL, &err);

	if (r < 0)
		print_error("%s\n", err.text);
	assert_int_equal(r, 0);
	return rep;
}

#define assert_state(b, want)                                            \
	do {                                                             \
		struct verify_report rep_ = verify(b);                   \
		if (rep_.state != (want))                                \
			fail_msg("state %d: %s", rep_.state, rep_.text); \
	} while (0)

static void test_states(void **state)
{
	struct bundle b = bundle_new();
	struct verify_report rep;
	struct journal *j;

	(void)state;
	assert_int_equal(store_verify(b.fd, &rep, NULL, NULL, NULL), -ENOENT);
	j = create(&b, 0);
	assert_state(&b, VERIFY_OPEN);
	append_records(j, 100);
	journal_commit(j);
	rep = verify(&b);
	assert_int_equal(rep.state, VERIFY_OPEN);
	assert_int_equal(rep.records, 100);
	seal(j, 0);
	journal_free(j);
	rep = verify(&b);
	assert_int_equal(rep.state, VERIFY_OK);
	assert_int_equal(rep.records, 100);
	assert_int_equal(rep.frames, 1);
	assert_int_equal(rep.segments, 1);
	assert_string_equal(rep.session, TEST_SESSION);
	assert_int_equal(strlen(rep.head), 64);
	bundle_empty(&b);
	sealed_bundle(&b, 100, 10, 1000, 7);
	rep = verify(&b);
	assert_int_equal(rep.state, VERIFY_GAPS);
	assert_int_equal(rep.gaps, 7);
	assert_true(rep.segments > 1);
	bundle_empty(&b);
	sealed_bundle(&b, 0, 1, 0, 0);
	assert_state(&b, VERIFY_OK);
	bundle_free(&b);
}

static void flip_all(struct bundle *b, const char *name)
{
	size_t n = 0;
	char *p = slurp(b->fd, name, &n);
	int fd = openat(b->fd, name, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	for (size_t i = 0; i < n; i++) {
		static const unsigned char masks[] = { 0x01, 0x20, 0x80, 0xff };
		char c = (char)(p[i] ^ masks[i % 4]);
		struct verify_report rep;

		assert_int_equal(pwrite(fd, &c, 1, (off_t)i), 1);
		rep = verify(b);
		if (rep.state != VERIFY_ALTERED)
			fail_msg("%s byte %zu: state %d: %s", name, i, rep.state, rep.text);
		assert_int_equal(pwrite(fd, p + i, 1, (off_t)i), 1);
	}
	close(fd);
	free(p);
	assert_state(b, VERIFY_OK);
}

static void test_every_byte_counts(void **state)
{
	struct bundle b = bundle_new();

	(void)state;
	sealed_bundle(&b, 60, 10, 1000, 0);
	assert_int_equal(faccessat(b.fd, "events.0002.seg", F_OK, 0), 0);
	for (unsigned i = 1; i <= verify(&b).segments; i++) {
		char name[SEGMENT_NAME_LEN + 1];

		segment_name(name, i);
		flip_all(&b, name);
	}
	flip_all(&b, MANIFEST_NAME);
	bundle_free(&b);
}

/* A sealed file, cut anywhere: what is left is intact, the end is missing. */
static void test_cut_of_a_sealed_bundle(void **state)
{
	struct bundle b = bundle_new();
	size_t n = 0;
	char *p;

	(void)state;
	sealed_bundle(&b, 40, 10, 0, 0);
	p = slurp(b.fd, "events.0001.seg", &n);
	for (size_t keep = 0; keep < n; keep++) {
		struct verify_report rep;

		spit(b.fd, "events.0001.seg", p, keep);
		rep = verify(&b);
		if (rep.state != VERIFY_OPEN || !strstr(rep.text, "the end is missing"))
			fail_msg("cut to %zu: state %d: %s", keep, rep.state, rep.text);
	}
	free(p);
	bundle_free(&b);
}

/* Where the frames of a segment begin, and where it ends. */
static size_t frames_of(const char *p, size_t n, size_t *ret, size_t max)
{
	struct frame_header h;
	size_t at = SEGMENT_HEADER_LEN, k = 0;

	while (at < n) {
		assert_true(k + 1 < max);
		assert_null(frame_header_decode(&h, (const uint8_t *)p + at));
		ret[k++] = at;
		at += FRAME_HEADER_LEN + h.comp_len;
	}
	ret[k] = n;
	return k;
}

enum edit { DELETE, SWAP, REPEAT, APPEND, REPLACE_TAIL };

static void rewrite(struct bundle *b, const char *p, const size_t *f, size_t k, enum edit edit)
{
	int fd = openat(b->fd, "events.0001.seg", O_WRONLY | O_TRUNC | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, p, f[0]), 0);
	for (size_t i = 0; i < k; i++) {
		size_t from = i;

		if (edit == DELETE && i == 1)
			continue;
		if (edit == SWAP && (i == 1 || i == 2))
			from = 3 - i;
		assert_int_equal(fd_write_all(fd, p + f[from], f[from + 1] - f[from]), 0);
		if (edit == REPEAT && i == 1)
			assert_int_equal(fd_write_all(fd, p + f[i], f[i + 1] - f[i]), 0);
	}
	if (edit == APPEND)
		assert_int_equal(fd_write_all(fd, p + f[0], f[1] - f[0]), 0);
	close(fd);
}

static void test_frames_moved(void **state)
{
	static const enum edit edits[] = { DELETE, SWAP, REPEAT, APPEND };
	struct bundle b = bundle_new();
	size_t n = 0, f[16], k;
	char *p;

	(void)state;
	sealed_bundle(&b, 40, 10, 0, 0);
	p = slurp(b.fd, "events.0001.seg", &n);
	k = frames_of(p, n, f, ARRAY_SIZE(f));
	assert_int_equal(k, 5);
	for (size_t i = 0; i < ARRAY_SIZE(edits); i++) {
		struct verify_report rep;

		rewrite(&b, p, f, k, edits[i]);
		rep = verify(&b);
		if (rep.state != VERIFY_ALTERED)
			fail_msg("edit %zu: state %d: %s", i, rep.state, rep.text);
		assert_int_equal(rep.first_bad, edits[i] == APPEND   ? 41
						: edits[i] == REPEAT ? 21
								     : 11);
		assert_non_null(strstr(rep.text, "events.0001.seg, byte"));
	}
	rewrite(&b, p, f, k, 99);
	assert_state(&b, VERIFY_OK);
	spit(b.fd, "events.0001.seg", p, n);
	p = realloc(p, n + 1);
	p[n] = 0;
	spit(b.fd, "events.0001.seg", p, n + 1);
	assert_state(&b, VERIFY_ALTERED);
	free(p);
	bundle_free(&b);
}

static void test_segments_moved(void **state)
{
	struct bundle b = bundle_new(), other = bundle_new();
	struct verify_report rep;
	unsigned count;
	size_t n = 0;
	char *p, *q, last[SEGMENT_NAME_LEN + 1];

	(void)state;
	sealed_bundle(&b, 100, 10, 1000, 0);
	count = (unsigned)verify(&b).segments;
	assert_true(count >= 4);
	segment_name(last, count);

	p = slurp(b.fd, "events.0002.seg", &n);
	unlinkat(b.fd, "events.0002.seg", 0);
	rep = verify(&b);
	assert_int_equal(rep.state, VERIFY_ALTERED);
	assert_non_null(strstr(rep.text, "events.0002.seg is missing"));
	/* cut at a frame boundary, in the middle of the bundle */
	spit(b.fd, "events.0002.seg", p, SEGMENT_HEADER_LEN);
	assert_state(&b, VERIFY_ALTERED);
	assert_int_equal(symlinkat("/etc/passwd", b.fd, "x"), 0);
	assert_int_equal(renameat(b.fd, "x", b.fd, "events.0002.seg"), 0);
	assert_state(&b, VERIFY_ALTERED);
	unlinkat(b.fd, "events.0002.seg", 0);
	assert_int_equal(mkfifoat(b.fd, "events.0002.seg", 0600), 0);
	assert_state(&b, VERIFY_ALTERED);
	unlinkat(b.fd, "events.0002.seg", 0);
	spit(b.fd, "events.0002.seg", p, n);
	assert_state(&b, VERIFY_OK);

	/* extra files: behind the seal, and under a name that is almost ours */
	spit(b.fd, "events.0099.seg", p, n);
	assert_state(&b, VERIFY_ALTERED);
	unlinkat(b.fd, "events.0099.seg", 0);
	spit(b.fd, "events.2.seg", p, n);
	assert_state(&b, VERIFY_ALTERED);
	unlinkat(b.fd, "events.2.seg", 0);

	/* the end as a whole file */
	q = slurp(b.fd, last, &n);
	unlinkat(b.fd, last, 0);
	rep = verify(&b);
	assert_int_equal(rep.state, VERIFY_OPEN);
	assert_non_null(strstr(rep.text, "the end is missing"));
	spit(b.fd, last, q, n);
	assert_state(&b, VERIFY_OK);
	free(q);
	free(p);

	/* the manifest */
	p = slurp(b.fd, MANIFEST_NAME, &n);
	unlinkat(b.fd, MANIFEST_NAME, 0);
	assert_state(&b, VERIFY_ALTERED);
	spit(b.fd, MANIFEST_NAME, p, n);
	assert_state(&b, VERIFY_OK);
	free(p);

	/* a segment of the same number from another session */
	{
		struct journal_options opt = { .session = "01JOTHER", .segment_max = 1000 };
		struct journal *j = NULL;

		assert_int_equal(journal_create(&j, other.fd, &opt, NULL), 0);
		for (int i = 0; i < 10; i++) {
			append_records(j, 10);
			journal_commit(j);
		}
		seal(j, 0);
		journal_free(j);
	}
	q = slurp(other.fd, "events.0002.seg", &n);
	spit(b.fd, "events.0002.seg", q, n);
	assert_state(&b, VERIFY_ALTERED);
	free(q);
	bundle_free(&other);
	bundle_free(&b);
}

/* A "clever" edit: the frame's own checksums and hashes made right again. The bytes that follow
 * know the old ones. */
static void test_recomputed_frame(void **state)
{
	struct bundle b = bundle_new();
	size_t n = 0, f[16];
	struct frame_header h;
	struct verify_report rep;
	char *p;

	(void)state;
	sealed_bundle(&b, 40, 10, 0, 0);
	p = slurp(b.fd, "events.0001.seg", &n);
	frames_of(p, n, f, ARRAY_SIZE(f));
	assert_null(frame_header_decode(&h, (uint8_t *)p + f[1]));
	h.real_ns++;
	frame_header_encode((uint8_t *)p + f[1], &h);
	spit(b.fd, "events.0001.seg", p, n);
	rep = verify(&b);
	assert_int_equal(rep.state, VERIFY_ALTERED);
	assert_int_equal(rep.first_bad, 21);
	free(p);
	bundle_free(&b);
}

static void count_calls(void *arg, uint64_t done, uint64_t total)
{
	uint64_t *last = arg;

	assert_true(done >= last[0] && done <= total);
	last[0] = done;
	last[1] = total;
}

static void test_progress(void **state)
{
	struct bundle b = bundle_new();
	struct verify_report rep;
	uint64_t seen[2] = { 0 };

	(void)state;
	sealed_bundle(&b, 1000, 10, 0, 0);
	assert_int_equal(store_verify(b.fd, &rep, count_calls, seen, NULL), 0);
	assert_true(seen[0] > 0 && seen[0] == seen[1] && rep.bytes == seen[1]);
	bundle_free(&b);
}

#define NOISE_LEN (STORE_RECORD_MAX - 64)

/* A record that does not compress. */
static void append_noise(struct journal *j)
{
	char *rec = malloc(STORE_RECORD_MAX);
	size_t n = (size_t)sprintf(rec, "{\"seq\":%llu,\"pad\":\"",
				   (unsigned long long)journal_next_seq(j));
	uint64_t x = journal_next_seq(j) * 88172645463325252ull + 1;

	while (n < NOISE_LEN) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		rec[n++] = (char)('#' + x % 57);
	}
	memcpy(rec + n, "\"}", 2);
	assert_int_equal(journal_append(j, (struct str){ rec, n + 2 }), 0);
	assert_int_equal(journal_commit(j), 0);
	free(rec);
}

/* The writer's last act, when the verifier has read the manifest and much of the records. */
static void seal_meanwhile(void *arg, uint64_t done, uint64_t total)
{
	struct journal **j = arg;

	(void)done;
	(void)total;
	if (!*j)
		return;
	append_noise(*j);
	seal(*j, 0);
	journal_free(take_ptr(*j));
}

static void test_sealed_while_it_is_read(void **state)
{
	struct bundle b = bundle_new();
	struct journal *j = create(&b, 0);
	struct verify_report rep;

	(void)state;
	for (int i = 0; i < 6; i++)
		append_noise(j);
	assert_int_equal(store_verify(b.fd, &rep, seal_meanwhile, &j, NULL), 0);
	assert_null(j);
	assert_string_equal(rep.text, "intact and sealed: 7 records, no gaps; not signed");
	bundle_free(&b);
}

#ifdef __SANITIZE_ADDRESS__
#define RECORDS 1000 /* what it keeps of freed memory would be measured */
#else
#define RECORDS 200000
#endif
#define MEMORY_MAX (8u << 20)

/* "VmHWM:" and the like of this process, in bytes. */
static uint64_t memory(const char *key)
{
	char line[128];
	uint64_t kib = 0;
	FILE *f = fopen("/proc/self/status", "re");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			kib = strtoull(line + strlen(key), NULL, 10);
	fclose(f);
	assert_true(kib > 0);
	return kib << 10;
}

/* A hundred megabytes of records, in as much memory as a few of them take. */
static void test_memory_is_bounded(void **state)
{
	struct bundle b = bundle_new();
	struct verify_report rep;
	struct journal *j = create(&b, 0);
	char pad[500];
	uint64_t before;
	int fd;

	(void)state;
	memset(pad, 'x', sizeof(pad));
	for (unsigned i = 1; i <= RECORDS; i++) {
		char rec[700];
		int n = snprintf(rec, sizeof(rec),
				 "{\"v\":1,\"seq\":%u,\"kind\":\"exec\",\"x\":\"%u%.*s\"}", i,
				 i * 2654435761u, (int)sizeof(pad), pad);

		assert_int_equal(journal_append(j, (struct str){ rec, (size_t)n }), 0);
		if (i % 500 == 0)
			assert_int_equal(journal_commit(j), 0);
	}
	seal(j, 0);
	journal_free(j);
	fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "5", 1) != 1) /* the peak begins here */
		skip();
	close(fd);
	before = memory("VmRSS:");
	assert_int_equal(store_verify(b.fd, &rep, NULL, NULL, NULL), 0);
	assert_int_equal(rep.state, VERIFY_OK);
	assert_int_equal(rep.records, RECORDS);
	assert_in_range(memory("VmHWM:") - before, 0, MEMORY_MAX);
	bundle_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_every_byte_counts),
		cmocka_unit_test(test_cut_of_a_sealed_bundle),
		cmocka_unit_test(test_frames_moved),
		cmocka_unit_test(test_segments_moved),
		cmocka_unit_test(test_recomputed_frame),
		cmocka_unit_test(test_progress),
		cmocka_unit_test(test_sealed_while_it_is_read),
		cmocka_unit_test(test_memory_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
