// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include "userspace/cli/consume_check.h"

static struct consume_check *check;
static uint64_t missed;

static int set_up(void **state)
{
	(void)state;
	return consume_check_new(&check, true);
}

static int tear_down(void **state)
{
	(void)state;
	consume_check_free(check);
	return 0;
}

static enum consume_verdict feed_body(const char *session, unsigned seq, const char *body)
{
	char id[64];
	int n = snprintf(id, sizeof(id), "%s:%u", session, seq);

	return consume_check_record(check, str_from(session), (struct str){ id, (size_t)n }, seq,
				    str_from(body), &missed);
}

static enum consume_verdict feed(const char *session, unsigned seq)
{
	return feed_body(session, seq, "{}");
}

static struct consume_counts counts(void)
{
	struct consume_counts n;

	consume_check_counts(check, &n);
	return n;
}

static void test_in_order(void **state)
{
	(void)state;
	for (unsigned i = 1; i <= 1000; i++) {
		assert_int_equal(feed("a", i), CONSUME_NEW);
		assert_int_equal(feed("b", i), CONSUME_NEW);
		assert_int_equal(missed, 0);
	}
	assert_int_equal(counts().events, 2000);
	assert_int_equal(counts().sessions, 2);
	assert_int_equal(counts().missing + counts().late + counts().duplicates, 0);
}

/* A producer that started over sends from its cursor again. */
static void test_again_from_the_cursor(void **state)
{
	(void)state;
	for (unsigned i = 1; i <= 100; i++)
		feed("a", i);
	for (unsigned i = 51; i <= 150; i++)
		assert_int_equal(feed("a", i), i <= 100 ? CONSUME_DUPLICATE : CONSUME_NEW);
	assert_int_equal(counts().duplicates, 50);
	assert_int_equal(counts().events, 150);
	assert_int_equal(counts().missing, 0);
	feed_body("a", 7, "{ }");
	assert_int_equal(counts().altered, 1);
}

static void test_missing_and_late(void **state)
{
	(void)state;
	assert_int_equal(feed("a", 3), CONSUME_NEW); /* the start is missing, too */
	assert_int_equal(missed, 2);
	assert_int_equal(feed("a", 10), CONSUME_NEW);
	assert_int_equal(missed, 6);
	assert_int_equal(counts().missing, 8);
	assert_int_equal(feed("a", 6), CONSUME_LATE); /* splits the hole 4..9 */
	assert_int_equal(feed("a", 6), CONSUME_DUPLICATE);
	assert_int_equal(feed("a", 4), CONSUME_LATE);
	assert_int_equal(feed("a", 5), CONSUME_LATE);
	assert_int_equal(feed("a", 9), CONSUME_LATE);
	assert_int_equal(counts().missing, 4); /* 1, 2, 7, 8 */
	for (unsigned i = 1; i <= 10; i++)
		feed("a", i);
	assert_int_equal(counts().missing, 0);
	assert_int_equal(counts().late, 8);
	assert_int_equal(counts().events, 10);
}

/* More holes than are kept: they stay missing, nothing is counted twice. */
static void test_many_holes(void **state)
{
	(void)state;
	for (unsigned i = 2; i <= 200; i += 2)
		assert_int_equal(feed("a", i), CONSUME_NEW);
	assert_int_equal(counts().missing, 100);
	for (unsigned i = 1; i <= 199; i += 2)
		feed("a", i);
	assert_int_equal(counts().late, CONSUME_HOLES_MAX);
	assert_int_equal(counts().missing, 100 - CONSUME_HOLES_MAX);
	assert_int_equal(counts().events + counts().duplicates, 200);
}

/* The alerts topic holds a few of each session: only what comes twice matters. */
static void test_partial(void **state)
{
	(void)state;
	consume_check_free(check);
	assert_int_equal(consume_check_new(&check, false), 0);
	assert_int_equal(feed("a", 50), CONSUME_NEW);
	assert_int_equal(feed("a", 7), CONSUME_NEW);
	assert_int_equal(feed("a", 50), CONSUME_DUPLICATE);
	assert_int_equal(counts().missing + counts().late, 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_in_order),	     TEST(test_again_from_the_cursor),
		TEST(test_missing_and_late), TEST(test_many_holes),
		TEST(test_partial),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
