// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "userspace/pipeline/relay.h"

/* In a child of its own: the relay passes on to descriptors 1 and 2. Exit code 0 = as expected. */
static void in_child(uint64_t cap, size_t out, size_t err, bool reader, void (*check)(int *))
{
	int pair[2], status, code = 0;
	pid_t pid;

	assert_int_equal(pipe(pair), 0);
	pid = fork();
	if (pid == 0) {
		struct err e = { 0 };
		struct relay *r = NULL;
		struct relay_counts counts;
		uint64_t at = 0;
		char *bytes = calloc(1, out + err + 1);
		int fds[2];

		dup2(pair[1], 1);
		dup2(open("/dev/null", O_WRONLY), 2);
		close(pair[0]);
		close(pair[1]);
		if (!bytes || relay_new(&r, cap, fds, &e) < 0)
			_exit(10);
		fcntl(fds[0], F_SETPIPE_SZ, 1 << 20);
		if (write(fds[0], bytes, out) != (ssize_t)out ||
		    write(fds[1], bytes, err) != (ssize_t)err)
			_exit(11);
		if (relay_start(r, &e) < 0)
			_exit(12);
		relay_finish(r, 200, &counts);
		if (counts.out != out || counts.err != err)
			_exit(13);
		if (counts.cut != (out > cap || err > cap || !reader))
			_exit(14);
		if (!!relay_hit(r, &at) != (out > cap || err > cap))
			_exit(15);
		relay_free(r);
		_exit(0);
	}
	close(pair[1]);
	if (reader)
		check(&pair[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	close(pair[0]);
	assert_int_equal(code, 0);
}

static size_t wanted;

static void reads_what_is_wanted(int *fd)
{
	char buf[65536];
	size_t all = 0;
	ssize_t n;

	while ((n = read(*fd, buf, sizeof(buf))) > 0)
		all += (size_t)n;
	assert_int_equal(all, wanted);
}

static void within_the_cap_all_arrives(void **state)
{
	(void)state;
	wanted = 300000;
	in_child(300000, 300000, 5, true, reads_what_is_wanted);
}

static void beyond_it_is_counted_and_dropped(void **state)
{
	(void)state;
	wanted = 1000;
	in_child(1000, 300000, 5, true, reads_what_is_wanted);
	wanted = 5;
	in_child(1000, 5, 40000, true, reads_what_is_wanted);
}

/* Once the sandbox is over, a reader that takes nothing must not keep us. */
static void a_reader_that_hangs_is_left(void **state)
{
	(void)state;
	in_child(1 << 20, 500000, 7, false, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(within_the_cap_all_arrives),
		cmocka_unit_test(beyond_it_is_counted_and_dropped),
		cmocka_unit_test(a_reader_that_hangs_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
