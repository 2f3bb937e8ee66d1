// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "userspace/pipeline/run_status.h"

static int set_up(void **state)
{
	char path[] = "/tmp/warder-status-XXXXXX";

	if (!mkdtemp(path))
		return -1;
	*state = strdup(path);
	return setenv("WARDER_RUN", path, 1);
}

static int tear_down(void **state)
{
	char cmd[256];

	snprintf(cmd, sizeof(cmd), "rm -rf %s", (char *)*state);
	free(*state);
	return system(cmd);
}

static bool is_there(const char *dir, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/sessions/%s", dir, name);
	return access(path, F_OK) == 0;
}

static void test_life(void **state)
{
	int fd = -1;

	assert_int_equal(run_status_open(&fd, "s1", getuid(), getgid(), NULL), 0);
	assert_int_equal(run_status_write(fd, "sinks", STR("[]")), 0);
	assert_true(is_there(*state, "s1/sinks.json"));
	assert_int_equal(run_status_write(-1, "sinks", STR("[]")), 0);
	assert_int_equal(run_status_sweep(), 0);
	assert_true(is_there(*state, "s1/sinks.json"));
	run_status_remove(fd, "s1");
	close(fd);
	assert_false(is_there(*state, "s1"));
}

/* What nobody holds goes, unless it is brand-new; what somebody holds stays, however old. */
static void test_sweep(void **state)
{
	const struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	int dead = -1, alive = -1, fresh = -1, killed = -1;

	assert_int_equal(run_status_open(&dead, "dead", getuid(), getgid(), NULL), 0);
	assert_int_equal(run_status_open(&alive, "alive", getuid(), getgid(), NULL), 0);
	assert_int_equal(run_status_open(&fresh, "fresh", getuid(), getgid(), NULL), 0);
	assert_int_equal(run_status_write(dead, "run", STR("{}")), 0);
	futimens(dead, old);
	futimens(alive, old);
	close(dead);
	close(fresh);
	/* It was locked before that was written: killed a moment ago, not about to start. */
	assert_int_equal(run_status_open(&killed, "killed", getuid(), getgid(), NULL), 0);
	assert_int_equal(run_status_write(killed, "run", STR("{}")), 0);
	close(killed);
	assert_int_equal(run_status_sweep(), 2);
	assert_false(is_there(*state, "killed"));
	assert_false(is_there(*state, "dead"));
	assert_true(is_there(*state, "alive"));
	assert_true(is_there(*state, "fresh"));
	close(alive);
}

static void test_limits(void **state)
{
	static char big[RUN_STATUS_PART_MAX + 1];
	struct err err = { 0 };
	int fd = -1, again = -1;

	(void)state;
	assert_int_equal(run_status_open(&fd, "s", getuid(), getgid(), &err), 0);
	assert_int_equal(run_status_write(fd, "x", (struct str){ big, sizeof(big) }), -EMSGSIZE);
	assert_int_equal(run_status_open(&again, "s", getuid(), getgid(), &err), -EEXIST);
	assert_int_equal(again, -1);
	close(fd);
	setenv("WARDER_RUN", "/proc/nowhere", 1);
	assert_true(run_status_open(&fd, "t", getuid(), getgid(), &err) < 0);
	assert_non_null(strstr(err.text, "/proc/nowhere/sessions"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_life, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_sweep, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_limits, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
