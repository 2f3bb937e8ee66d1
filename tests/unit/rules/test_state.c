// SPDX-License-Identifier: Apache-2.0
/* Rules that count and order events. */
#include "rules_test.h"

#define HEAD "- rule: r\n  desc: d\n  output: o\n  priority: INFO\n"
#define S    "000000000"

static struct ruleset *load_state(const char *text, struct said *said)
{
	struct ruleset *rs = NULL;

	memset(said, 0, sizeof(*said));
	assert_int_equal(ruleset_new(&rs, hear, said), 0);
	ruleset_allow_state(rs);
	if (ruleset_add_text(rs, "t.yaml", str_from(text), NULL) < 0 ||
	    ruleset_compile(rs, NULL) < 0) {
		assert_true(said->errors > 0);
		ruleset_free(rs);
		return NULL;
	}
	return rs;
}

/* Judges events in order; `want` has a character an event: '1' fires, '.' does not. */
static void judges(const char *rule, const char *const *events, const char *want)
{
	struct rule_memory *st = NULL;
	struct said said;
	struct ruleset *rs = load_state(rule, &said);
	char got[64] = "";

	if (!rs)
		fail_msg("%s%s", rule, said.text);
	assert_int_equal(rule_memory_new(&st, rs), 0);
	for (size_t i = 0; events[i]; i++) {
		struct rule_matches m;
		struct made_event e;

		make_event(&e, events[i]);
		ruleset_judge(rs, st, &e.ev, &m);
		got[i] = m.n ? '1' : '.';
		drop_event(&e);
	}
	assert_string_equal(got, want);
	rule_memory_free(st);
	ruleset_free(rs);
}

static void events_are_counted_in_a_window(void **state)
{
	static const char rule[] = HEAD "  condition: kind = fork\n  count: 3\n  window: 10s\n";
	static const char *const fast[] = { "fork; mono=1" S, "exit; mono=1" S,
					    "fork; mono=2" S, "fork; mono=3" S,
					    "fork; mono=4" S, "fork; mono=5" S,
					    "fork; mono=6" S, NULL };
	static const char *const slow[] = { "fork; mono=1" S,  "fork; mono=5" S,  "fork; mono=12" S,
					    "fork; mono=14" S, "fork; mono=30" S, NULL };
	static const char *const edge[] = { "fork; mono=1" S, "fork; mono=1" S, "fork; mono=11" S,
					    NULL };

	(void)state;
	judges(rule, fast, "...1..1");
	judges(rule, slow, "...1.");
	judges(rule, edge, "..1");
}

static void a_window_forgets(void **state)
{
	static const char *const late[] = { "fork; mono=1" S, "fork; mono=12" S, "fork; mono=23" S,
					    "fork; mono=24" S, NULL };

	(void)state;
	judges(HEAD "  condition: kind = fork\n  count: 2\n  window: 10s\n", late, "...1");
}

static void counters_are_kept_by_a_field(void **state)
{
	static const char *const ev[] = { "fork; mono=1; proc.pid=1",
					  "fork; mono=2; proc.pid=2",
					  "fork; mono=3; proc.pid=2",
					  "fork; mono=4; proc.pid=1",
					  "fork; mono=5",
					  "fork; mono=6",
					  NULL };

	(void)state;
	judges(HEAD "  condition: kind = fork\n  count: 2\n  window: 10s\n  by: proc.pid\n", ev,
	       "..11.1");
	judges(HEAD
	       "  condition: kind = fork\n  count: 2\n  window: 10s\n  by: [proc.pid, proc.comm]\n",
	       ev, "..11.1");
}

static void different_values_are_counted(void **state)
{
	static const char *const ev[] = { "net.connect; mono=1; net.dst.ip=1.1.1.1",
					  "net.connect; mono=2; net.dst.ip=1.1.1.1",
					  "net.connect; mono=3; net.dst.ip=1.1.1.2",
					  "net.connect; mono=4",
					  "net.connect; mono=5; net.dst.ip=1.1.1.3",
					  "net.connect; mono=6; net.dst.ip=1.1.1.3",
					  NULL };
	static const char *const old[] = { "net.connect; mono=1" S "; net.dst.ip=1.1.1.1",
					   "net.connect; mono=9" S "; net.dst.ip=1.1.1.2",
					   "net.connect; mono=12" S "; net.dst.ip=1.1.1.3",
					   "net.connect; mono=13" S "; net.dst.ip=1.1.1.4", NULL };

	(void)state;
	judges(HEAD
	       "  condition: kind = net.connect\n  count: 3\n  window: 10s\n  distinct: net.dst.ip\n",
	       ev, "....1.");
	judges(HEAD
	       "  condition: kind = net.connect\n  count: 3\n  window: 10s\n  distinct: net.dst.ip\n",
	       old, "...1");
}

