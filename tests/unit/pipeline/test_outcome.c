// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <string.h>

#include "userspace/pipeline/outcome.h"

static void each_cause_has_its_reason_and_code(void **state)
{
	static const struct {
		struct run_facts facts;
		enum session_verdict verdict;
		const char *reason;
		int code;
	} cases[] = {
		{ { .exit_code = 0 }, SESSION_UNDECIDED, "exit", 0 },
		{ { .exit_code = 3 }, SESSION_UNDECIDED, "exit", 3 },
		{ { .exit_code = 127 }, SESSION_UNDECIDED, "exit", 127 },
		{ { .exit_code = 143, .signal = SIGTERM }, SESSION_UNDECIDED, "signal", 143 },
		{ { .exit_code = 137, .signal = SIGKILL }, SESSION_UNDECIDED, "signal", 137 },
		{ { .exit_code = 137, .signal = SIGKILL }, SESSION_KILLED_BY_RULE, "rule", 137 },
		/* the rule's kill may come after the payload's own end */
		{ { .exit_code = 0 }, SESSION_KILLED_BY_RULE, "rule", 137 },
		{ { .exit_code = 137, .signal = SIGKILL, .timed_out = true },
		  SESSION_UNDECIDED,
		  "timeout",
		  124 },
		{ { .exit_code = 137, .signal = SIGKILL, .timed_out = true },
		  SESSION_KILLED_BY_RULE,
		  "rule",
		  137 },
		{ { .exit_code = 137, .signal = SIGKILL }, SESSION_OOM, "oom", 137 },
		{ { .exit_code = 137, .signal = SIGKILL, .oom_kills = 2 },
		  SESSION_UNDECIDED,
		  "oom",
		  137 },
		/* a shell that reports its child's death by the OOM killer */
		{ { .exit_code = 137, .oom_kills = 1 }, SESSION_UNDECIDED, "oom", 137 },
		/* survived an OOM kill of a child and ended well */
		{ { .exit_code = 0, .oom_kills = 1 }, SESSION_UNDECIDED, "exit", 0 },
		{ { .exit_code = 137, .signal = SIGKILL, .output_killed = true },
		  SESSION_UNDECIDED,
		  "output_limit",
		  137 },
		{ { .internal = true }, SESSION_UNDECIDED, "internal", 125 },
		/* gVisor's sentry ended: out of memory, of threads, by its own filter, by somebody, by a fault */
		{ { .exit_code = 137,
		    .signal = SIGKILL,
		    .died = true,
		    .death_signal = SIGKILL,
		    .oom_kills = 1 },
		  SESSION_UNDECIDED,
		  "oom",
		  137 },
		{ { .exit_code = 137,
		    .signal = SIGKILL,
		    .died = true,
		    .death_code = 2,
		    .pids_denied = 3 },
		  SESSION_UNDECIDED,
		  "limit",
		  137 },
		{ { .exit_code = 137, .signal = SIGKILL, .died = true, .death_signal = SIGSYS },
		  SESSION_UNDECIDED,
		  "escape",
		  137 },
		{ { .exit_code = 137, .signal = SIGKILL, .died = true, .death_code = 128 + SIGSYS },
		  SESSION_UNDECIDED,
		  "escape",
		  137 },
		{ { .exit_code = 137, .signal = SIGKILL, .died = true, .death_signal = SIGKILL },
		  SESSION_UNDECIDED,
		  "signal",
		  137 },
		{ { .exit_code = 137, .signal = SIGKILL, .died = true, .death_code = 2 },
		  SESSION_UNDECIDED,
		  "sentry",
		  137 },
		{ { .exit_code = 2 }, SESSION_UNDECIDED, "exit", 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct outcome o = outcome_of(&cases[i].facts, cases[i].verdict);

		assert_string_equal(o.reason, cases[i].reason);
		assert_int_equal(o.exit_code, cases[i].code);
	}
}

static void unknown_reasons_are_internal(void **state)
{
	(void)state;
	assert_string_equal(outcome_reason("rule"), "rule");
	assert_string_equal(outcome_reason("exit"), "exit");
	assert_string_equal(outcome_reason(""), "internal");
	assert_string_equal(outcome_reason("rul\033[2J"), "internal");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_cause_has_its_reason_and_code),
		cmocka_unit_test(unknown_reasons_are_internal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
