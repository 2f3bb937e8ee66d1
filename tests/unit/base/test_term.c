// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "userspace/base/term.h"

static int master, slave;

static int setup(void **state)
{
	const struct winsize ws = { .ws_row = 7, .ws_col = 9 };

	(void)state;
	return openpty(&master, &slave, NULL, NULL, &ws);
}

static int teardown(void **state)
{
	(void)state;
	close(master);
	close(slave);
	return 0;
}

static void assert_modes(const struct termios *want)
{
	struct termios now = { 0 }; /* glibc leaves its last bytes alone */

	assert_int_equal(tcgetattr(slave, &now), 0);
	assert_memory_equal(&now, want, sizeof(now));
}

static void test_raw_and_back(void **state)
{
	struct termios before = { 0 }, raw = { 0 };
	uint16_t rows = 0, cols = 0;
	char text[16] = "";

	(void)state;
	assert_int_equal(tcgetattr(slave, &before), 0);
	assert_int_equal(term_size(slave, &rows, &cols), 0);
	assert_int_equal(rows, 7);
	assert_int_equal(cols, 9);
	assert_int_equal(term_raw(slave), 0);
	assert_true(term_is_raw());
	assert_int_equal(term_raw(slave), -EBUSY);
	assert_int_equal(tcgetattr(slave, &raw), 0);
	assert_false(raw.c_lflag & (ICANON | ECHO | ISIG));
	assert_false(raw.c_oflag & OPOST);
	assert_int_equal(tcsetattr(slave, TCSANOW, &before), 0);
	term_raw_again();
	assert_modes(&raw);
	term_on_restore(slave, "bye");
	assert_int_equal(write(master, "typed", 5), 5);
	term_restore();
	assert_false(term_is_raw());
	assert_modes(&before);
	assert_int_equal(read(master, text, sizeof(text)), 3);
	assert_string_equal(text, "bye");
	/* what was typed is not left for a shell */
	assert_int_equal(fcntl(slave, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(read(slave, text, sizeof(text)), -1);
	term_restore();
}

static void test_no_terminal(void **state)
{
	int fd = open("/dev/null", O_RDWR);
	uint16_t rows, cols;

	(void)state;
	assert_int_equal(term_raw(fd), -ENOTTY);
	assert_int_equal(term_size(fd, &rows, &cols), -ENOTTY);
	assert_false(term_is_raw());
	close(fd);
}

/* `end` in a child whose terminal is raw. Returns how it was waited for. */
static int in_child(void (*end)(void))
{
	struct termios before = { 0 };
	int status = 0;
	pid_t pid;

	assert_int_equal(tcgetattr(slave, &before), 0);
	pid = fork();
	if (pid == 0) {
		const struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		signal(SIGABRT, SIG_DFL); /* not the test frame's */
		if (term_raw(slave) < 0)
			_exit(99);
		end();
		_exit(98);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_modes(&before);
	return status;
}

static void end_by_exit(void)
{
	exit(3);
}

/* The fork of a process that has the terminal raw must leave it alone. */
static void end_with_child(void)
{
	struct termios raw = { 0 }, now = { 0 };
	pid_t pid;

	tcgetattr(slave, &raw);
	pid = fork();
	if (pid == 0)
		exit(0);
	waitpid(pid, NULL, 0);
	tcgetattr(slave, &now);
	exit(memcmp(&raw, &now, sizeof(raw)) ? 5 : 6);
}

static void test_whatever_happens(void **state)
{
	int status;

	(void)state;
	status = in_child(end_by_exit);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	status = in_child(end_with_child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 6);
	status = in_child(abort);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_raw_and_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_terminal, setup, teardown),
		cmocka_unit_test_setup_teardown(test_whatever_happens, setup, teardown),
	};

	return cmocka_run_group_tests_name("base/term", tests, NULL, NULL);
}