static void sums_have_a_budget(void **state)
{
	static const char *const ev[] = { "net.close; mono=1" S "; net.bytes_out=600",
					  "net.close; mono=2" S "; net.bytes_out=300",
					  "net.close; mono=3" S,
					  "net.close; mono=4" S "; net.bytes_out=124",
					  "net.close; mono=5" S "; net.bytes_out=900",
					  "net.close; mono=200" S "; net.bytes_out=200",
					  NULL };
	static const char *const huge[] = { "net.close; net.bytes_out=18446744073709551615",
					    "net.close; net.bytes_out=18446744073709551615", NULL };

	(void)state;
	judges(HEAD
	       "  condition: kind = net.close\n  count: 1K\n  window: 1m\n  sum: net.bytes_out\n",
	       ev, "...1..");
	judges(HEAD
	       "  condition: kind = net.close\n  count: 1K\n  window: 1m\n  sum: net.bytes_out\n",
	       huge, "11");
}

static void steps_follow_each_other(void **state)
{
	static const char rule[] = HEAD
		"  condition: kind = net.connect\n  sequence:\n"
		"  - kind = file.open and file.path = /secret\n  - kind = exec\n  within: 10s\n";
#define OPEN	"file.open; file.path=/secret; mono="
#define EXEC	"exec; mono="
#define CONNECT "net.connect; mono="
	static const char *const good[] = { OPEN "1" S, EXEC "2" S, CONNECT "3" S, CONNECT "4" S,
					    NULL };
	static const char *const order[] = { EXEC "1" S, OPEN "2" S,	CONNECT "3" S,
					     EXEC "4" S, CONNECT "5" S, NULL };
	static const char *const late[] = { OPEN "1" S, EXEC "2" S, CONNECT "12" S, NULL };
	/* The second chain is younger; the first would be too old. */
	static const char *const young[] = { OPEN "1" S, EXEC "2" S,	 OPEN "8" S,
					     EXEC "9" S, CONNECT "15" S, NULL };

	(void)state;
	judges(rule, good, "..1.");
	judges(rule, order, "....1");
	judges(rule, late, "...");
	judges(rule, young, "....1");
	/* One event is one step, even when it satisfies several. */
	judges(HEAD
	       "  condition: kind = exec\n  sequence: [kind = exec, kind = exec]\n  within: 10s\n",
	       (const char *const[]){ EXEC "1", EXEC "2", EXEC "3", EXEC "4", NULL }, "..1.");
#undef OPEN
#undef EXEC
#undef CONNECT
}

static void steps_use_lists_and_macros(void **state)
{
	(void)state;
	judges("- list: l\n  items: [a, b]\n- macro: m\n  condition: kind = exec and proc.comm in (l)\n" HEAD
	       "  condition: kind = exit\n  sequence: [m]\n  within: 1s\n  by: proc.pid\n",
	       (const char *const[]){ "exec; proc.comm=b; proc.pid=1", "exit; proc.pid=2",
				      "exit; proc.pid=1", NULL },
	       "..1");
}

/* Values of `by` come from the sandbox: their number is bounded, and what was forgotten is counted. */
static void memory_is_bounded(void **state)
{
	struct rule_memory *st = NULL;
	struct said said;
	struct ruleset *rs = load_state(
		HEAD "  condition: kind = fork\n  count: 2\n  window: 10s\n  by: proc.pid\n",
		&said);
	struct rule_matches m;
	char text[64];

	(void)state;
	assert_non_null(rs);
	assert_int_equal(rule_memory_new(&st, rs), 0);
	for (int i = 0; i < 1000; i++) {
		struct made_event e;

		snprintf(text, sizeof(text), "fork; mono=%d; proc.pid=%d", 1000 + i, i);
		make_event(&e, text);
		assert_int_equal(ruleset_judge(rs, st, &e.ev, &m), 0);
		drop_event(&e);
	}
	assert_int_equal(rule_memory_evicted(st), 1000 - 64);
	assert_int_equal(rule_memory_evicted(st), 0);
	/* What was over anyway is no loss. */
	for (uint64_t i = 0; i < 64; i++) {
		struct made_event e;

		snprintf(text, sizeof(text), "fork; mono=%llu; proc.pid=%llu", 20000000000ull + i,
			 5000ull + i);
		make_event(&e, text);
		assert_int_equal(ruleset_judge(rs, st, &e.ev, &m), 0);
		drop_event(&e);
	}
	assert_int_equal(rule_memory_evicted(st), 0);
	rule_memory_free(st);
	ruleset_free(rs);
}

static bool judge_pid(const struct ruleset *rs, struct rule_memory *st, unsigned mono, unsigned pid)
{
	struct rule_matches m;
	struct made_event e;
	char text[64];

	snprintf(text, sizeof(text), "fork; mono=%u; proc.pid=%u", mono, pid);
	make_event(&e, text);
	ruleset_judge(rs, st, &e.ev, &m);
	drop_event(&e);
	return m.n;
}

