// SPDX-License-Identifier: Apache-2.0
/* Signed bundles: what an unsigned one cannot show. */
#include "tests/unit/store/bundle.h"

#include <errno.h>

#include "userspace/store/chain.h"
#include "userspace/store/signer.h"

static struct bundle keys, other_keys;

static struct verify_report verify(struct bundle *b, const uint8_t (*trusted)[KEY_LEN], size_t n)
{
	struct verify_options opt = { .keys = trusted, .n_keys = n };
	struct verify_report rep = { .state = 99 };
	struct err err = { 0 };

	if (store_verify_signed(b->fd, &opt, &rep, NULL, NULL, &err) < 0)
		fail_msg("%s", err.text);
	return rep;
}

#define assert_state(b, want)                                            \
	do {                                                             \
		struct verify_report rep_ = verify(b, NULL, 0);          \
		if (rep_.state != (want))                                \
			fail_msg("state %d: %s", rep_.state, rep_.text); \
	} while (0)

static struct bundle signed_bundle(unsigned n, unsigned per_frame, uint64_t segment_max,
				   uint64_t gaps)
{
	struct bundle b = bundle_new();

	b.keys_fd = keys.fd;
	sealed_bundle(&b, n, per_frame, segment_max, gaps);
	return b;
}

static void test_signed_and_trusted(void **state)
{
	struct bundle b = signed_bundle(100, 10, 1000, 0);
	uint8_t trusted[2][KEY_LEN];
	struct verify_report rep;

	(void)state;
	rep = verify(&b, NULL, 0);
	assert_int_equal(rep.state, VERIFY_OK);
	assert_true(rep.is_signed && !rep.is_trusted);
	assert_int_equal(rep.checkpoints, 12); /* genesis, ten frames, seal */
	assert_non_null(strstr(rep.text, "not checked"));
	assert_int_equal(keys_public(other_keys.fd, trusted[0], NULL), 0);
	assert_int_equal(keys_public(keys.fd, trusted[1], NULL), 0);
	rep = verify(&b, trusted, 2);
	assert_int_equal(rep.state, VERIFY_OK);
	assert_true(rep.is_signed && rep.is_trusted);
	rep = verify(&b, trusted, 1);
	assert_int_equal(rep.state, VERIFY_ALTERED);
	assert_non_null(strstr(rep.text, "none of the keys"));
	bundle_free(&b);
	b = signed_bundle(20, 10, 0, 3);
	assert_int_equal(verify(&b, NULL, 0).state, VERIFY_GAPS);
	bundle_free(&b);
	/* not signed, but a key given */
	b = bundle_new();
	sealed_bundle(&b, 10, 10, 0, 0);
	rep = verify(&b, trusted, 1);
	assert_int_equal(rep.state, VERIFY_ALTERED);
	assert_non_null(strstr(verify(&b, NULL, 0).text, "not signed"));
	bundle_free(&b);
}

