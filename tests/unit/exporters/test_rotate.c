// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "exporters/rotate.h"
#include "userspace/base/clock.h"

#define NOON (1769862896 * NSEC_PER_SEC) /* 2026-01-31T12:34:56Z */

static char dir[64], path[80];

static int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/warder-rotate-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/out", dir);
	return 0;
}

static int drop_dir(void **state)
{
	char cmd[128];

	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	return system(cmd);
}

static int make(const char *name, const char *text)
{
	char full[160];
	int fd;

	snprintf(full, sizeof(full), "%s/%s", dir, name);
	fd = open(full, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	return fd;
}

static bool is_there(const char *name)
{
	char full[160];

	snprintf(full, sizeof(full), "%s/%s", dir, name);
	return access(full, F_OK) == 0;
}

static void test_due(void **state)
{
	const struct rotate size = { .size = 100 }, age = { .age_ns = 60 * NSEC_PER_SEC },
			    never = { 0 };
	struct rotate_seen seen = { 0 };
	uint64_t now = clock_real_ns();
	int fd = make("out", "");

	(void)state;
	/* Empty: a large record goes in. */
	assert_int_equal(rotate_is_due(&size, &seen, fd, 1000, now, 0), 0);
	assert_int_equal(write(fd, "0123456789", 10), 10);
	assert_int_equal(rotate_is_due(&size, &seen, fd, 90, now, 0), 0);
	assert_int_equal(rotate_is_due(&size, &seen, fd, 91, now, 0), 1);
	assert_int_equal(rotate_is_due(&never, &seen, fd, 1000000, now + 61 * NSEC_PER_SEC, 0), 0);
	assert_int_equal(rotate_is_due(&age, &seen, fd, 1, now, 0), 0);
	assert_int_equal(rotate_is_due(&age, &seen, fd, 1, now, 61 * NSEC_PER_SEC), 1);
	/* Another process made it long ago: it is that old when it is first seen. */
	seen = (struct rotate_seen){ 0 };
	assert_int_equal(rotate_is_due(&age, &seen, fd, 1, now + 61 * NSEC_PER_SEC, 0), 1);
	close(fd);
}

/* The clock is set a year forth and back: the file is as old as it is. */
static void test_clock_jumps(void **state)
{
	const struct rotate age = { .age_ns = 60 * NSEC_PER_SEC };
	const uint64_t year = 365 * 24 * 3600 * NSEC_PER_SEC;
	struct rotate_seen seen = { 0 };
	uint64_t now = clock_real_ns(), mono = 1000 * NSEC_PER_SEC;
	int fd = make("out", "x");

	(void)state;
	assert_int_equal(rotate_is_due(&age, &seen, fd, 1, now, mono), 0);
	assert_int_equal(rotate_is_due(&age, &seen, fd, 1, now + year, mono + NSEC_PER_SEC), 0);
	assert_int_equal(rotate_is_due(&age, &seen, fd, 1, now - year, mono + 2 * NSEC_PER_SEC), 0);
	assert_int_equal(rotate_is_due(&age, &seen, fd, 1, now - year, mono + 61 * NSEC_PER_SEC),
			 1);
	/* Set back before we started: its age counts from now, and is not waited for a year. */
	seen = (struct rotate_seen){ 0 };
	assert_int_equal(rotate_is_due(&age, &seen, fd, 1, now - year, mono), 0);
	assert_int_equal(rotate_is_due(&age, &seen, fd, 1, now - year, mono + 61 * NSEC_PER_SEC),
			 1);
	close(fd);
}

/* Twice in a second: nothing is overwritten. A file that was moved by another is left alone. */
static void test_move(void **state)
{
	const struct rotate all = { .size = 1 };
	int first = make("out", "1"), second;

	(void)state;
	assert_int_equal(rotate_now(&all, path, first, NOON), 1);
	assert_true(is_there("out.20260131T123456.000000Z"));
	assert_int_equal(rotate_now(&all, path, first, NOON), -ENOENT);
	second = make("out", "2");
	assert_int_equal(rotate_now(&all, path, first, NOON), 0);
	assert_true(is_there("out"));
	assert_int_equal(rotate_now(&all, path, second, NOON), 1);
	assert_true(is_there("out.20260131T123456.000000Z-1"));
	assert_true(is_there("out.20260131T123456.000000Z"));
	close(first);
	close(second);
}

/* The oldest go, by stamp and number; what only looks alike stays. */
static void test_keep(void **state)
{
	static const char *const foreign[] = { "out.1", "out.20260131T123456.000000Z.gz",
					       "out.20260131T123456.00000xZ",
					       "other.20260131T000000.000000Z",
					       "out.20260131T123456.000000Z-" };
	const struct rotate two = { .size = 1, .keep = 2 };
	int fd;

	(void)state;
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		close(make(foreign[i], "x"));
	close(make("out.20250101T000000.000000Z", "x"));
	close(make("out.20260131T123456.000000Z", "x"));
	close(make("out.20260131T123456.000000Z-2", "x"));
	close(make("out.20260131T123456.000000Z-10", "x"));
	fd = make("out", "x");
	assert_int_equal(rotate_now(&two, path, fd, NOON + NSEC_PER_SEC), 1);
	close(fd);
	assert_true(is_there("out.20260131T123457.000000Z"));
	assert_true(is_there("out.20260131T123456.000000Z-10"));
	assert_false(is_there("out.20260131T123456.000000Z-2"));
	assert_false(is_there("out.20260131T123456.000000Z"));
	assert_false(is_there("out.20250101T000000.000000Z"));
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		assert_true(is_there(foreign[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_due, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(test_clock_jumps, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(test_move, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(test_keep, make_dir, drop_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
