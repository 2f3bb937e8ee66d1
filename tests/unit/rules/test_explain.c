// SPDX-License-Identifier: Apache-2.0
/* What a rule is said to do. */
#include "rules_test.h"

#include "rules/explain.h"

static void says_in(bool full, const char *rule, const char *const *lines)
{
	struct explain_host host = { .means = push_means(full),
				     .kill_p50_ns = 1500000,
				     .kill_max_ns = 3000000 };
	struct push_plan *plan = NULL;
	struct ruleset *rs = NULL;
	struct said said = { .n = 0 };
	struct buf out;

	assert_int_equal(ruleset_new(&rs, hear, &said), 0);
	ruleset_allow_state(rs);
	assert_int_equal(ruleset_add_text(rs, "t", str_from(rule), NULL), 0);
	assert_int_equal(ruleset_compile(rs, NULL), 0);
	assert_int_equal(ruleset_push(&plan, rs, NULL, host.means, NULL), 0);
	host.plan = plan;
	buf_init(&out, 0);
	assert_int_equal(rule_explain(ruleset_get(rs, 0), &host, &out), 0);
	buf_addc(&out, 0);
	for (; *lines; lines++)
		if (!strstr(out.p, *lines))
			fail_msg("should say: %s\nsaid:\n%s", *lines, out.p);
	buf_done(&out);
	push_plan_free(plan);
	ruleset_free(rs);
}

static void says(const char *rule, const char *const *lines)
{
	says_in(false, rule, lines);
}

