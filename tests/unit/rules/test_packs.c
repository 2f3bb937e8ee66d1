// SPDX-License-Identifier: Apache-2.0
/* The default packs: what is built in, and each rule on its own fixtures, all packs loaded together. */
#include "rules_test.h"

#include <fcntl.h>
#include "rules/explain.h"
#include "userspace/base/fd.h"

static bool is_library(size_t pack)
{
	return !strcmp(rule_packs[pack].name, RULE_PACK_MACROS);
}

static struct ruleset *load_packs(void)
{
	struct ruleset *rs = NULL;
	struct said said = { .n = 0 };

	assert_int_equal(ruleset_new(&rs, hear, &said), 0);
	ruleset_allow_state(rs);
	for (size_t i = 0; i < rule_packs_n; i++)
		assert_int_equal((is_library(i) ? ruleset_add_library : ruleset_add_text)(
					 rs, rule_packs[i].name, rule_packs[i].text, NULL),
				 0);
	assert_int_equal(ruleset_compile(rs, NULL), 0);
	if (said.n)
		fail_msg("the packs say:\n%s", said.text);
	return rs;
}

static void packs_are_built_in(void **state)
{
	static const char *const names[] = { "agent",	"escape",   "files",   "gvisor",   "macros",
					     "network", "packages", "process", "resources" };
	struct ruleset *rs = load_packs();

	(void)state;
	assert_int_equal(rule_packs_n, ARRAY_SIZE(names));
	for (size_t i = 0; i < rule_packs_n; i++)
		assert_string_equal(rule_packs[i].name, names[i]);
	for (size_t i = 0; i < ruleset_count(rs); i++) {
		const struct rule_info *r = ruleset_get(rs, i);

		if (r->state != RULE_LOADED)
			fail_msg("rule '%s': %s", r->name, r->why);
		assert_true(r->tags_n > 0);
	}
	ruleset_free(rs);
}

static void tell(void *arg, const struct rule_diag *d)
{
	(void)arg;
	print_error("%s:%d: %s\n", d->file, d->line, d->text);
}

/* Is the rule named on a line that begins with `mark`? */
static bool is_named(const char *text, const char *mark, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = text; (p = strstr(p, mark)); p += strlen(mark)) {
		const char *end = p + strcspn(p, "\n"), *at = strstr(p, name);

		while (at && at < end) {
			if ((at[n] == ';' || at[n] == '\n') && at[-1] == ' ')
				return true;
			at = strstr(at + 1, name);
		}
	}
	return false;
}

static void every_rule_fires_on_its_fixture_only(void **state)
{
	struct ruleset *rs = load_packs();
	unsigned missing = 0;

	(void)state;
	for (size_t i = 0; i < rule_packs_n; i++) {
		auto_free char *text = NULL;
		struct err err = { 0 };
		char path[128];
		size_t n = 0, events = 0;
		int r;

		if (is_library(i))
			continue;
		snprintf(path, sizeof(path), "tests/rules/packs/%s.events", rule_packs[i].name);
		assert_int_equal(file_read_at(AT_FDCWD, path, 1 << 20, &text, &n), 0);
		r = ruleset_test(rs, path, (struct str){ text, n }, tell, NULL, &events, &err);
		if (r < 0)
			fail_msg("%s", err_text(&err));
		assert_int_equal(r, 0);
		assert_true(events > 0);
		for (size_t k = 0; k < ruleset_count(rs); k++) {
			const struct rule_info *info = ruleset_get(rs, k);

			if (strcmp(info->file, rule_packs[i].name))
				continue;
			if (!is_named(text, "# fires:", info->name) ||
			    !is_named(text, "# near:", info->name)) {
				print_error("%s: rule '%s' needs an event and a near miss\n", path,
					    info->name);
				missing++;
			}
		}
	}
	assert_int_equal(missing, 0);
	ruleset_free(rs);
}