static void test_every_byte_of_the_log(void **state)
{
	struct bundle b = signed_bundle(20, 10, 0, 0);
	size_t n = 0;
	char *p = slurp(b.fd, CHECKPOINTS_NAME, &n);
	int fd = openat(b.fd, CHECKPOINTS_NAME, O_WRONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(n, GENESIS_LEN + 3 * CHECKPOINT_LEN);
	for (size_t i = 0; i < n; i++) {
		char c = (char)(p[i] ^ (1 << i % 8));

		assert_int_equal(pwrite(fd, &c, 1, (off_t)i), 1);
		assert_state(&b, VERIFY_ALTERED);
		assert_int_equal(pwrite(fd, p + i, 1, (off_t)i), 1);
	}
	/* cut: the signature of the seal is missing; added: altered */
	for (size_t keep = 0; keep < n; keep += 7) {
		spit(b.fd, CHECKPOINTS_NAME, p, keep);
		assert_state(&b, VERIFY_OPEN);
	}
	p = realloc(p, n + 1);
	p[n] = 'W';
	spit(b.fd, CHECKPOINTS_NAME, p, n + 1);
	assert_state(&b, VERIFY_ALTERED);
	unlinkat(b.fd, CHECKPOINTS_NAME, 0);
	assert_state(&b, VERIFY_ALTERED);
	free(p);
	close(fd);
	bundle_free(&b);
}

/* The log with entries left out, twice, or in another order: the links and keys do not fit. */
static void test_entries_moved(void **state)
{
	struct bundle b = signed_bundle(30, 10, 0, 0), other = signed_bundle(30, 10, 0, 0);
	size_t n = 0, m = 0;
	char *p = slurp(b.fd, CHECKPOINTS_NAME, &n), *q = slurp(other.fd, CHECKPOINTS_NAME, &m);
	char *edit = malloc(n + CHECKPOINT_LEN);

	(void)state;
	/* without the second */
	memcpy(edit, p, GENESIS_LEN + CHECKPOINT_LEN);
	memcpy(edit + GENESIS_LEN + CHECKPOINT_LEN, p + GENESIS_LEN + 2 * CHECKPOINT_LEN,
	       n - GENESIS_LEN - 2 * CHECKPOINT_LEN);
	spit(b.fd, CHECKPOINTS_NAME, edit, n - CHECKPOINT_LEN);
	assert_state(&b, VERIFY_ALTERED);
	/* the seal twice */
	memcpy(edit, p, n);
	memcpy(edit + n, p + n - CHECKPOINT_LEN, CHECKPOINT_LEN);
	spit(b.fd, CHECKPOINTS_NAME, edit, n + CHECKPOINT_LEN);
	assert_state(&b, VERIFY_ALTERED);
	/* the other session's whole log, and its tail */
	spit(b.fd, CHECKPOINTS_NAME, q, m);
	assert_state(&b, VERIFY_ALTERED);
	memcpy(edit, p, n);
	memcpy(edit + n - CHECKPOINT_LEN, q + m - CHECKPOINT_LEN, CHECKPOINT_LEN);
	spit(b.fd, CHECKPOINTS_NAME, edit, n);
	assert_state(&b, VERIFY_ALTERED);
	spit(b.fd, CHECKPOINTS_NAME, p, n);
	assert_state(&b, VERIFY_OK);
	free(edit);
	free(p);
	free(q);
	bundle_free(&other);
	bundle_free(&b);
}

/* Somebody who recomputes everything but has no key: a whole new bundle under the old log. */
static void test_rewritten_bundle(void **state)
{
	struct bundle b = signed_bundle(30, 10, 0, 0), forged = bundle_new();
	struct verify_report rep;
	size_t n = 0;
	char *p;

	(void)state;
	sealed_bundle(&forged, 30, 10, 0, 0); /* same records, other times */
	p = slurp(b.fd, CHECKPOINTS_NAME, &n);
	spit(forged.fd, CHECKPOINTS_NAME, p, n);
	rep = verify(&forged, NULL, 0);
	assert_int_equal(rep.state, VERIFY_ALTERED);
	assert_non_null(strstr(rep.text, "checkpoints.log, entry 0"));
	free(p);
	bundle_free(&forged);
	bundle_free(&b);
}

static struct journal *recover(struct bundle *b, int keys_fd, int want)
{
	struct journal_options opt = {
		.session = TEST_SESSION, .no_sync = true, .sign = keys_fd > 0, .keys_dirfd = keys_fd
	};
	struct journal *j = NULL;
	struct err err = { 0 };
	uint64_t cut;
	int r = journal_recover(&j, b->fd, &opt, &cut, &err);

	if (r != want)
		fail_msg("%d: %s", r, err.text);
	return j;
}

/* As a crash leaves it: the segment torn anywhere behind what the log knows, the log torn too. */
static void test_recovery_goes_on_signing(void **state)
{
	struct bundle b = bundle_new();
	struct verify_report rep;
	struct journal *j;
	size_t n = 0, m = 0;
	char *p, *q;

	(void)state;
	b.keys_fd = keys.fd;
	j = create(&b, 0);
	for (int i = 0; i < 3; i++) {
		append_records(j, 10);
		assert_int_equal(journal_commit(j), 0);
	}
	journal_free(j);
	p = slurp(b.fd, "events.0001.seg", &n);
	q = slurp(b.fd, CHECKPOINTS_NAME, &m);
	assert_int_equal(verify(&b, NULL, 0).state, VERIFY_OPEN);
	for (size_t keep = 0; keep <= m; keep += 11) {
		spit(b.fd, "events.0001.seg", p, n);
		spit(b.fd, CHECKPOINTS_NAME, q, keep);
		recover(&b, 0, -ENOKEY);
		j = recover(&b, keys.fd, 0);
		append_records(j, 5);
		journal_set_lost(j, 2);
		seal(j, 2);
		journal_free(j);
		rep = verify(&b, NULL, 0);
		if (rep.state != VERIFY_GAPS || !rep.is_signed || rep.records != 35)
			fail_msg("log cut to %zu: %s", keep, rep.text);
		unlinkat(b.fd, MANIFEST_NAME, 0);
	}
	/* records that were signed are gone: no crash does that */
	spit(b.fd, "events.0001.seg", p, n - 1);
	spit(b.fd, CHECKPOINTS_NAME, q, m);
	rep = verify(&b, NULL, 0);
	assert_int_equal(rep.state, VERIFY_OPEN);
	assert_non_null(strstr(rep.text, "30 records were signed"));
	recover(&b, keys.fd, -EBADMSG);
	q[m - 1] ^= 1;
	spit(b.fd, "events.0001.seg", p, n);
	spit(b.fd, CHECKPOINTS_NAME, q, m);
	recover(&b, keys.fd, -EBADMSG);
	free(p);
	free(q);
	bundle_free(&b);
}

static void test_without_a_key(void **state)
{
	struct bundle b = bundle_new(), empty = bundle_new();
	struct journal_options opt = { .session = TEST_SESSION,
				       .sign = true,
				       .keys_dirfd = empty.fd };
	struct journal *j = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(journal_create(&j, b.fd, &opt, &err), -ENOENT);
	assert_non_null(strstr(err.text, "host.pub"));
	assert_int_equal(faccessat(b.fd, "events.0001.seg", F_OK, 0), -1);
	bundle_free(&empty);
	bundle_free(&b);
}

int main(void)
{
	static const struct key_options small = { .depth = 3 };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_signed_and_trusted),
		cmocka_unit_test(test_every_byte_of_the_log),
		cmocka_unit_test(test_entries_moved),
		cmocka_unit_test(test_rewritten_bundle),
		cmocka_unit_test(test_recovery_goes_on_signing),
		cmocka_unit_test(test_without_a_key),
	};
	int r;

	keys = bundle_new();
	other_keys = bundle_new();
	if (keys_init(keys.fd, &small, NULL) < 0 || keys_init(other_keys.fd, &small, NULL) < 0)
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	bundle_free(&keys);
	bundle_free(&other_keys);
	return r;
}
