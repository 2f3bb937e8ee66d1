// SPDX-License-Identifier: Apache-2.0
/* What a payload says, told apart from what it only seems to say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/scenarios/judge.h"

static void test_lines(void **state)
{
	struct steps s;

	(void)state;
	steps_read(
		&s,
		STR("step blocked EPERM mount\nstep absent ENOENT open /dev/kvm\nstep open - su\n"
		    "step open - again\nstep did - fork\nstep cannot EIO copy\nend\n"),
		NULL);
	assert_int_equal(s.blocked, 1);
	assert_int_equal(s.absent, 1);
	assert_int_equal(s.open, 2);
	assert_int_equal(s.did, 1);
	assert_int_equal(s.cannot, 1);
	assert_true(s.end);
	assert_string_equal(s.first_open, "- su");
	assert_string_equal(s.first_cannot, "EIO copy");
}

static void test_not_lines(void **state)
{
	struct steps s;

	(void)state;
	steps_read(&s,
		   STR("the end\nend \nstep\nstep blockedX y\n step blocked EPERM x\nendless\n"),
		   NULL);
	assert_int_equal(s.blocked + s.absent + s.open + s.did + s.cannot, 0);
	assert_false(s.end);
	steps_read(&s, STR(""), NULL);
	assert_false(s.end);
	steps_read(&s, STR("end"), NULL);
	assert_true(s.end);
}

static void test_hostile_bytes(void **state)
{
	char big[4096] = "step open \x1b[31m\x80";
	struct steps s;

	(void)state;
	memset(big + 16, 'a', sizeof(big) - 16);
	steps_read(&s, (struct str){ big, sizeof(big) }, NULL);
	assert_int_equal(s.open, 1);
	assert_int_equal(strlen(s.first_open), sizeof(s.first_open) - 1);
	assert_int_equal(strncmp(s.first_open, "?[31m?", 6), 0);
}

/* What a kernel of the sandbox's own answers: one that works is neither refused nor open, an error is a refusal. */
static void test_inner(void **state)
{
	static const char *const inner[SCENARIO_INNER_MAX] = { "- open /dev/fuse",
							       "EINVAL personality" };
	struct steps s;

	(void)state;
	steps_read(
		&s,
		STR("step open - open /dev/fuse\nstep open EINVAL personality x\nstep open - open /dev/kvm\n"
		    "step open E2BIG personality\nend\n"),
		inner);
	assert_int_equal(s.inner, 1);
	assert_int_equal(s.blocked, 1);
	assert_int_equal(s.open, 2);
	assert_string_equal(s.first_open, "- open /dev/kvm");
}

static void test_techniques(void **state)
{
	(void)state;
	assert_true(attack_covers("T1611", "T1611"));
	assert_true(attack_covers("T1613 T1611", "T1611 T1610"));
	assert_true(attack_covers("T1036.004", "T1036"));
	assert_true(attack_covers("T1496", "T1496.001"));
	assert_false(attack_covers("T1496.002", "T1496.001"));
	assert_false(attack_covers("T1613", "T1611 T1613"));
	assert_false(attack_covers("T16110", "T1611"));
	assert_false(attack_covers("", "T1611"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),	      cmocka_unit_test(test_not_lines),
		cmocka_unit_test(test_hostile_bytes), cmocka_unit_test(test_inner),
		cmocka_unit_test(test_techniques),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
