// SPDX-License-Identifier: Apache-2.0
/* What a rule is said to do. */
#include "rules_test.h"

static void says(const char *rule, const char *const *lines)
{
	struct ruleset *rs = NULL;
	struct said said = { .n = 0 };
	struct buf out;

	assert_int_equal(ruleset_new(&rs, hear, &said), 0);
	ruleset_allow_state(rs);
	assert_int_equal(ruleset_add_text(rs, "t", str_from(rule), NULL), 0);
	assert_int_equal(ruleset_compile(rs, NULL), 0);
	buf_init(&out, 0);
	assert_int_equal(rule_explain(ruleset_get(rs, 0), &out), 0);
	buf_addc(&out, 0);
	for (; *lines; lines++)
		if (!strstr(out.p, *lines))
			fail_msg("should say: %s\nsaid:\n%s", *lines, out.p);
	buf_done(&out);
	ruleset_free(rs);
}

#define LINES(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void enforcement_is_told(void **state)
{
	(void)state;
	says(RULE("r", "escape.type in (setns, unshare)") "  action: kill\n",
	     LINES("kinds: escape\n", "fields: escape.type\n", "checks: 1\n",
		   "in the kernel, the process is killed before its call returns (setns, unshare), "
		   "then the sandbox\n"));
	says(RULE("r", "escape.type = setns and proc.comm = x") "  action: kill\n",
	     LINES("effect: kill from user space, after the event\n"));
	says(RULE("r", "kind in (exec, exit)"), LINES("kinds: exec, exit\n", "effect: an alert"));
	says(RULE("r", "kind = exec") "  enabled: false\n", LINES("it is disabled"));
	says(RULE("r", "proc.comm = x"), LINES("name a kind to make it cheaper"));
	says(RULE("r", "kind = exec and proc.deleted = true and kind = exit"),
	     LINES("kinds: none, it can never fire\n"));
	says(RULE("r", "evt.type = execve and k8s.ns.name = x"),
	     LINES("degraded: can never fire: no k8s.ns.name\n", "language: Falco\n"));
	says(RULE("r", "kind = exec and proc.aname[2] = x") "  source: k8s_audit\n",
	     LINES("refused: source 'k8s_audit' is not supported\n"));
	says(RULE("r", "kind = fork") "  count: 5\n  window: 2s\n  by: proc.pid\n",
	     LINES("remembers: 5 matches within 2 s, "));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(enforcement_is_told) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