#define LINES(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void enforcement_is_told(void **state)
{
	(void)state;
	says(RULE("r", "escape.type in (setns, unshare)") "  action: kill\n",
	     LINES("kinds: escape\n", "fields: escape.type\n", "checks: 1\n",
		   "where: kernel\nguarantee: killed before the call returns to the program (setns, "
		   "unshare); then the whole sandbox, 1.50 ms after it (median on this host, worst "
		   "3.00 ms)\n"));
	says(RULE("r", "escape.type = setns and proc.comm = x") "  action: kill\n",
	     LINES("where: user space\nguarantee: killed after the act: the whole sandbox, 1.50 ms "
		   "after it",
		   "left to user space: escape: the kernel does not know 'proc.comm'\n"));
	says(RULE("r", "kind in (exec, exit)"),
	     LINES("kinds: exec, exit\n", "guarantee: an alert"));
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

/* Rules that cannot fire, or not here, and why. */
static void what_never_fires(void **state)
{
	static const char here[] = RULE(
		"r", "kind = file.open and proc.exe = /x") "  action: kill\n  for: {tier: full}\n";
	static const char denies[] = RULE("r", "kind = file.open and file.path = "
					       "/x") "  action: deny\n  for: {tier: full}\n";

	(void)state;
	says(RULE("r", "kind = exec and kind = exit") "  action: kill\n",
	     LINES("degraded: can never fire: no event kind satisfies the condition\n",
		   "where: nowhere\nguarantee: none, it can never fire\n"));
	says(RULE("r", "kind = exec and net.dst.ip = 10.0.0.1"),
	     LINES("guarantee: none, it can never fire\n"));
	says(RULE("r", "kind = exec and proc.comm in ()"),
	     LINES("guarantee: none, it can never fire\n"));
	says(RULE("r", "kind = exec and proc.comm in (abcdefghijklmnop, abcdefghijklmnopq)"),
	     LINES("guarantee: none, it can never fire\n"));
	says(RULE("r", "kind = exec and proc.comm in (abcdefghijklmnop, abcdefghijklmno)"),
	     LINES("guarantee: an alert, after the event\n"));
	says(RULE("r", "kind = exec and not proc.comm = abcdefghijklmnop"),
	     LINES("guarantee: an alert, after the event\n"));
	says(RULE("r", "kind = exec") "  enabled: false\n",
	     LINES("kinds: none, it is disabled\n", "effect: none"));
	says(RULE("r", "kind = exec and baseline.new = true"),
	     LINES("needs: what is usual, by run --baseline FILE; without it nothing is new\n"));
	says_in(false, here,
		LINES("for: tier full\n",
		      "where: nowhere\nguarantee: none, it can never fire here: it "
		      "is for another tier than portable\n"));
	says_in(true, here, LINES("where: kernel\n"));
	says_in(false, denies, LINES("it can never fire here"));
	says_in(true, denies, LINES("guarantee: prevented (file.open)\n"));
}

/* The program that acts, alone and together with the rest. */
static void programs(void **state)
{
	static const char net[] =
		RULE("r", "kind = net.connect and net.dst.ip in (10.0.0.0/8) and proc.exe = "
			  "/usr/bin/curl") "  action: deny\n";
	static const char files[] =
		RULE("r", "kind in (file.open, file.write) and proc.exe startswith "
			  "/tmp/") "  action: kill\n  scope: process\n";

	(void)state;
	for (int full = 0; full < 2; full++)
		says_in(full, net,
			LINES("fields: net.dst.ip, kind, proc.exe\n",
			      "where: kernel\nguarantee: prevented (net.connect)\n"));
	says_in(false, files,
		LINES("where: kernel\nguarantee: killed before the call returns to the "
		      "program (file.open, file.write)\n"));
	says_in(true, files,
		LINES("where: kernel\nguarantee: prevented (file.open), and the process "
		      "killed; killed before the call returns to the program (file.write)\n"));
	says(RULE("r", "kind = net.connect and net.dst.ip exists and proc.exe = /x and proc.args "
		       "contains y") "  action: deny\n",
	     LINES("where: nowhere\n", "net.connect: the kernel does not know 'proc.args'\n"));
	says(RULE("r",
		  "kind = net.connect and net.dst.ip exists and proc.exe endswith /x") "  action: kill\n",
	     LINES("where: user space\n", "the kernel does not know 'proc.exe'\n"));
}

static void both_tiers(void **state)
{
	static const char files[] =
		RULE("r", "kind = file.delete and file.path startswith /etc") "  action: deny\n";
	static const char kills[] = RULE(
		"r",
		"kind = file.delete and file.path startswith /etc") "  action: kill\n  scope: process\n";
	static const char net[] =
		RULE("r", "kind = net.connect and net.dst.ip in (10.0.0.0/8)") "  action: deny\n";

	(void)state;
	says_in(false, files,
		LINES("tier: portable\nwhere: nowhere\nguarantee: none, a run with it "
		      "fails in the portable tier: file.delete: cannot be denied in "
		      "the portable tier\n"));
	says_in(true, files,
		LINES("tier: full\nwhere: kernel\nguarantee: prevented (file.delete)\n"));
	says_in(false, kills,
		LINES("where: kernel\nguarantee: killed before the call returns to the "
		      "program (file.delete)\n"));
	says_in(true, kills,
		LINES("where: kernel\nguarantee: prevented (file.delete), and the process killed\n"));
	says_in(false, net, LINES("where: kernel\nguarantee: prevented (net.connect)\n"));
	says(RULE("r",
		  "kind = file.open and (file.path startswith /x or proc.comm = y)") "  action: kill\n  scope: process\n",
	     LINES("where: kernel, and user space for what it cannot decide\n",
		   "(file.open); else killed after the act: the process, 1.50 ms",
		   "left to user space: file.open: the kernel does not know 'proc.comm'\n",
		   "cost: rank 1 of 1"));
	says(RULE("r", "kind = exec") "  action: hold\n", LINES("held after the act"));
	says(RULE("r", "kind = exec") "  action: kill\n  dry_run: true\n",
	     LINES("where: nowhere\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(enforcement_is_told),
					    cmocka_unit_test(what_never_fires),
					    cmocka_unit_test(programs),
					    cmocka_unit_test(both_tiers) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