/* A flood of keys costs those that are quiet longest. Who acts in between is still counted. */
static void a_flood_of_keys_hides_nobody_who_acts(void **state)
{
	struct rule_memory *st = NULL;
	struct said said;
	struct ruleset *rs = load_state(
		HEAD "  condition: kind = fork\n  count: 20\n  window: 10s\n  by: proc.pid\n",
		&said);
	unsigned mono = 1000, key = 100;

	(void)state;
	assert_non_null(rs);
	assert_int_equal(rule_memory_new(&st, rs), 0);
	for (int i = 1; i <= 20; i++) {
		assert_int_equal(judge_pid(rs, st, mono++, 1), i == 20);
		for (int k = 0; k < 60; k++)
			assert_false(judge_pid(rs, st, mono++, key++));
	}
	rule_memory_free(st);
	ruleset_free(rs);
}

static void sandboxes_do_not_share(void **state)
{
	struct rule_memory *st[2];
	struct said said;
	struct ruleset *rs =
		load_state(HEAD "  condition: kind = fork\n  count: 2\n  window: 10s\n", &said);
	struct rule_matches m;
	struct made_event e;

	(void)state;
	assert_non_null(rs);
	make_event(&e, "fork; mono=1");
	assert_int_equal(rule_memory_new(&st[0], rs), 0);
	assert_int_equal(rule_memory_new(&st[1], rs), 0);
	assert_int_equal(ruleset_judge(rs, st[0], &e.ev, &m), 0);
	assert_int_equal(ruleset_judge(rs, st[1], &e.ev, &m), 0);
	assert_int_equal(ruleset_judge(rs, st[0], &e.ev, &m), 1);
	/* Without memory such a rule is left out. */
	assert_int_equal(ruleset_eval(rs, &e.ev, &m), 0);
	assert_int_equal(ruleset_eval(rs, &e.ev, &m), 0);
	rule_memory_free(st[0]);
	rule_memory_free(st[1]);
	drop_event(&e);
	ruleset_free(rs);
}

/* A kill that counts cannot be decided in the kernel. */
static void counting_kills_stay_in_user_space(void **state)
{
	struct said said;
	struct ruleset *rs = load_state(
		HEAD
		"  condition: escape.type = unshare\n  count: 2\n  window: 1s\n  action: kill\n",
		&said);

	(void)state;
	assert_non_null(rs);
	assert_int_equal(ruleset_kernel_kill_escapes(rs), 0);
	ruleset_free(rs);
}

static void wrong_keys_are_told(void **state)
{
	static const char *const bad[][2] = {
		{ "count: 3\n", "6:10: rule 'r' needs both 'count' and 'window'" },
		{ "window: 3s\n", "needs both" },
		{ "by: proc.pid\n", "needs both" },
		{ "count: 0\n  window: 1s\n", "6:10: 'count' must be a number from 1 to 1024" },
		{ "count: many\n  window: 1s\n", "'count' must be a number" },
		{ "count: 3\n  window: 25h\n", "7:11: 'window' must be a time up to 24h" },
		{ "count: 3\n  window: 1s\n  distinct: proc.coom\n",
		  "8:13: unknown field 'proc.coom' (did you mean 'proc.comm'?)" },
		{ "count: 3\n  window: 1s\n  by: proc.pid = 1\n", "expected a field alone" },
		{ "count: 3\n  window: 1s\n  by: []\n", "'by' takes one to 4 fields" },
		{ "count: 3\n  window: 1s\n  sum: proc.comm\n", "8:8: 'sum' needs a number field" },
		{ "count: 3\n  window: 1s\n  sum: proc.pid\n  distinct: proc.pid\n",
		  "exclude each other" },
		{ "sequence: [kind = exec]\n", "'sequence' needs 'within'" },
		{ "sequence: []\n  within: 1s\n", "'sequence' is a list of 1 to 8 conditions" },
		{ "sequence: [kind = exek]\n  within: 1s\n",
		  "6:21: no event kind is named 'exek'" },
		{ "sequence: [kind = exec]\n  within: 1s\n  count: 3\n", "'sequence' excludes" },
		{ "count: 3\n  within: 1s\n", "'within' belongs to 'sequence'" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct said said;
		char text[512];

		snprintf(text, sizeof(text), HEAD "  condition: kind = exec\n  %s", bad[i][0]);
		assert_null(load_state(text, &said));
		if (!strstr(said.text, bad[i][1]))
			fail_msg("%s: should say %s, said\n%s", text, bad[i][1], said.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_are_counted_in_a_window),
		cmocka_unit_test(a_window_forgets),
		cmocka_unit_test(counters_are_kept_by_a_field),
		cmocka_unit_test(different_values_are_counted),
		cmocka_unit_test(sums_have_a_budget),
		cmocka_unit_test(steps_follow_each_other),
		cmocka_unit_test(steps_use_lists_and_macros),
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(a_flood_of_keys_hides_nobody_who_acts),
		cmocka_unit_test(sandboxes_do_not_share),
		cmocka_unit_test(counting_kills_stay_in_user_space),
		cmocka_unit_test(wrong_keys_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
