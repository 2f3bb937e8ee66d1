// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <unistd.h>
#include "userspace/capture/usage.h"

#define POS "pos:\t0\nflags:\t02000002\nmnt_id:\t15\nino:\t1057\n"

static void test_map(void **state)
{
	struct usage_fd o;

	(void)state;
	assert_true(usage_fdinfo(
		STR(POS "map_type:\t9\nkey_size:\t16\nvalue_size:\t1\nmax_entries:\t16384\n"
			"map_flags:\t0x0\nmap_extra:\t0x0\nmemlock:\t1453248\nmap_id:\t1234\n"
			"frozen:\t0\n"),
		&o));
	assert_true(o.is_map && !o.is_program);
	assert_int_equal(o.id, 1234);
	assert_int_equal(o.bytes, 1453248);
}

/* A ring takes what it holds, also where the kernel does not say so. */
static void test_ring(void **state)
{
	struct usage_fd o;

	(void)state;
	assert_true(usage_fdinfo(STR(POS "map_type:\t27\nkey_size:\t0\nvalue_size:\t0\n"
					 "max_entries:\t8388608\nmemlock:\t0\nmap_id:\t5\n"),
				 &o));
	assert_int_equal(o.bytes, 8388608);
	assert_true(usage_fdinfo(STR(POS "map_type:\t27\nkey_size:\t0\nvalue_size:\t0\n"
					 "max_entries:\t8388608\nmemlock:\t8434056\nmap_id:\t5\n"),
				 &o));
	assert_int_equal(o.bytes, 8434056);
}

static void test_program(void **state)
{
	struct usage_fd o;

	(void)state;
	assert_true(
		usage_fdinfo(STR(POS "prog_type:\t26\nprog_jited:\t1\nprog_tag:\tdeadbeefdeadbeef\n"
				     "memlock:\t8192\nprog_id:\t77\nrun_time_ns:\t0\n"),
			     &o));
	assert_true(o.is_program && !o.is_map);
	assert_int_equal(o.id, 77);
	assert_int_equal(o.bytes, 8192);
}

/* A link names its program, and a file nothing: neither is memory of its own. */
static void test_others(void **state)
{
	static const char *const texts[] = {
		"",
		POS,
		"map_id:\t7",
		"map_type:\t1\n",
		"map_type:\t1\nmap_id:\t7x\n",
		"\n\n\n",
		POS "link_type:\ttracing\nlink_id:\t5\nprog_tag:\tdeadbeefdeadbeef\nprog_id:\t77\n"
		    "attach_type:\t23\n",
	};
	struct usage_fd o;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		assert_false(usage_fdinfo(str_from(texts[i]), &o));
}

/* No line end, no digit, more digits than fit. */
static void test_odd_numbers(void **state)
{
	struct usage_fd o;

	(void)state;
	assert_true(usage_fdinfo(STR("map_type:\t1\nmap_id:\t9"), &o));
	assert_int_equal(o.id, 9);
	assert_int_equal(o.bytes, 0);
	assert_false(usage_fdinfo(STR("map_type:\t1\nmap_id:\t99999999999999999999999999\n"), &o));
}

static void test_processes_without_maps(void **state)
{
	struct capture_usage u = { .maps_n = 7 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(capture_usage(getpid(), &u, &err), -ENOENT);
	assert_int_equal(capture_usage(0x7ffffff0, &u, &err), -ESRCH);
	assert_int_equal(u.maps_n, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_map),	    cmocka_unit_test(test_ring),
		cmocka_unit_test(test_program),	    cmocka_unit_test(test_others),
		cmocka_unit_test(test_odd_numbers), cmocka_unit_test(test_processes_without_maps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
