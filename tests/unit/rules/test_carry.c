// SPDX-License-Identifier: Apache-2.0
/* What goes along when a running sandbox gets another rule set; throttles; rules for some sandboxes only. */
#include "rules_test.h"

#define HEAD(name) "- rule: " name "\n  desc: d\n  output: o\n  priority: INFO\n"
#define S	   "000000000"

static struct ruleset *load_state(const char *text)
{
	struct ruleset *rs = NULL;
	struct said said;

	memset(&said, 0, sizeof(said));
	assert_int_equal(ruleset_new(&rs, hear, &said), 0);
	ruleset_allow_state(rs);
	if (ruleset_add_text(rs, "t.yaml", str_from(text), NULL) < 0 ||
	    ruleset_compile(rs, NULL) < 0)
		fail_msg("%s%s", text, said.text);
	return rs;
}

static struct rule_memory *memory(const struct ruleset *rs)
{
	struct rule_memory *st = NULL;

	assert_int_equal(rule_memory_new(&st, rs), 0);
	return st;
}

static size_t judge(const struct ruleset *rs, struct rule_memory *st, const char *spec)
{
	struct rule_matches m;
	struct made_event e;

	make_event(&e, spec);
	ruleset_judge(rs, st, &e.ev, &m);
	drop_event(&e);
	return m.n;
}

#define OLD                                                                                      \
	"- list: names\n  items: [a, b]\n"                                                       \
	"- macro: named\n  condition: proc.comm in (names)\n" HEAD(                              \
		"count") "  condition: kind = fork and named\n  count: 3\n  window: 10s\n  by: " \
			 "proc.pid\n" HEAD("steps") "  sequence:\n  - kind = exec and named\n"   \
						    "  condition: kind = exit\n  within: 10s\n"

/* Two forks and the first step under `OLD`, the rest under the new rules: what fires? */
static void carries(const char *after, size_t kept, size_t count, size_t steps)
{
	struct ruleset *old = load_state(OLD), *now = load_state(after);
	struct rule_memory *from = memory(old), *to = memory(now);

	assert_int_equal(judge(old, from, "fork; mono=1" S "; proc.pid=7; proc.comm=a"), 0);
	assert_int_equal(judge(old, from, "fork; mono=2" S "; proc.pid=7; proc.comm=b"), 0);
	assert_int_equal(judge(old, from, "exec; mono=2" S "; proc.comm=a"), 0);
	assert_int_equal(rule_memory_carry(to, now, from, old), kept);
	/* A copy, not a part of the old one. */
	rule_memory_free(from);
	ruleset_free(old);
	assert_int_equal(judge(now, to, "fork; mono=3" S "; proc.pid=7; proc.comm=a"), count);
	assert_int_equal(judge(now, to, "exit; mono=4" S), steps);
	rule_memory_free(to);
	ruleset_free(now);
}

static void what_did_not_change_remembers(void **state)
{
	(void)state;
	carries(OLD, 2, 1, 1);
	/* Elsewhere in the file, other text, the same meaning. */
	carries(HEAD("new") "  condition: proc.args icontains q and dns.name = a\n"
			    "- macro: named\n  condition: (proc.comm in (b, a))\n" HEAD(
				    "steps") "  sequence: ['named and kind = exec']\n  condition: kind=exit\n"
					     "  within: 10000ms\n" HEAD(
						     "count") "  condition: named and kind = fork\n  count: 3\n"
							      "  window: 10s\n  by: [proc.pid]\n  throttle: 0s\n",
		2, 1, 1);
}

static void what_changed_begins_anew(void **state)
{
	(void)state;
	/* Behind a list. */
	carries("- list: names\n  items: [a, b, c]\n"
		"- macro: named\n  condition: proc.comm in (names)\n" HEAD(
			"count") "  condition: kind = fork and named\n  count: 3\n  window: 10s\n"
				 "  by: proc.pid\n",
		0, 0, 0);
	/* Another number, another field, another order of steps. */
	carries(HEAD("count") "  condition: kind = fork and proc.comm in (a, b)\n  count: 2\n"
			      "  window: 10s\n  by: proc.pid\n",
		0, 0, 0);
	carries(HEAD("count") "  condition: kind = fork and proc.comm in (a, b)\n  count: 3\n"
			      "  window: 10s\n  by: proc.tid\n",
		0, 0, 0);
	carries(HEAD("steps") "  sequence: [kind = exit]\n"
			      "  condition: kind = exec and proc.comm in (a, b)\n  within: 10s\n",
		0, 0, 0);
	/* The same words, but not switched on. */
	carries(HEAD("count") "  condition: kind = fork and proc.comm in (a, b)\n  count: 3\n"
			      "  window: 10s\n  by: proc.pid\n  enabled: false\n",
		0, 0, 0);
}

/* ---- throttle ---- */

static const char *throttled(const struct ruleset *rs, struct rule_memory *st, const char *mono)
{
	static char out[32];
	struct made_event e;
	char spec[64];
	uint64_t held = 99;

	snprintf(spec, sizeof(spec), "exec; mono=%s" S, mono);
	make_event(&e, spec);
	if (rule_memory_throttle(st, ruleset_get(rs, 0), &e.ev, &held))
		strcpy(out, "held");
	else
		snprintf(out, sizeof(out), "%d", (int)held);
	drop_event(&e);
	return out;
}

