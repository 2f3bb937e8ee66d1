// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/tty.h"

static void test_only_a_master(void **state)
{
	int master, slave, pair[2], null = open("/dev/null", O_RDWR);

	(void)state;
	assert_int_equal(openpty(&master, &slave, NULL, NULL, NULL), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(tty_check(master), 0);
	assert_true(fcntl(master, F_GETFL) & O_NONBLOCK);
	assert_int_equal(tty_check(slave), -ENOTTY);
	assert_int_equal(tty_check(null), -ENOTTY);
	assert_int_equal(tty_check(pair[0]), -ENOTTY);
	assert_int_equal(tty_check(-1), -ENOTTY);
	close(master);
	close(slave);
	close(null);
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_a_master),
	};

	return cmocka_run_group_tests_name("runtime/tty", tests, NULL, NULL);
}
