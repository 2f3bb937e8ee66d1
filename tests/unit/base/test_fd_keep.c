// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void only_what_is_named_stays_open(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		int keep[] = { 40, -1, 12, 12, 1, 90 };
		static const int made[] = { 10, 11, 12, 13, 39, 40, 41, 90, 91, 500 };
		bool good = true;

		for (size_t i = 0; i < ARRAY_SIZE(made); i++)
			dup2(2, made[i]);
		good &= fd_keep_only(keep, ARRAY_SIZE(keep)) == 0;
		for (int fd = 3; fd < 600; fd++)
			good &= is_open(fd) == (fd == 12 || fd == 40 || fd == 90);
		good &= is_open(2);
		_exit(!good);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void nothing_to_keep(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		dup2(2, 30);
		_exit(fd_keep_only(NULL, 0) != 0 || is_open(30) || !is_open(2));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_is_named_stays_open),
		cmocka_unit_test(nothing_to_keep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
