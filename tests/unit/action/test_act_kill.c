// SPDX-License-Identifier: Apache-2.0
/* Plain files stand in for the cgroup's: what is written, what is believed. The real thing is in
 * tests/root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "userspace/action/action.h"
#include "userspace/base/clock.h"

static int file_with(const char *text)
{
	int fd = memfd_create("cgroup", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, text, strlen(text), 0), (ssize_t)strlen(text));
	return fd;
}

static void an_empty_cgroup_is_done(void **state)
{
	struct action_target t = { file_with(""), -1,  file_with("populated 0\nfrozen 0\n"), -1,
				   NULL,	  NULL };
	struct action_report rep;
	uint64_t before = clock_boot_ns();
	char text[8] = "";

	(void)state;
	action_kill_sandbox(&t, 100, &rep);
	assert_int_equal(rep.outcome, ACTION_DONE);
	assert_string_equal(rep.text, "done");
	assert_true(rep.done_ns >= before);
	assert_int_equal(pread(t.kill_fd, text, sizeof(text), 0), 1);
	assert_string_equal(text, "1");
	close(t.kill_fd);
	close(t.events_fd);
}

static void a_cgroup_that_stays_full_is_partial(void **state)
{
	struct action_target t = { file_with(""), -1,  file_with("populated 1\nfrozen 0\n"), -1,
				   NULL,	  NULL };
	struct action_report rep;

	(void)state;
	action_kill_sandbox(&t, 20, &rep);
	assert_int_equal(rep.outcome, ACTION_PARTIAL);
	assert_string_equal(rep.text, "partial: killed, not yet empty after 20 ms");
	close(t.kill_fd);
	close(t.events_fd);
}

static void nonsense_in_events_is_not_taken_for_empty(void **state)
{
	struct action_target t = { file_with(""), -1, file_with("frozen 0\n"), -1, NULL, NULL };
	struct action_report rep;

	(void)state;
	action_kill_sandbox(&t, 20, &rep);
	assert_int_equal(rep.outcome, ACTION_PARTIAL);
	assert_non_null(strstr(rep.text, "cannot tell if empty"));
	close(t.kill_fd);
	close(t.events_fd);
}

static void a_refused_kill_is_failed(void **state)
{
	int ro = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct action_target t = { ro, -1, -1, -1, NULL, NULL };
	struct action_report rep;

	(void)state;
	action_kill_sandbox(&t, 20, &rep);
	assert_int_equal(rep.outcome, ACTION_FAILED);
	assert_string_equal(rep.text, "failed: cgroup.kill: Bad file descriptor");
	close(ro);
	t.kill_fd = -1;
	action_kill_sandbox(&t, 20, &rep);
	assert_int_equal(rep.outcome, ACTION_FAILED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_cgroup_is_done),
		cmocka_unit_test(a_cgroup_that_stays_full_is_partial),
		cmocka_unit_test(nonsense_in_events_is_not_taken_for_empty),
		cmocka_unit_test(a_refused_kill_is_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
