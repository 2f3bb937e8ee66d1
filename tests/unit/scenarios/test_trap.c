// SPDX-License-Identifier: Apache-2.0
/* Traps are what they say, and one that was sprung is noticed. */
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "userspace/scenarios/trap.h"

static char dir[512];

static int make_dir(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	snprintf(dir, sizeof(dir), "%s/trap-XXXXXX", tmp ? tmp : "/tmp");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	static const char *const names[] = { "/trap/docker.sock", "/trap/null", "/trap/zero",
					     "/trap/console",	  "/trap/pts",	"/trap/planted",
					     "/trap/self",	  "/trap/sys",	"/trap/out",
					     "/trap/x",		  "/trap",	"" };
	char path[600];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", dir, names[i]);
		remove(path);
	}
	return 0;
}

static void test_none(void **state)
{
	struct trap t;

	(void)state;
	assert_int_equal(trap_set(&t, TRAP_NONE, dir, NULL), 0);
	assert_int_equal(access(t.place, F_OK), -1);
	assert_int_equal(t.give_fd, -1);
	assert_false(trap_end(&t));
}

static void test_links(void **state)
{
	char path[700], to[PATH_MAX];
	struct trap t;
	ssize_t n;

	(void)state;
	assert_int_equal(trap_set(&t, TRAP_DEV_LINK, dir, NULL), 0);
	snprintf(path, sizeof(path), "%s/null", t.place);
	n = readlink(path, to, sizeof(to) - 1);
	assert_true(n > 0);
	to[n] = 0;
	assert_string_equal(to, "/etc/passwd");
	assert_false(trap_end(&t));
}

static void test_descriptor(void **state)
{
	struct trap t;
	struct stat st;

	(void)state;
	assert_int_equal(trap_set(&t, TRAP_CWD_FD, dir, NULL), 0);
	assert_int_equal(fstat(t.give_fd, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	trap_end(&t);
	assert_int_equal(fstat(t.give_fd, &st), -1);
}

static void test_socket_and_service(void **state)
{
	char path[700];
	struct trap t;
	struct stat st;

	(void)state;
	assert_int_equal(trap_set(&t, TRAP_SOCKET, dir, NULL), 0);
	snprintf(path, sizeof(path), "%s/docker.sock", t.place);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_false(trap_end(&t));
	assert_int_equal(trap_set(&t, TRAP_SERVICE, dir, NULL), 0);
	assert_int_equal(strncmp(t.place, TRAP_NAME ":4444=127.0.0.1:", strlen(TRAP_NAME) + 16), 0);
	assert_false(trap_end(&t));
}

/* As a launcher would that follows links on the host. */
static void test_sprung(void **state)
{
	char path[700];
	struct trap t;
	int fd;

	(void)state;
	assert_int_equal(trap_set(&t, TRAP_TARGET_LINK, dir, NULL), 0);
	snprintf(path, sizeof(path), "%s/out/%s", t.place, t.planted);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_true(trap_end(&t));
	assert_false(trap_end(&t));
	assert_int_equal(access(path, F_OK), -1);
}

static void test_no_directory(void **state)
{
	struct err err = { 0 };
	struct trap t;

	(void)state;
	assert_true(trap_set(&t, TRAP_PROC_LINK, "/nonexistent", &err) < 0);
	assert_non_null(strstr(err_text(&err), "/nonexistent"));
}

#define TRAP_TEST(fn) cmocka_unit_test_setup_teardown(fn, make_dir, remove_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TRAP_TEST(test_none),	    TRAP_TEST(test_links),
		TRAP_TEST(test_descriptor), TRAP_TEST(test_socket_and_service),
		TRAP_TEST(test_sprung),	    TRAP_TEST(test_no_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
