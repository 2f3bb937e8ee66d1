// SPDX-License-Identifier: Apache-2.0
/* Originals go in by the public key and come out by the secret one, and by no other. */
#include <errno.h>

#include "tests/unit/redact/redact_test.h"
#include "userspace/redact/escrow.h"

static const uint8_t TAG[REDACT_TAG_LEN] = { 1, 2, 3, 4, 5, 6 };

struct keys {
	uint8_t public_key[ESCROW_KEY_LEN], secret[ESCROW_KEY_LEN];
	struct redact_escrow *e;
	struct buf payload, room;
};

static void start(struct keys *k)
{
	*k = (struct keys){ 0 };
	assert_int_equal(escrow_keys_make(k->public_key, k->secret), 0);
	assert_int_equal(redact_escrow_new(&k->e, k->public_key), 0);
}

static void end(struct keys *k)
{
	redact_escrow_free(k->e);
	buf_done(&k->payload);
	buf_done(&k->room);
}

static void take(struct keys *k, const char *text)
{
	redact_escrow_take(k->e, "rule", TAG, str_from(text));
}

static struct redact_escrow_counts counts(struct keys *k)
{
	struct redact_escrow_counts c;

	redact_escrow_counts(k->e, &c);
	return c;
}

static void test_there_and_back(void **state)
{
	struct escrow_reader er;
	struct redact_original o;
	struct keys k;

	(void)state;
	start(&k);
	assert_int_equal(redact_escrow_next(k.e, &k.payload), 0);
	take(&k, "hunter2hunter2");
	take(&k, "another");
	take(&k, "hunter2hunter2"); /* once is enough */
	assert_int_equal(redact_escrow_next(k.e, &k.payload), 1);
	assert_null(memmem(k.payload.p, k.payload.n, "hunter", 6));
	assert_int_equal((k.payload.n - 44) / 2 - 4 - 48, 64); /* a length tells little */
	assert_int_equal(escrow_reader_init(&er, (struct str){ k.payload.p, k.payload.n }), 0);
	assert_int_equal(escrow_reader_next(&er, k.secret, &k.room, &o), 1);
	assert_true(str_eqz(o.rule, "rule") && str_eqz(o.text, "hunter2hunter2"));
	assert_memory_equal(o.tag.p, TAG, sizeof(TAG));
	assert_int_equal(escrow_reader_next(&er, k.secret, &k.room, &o), 1);
	assert_true(str_eqz(o.text, "another"));
	assert_int_equal(escrow_reader_next(&er, k.secret, &k.room, &o), 0);
	assert_int_equal(redact_escrow_next(k.e, &k.payload), 0);
	assert_int_equal(counts(&k).kept, 2);
	end(&k);
}

static void test_another_key(void **state)
{
	uint8_t other_public[ESCROW_KEY_LEN], other[ESCROW_KEY_LEN];
	struct escrow_reader er;
	struct redact_original o;
	struct keys k;

	(void)state;
	start(&k);
	assert_int_equal(escrow_keys_make(other_public, other), 0);
	take(&k, "hunter2hunter2");
	assert_int_equal(redact_escrow_next(k.e, &k.payload), 1);
	assert_int_equal(escrow_reader_init(&er, (struct str){ k.payload.p, k.payload.n }), 0);
	assert_int_equal(escrow_reader_next(&er, other, &k.room, &o), -EKEYREJECTED);
	memcpy(k.payload.p + 8, other_public, ESCROW_KEY_LEN); /* it only says so */
	assert_int_equal(escrow_reader_next(&er, other, &k.room, &o), -EBADMSG);
	end(&k);
}

/* What cannot be kept is counted, and what was kept stays. */
static void test_limits(void **state)
{
	struct redact_escrow_counts c;
	char text[32];
	struct keys k;
	uint64_t n = 0;

	(void)state;
	start(&k);
	for (int i = 0; i < ESCROW_ENTRIES_MAX + 10; i++) {
		snprintf(text, sizeof(text), "secret %d", i);
		take(&k, text);
	}
	c = counts(&k);
	assert_int_equal(c.kept, ESCROW_ENTRIES_MAX);
	assert_int_equal(c.not_kept, 10);
	assert_int_equal(redact_escrow_next(k.e, &k.payload), 1);
	n = (uint8_t)k.payload.p[40] + 256u * (uint8_t)k.payload.p[41];
	redact_escrow_lost(k.e, (struct str){ k.payload.p, k.payload.n });
	c = counts(&k);
	assert_int_equal(c.kept, ESCROW_ENTRIES_MAX - n);
	assert_int_equal(c.not_kept, 10 + n);
	take(&k, "there is no more room for it");
	assert_int_equal(counts(&k).not_kept, 11 + n);
	while (redact_escrow_next(k.e, &k.payload) == 1) {
		struct escrow_reader er;

		assert_true(k.payload.n <= ESCROW_PAYLOAD_MAX);
		assert_int_equal(escrow_reader_init(&er, (struct str){ k.payload.p, k.payload.n }),
				 0);
		n += er.entries;
	}
	assert_int_equal(n, ESCROW_ENTRIES_MAX);
	end(&k);
}

