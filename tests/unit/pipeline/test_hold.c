// SPDX-License-Identifier: Apache-2.0
/* Questions and freezes: which are open, when they end, and what they are called. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "userspace/base/clock.h"
#include "userspace/pipeline/hold.h"

#define SESSION "01M8N2PVSJZZZ48VVCPNMBYMNY"

static const struct action_target nobody = { -1, -1, -1, -1, NULL, NULL };

static uint32_t ask(struct holds *h, const char *rule)
{
	const struct rule_info r = { .name = rule };
	struct action_report report;
	uint32_t id = hold_add(h, &r, 0, &nobody, &report);

	hold_set_trigger(h, id, STR(SESSION ":7"));
	return id;
}

static void one_question_a_rule(void **state)
{
	struct holds h = { .policy.timeout_ns = 0 };
	struct action_report report;
	struct hold got;
	char name[16];

	(void)state;
	assert_int_equal(ask(&h, "a"), 1);
	assert_int_equal(ask(&h, "a"), 0);
	assert_int_equal(ask(&h, "b"), 2);
	assert_true(hold_is_stopped(&h));
	assert_null(hold_answered(&h, 1));
	assert_int_equal(hold_take(&h, 3, &got), -ENOENT);
	assert_int_equal(hold_take(&h, 1, &got), 0);
	assert_string_equal(got.rule, "a");
	assert_string_equal(got.trigger, SESSION ":7");
	hold_note_answer(&h, 1, true, "uid 0");
	assert_true(hold_answered(&h, 1)->approved);
	assert_string_equal(hold_answered(&h, 1)->who, "uid 0");
	assert_null(hold_answered(&h, 0));
	hold_note_answer(&h, 1 + HOLD_QUESTIONS_MAX, false, NULL); /* the last ones only */
	assert_null(hold_answered(&h, 1));
	hold_release(&h, 0, &nobody, &report);
	assert_string_equal(report.text, "partial: another question is open");
	assert_int_equal(hold_take(&h, 1, &got), -ENOENT);
	assert_int_equal(ask(&h, "a"), 3); /* asked again: another question */
	for (int i = 0; i < 2 * HOLD_QUESTIONS_MAX; i++) {
		snprintf(name, sizeof(name), "r%d", i);
		ask(&h, name);
	}
	assert_int_equal(h.n, HOLD_QUESTIONS_MAX);
}

static void they_end(void **state)
{
	struct holds h = { .policy = { .timeout_ns = 1, .freeze_timeout_ns = 0 } };
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct action_report report;
	uint32_t id = 0;

	(void)state;
	assert_true(hold_deadline(&h) == UINT64_MAX);
	assert_false(hold_expired(&h, UINT64_MAX - 1, &id));
	ask(&h, "a");
	assert_true(hold_deadline(&h) > now && hold_deadline(&h) < now + 60 * NSEC_PER_SEC);
	assert_false(hold_expired(&h, now, &id));
	assert_true(hold_expired(&h, hold_deadline(&h), &id));
	assert_int_equal(id, 1);
	h.n = 0;
	assert_true(hold_freeze(&h, "f", 0, &nobody, &report));
	assert_false(hold_freeze(&h, "g", 0, &nobody, &report));
	assert_string_equal(h.freeze_rule, "f");
	assert_true(hold_deadline(&h) == UINT64_MAX); /* 0: never */
	assert_false(hold_freeze_expired(&h, UINT64_MAX - 1));
}

static void names(void **state)
{
	static const char *const bad[] = {
		"",	      "-1",	     "MBYMNY-1",	   "PNMBYMNY",
		"PNMBYMNY-",  "PNMBYMNY-0",  "PNMBYMNY--1",	   "PNMBYMNY-1x",
		"PNMBYMNX-1", "PNMBYMNY- 1", "PNMBYMNY-4294967296"
	};
	char text[HOLD_NAME_MAX];
	uint32_t id = 0;

	(void)state;
	hold_name_text(text, SESSION, 12);
	assert_string_equal(text, "PNMBYMNY-12");
	assert_true(hold_name_parse("pnmbymny-12", SESSION, &id));
	assert_int_equal(id, 12);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (hold_name_parse(bad[i], SESSION, &id))
			fail_msg("'%s'", bad[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_question_a_rule),
		cmocka_unit_test(they_end),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
