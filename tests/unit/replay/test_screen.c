// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/replay/screen.h"

DEFINE_AUTO(screen, screen_free)

static void feed(struct screen *s, const char *text)
{
	assert_int_equal(screen_feed(s, 0, str_from(text)), 0);
}

/* A row without its trailing spaces. */
static void assert_row(const struct screen *s, unsigned row, bool colour, const char *want)
{
	auto_buf struct buf b = { 0 };

	assert_int_equal(screen_row(s, row, 200, colour, &b), 0);
	while (b.n && b.p[b.n - 1] == ' ')
		b.n--;
	buf_addc(&b, 0);
	assert_string_equal(b.p, want);
}

static void test_moves(void **state)
{
	AUTO(screen) struct screen *s = screen_new(5, 20);
	unsigned row, col;

	(void)state;
	feed(s, "one\r\ntwo\r\n\033[1;2Hx\033[3;5Hhere\033[K");
	assert_row(s, 0, false, "oxe");
	assert_row(s, 1, false, "two");
	assert_row(s, 2, false, "    here");
	assert_true(screen_cursor(s, &row, &col));
	assert_int_equal(row, 2);
	assert_int_equal(col, 8);
	feed(s, "\033[?25l");
	assert_false(screen_cursor(s, &row, &col));
	/* sequences and characters may be split anywhere */
	feed(s, "\033[2");
	feed(s, "J\033[H\xc3");
	feed(s, "\xa4");
	assert_row(s, 0, false, "\xc3\xa4");
	assert_row(s, 1, false, "");
}

static void test_colours_are_undone(void **state)
{
	AUTO(screen) struct screen *s = screen_new(3, 20);

	(void)state;
	feed(s, "a\033[31;1mred\033[0mb\033[38;2;1;2;3mc");
	assert_row(s, 0, false, "aredbc");
	assert_row(s, 0, true,
		   "a\033[0;1;38;5;1mred\033[0mb\033[0;38;2;1;2;3mc\033[0m              \033[0m");
}

static void test_other_screen(void **state)
{
	AUTO(screen) struct screen *s = screen_new(3, 20);

	(void)state;
	feed(s, "shell\033[?1049h\033[2J\033[Heditor");
	assert_row(s, 0, false, "editor");
	feed(s, "\033[?1049l");
	assert_row(s, 0, false, "shell");
}

static void test_nothing_for_the_terminal(void **state)
{
	AUTO(screen) struct screen *s = screen_new(3, 40);

	(void)state;
	feed(s, "a\033]0;title\007\033[6n\033P+q\033\\\xe2\x80\xae\xc2\x9b[31m\033[?1000hb");
	assert_row(s, 0, true, "a\xef\xbf\xbd[31mb");
}

/* Counts that no screen needs would keep libvterm busy for hours. */
static void test_endless_counts(void **state)
{
	AUTO(screen) struct screen *s = screen_new(3, 40);

	(void)state;
	feed(s,
	     "\033[4294967294483647Sx\033[2147483646b\033[99999999I\033[999999999Z\033[1;1Hlast\033[0K");
	assert_row(s, 0, false, "last");
	feed(s, "\r\n\033[2J\033[5ba\033[3b\xc3\xa4\033[b");
	assert_row(s, 1, false, "aaaa\xc3\xa4\xc3\xa4");
}

static void test_pipes(void **state)
{
	AUTO(screen) struct screen *s = screen_new(4, 20);

	(void)state;
	assert_int_equal(screen_feed(s, 1, STR("out\nline")), 0);
	assert_int_equal(screen_feed(s, 2, STR("\nerr\n")), 0);
	assert_row(s, 0, false, "out");
	assert_row(s, 1, false, "line");
	assert_row(s, 2, false, "err");
	assert_true(screen_feed(s, SCREEN_STREAMS, STR("x")) < 0);
}

static void test_sizes(void **state)
{
	AUTO(screen) struct screen *s = screen_new(0, 60000);
	unsigned rows, cols;

	(void)state;
	screen_size(s, &rows, &cols);
	assert_int_equal(rows, 24);
	assert_int_equal(cols, SCREEN_SIDE_MAX);
	feed(s, "kept");
	screen_resize(s, 2, 3);
	screen_size(s, &rows, &cols);
	assert_int_equal(rows, 2);
	assert_int_equal(cols, 3);
	screen_resize(s, 0, 0);
	screen_size(s, &rows, &cols);
	assert_int_equal(rows, 2);
	assert_int_equal(screen_reset(s, 4, 9), 0);
	assert_row(s, 0, false, "");
	assert_row(s, 9, false, "");
	feed(s, "wide\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad");
	assert_row(s, 0, false, "wide\xe4\xb8\xad\xe4\xb8\xad");
	assert_row(s, 1, false, "\xe4\xb8\xad");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moves),
		cmocka_unit_test(test_colours_are_undone),
		cmocka_unit_test(test_other_screen),
		cmocka_unit_test(test_nothing_for_the_terminal),
		cmocka_unit_test(test_endless_counts),
		cmocka_unit_test(test_pipes),
		cmocka_unit_test(test_sizes),
	};

	return cmocka_run_group_tests_name("replay/screen", tests, NULL, NULL);
}