/* On both tiers, of each rule: kinds, where it is decided, and what that guarantees. */
static void every_rule_is_explained(void **state)
{
	struct ruleset *rs = load_packs();

	(void)state;
	for (int full = 0; full < 2; full++) {
		struct explain_host host = { .means = push_means(full) };
		const char *tier = full ? "\ntier: full\n" : "\ntier: portable\n";
		struct push_plan *plan = NULL;

		assert_int_equal(ruleset_push(&plan, rs, NULL, host.means, NULL), 0);
		host.plan = plan;
		for (size_t i = 0; i < ruleset_count(rs); i++) {
			const struct rule_info *r = ruleset_get(rs, i);
			const char *const says[] = { "kinds: ", "cost: rank ", tier, "\nwhere: ",
						     r->action == RULE_ACT_ALERT
							     ? "\nguarantee: an alert"
							     : "\nguarantee: " };
			auto_buf struct buf out = { 0 };

			buf_init(&out, 0);
			assert_int_equal(rule_explain(r, &host, &out), 0);
			buf_addc(&out, 0);
			for (size_t k = 0; k < ARRAY_SIZE(says); k++)
				if (!strstr(out.p, says[k]))
					fail_msg("%s: should say '%s':\n%s", r->name, says[k],
						 out.p);
			if (strstr(out.p, "never fire") || strstr(out.p, "guarantee: none"))
				fail_msg("%s:\n%s", r->name, out.p);
		}
		push_plan_free(plan);
	}
	ruleset_free(rs);
}

/* Each name of the library by itself, as a local file written for Falco uses it. */
static void library_names_can_be_used(void **state)
{
	const char *text = NULL;
	unsigned n = 0;

	(void)state;
	for (size_t i = 0; i < rule_packs_n; i++)
		if (is_library(i))
			text = rule_packs[i].text.p;
	assert_non_null(text);
	for (const char *p = text; (p = strstr(p, "\n- macro: ")); n++) {
		struct ruleset *rs = NULL;
		struct said said = { .n = 0 };
		char rule[256], name[64];

		p += strlen("\n- macro: ");
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(p, "\n"), p);
		/* always_true and the like may hold for all kinds: no matter here. */
		snprintf(rule, sizeof(rule), RULE("r", "%s and kind = exec"), name);
		assert_int_equal(ruleset_new(&rs, hear, &said), 0);
		assert_int_equal(ruleset_add_library(rs, "lib", str_from(text), NULL), 0);
		assert_int_equal(ruleset_add_text(rs, "t.yaml", str_from(rule), NULL), 0);
		if (ruleset_compile(rs, NULL) < 0 || said.errors)
			fail_msg("%s: %s", name, said.text);
		if (strstr(said.text, "not used"))
			fail_msg("%s: %s", name, said.text);
		ruleset_free(rs);
	}
	assert_true(n > 35);
}

/* A file's own list stands where it is written, not where the library's did. */
static void own_names_replace_those_of_the_library(void **state)
{
	static const char own[] =
		"- list: more\n  items: [x]\n- list: shell_binaries\n  items: [more, y]\n"
		"- macro: spawned_process\n  condition: kind = fork\n" RULE(
			"r", "spawned_process and proc.comm in (shell_binaries)");
	struct ruleset *rs = NULL;
	struct said said = { .n = 0 };

	(void)state;
	assert_int_equal(ruleset_new(&rs, hear, &said), 0);
	for (size_t i = 0; i < rule_packs_n; i++)
		if (is_library(i))
			ruleset_add_library(rs, "lib", rule_packs[i].text, NULL);
	assert_int_equal(ruleset_add_text(rs, "t.yaml", str_from(own), NULL), 0);
	assert_int_equal(ruleset_compile(rs, NULL), 0);
	assert_string_equal(said.text, "");
	assert_string_equal(fires(rs, "fork; proc.comm=x"), "r");
	assert_string_equal(fires(rs, "fork; proc.comm=bash"), "");
	assert_string_equal(fires(rs, "exec; proc.comm=x"), "");
	ruleset_free(rs);
}

static uint64_t bit(enum wire_escape_type t)
{
	return 1ull << t;
}

static void kernel_kills_what_is_proven(void **state)
{
	struct ruleset *rs = load_packs();
	uint64_t kill = ruleset_kernel_kill_escapes(rs);

	(void)state;
	assert_int_equal(kill & bit(WIRE_ESCAPE_UNSHARE), bit(WIRE_ESCAPE_UNSHARE));
	assert_int_equal(kill & bit(WIRE_ESCAPE_MOUNT), bit(WIRE_ESCAPE_MOUNT));
	assert_int_equal(kill & bit(WIRE_ESCAPE_BPF), bit(WIRE_ESCAPE_BPF));
	assert_int_equal(kill & bit(WIRE_ESCAPE_OPEN_BY_HANDLE), bit(WIRE_ESCAPE_OPEN_BY_HANDLE));
	/* Alerts, and a kill that depends on the outcome. */
	assert_int_equal(kill & bit(WIRE_ESCAPE_IO_URING), 0);
	assert_int_equal(kill & bit(WIRE_ESCAPE_PTRACE), 0);
	assert_int_equal(kill & bit(WIRE_ESCAPE_CLONE_NS), 0);
	assert_int_equal(kill & bit(WIRE_ESCAPE_RUNTIME_SOCKET), 0);
	assert_int_equal(kill & 1, 0);
	ruleset_free(rs);
}