static void count_untold(void *arg, const struct rule_info *r, uint64_t held)
{
	assert_string_equal(r->name, "r");
	*(uint64_t *)arg += held;
}

static void a_throttle_counts_what_it_holds_back(void **state)
{
	struct ruleset *rs = load_state(HEAD("r") "  condition: kind = exec\n  throttle: 10s\n");
	struct rule_memory *st = memory(rs), *other = memory(rs), *next = memory(rs);
	uint64_t untold = 0;

	(void)state;
	assert_string_equal(throttled(rs, st, "100"), "0");
	assert_string_equal(throttled(rs, st, "101"), "held");
	assert_string_equal(throttled(rs, st, "109"), "held");
	assert_string_equal(throttled(rs, other, "109"), "0"); /* each sandbox for itself */
	assert_string_equal(throttled(rs, st, "110"), "2");
	assert_string_equal(throttled(rs, st, "111"), "held");
	/* Not forgotten by a reload, nor told twice. */
	rule_memory_carry(next, rs, st, rs);
	rule_memory_untold(next, rs, count_untold, &untold);
	assert_int_equal(untold, 1);
	rule_memory_untold(next, rs, count_untold, &untold);
	assert_int_equal(untold, 1);
	assert_string_equal(throttled(rs, next, "112"), "held");
	rule_memory_free(st);
	rule_memory_free(other);
	rule_memory_free(next);
	ruleset_free(rs);
}

static void actions_are_never_throttled(void **state)
{
	struct ruleset *rs = NULL;
	struct said said;
	struct rule_memory *st;

	(void)state;
	rs = load(HEAD("r") "  condition: kind = exec\n  action: kill\n  throttle: 10s\n", &said);
	assert_non_null(rs);
	assert_non_null(strstr(said.text, "1:3: warning: 'throttle' of rule 'r' is ignored"));
	st = memory(rs);
	assert_string_equal(throttled(rs, st, "100"), "0");
	assert_string_equal(throttled(rs, st, "101"), "0");
	rule_memory_free(st);
	ruleset_free(rs);
}

/* ---- for ---- */

static void rules_for_other_sandboxes_are_quiet(void **state)
{
	static const struct {
		const char *text;
		struct rule_session s;
		size_t fires;
	} rows[] = {
		{ "{tenant: acme}", { .tenant = "acme" }, 1 },
		{ "{tenant: acme}", { .tenant = "acme2" }, 0 },
		{ "{tenant: acme}", { .tenant = NULL }, 0 },
		{ "{tenant: [x, dev-*]}", { .tenant = "dev-1" }, 1 },
		{ "{backend: gvisor}", { .backend = "ns" }, 0 },
		{ "{backend: [ns, gvisor], tier: full}", { .backend = "ns", .tier = "full" }, 1 },
		{ "{backend: [ns, gvisor], tier: full}",
		  { .backend = "ns", .tier = "portable" },
		  0 },
		{ "{policy: 0123abcd}", { .policy = "0123abcdef" }, 1 },
		{ "{policy: 0123abcd}", { .policy = "9123abcdef" }, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct rule_memory *st;
		struct ruleset *rs;
		char text[512];

		snprintf(text, sizeof(text), HEAD("r") "  condition: kind = exec\n  for: %s\n",
			 rows[i].text);
		rs = load_state(text);
		st = memory(rs);
		assert_int_equal(judge(rs, st, "exec"), 1); /* nobody said what it is */
		rule_memory_set_session(st, rs, &rows[i].s);
		if (judge(rs, st, "exec") != rows[i].fires)
			fail_msg("row %zu: %s", i, rows[i].text);
		rule_memory_free(st);
		ruleset_free(rs);
	}
}

/* The kernel does not know what a sandbox is. */
static void rules_for_some_are_not_pushed_down(void **state)
{
	struct ruleset *rs = load_state(HEAD("r") "  condition: escape.type = unshare\n"
						  "  action: kill\n  for: {tenant: a}\n");

	(void)state;
	assert_int_equal(ruleset_kernel_kill_escapes(rs), 0);
	ruleset_free(rs);
}

static void wrong_keys_of_for_are_told(void **state)
{
	static const char *const bad[][2] = {
		{ "ns", "6:8: 'for' must be a mapping" },
		{ "{}", "6:8: 'for' must be a mapping" },
		{ "{tennant: a}", "6:9: unknown key 'tennant' of 'for' (did you mean 'tenant'?)" },
		{ "{backend: gvisr}",
		  "6:18: no backend is named 'gvisr' (did you mean 'gvisor'?)" },
		{ "{tier: [full, half]}", "6:22: no tier is named 'half'" },
		{ "{tenant: []}", "6:17: 'tenant' of 'for' names nothing" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct said said;
		char text[512];

		snprintf(text, sizeof(text), HEAD("r") "  condition: kind = exec\n  for: %s\n",
			 bad[i][0]);
		assert_null(load(text, &said));
		if (!strstr(said.text, bad[i][1]))
			fail_msg("%s: should say %s, said\n%s", text, bad[i][1], said.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_did_not_change_remembers),
		cmocka_unit_test(what_changed_begins_anew),
		cmocka_unit_test(a_throttle_counts_what_it_holds_back),
		cmocka_unit_test(actions_are_never_throttled),
		cmocka_unit_test(rules_for_other_sandboxes_are_quiet),
		cmocka_unit_test(rules_for_some_are_not_pushed_down),
		cmocka_unit_test(wrong_keys_of_for_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
