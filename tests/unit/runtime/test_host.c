// SPDX-License-Identifier: Apache-2.0
#include "runtime/host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static const char hybrid[] =
	"31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
	"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
	"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
	"39 31 0:36 / /sys/fs/cgroup/pids rw,relatime shared:9 - cgroup cgroup rw,pids\n"
	"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

static void test_hybrid(void **state)
{
	struct host h = { 0 };

	(void)state;
	host_cgroups_parse(&h, hybrid, "8:pids:/\n4:memory:/system/me\n1:cpu,cpuacct:/a b\n0::/\n");
	assert_string_equal(h.v2, "/sys/fs/cgroup/unified");
	assert_string_equal(h.v1[CONTROLLER_PIDS], "/sys/fs/cgroup/pids");
	assert_string_equal(h.v1[CONTROLLER_MEMORY], "/sys/fs/cgroup/memory/system/me");
	assert_string_equal(h.v1[CONTROLLER_CPU], "/sys/fs/cgroup/cpu,cpuacct/a b");
}

static void test_pure_v2(void **state)
{
	struct host h = { 0 };

	(void)state;
	host_cgroups_parse(&h, "26 24 0:25 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n",
			   "0::/user.slice\n");
	assert_string_equal(h.v2, "/sys/fs/cgroup");
	for (int i = 0; i < CONTROLLER_COUNT; i++)
		assert_string_equal(h.v1[i], "");
}

/* Only a part of the hierarchy is mounted: our path must lie in it. */
static void test_bound_part(void **state)
{
	static const char mounts[] =
		"35 31 0:32 /box/7 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
		"39 31 0:36 /box/7 /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n";
	struct host h = { 0 };

	(void)state;
	host_cgroups_parse(&h, mounts, "4:memory:/box/7/job\n8:pids:/box/77\n");
	assert_string_equal(h.v1[CONTROLLER_MEMORY], "/sys/fs/cgroup/memory/job");
	assert_string_equal(h.v1[CONTROLLER_PIDS], "");
}

static void test_never_climbs(void **state)
{
	struct host h = { 0 };

	(void)state;
	host_cgroups_parse(&h, hybrid, "4:memory:/../other\n8:pids:/..\n");
	assert_string_equal(h.v1[CONTROLLER_MEMORY], "");
	assert_string_equal(h.v1[CONTROLLER_PIDS], "");
}

static void test_odd_lines(void **state)
{
	static const char *const texts[] = {
		"",
		"\n\n",
		"41 31 0:38 / /x rw\n",
		" - cgroup2\n",
		"41 31 0:38 / - cgroup2 cgroup2 rw\n",
		"41 31 0:38 /part /x rw - cgroup2 cgroup2 rw\n",
	};
	struct host h = { 0 };
	char *longer;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		host_cgroups_parse(&h, texts[i], "garbage\n::\n:");
		assert_string_equal(h.v2, "");
	}
	longer = test_malloc(8192);
	memset(longer, 'a', 8191);
	longer[8191] = 0;
	host_cgroups_parse(&h, longer, longer);
	assert_string_equal(h.v2, "");
	test_free(longer);
}

static void test_escaped_mount_point(void **state)
{
	struct host h = { 0 };

	(void)state;
	host_cgroups_parse(&h, "41 31 0:38 / /a\\040b\\134c rw - cgroup2 none rw\n", "");
	assert_string_equal(h.v2, "/a b\\c");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hybrid),	   cmocka_unit_test(test_pure_v2),
		cmocka_unit_test(test_bound_part), cmocka_unit_test(test_never_climbs),
		cmocka_unit_test(test_odd_lines),  cmocka_unit_test(test_escaped_mount_point),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
