// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "userspace/base/file_lock.h"

static void test_lock(void **state)
{
	char path[] = "/tmp/test_file_lock.XXXXXX";
	int a = mkstemp(path), b = open(path, O_RDWR | O_CLOEXEC),
	    look = open(path, O_RDONLY | O_CLOEXEC), hold[2], status;
	pid_t pid;

	(void)state;
	assert_true(a >= 0 && b >= 0 && look >= 0);
	unlink(path);
	assert_false(file_lock_is_taken(look));
	assert_int_equal(file_lock_take(a), 0);
	assert_int_equal(file_lock_take(a), 0);
	assert_false(file_lock_is_taken(a)); /* by another */
	assert_true(file_lock_is_taken(look));
	assert_int_equal(file_lock_take(b), -EBUSY);

	/* A process that was born with it keeps it. */
	assert_int_equal(pipe(hold), 0);
	pid = fork();
	if (pid == 0) {
		char c;

		close(hold[1]);
		_exit((int)read(hold[0], &c, 1));
	}
	close(a);
	assert_true(file_lock_is_taken(look));
	close(hold[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_false(file_lock_is_taken(look));
	assert_int_equal(file_lock_take(b), 0);
	close(b);
	close(look);
	close(hold[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_lock) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
