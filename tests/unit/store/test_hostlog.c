// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/store/bundle.h"

#include <errno.h>

#include "userspace/store/hostlog.h"
#include "userspace/store/hostlog_line.h"

static struct bundle keys, other_keys;
static const struct key_options quick = { .depth = 3 };

static void append(struct bundle *b, const char *kind, const char *session, const char *data,
		   bool sign)
{
	const struct hostlog_entry e = { kind, session, str_from(data) };
	struct err err = { 0 };

	if (hostlog_append(b->fd, &e, sign ? keys.fd : -1, &err) < 0)
		fail_msg("%s", err.text);
}

static struct hostlog_report check(struct bundle *b, const uint8_t (*k)[KEY_LEN], size_t n)
{
	const struct verify_options opt = { .keys = k, .n_keys = n };
	struct hostlog_report rep;
	struct err err = { 0 };

	if (hostlog_walk(b->fd, &opt, NULL, NULL, &rep, &err) < 0)
		fail_msg("%s", err.text);
	return rep;
}

static int remember(void *arg, const struct hostlog_line *l)
{
	char *text = arg;
	size_t n = strlen(text);

	snprintf(text + n, 4096 - n, "%llu %.*s %.*s %.*s %d\n", (unsigned long long)l->n,
		 (int)l->kind.n, l->kind.p, (int)l->session.n, l->session.p, (int)l->data.n,
		 l->data.p, l->is_signed);
	return 0;
}

static void test_what_was_written_is_read(void **state)
{
	struct bundle b = bundle_new();
	struct hostlog_report rep;
	struct err err = { 0 };
	char text[4096] = "";

	(void)state;
	assert_int_equal(hostlog_walk(b.fd, NULL, NULL, NULL, &rep, &err), -ENOENT);
	append(&b, "session", "A", "{\"head\":\"\\\",\\\"hash\\\":\\\"\"}", false);
	append(&b, "review", "A", "{\"a\":[{}]}", true);
	append(&b, "access", NULL, "", true);
	assert_int_equal(hostlog_walk(b.fd, NULL, remember, text, &rep, &err), 0);
	assert_true(rep.good);
	assert_int_equal(rep.entries, 3);
	assert_int_equal(rep.is_signed, 2);
	assert_string_equal(text, "1 session A {\"head\":\"\\\",\\\"hash\\\":\\\"\"} 0\n"
				  "2 review A {\"a\":[{}]} 1\n3 access  {} 1\n");
	bundle_free(&b);
}

static void test_keys_that_are_trusted(void **state)
{
	struct bundle b = bundle_new();
	uint8_t k[2][KEY_LEN];

	(void)state;
	assert_int_equal(keys_public(other_keys.fd, k[0], NULL), 0);
	assert_int_equal(keys_public(keys.fd, k[1], NULL), 0);
	append(&b, "session", "A", "", false);
	assert_false(check(&b, k, 2).good); /* covered by nobody */
	append(&b, "session", "B", "", true);
	assert_true(check(&b, k, 2).good); /* the signature is about the chain */
	assert_false(check(&b, k, 1).good);
	append(&b, "session", "C", "", false);
	assert_true(check(&b, NULL, 0).good);
	assert_false(check(&b, k, 2).good);
	bundle_free(&b);
}