struct pushed {
	const char *rule; /* the condition and further keys */
	uint64_t bits;
};

static void only_whole_kill_rules_are_pushed(void **state)
{
#define U (1ull << WIRE_ESCAPE_UNSHARE)
#define S (1ull << WIRE_ESCAPE_SETNS)
	static const struct pushed rows[] = {
		{ "kind = escape and escape.type = unshare\n  action: kill\n", U },
		{ "escape.type in (unshare, setns)\n  action: kill\n", U | S },
		{ "escape.type = unshare or escape.type = setns\n  action: kill\n", U | S },
		{ "not (not escape.type = unshare)\n  action: kill\n", U },
		{ "escape.type startswith uns\n  action: kill\n", U },
		{ "escape.type = unshare\n", 0 },
		{ "escape.type = unshare\n  action: kill\n  enabled: false\n", 0 },
		{ "escape.type = unshare and proc.comm = x\n  action: kill\n", 0 },
		{ "escape.type = unshare and not proc.comm = x\n  action: kill\n", 0 },
		{ "escape.type = unshare or proc.comm = x\n  action: kill\n", U },
		{ "escape.type = unshare and outcome = success\n  action: kill\n", 0 },
		{ "evt.type = unshare\n  action: kill\n", 0 },
		{ "kind = exec and escape.type = unshare\n  action: kill\n", 0 },
		{ "escape.type = unshare\n  action: kill\n  exceptions:\n  - name: e\n    fields: "
		  "[proc.comm]\n    values:\n    - [x]\n",
		  0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct said said;
		struct ruleset *rs;
		char text[512];

		snprintf(text, sizeof(text),
			 "- rule: r\n  desc: d\n  output: o\n  priority: INFO\n  condition: %s",
			 rows[i].rule);
		rs = load(text, &said);
		assert_non_null(rs);
		if (ruleset_kernel_kill_escapes(rs) != rows[i].bits)
			fail_msg("%s: got %#llx", rows[i].rule,
				 (unsigned long long)ruleset_kernel_kill_escapes(rs));
		ruleset_free(rs);
	}
#undef U
#undef S
}

/* A rule that was to prevent must not become one that only tells. */
static void actions_nobody_can_do_are_errors(void **state)
{
	static const char text[] = RULE("r", "kind = exec") "  action: freeze\n";
	struct said said = { 0 };
	struct ruleset *rs;

	(void)state;
	assert_int_equal(ruleset_new(&rs, hear, &said), 0);
	ruleset_allow_actions(rs, 1u << RULE_ACT_ALERT | 1u << RULE_ACT_KILL);
	assert_int_equal(ruleset_add_text(rs, "t", str_from(text), NULL), 0);
	assert_true(ruleset_compile(rs, NULL) < 0);
	assert_non_null(
		strstr(said.text,
		       "6:11: action 'freeze' of rule 'r' is not available here (alert, kill)"));
	ruleset_free(rs);
	assert_int_equal(ruleset_new(&rs, hear, &said), 0);
	ruleset_allow_actions(rs, 1u << RULE_ACT_ALERT | 1u << RULE_ACT_FREEZE);
	assert_int_equal(ruleset_add_text(rs, "t", str_from(text), NULL), 0);
	assert_int_equal(ruleset_compile(rs, NULL), 0);
	assert_int_equal(ruleset_get(rs, 0)->action, RULE_ACT_FREEZE);
	ruleset_free(rs);
}

/* However many alerts fire on one event, the kill is in the result. */
static void alerts_never_hide_a_kill(void **state)
{
	auto_buf struct buf b = { 0 };
	struct rule_matches m;
	struct made_event e;
	struct ruleset *rs;
	struct said said;

	(void)state;
	buf_init(&b, 0);
	for (int i = 0; i < 2 * RULE_MATCH_MAX; i++)
		buf_printf(&b,
			   "- rule: r%d\n  desc: d\n  output: o\n  priority: INFO\n"
			   "  condition: kind = exec and not proc.pid = %d\n",
			   i, i);
	buf_addz(&b, RULE("last", "kind = exec") "  action: kill\n");
	buf_addc(&b, 0);
	rs = load(b.p, &said);
	assert_non_null(rs);
	make_event(&e, "exec; proc.pid=9999");
	ruleset_eval(rs, &e.ev, &m);
	assert_string_equal(m.v[0]->name, "last");
	assert_int_equal(m.n + m.more, 2 * RULE_MATCH_MAX + 1);
	drop_event(&e);
	ruleset_free(rs);
}

static void fixtures_say_what_is_wrong(void **state)
{
	static const char rules[] = RULE("a", "kind = exec") RULE("b", "kind = exit")
		RULE("Second", "kind = exit and proc.pid = 1");
	struct said said, heard = { .n = 0 };
	struct ruleset *rs = load(rules, &said);
	struct err err = { 0 };
	size_t events = 0;

	(void)state;
	assert_non_null(rs);
	assert_int_equal(ruleset_test(rs, "f",
				      STR("# fires: a\n{\"kind\":\"exec\"}\n\n"
					  "# fires: b\n{\"kind\":\"exec\"}\n"
					  "# near: a\n{\"kind\":\"exec\"}\n{\"kind\":\"oom\"}\n"),
				      hear, &heard, &events, &err),
			 2);
	assert_int_equal(events, 4);
	assert_string_equal(heard.text, "5:1: rule 'b' should fire, it did not\n"
					"5:1: rule 'a' fired, it should not\n"
					"7:1: rule 'a' fired on its near miss\n");
	assert_int_equal(ruleset_test(rs, "f", STR("# fires: c\n{}\n"), NULL, NULL, &events, &err),
			 -EINVAL);
	assert_string_equal(err.text, "f:1:1: no rule is named 'c'");
	assert_int_equal(ruleset_test(rs, "f", STR("{\"kind\":\n"), NULL, NULL, &events, &err),
			 -EINVAL);
	static const struct {
		const char *text, *says;
	} slips[] = {
		{ "# near: Secod\n{}\n",
		  "f:1:1: no rule is named 'Secod' (did you mean 'Second'?)" },
		{ "# fire: a\n{}\n", "f:1:1: unknown key 'fire' (did you mean 'fires'?)" },
		{ "#Near: a\n{}\n", "f:1:1: unknown key 'Near' (did you mean 'near'?)" },
		{ "# sandbx\n{}\n", "f:1:1: unknown key 'sandbx' (did you mean 'sandbox'?)" },
		{ "# repeat: 3x\n{}\n", "f:1:1: 'repeat' must be 1 to 100000" },
		{ "{\"kind\":\"exek\"}\n",
		  "f:1:1: event, byte 15, 'kind': unknown kind (did you mean 'exec'?)" },
		{ "{\"kind\":\"exec\",\"proc\":{\"com\":\"x\"}}\n",
		  "f:1:1: event, byte 29, 'proc.com': unknown member (did you mean 'proc.comm'?)" },
		{ "{\"kind\":\"escape\",\"escape.type\":\"setnss\"}\n",
		  "f:1:1: no escape type is named 'setnss' (did you mean 'setns'?)" },
		{ "{\"kind\":\"exec\",\"outcome\":\"sucess\"}\n",
		  "f:1:1: no outcome is named 'sucess' (did you mean 'success'?)" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(slips); i++) {
		assert_int_equal(
			ruleset_test(rs, "f", str_from(slips[i].text), NULL, NULL, &events, &err),
			-EINVAL);
		assert_string_equal(err.text, slips[i].says);
	}
	/* Prose is no key. */
	assert_int_equal(
		ruleset_test(rs, "f",
			     STR("# note: fires: a\n# Nearly the same: b\n# sand\n# fires: a\n"
				 "{\"kind\":\"exec\"}\n"),
			     NULL, NULL, &events, &err),
		0);
	/* A fixture that tests nothing is not passed. */
	assert_int_equal(ruleset_test(rs, "f", STR("{\"kind\":\"oom\"}\n# fires: a\n"), NULL, NULL,
				      &events, &err),
			 -EINVAL);
	assert_string_equal(err.text, "f:2:1: no event behind what is said of one");
	assert_int_equal(ruleset_test(rs, "f", STR("# nothing\n"), NULL, NULL, &events, &err),
			 -EINVAL);
	assert_string_equal(err.text, "f:1:1: no event in it, so nothing is tested");
	ruleset_free(rs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packs_are_built_in),
		cmocka_unit_test(every_rule_fires_on_its_fixture_only),
		cmocka_unit_test(every_rule_is_explained),
		cmocka_unit_test(library_names_can_be_used),
		cmocka_unit_test(own_names_replace_those_of_the_library),
		cmocka_unit_test(kernel_kills_what_is_proven),
		cmocka_unit_test(only_whole_kill_rules_are_pushed),
		cmocka_unit_test(actions_nobody_can_do_are_errors),
		cmocka_unit_test(alerts_never_hide_a_kill),
		cmocka_unit_test(fixtures_say_what_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
