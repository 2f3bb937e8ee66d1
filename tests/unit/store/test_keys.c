// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/store/bundle.h"

#include <errno.h>

#include "userspace/base/clock.h"
#include "userspace/store/keys.h"

static const struct key_options SMALL = { .depth = 4, .seconds = 60 };

#define NOW	1000000000ull
#define MINUTES (60 * NSEC_PER_SEC)

static void keys_gone(struct bundle *b)
{
	bundle_free(b);
}

static void test_init_and_show(void **state)
{
	struct bundle b = bundle_new();
	uint8_t key[KEY_LEN], parsed[KEY_LEN];
	uint32_t epoch = 9, all = 9;
	struct stat st;
	char *text;
	size_t n;

	(void)state;
	assert_int_equal(keys_public(b.fd, key, NULL), -ENOENT);
	assert_int_equal(keys_init(b.fd, &SMALL, NULL), 0);
	assert_int_equal(keys_init(b.fd, &SMALL, NULL), -EEXIST);
	assert_int_equal(keys_public(b.fd, key, NULL), 0);
	assert_int_equal(keys_epochs(b.fd, &epoch, &all, NULL), 0);
	assert_int_equal(epoch, 0);
	assert_int_equal(all, 16);
	assert_int_equal(fstatat(b.fd, "host.seed", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	text = slurp(b.fd, "host.pub", &n);
	assert_int_equal(key_parse((struct str){ text, n }, parsed), 0);
	assert_memory_equal(parsed, key, KEY_LEN);
	assert_int_equal(key_parse((struct str){ text, n - 2 }, parsed), -EINVAL);
	text[20] = 'x';
	assert_int_equal(key_parse((struct str){ text, n }, parsed), -EINVAL);
	free(text);
	keys_gone(&b);
}

/* Every epoch signs, in its time, and only what it signed is good. */
static void test_epochs(void **state)
{
	struct bundle b = bundle_new();
	struct key_signature s, first;
	uint8_t host[KEY_LEN], other[KEY_LEN] = { 1 };
	uint64_t now;

	(void)state;
	assert_int_equal(keys_init(b.fd, &SMALL, NULL), 0);
	now = clock_real_ns();
	assert_int_equal(keys_public(b.fd, host, NULL), 0);
	assert_int_equal(keys_sign(b.fd, now, "abc", 3, &first, NULL), 0);
	assert_int_equal(first.epoch, 0);
	for (uint32_t i = 1; i < 20; i++) {
		now += MINUTES + 1;
		assert_int_equal(keys_sign(b.fd, now, "abc", 3, &s, NULL), 0);
		assert_int_equal(s.epoch, MIN(i, 15u));
		assert_true(key_signature_is_good(host, &s, "abc", 3));
		assert_false(key_signature_is_good(host, &s, "abd", 3));
		assert_false(key_signature_is_good(other, &s, "abc", 3));
		s.epoch ^= 1;
		assert_false(key_signature_is_good(host, &s, "abc", 3));
		s.epoch ^= 1;
		s.path[2][5] ^= 1;
		assert_false(key_signature_is_good(host, &s, "abc", 3));
		s.path[2][5] ^= 1;
		s.depth = 3;
		assert_false(key_signature_is_good(host, &s, "abc", 3));
		s.depth = 4;
		s.sig[3] ^= 1;
		assert_false(key_signature_is_good(host, &s, "abc", 3));
	}
	assert_true(key_signature_is_good(host, &first, "abc", 3));
	/* a clock that goes back brings no epoch back */
	assert_int_equal(keys_sign(b.fd, NOW, "abc", 3, &s, NULL), 0);
	assert_int_equal(s.epoch, 15);
	keys_gone(&b);
}

/* The seed of an epoch that is over is nowhere in the file. */
static void test_old_seed_is_overwritten(void **state)
{
	struct bundle b = bundle_new();
	struct key_signature s;
	char *before, *after;
	struct stat one, two;
	size_t n, m;

	(void)state;
	assert_int_equal(keys_init(b.fd, &SMALL, NULL), 0);
	before = slurp(b.fd, "host.seed", &n);
	assert_int_equal(fstatat(b.fd, "host.seed", &one, 0), 0);
	assert_int_equal(keys_sign(b.fd, clock_real_ns() + 2 * MINUTES, "x", 1, &s, NULL), 0);
	after = slurp(b.fd, "host.seed", &m);
	assert_int_equal(fstatat(b.fd, "host.seed", &two, 0), 0);
	assert_int_equal(one.st_ino, two.st_ino);
	assert_int_equal(n, m);
	assert_memory_not_equal(before + 32, after + 32, 8);
	free(before);
	free(after);
	keys_gone(&b);
}

static void test_rotate(void **state)
{
	struct bundle b = bundle_new();
	uint8_t old[KEY_LEN], new[KEY_LEN];
	struct key_signature s;
	char *log;
	size_t n;

	(void)state;
	assert_int_equal(keys_rotate(b.fd, &SMALL, NULL), -ENOENT);
	assert_int_equal(keys_init(b.fd, &SMALL, NULL), 0);
	assert_int_equal(keys_public(b.fd, old, NULL), 0);
	assert_int_equal(keys_rotate(b.fd, &SMALL, NULL), 0);
	assert_int_equal(keys_public(b.fd, new, NULL), 0);
	assert_memory_not_equal(old, new, KEY_LEN);
	assert_int_equal(keys_sign(b.fd, clock_real_ns(), "x", 1, &s, NULL), 0);
	assert_true(key_signature_is_good(new, &s, "x", 1));
	assert_false(key_signature_is_good(old, &s, "x", 1));
	log = slurp(b.fd, "rotations.log", &n);
	assert_true(n > 200 && log[0] == '{' && log[n - 1] == '\n');
	assert_int_equal(faccessat(b.fd, "next", F_OK, 0), -1);
	free(log);
	keys_gone(&b);
}

static void test_damaged_files(void **state)
{
	struct bundle b = bundle_new();
	struct key_signature s;
	char *p;
	size_t n;

	(void)state;
	assert_int_equal(keys_init(b.fd, &SMALL, NULL), 0);
	p = slurp(b.fd, "host.tree", &n);
	assert_int_equal(n, 31 * 32);
	p[40] ^= 1; /* leaf 1, the neighbour of epoch 0 */
	spit(b.fd, "host.tree", p, n);
	assert_int_equal(keys_sign(b.fd, NOW, "x", 1, &s, NULL), -EBADMSG);
	spit(b.fd, "host.tree", p, 40);
	assert_int_equal(keys_sign(b.fd, NOW, "x", 1, &s, NULL), -EIO);
	spit(b.fd, "host.seed", p, 40);
	assert_int_equal(keys_sign(b.fd, NOW, "x", 1, &s, NULL), -EBADMSG);
	spit(b.fd, "host.seed", p, 80);
	assert_int_equal(keys_sign(b.fd, NOW, "x", 1, &s, NULL), -EBADMSG);
	free(p);
	keys_gone(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_init_and_show),		cmocka_unit_test(test_epochs),
		cmocka_unit_test(test_old_seed_is_overwritten), cmocka_unit_test(test_rotate),
		cmocka_unit_test(test_damaged_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