/* No byte can be changed, no line taken out, doubled or put elsewhere. */
static void test_every_change_is_seen(void **state)
{
	struct bundle b = bundle_new();
	int fd;
	size_t n = 0, line[8] = { 0 }, lines = 1;
	char *p, *q;

	(void)state;
	for (int i = 0; i < 4; i++)
		append(&b, "session", "A", "{\"records\":17}", i & 1);
	p = slurp(b.fd, HOSTLOG_NAME, &n);
	q = malloc(2 * n);
	assert_non_null(q);
	fd = openat(b.fd, HOSTLOG_NAME, O_RDWR | O_CLOEXEC);
	for (size_t i = 0; i < n; i++) {
		char flipped = (char)(p[i] ^ 1);

		if (p[i] == '\n' && i + 1 < n)
			line[lines++] = i + 1;
		/* the last newline: a torn last line, which a crash leaves */
		if (i == n - 1)
			continue;
		assert_int_equal(pwrite(fd, &flipped, 1, (off_t)i), 1);
		if (check(&b, NULL, 0).good && check(&b, NULL, 0).entries == 4) {
			/* Only the bytes of a signature are not in the chain: a key finds those. */
			uint8_t k[1][KEY_LEN];

			assert_int_equal(keys_public(keys.fd, k[0], NULL), 0);
			if (check(&b, k, 1).good)
				fail_msg("byte %zu", i);
		}
		assert_int_equal(pwrite(fd, p + i, 1, (off_t)i), 1);
	}
	assert_true(check(&b, NULL, 0).good);
	line[lines] = n;
	for (size_t gone = 0; gone < 3; gone++) {
		size_t cut = line[gone + 1] - line[gone];

		memcpy(q, p, line[gone]);
		memcpy(q + line[gone], p + line[gone + 1], n - line[gone + 1]);
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, q, n - cut, 0), (ssize_t)(n - cut));
		assert_false(check(&b, NULL, 0).good);
	}
	memcpy(q, p, n);
	memcpy(q + n, p + line[3], n - line[3]);
	assert_int_equal(pwrite(fd, q, 2 * n - line[3], 0), (ssize_t)(2 * n - line[3]));
	assert_false(check(&b, NULL, 0).good);
	close(fd);
	free(p);
	free(q);
	bundle_free(&b);
}

static void test_cut_anywhere_it_goes_on(void **state)
{
	struct bundle b = bundle_new();
	size_t n = 0, first;
	char *p;
	int fd;

	(void)state;
	append(&b, "session", "A", "", false);
	append(&b, "session", "B", "", true);
	p = slurp(b.fd, HOSTLOG_NAME, &n);
	for (first = 1; p[first - 1] != '\n'; first++)
		;
	fd = openat(b.fd, HOSTLOG_NAME, O_RDWR | O_CLOEXEC);
	for (size_t end = 1; end < n; end += 7) {
		struct hostlog_report rep;

		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, p, end, 0), (ssize_t)end);
		assert_true(check(&b, NULL, 0).good);
		append(&b, "session", "C", "", true);
		rep = check(&b, NULL, 0);
		if (!rep.good)
			fail_msg("cut at %zu: %s", end, rep.text);
		assert_int_equal(rep.torn, end != first);
		assert_int_equal(rep.entries, (end >= first) + (end != first) + 1);
	}
	close(fd);
	free(p);
	bundle_free(&b);
}

static void test_what_is_not_ours_is_left_alone(void **state)
{
	const struct hostlog_entry e = { .kind = "access" };
	struct bundle b = bundle_new();
	struct err err = { 0 };
	int fd = openat(b.fd, HOSTLOG_NAME, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	(void)state;
	assert_int_equal(write(fd, "hello\n", 6), 6);
	assert_int_equal(hostlog_append(b.fd, &e, -1, &err), -EBADMSG);
	assert_false(check(&b, NULL, 0).good);
	assert_int_equal(lseek(fd, 0, SEEK_END), 6);
	close(fd);
	assert_int_equal(unlinkat(b.fd, HOSTLOG_NAME, 0), 0);
	assert_int_equal(symlinkat("/dev/null", b.fd, HOSTLOG_NAME), 0);
	assert_int_equal(hostlog_append(b.fd, &e, -1, &err), -ELOOP);
	assert_int_equal(unlinkat(b.fd, HOSTLOG_NAME, 0), 0);
	bundle_free(&b);
}

static int set_up(void **state)
{
	(void)state;
	keys = bundle_new();
	other_keys = bundle_new();
	return keys_init(keys.fd, &quick, NULL) || keys_init(other_keys.fd, &quick, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	bundle_free(&keys);
	bundle_free(&other_keys);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_was_written_is_read),
		cmocka_unit_test(test_keys_that_are_trusted),
		cmocka_unit_test(test_every_change_is_seen),
		cmocka_unit_test(test_cut_anywhere_it_goes_on),
		cmocka_unit_test(test_what_is_not_ours_is_left_alone),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