static void test_large_ones(void **state)
{
	auto_free char *text = calloc(1, ESCROW_ORIGINAL_MAX + 2);
	struct redact_escrow_counts c;
	struct keys k;

	(void)state;
	start(&k);
	memset(text, 'x', ESCROW_ORIGINAL_MAX + 1);
	take(&k, text);
	assert_int_equal(counts(&k).not_kept, 1);
	for (int i = 0; i < 100; i++) {
		text[i] = 'y';
		text[ESCROW_ORIGINAL_MAX] = 0;
		take(&k, text);
	}
	c = counts(&k);
	assert_int_equal(c.kept + c.not_kept, 101);
	assert_true(c.kept * ESCROW_ORIGINAL_MAX <= ESCROW_BYTES_MAX);
	while (redact_escrow_next(k.e, &k.payload) == 1)
		assert_true(k.payload.n <= ESCROW_PAYLOAD_MAX);
	end(&k);
}

/* All of what a mark stands in place of, in a text, in words, and in a stream without its colours. */
static void test_by_marks(void **state)
{
	static const char text[] = "x correct horse battery y";
	struct escrow_reader er;
	struct redact_original o;
	struct redact_counts rc;
	auto_buf struct buf out = { 0 };
	struct fixture f;
	struct keys k;

	(void)state;
	start(&k);
	fixture_start(&f, "v", "correct horse battery", NULL);
	redact_set_escrow(f.x, k.e);
	assert_int_equal(redact_text(f.x, str_from(text), &out), 1);
	assert_int_equal(redact_text(f.x, str_from("password=hunter2hunter2"), &out), 1);
	redact_counts(f.x, &rc);
	assert_int_equal(rc.places, counts(&k).kept);
	assert_int_equal(redact_escrow_next(k.e, &k.payload), 1);
	assert_int_equal(escrow_reader_init(&er, (struct str){ k.payload.p, k.payload.n }), 0);
	assert_int_equal(escrow_reader_next(&er, k.secret, &k.room, &o), 1);
	assert_true(str_eqz(o.rule, "v") && str_eqz(o.text, "correct horse battery"));
	assert_int_equal(escrow_reader_next(&er, k.secret, &k.room, &o), 1);
	assert_true(str_eqz(o.text, "hunter2hunter2"));
	fixture_end(&f);
	end(&k);
}

static void test_key_files(void **state)
{
	static const char hex[] =
		"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
	uint8_t key[ESCROW_KEY_LEN];
	char text[200];

	(void)state;
	snprintf(text, sizeof(text), ESCROW_PUBLIC_LINE "%s\n", hex);
	assert_int_equal(escrow_key_parse(key, ESCROW_PUBLIC_LINE, str_from(text)), 0);
	assert_int_equal(key[1], 0x11);
	assert_int_equal(escrow_key_parse(key, ESCROW_SECRET_LINE, str_from(text)), -EBADMSG);
	text[strlen(text) - 2] = 'g';
	assert_int_equal(escrow_key_parse(key, ESCROW_PUBLIC_LINE, str_from(text)), -EBADMSG);
	assert_int_equal(escrow_key_parse(key, ESCROW_PUBLIC_LINE, STR("")), -EBADMSG);
}

/* A payload of somebody else. */
static void test_malformed(void **state)
{
	struct escrow_reader er;
	struct redact_original o;
	struct keys k;

	(void)state;
	start(&k);
	take(&k, "hunter2hunter2");
	assert_int_equal(redact_escrow_next(k.e, &k.payload), 1);
	for (size_t n = 0; n < k.payload.n; n++) {
		int r = escrow_reader_init(&er, (struct str){ k.payload.p, n });

		if (r == 0)
			r = escrow_reader_next(&er, k.secret, &k.room, &o);
		assert_int_equal(r, -EBADMSG);
	}
	for (size_t i = 40; i < k.payload.n; i++) {
		int r;

		k.payload.p[i] ^= 0x40;
		assert_int_equal(escrow_reader_init(&er, (struct str){ k.payload.p, k.payload.n }),
				 0);
		while ((r = escrow_reader_next(&er, k.secret, &k.room, &o)) > 0)
			;
		assert_int_equal(r, -EBADMSG);
		k.payload.p[i] ^= 0x40;
	}
	end(&k);
}

static void test_a_key_that_is_none(void **state)
{
	uint8_t key[ESCROW_KEY_LEN] = { 0 }, secret[ESCROW_KEY_LEN];

	(void)state;
	assert_false(escrow_key_works(key));
	key[0] = 1; /* of low order as well */
	assert_false(escrow_key_works(key));
	assert_int_equal(escrow_keys_make(key, secret), 0);
	assert_true(escrow_key_works(key));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_key_that_is_none), cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_another_key),	   cmocka_unit_test(test_limits),
		cmocka_unit_test(test_large_ones),	   cmocka_unit_test(test_by_marks),
		cmocka_unit_test(test_key_files),	   cmocka_unit_test(test_malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
