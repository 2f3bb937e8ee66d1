// SPDX-License-Identifier: Apache-2.0
/* The loader: what Falco's files may hold, and where an error stands. */
#include "rules_test.h"

#include "rules/internal.h"

#define HEAD "- rule: r\n  desc: d\n  output: o\n  priority: INFO\n"

/* Text that must not load, and what is said: "line:col: beginning of the message" or a part of it. */
struct bad {
	const char *text;
	const char *says;
};

static const struct bad bad[] = {
	/* YAML */
	{ "- rule: [\n", "2:1: YAML: " },
	{ "- list: a\n  items: [a\n- x", "YAML: " },
	{ "a: b\n", "1:1: a rule file is a list of items" },
	{ "- just text\n", "1:3: expected a mapping" },
	{ "- rule: *nowhere\n", "1:9: YAML: no anchor named 'nowhere'" },
	{ "\xff\xfe-\0", "UTF-16" },
	{ "- list: a\n  items: [\x01]\n", "2:11: byte 0x01: not a text file" },
	{ "- list: \xc3\x28\n  items: []\n", "UTF-8" },
	/* lists and macros */
	{ "- list: a\n", "1:3: list 'a' has no 'items'" },
	{ "- list: a\n  items: x\n", "2:10: value of 'items' must be a list" },
	{ "- list: 'a b'\n  items: []\n", "1:9: list name 'a b'" },
	{ "- macro: m\n", "macro 'm' has no 'condition'" },
	{ "- macro: 1m\n  condition: a\n", "1:10: macro name '1m'" },
	{ "- macro: m\n  condition: ''\n", "2:14: value of 'condition' is empty" },
	{ "- macro: a\n  condition: b\n- macro: b\n  condition: kind = exec\n" HEAD
	  "  condition: a\n",
	  "2:14: macro 'b' is defined later (line 3)" },
	{ "- macro: a\n  condition: kind = exec\n- macro: a\n  condition: or a\n  append: true\n" HEAD
	  "  condition: a\n",
	  "macro 'a' refers to itself" },
	{ "- list: a\n  items: [x]\n  override: {items: append}\n", "no list 'a' to change" },
	{ "- macro: a\n  condition: x\n  append: true\n", "no macro 'a' to change" },
	/* rules */
	{ "- rule: r\n  condition: kind = exec\n  desc: d\n  priority: INFO\n",
	  "1:3: rule 'r' has no 'output'" },
	{ "- rule: r\n  desc: d\n  output: o\n  priority: WARNIN\n  condition: kind = exec\n",
	  "4:13: unknown priority 'WARNIN' (did you mean 'warning'?)" },
	{ HEAD "  condition: kind = exec\n  action: kil\n",
	  "6:11: unknown action 'kil' (did you mean 'kill'?)" },
	{ HEAD "  condition: kind = exec\n  scope: host\n", "6:10: unknown scope 'host'" },
	{ HEAD "  condition: kind = exec\n  attack: [1611]\n",
	  "6:11: '1611' is no ATT&CK technique id" },
	{ HEAD "  condition: kind = exec\n  throttle: soon\n", "6:13: throttle 'soon'" },
	{ HEAD "  condition: kind = exec\n  enabled: maybe\n",
	  "6:12: value of 'enabled' must be true or false" },
	{ HEAD "  condition: kind = exec\n  count: 5\n",
	  "6:10: rule 'r' counts or orders events, which is not available here" },
	{ HEAD "  condition: kind = exec\n  baseline: x\n",
	  "6:13: key 'baseline' of rule 'r' is not supported" },
	{ "- rule: r\n  condition: or kind = exec\n  override: {condition: append}\n",
	  "1:3: no rule 'r' to change" },
	{ HEAD
	  "  condition: kind = exec\n- rule: r\n  condition: x\n  append: true\n  override: {condition: append}\n",
	  "'append' and 'override' exclude each other" },
	{ HEAD
	  "  condition: kind = exec\n- rule: r\n  priority: INFO\n  override: {priority: append}\n",
	  "8:14: key 'priority' cannot be appended to, use 'replace'" },
	{ HEAD
	  "  condition: kind = exec\n- rule: r\n  desc: x\n  tags: [a]\n  override: {desc: replace}\n",
	  "8:3: key 'tags' is not named under 'override'" },
	{ HEAD "  condition: kind = exec\n- rule: r\n  desc: x\n  override: {desc: swap}\n",
	  "8:20: override of 'desc' must be 'append' or 'replace'" },
	{ HEAD
	  "  condition: kind = exec\n- rule: r\n  desc: x\n  override: {desc: replace, tags: append}\n",
	  "8:29: override names 'tags', but the item has no 'tags'" },
	/* conditions: where in the file, on which token */
	{ HEAD "  condition: kind = exec an proc.pid = 1\n",
	  "5:26: expected 'and' or 'or', found 'an'" },
	{ HEAD "  condition: kind = exec and\n", "found the end of the condition" },
	{ HEAD "  condition: (kind = exec\n", "5:14: this '(' has no ')'" },
	{ HEAD "  condition: kind = exec)\n", "5:25: this ')' closes nothing" },
	{ HEAD "  condition: and kind = exec\n",
	  "5:14: expected a field, a macro or '(', found 'and'" },
	{ HEAD "  condition: proc.comm contain x\n",
	  "5:24: unknown operator 'contain' after field 'proc.comm' (did you mean 'contains'?)" },
	{ HEAD "  condition: proc.memfd\n", "5:24: expected an operator after field 'proc.memfd'" },
	{ HEAD "  condition: proc.coom = x\n",
	  "5:14: unknown field 'proc.coom' (did you mean 'proc.comm'?)" },
	{ HEAD "  condition: >\n    kind = exec\n    and proc.coom = x\n",
	  "7:9: unknown field 'proc.coom'" },
	{ HEAD "  condition: >\n    kind = exec and\n    proc.comm in (a, b\n",
	  "7:18: list that starts here has no ')'" },
	{ HEAD "  condition: \"kind = exec and proc.coom = x\"\n", "5:31: unknown field" },
	{ HEAD "  condition: kind = exec and shel_procs\n", "5:30: undefined macro 'shel_procs'" },
	{ "- macro: shell_procs\n  condition: proc.comm = sh\n" HEAD "  condition: shel_procs\n",
	  "7:14: undefined macro 'shel_procs' (did you mean 'shell_procs'?)" },
	{ HEAD "  condition: kind = exek\n",
	  "5:21: no event kind is named 'exek' (did you mean 'exec'?)" },
	{ HEAD "  condition: escape.type in (unshare, setnss)\n",
	  "5:39: no escape type is named 'setnss' (did you mean 'setns'?)" },
	{ HEAD "  condition: proc.comm = \"abc\n", "string that starts with \" has no end" },
	{ HEAD "  condition: proc.comm = 'abc\n", "has no end" },
	{ HEAD "  condition: proc.comm = \"a\\qb\"\n", "5:28: unknown escape '\\q'" },
	{ HEAD "  condition: proc.pid = many\n",
	  "5:25: field 'proc.pid' is a number, 'many' is not" },
	{ HEAD "  condition: proc.pid = 99999999999999999999\n", "is a number" },
	{ HEAD "  condition: proc.pid = -1\n", "5:25: field 'proc.pid' is never negative" },
	{ HEAD "  condition: proc.pid contains 1\n",
	  "5:23: operator 'contains' does not fit field 'proc.pid', which is a number" },
	{ HEAD "  condition: proc.comm > 1\n",
	  "5:24: operator '>' does not fit field 'proc.comm', which is text" },
	{ HEAD "  condition: proc.memfd = perhaps\n",
	  "5:27: field 'proc.memfd' is true or false, not 'perhaps'" },
	{ HEAD "  condition: net.dst.ip = 10.0.0.300\n",
	  "5:27: '10.0.0.300' is no address or network" },
	{ HEAD "  condition: net.dst.ip = 10.0.0.0/33\n",
	  "5:27: prefix length in '10.0.0.0/33' must be a number up to 32" },
	{ HEAD "  condition: net.dst.ip in (10.0.0.0/8, 10.0.0.0/x)\n", "5:41: prefix length" },
	{ HEAD "  condition: net.dst.ip startswith 10.\n", "which is an address" },
	{ HEAD "  condition: proc.comm[1] = x\n", "5:14: field 'proc.comm' takes no argument" },
	{ HEAD "  condition: proc.aname[x] = x\n",
	  "argument of field 'proc.aname' must be a number" },
	{ HEAD "  condition: proc.aname[1 = x\n", "has no ']'" },
	{ HEAD "  condition: proc.args != x\n", "has several values" },
	{ HEAD "  condition: proc.comm in a, b\n",
	  "5:27: operator 'in' needs its values in parentheses" },
	{ HEAD "  condition: proc.comm = (a, b)\n", "operator '=' needs a value" },
	{ HEAD "  condition: proc.comm regex \"a(b\"\n",
	  "5:30: regex 'a(b': missing closing parenthesis" },
	{ HEAD "  condition: proc.comm bcontains xyz\n", "takes bytes in hex" },
	{ HEAD "  condition: tolower(proc.pid) = 1\n", "is not text: it cannot be transformed" },
	{ HEAD "  condition: join(proc.comm) = 1\n", "transformer 'join' is not supported" },
	{ HEAD "  condition: proc.comm = val(proc.pid)\n",
	  "field 'proc.comm' is text, but 'proc.pid' is a number" },
	{ "- list: l\n  items: [a, 'b\"c']\n" HEAD "  condition: kind = exec and proc.pid in (l)\n",
	  "7:43: field 'proc.pid' is a number, 'a' is not" },
	/* output */
	{ "- rule: r\n  desc: d\n  output: x %proc.coom y\n  priority: INFO\n  condition: kind = exec\n",
	  "3:14: unknown field 'proc.coom' (did you mean 'proc.comm'?)" },
	{ "- rule: r\n  desc: d\n  output: x %proc.aname[2 y\n  priority: INFO\n  condition: kind = exec\n",
	  "has no ']'" },
	{ RULE("r", "kind = exec") "  acton: kill\n",
	  "6:3: unknown key 'acton' in rule 'r' (did you mean 'action'?)" },
	/* exceptions */
	{ HEAD "  condition: kind = exec\n  exceptions: x\n", "'exceptions' must be a list" },
	{ HEAD "  condition: kind = exec\n  exceptions:\n  - name: e\n",
	  "exception 'e' has no 'fields'" },
	{ HEAD
	  "  condition: kind = exec\n  exceptions:\n  - name: e\n    fields: [proc.comm, proc.exe]\n    values:\n    - [a]\n",
	  "10:7: exception 'e' has 2 fields: each row of values needs as many" },
	{ HEAD
	  "  condition: kind = exec\n  exceptions:\n  - name: e\n    fields: [proc.comm, proc.exe]\n    comps: [=]\n    values:\n    - [a, b]\n",
	  "'comps' needs as many" },
	{ HEAD
	  "  condition: kind = exec\n  exceptions:\n  - name: e\n    fields: [proc.coom]\n    values:\n    - [a]\n",
	  "7:5: unknown field 'proc.coom'" },
	{ "- required_engine_version: soon\n", "1:28: version 'soon' must be like" },
};

static void errors_name_the_place(void **state)
{
	unsigned wrong = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct said said;
		struct ruleset *rs = load(bad[i].text, &said);

		if (rs || !strstr(said.text, bad[i].says)) {
			print_error("--- %s\nshould say: %s\nsaid:\n%s", bad[i].text, bad[i].says,
				    rs ? "(it loaded)\n" : said.text);
			wrong++;
		}
		ruleset_free(rs);
	}
	assert_int_equal(wrong, 0);
}

static void every_error_of_a_file_is_told(void **state)
{
	struct said said;

	(void)state;
	assert_null(load("- list: a\n"
			 "- macro: m\n  condition: (kind = exec\n" RULE("one", "proc.coom = x")
				 RULE("two", "kind = exek and proc.pid = x and undefined"),
			 &said));
	/* The file's structure is one step, conditions are the next. */
	assert_int_equal(said.errors, 1);
	assert_null(load("- macro: m\n  condition: (kind = exec\n" RULE("one", "proc.coom = x")
				 RULE("two", "kind = exek and proc.pid = x and undefined"),
			 &said));
	assert_int_equal(said.errors, 5);
}

static void err_carries_the_first_error(void **state)
{
	struct ruleset *rs = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(ruleset_new(&rs, NULL, NULL), 0);
	assert_int_equal(ruleset_add_text(rs, "dir/a.yaml", STR("- list: a\n- list: b\n"), &err),
			 -EINVAL);
	assert_string_equal(err.text, "dir/a.yaml:1:3: list 'a' has no 'items'");
	ruleset_free(rs);
}

/* ---- what loads ---- */

static void expect(const char *text, const char *event, const char *names)
{
	struct said said;
	struct ruleset *rs = load(text, &said);

	if (!rs)
		fail_msg("did not load:\n%s%s", text, said.text);
	assert_string_equal(fires(rs, event), names);
	ruleset_free(rs);
}

static void lists_are_substituted_as_text(void **state)
{
	(void)state;
#define L \
	"- list: sh_list\n  items: [sh, bash]\n- list: none\n  items: []\n- list: all\n  items: [sh_list, zsh]\n"
	expect(L RULE("r", "kind = exec and proc.comm in (sh_list)"), "exec; proc.comm=bash", "r");
	expect(L RULE("r", "kind = exec and proc.comm in (x, sh_list, y)"), "exec; proc.comm=sh",
	       "r");
	expect(L RULE("r", "kind = exec and proc.comm in (x,sh_list)"), "exec; proc.comm=sh", "r");
	expect(L RULE("r", "kind = exec and proc.comm in (all)"), "exec; proc.comm=bash", "r");
	expect(L RULE("r", "kind = exec and proc.comm in (all)"), "exec; proc.comm=zsh", "r");
	expect(L RULE("r", "kind = exec and proc.comm in (none)"), "exec; proc.comm=sh", "");
	expect(L RULE("r", "kind = exec and proc.comm in (none, sh)"), "exec; proc.comm=sh", "r");
	expect(L RULE("r", "kind = exec and proc.comm in (sh, none)"), "exec; proc.comm=sh", "r");
	expect(L RULE("r", "kind = exec and not proc.comm in (none)"), "exec; proc.comm=sh", "r");
	/* Not inside quotes, not as a part of a word. */
	expect(L RULE("r", "kind = exec and proc.comm in (\"sh_list\")"), "exec; proc.comm=sh_list",
	       "r");
	expect(L RULE("r", "kind = exec and proc.comm in (sh_list2)"), "exec; proc.comm=sh_list2",
	       "r");
	/* Items with blanks are quoted, items with quotes taken as they are. */
	expect("- list: l\n  items: ['a b', '\"(x)\"', '\"it''s\"', \"c(d\"]\n" RULE(
		       "r", "kind = exec and proc.comm in (l)"),
	       "exec; proc.comm=a b", "r");
	expect("- list: l\n  items: ['a b', '\"(x)\"', \"c(d\"]\n" RULE(
		       "r", "kind = exec and proc.comm in (l)"),
	       "exec; proc.comm=(x)", "r");
	expect("- list: l\n  items: ['a b', '\"(x)\"', \"c(d\"]\n" RULE(
		       "r", "kind = exec and proc.comm in (l)"),
	       "exec; proc.comm=c(d", "r");
	expect("- list: l\n  items: [1, 40]\n" RULE("r", "kind = exec and proc.pid in (l)"),
	       "exec; proc.pid=40", "r");
	/* A bare word may hold nearly anything. */
	expect(RULE("r", "kind = exec and proc.comm in (runc:[0:PARENT], b)"),
	       "exec; proc.comm=runc:[0:PARENT]", "r");
#undef L
}

static void lists_grow_and_are_replaced(void **state)
{
	(void)state;
#define L "- list: l\n  items: [a]\n"
#define R RULE("r", "kind = exec and proc.comm in (l)")
	expect(L "- list: l\n  items: [b]\n  append: true\n" R, "exec; proc.comm=a", "r");
	expect(L "- list: l\n  items: [b]\n  append: true\n" R, "exec; proc.comm=b", "r");
	expect(L "- list: l\n  items: [b]\n  override: {items: append}\n" R, "exec; proc.comm=b",
	       "r");
	expect(L "- list: l\n  items: [b]\n  override: {items: replace}\n" R, "exec; proc.comm=a",
	       "");
	expect(L "- list: l\n  items: [b]\n" R, "exec; proc.comm=a", "");
	/* The order of list and user does not matter. */
	expect(R L, "exec; proc.comm=a", "r");
#undef R
#undef L
}

static void macros_stand_for_conditions(void **state)
{
	(void)state;
	/* A body that ends in `or` stays one operand. */
	expect("- macro: m\n  condition: proc.comm = a or proc.comm = b\n" RULE(
		       "r", "kind = exec and m and proc.pid = 2"),
	       "exec; proc.comm=a; proc.pid=1", "");
	expect("- macro: m\n  condition: proc.comm = a or proc.comm = b\n" RULE(
		       "r", "kind = exec and not m"),
	       "exec; proc.comm=b", "");
	/* Appending is text: precedence changes. */
	expect("- macro: m\n  condition: proc.comm = a and proc.pid = 1\n"
	       "- macro: m\n  condition: or proc.comm = b\n  append: true\n" RULE(
		       "r", "kind = exec and m"),
	       "exec; proc.comm=b", "r");
	expect("- macro: m\n  condition: proc.comm = a\n"
	       "- macro: m\n  condition: proc.comm = b\n  override: {condition: replace}\n" RULE(
		       "r", "kind = exec and m"),
	       "exec; proc.comm=b", "r");
	/* A macro that is redefined later counts for rules that stand before. */
	expect("- macro: m\n  condition: proc.comm = a\n" RULE(
		       "r", "kind = exec and m") "- macro: m\n  condition: proc.comm = b\n",
	       "exec; proc.comm=b", "r");
	/* A rule sees macros that are defined behind it. */
	expect(RULE("r", "kind = exec and m") "- macro: m\n  condition: proc.comm = a\n",
	       "exec; proc.comm=a", "r");
}

static void rules_are_changed(void **state)
{
	(void)state;
#define R RULE("r", "kind = exec and proc.comm = a")
	expect(R "- rule: r\n  condition: or proc.comm = b and kind = exec\n  append: true\n",
	       "exec; proc.comm=b", "r");
	expect(R "- rule: r\n  condition: and proc.pid = 1\n  override: {condition: append}\n",
	       "exec; proc.comm=a", "");
	expect(R "- rule: r\n  condition: kind = exit\n  override: {condition: replace}\n", "exit",
	       "r");
	expect(R "- rule: r\n  enabled: false\n", "exec; proc.comm=a", "");
	expect(R "- rule: r\n  enabled: false\n  override: {enabled: replace}\n",
	       "exec; proc.comm=a", "");
	expect(R "- rule: r\n  enabled: false\n- rule: r\n  enabled: true\n", "exec; proc.comm=a",
	       "r");
	expect(R RULE("r", "kind = exit"), "exec; proc.comm=a", "");
	/* Several documents, comments, an empty one. */
	expect("---\n# nothing\n---\n" R "---\n" RULE("s", "kind = exec"), "exec; proc.comm=a",
	       "r,s");
	/* CRLF and a byte order mark. */
	expect("\xef\xbb\xbf- rule: r\r\n  desc: d\r\n  output: o\r\n  priority: INFO\r\n"
	       "  condition: >\r\n    kind = exec\r\n    and proc.comm = a\r\n",
	       "exec; proc.comm=a", "r");
	/* YAML anchors. */
	expect("- list: l\n  items: &x [a]\n- list: k\n  items: *x\n" RULE(
		       "r", "kind = exec and proc.comm in (k)"),
	       "exec; proc.comm=a", "r");
#undef R
}

static void exceptions_take_away(void **state)
{
	(void)state;
#define R(ex) RULE("r", "kind = exec or kind = exit") "  exceptions:\n" ex
#define PAIR \
	R("  - name: e\n    fields: [proc.comm, proc.pcomm]\n    values:\n    - [a, b]\n    - [c, d e]\n")
	expect(PAIR, "exec; proc.comm=a; proc.pcomm=b", "");
	expect(PAIR, "exec; proc.comm=c; proc.pcomm=d e", "");
	expect(PAIR, "exec; proc.comm=a; proc.pcomm=d e", "r");
	expect(PAIR, "exit; proc.comm=x", "r");
	expect(R("  - name: e\n    fields: proc.comm\n    values: [a, b]\n"), "exec; proc.comm=b",
	       "");
	expect(R("  - name: e\n    fields: proc.comm\n    values: [a, b]\n"), "exec; proc.comm=c",
	       "r");
	expect(R("  - name: e\n    fields: proc.exe\n    comps: pmatch\n    values: [/opt]\n"),
	       "exec; proc.exe=/opt/x", "");
	expect(R("  - name: e\n    fields: [proc.exe, proc.comm]\n    comps: [startswith, in]\n"
		 "    values:\n    - [/opt, [a, b]]\n"),
	       "exec; proc.exe=/opt/x; proc.comm=b", "");
	expect(R("  - name: e\n    fields: [proc.comm]\n"), "exec; proc.comm=a", "r");
	/* Values added to an exception by its name. */
	expect(R("  - name: e\n    fields: [proc.comm]\n    values:\n    - [a]\n") "- rule: r\n  exceptions:\n  - name: e\n    values:\n    - [b]\n  append: true\n",
	       "exec; proc.comm=b", "");
	expect(R("  - name: e\n    fields: [proc.comm]\n    values:\n    - [a]\n") "- rule: r\n  exceptions:\n  - name: e\n    values:\n    - [b]\n"
										   "  override: {exceptions: append}\n",
	       "exec; proc.comm=a", "");
#undef PAIR
#undef R
}

static void keys_reach_the_rule(void **state)
{
	struct said said;
	struct ruleset *rs = load("- rule: k\n  desc: what\n  output: o\n  priority: Critical\n"
				  "  condition: kind = exec\n  action: kill\n  scope: process\n"
				  "  tags: [a, b]\n  attack: [T1611, T1059.004]\n  throttle: 30s\n"
				  "- rule: k\n  tags: [c]\n  override: {tags: append}\n"
				  "- rule: off\n  desc: d\n  output: o\n  priority: info\n"
				  "  condition: kind = exec\n  enabled: false\n"
				  "- rule: other\n  desc: d\n  output: o\n  priority: info\n"
				  "  condition: ka.verb = get\n  source: k8s_audit\n"
				  "- rule: new\n  desc: d\n  output: o\n  priority: info\n"
				  "  condition: evt.type = execve and proc.from_the_future = 1\n"
				  "  skip-if-unknown-filter: true\n",
				  &said);
	const struct rule_info *k;

	(void)state;
	assert_non_null(rs);
	assert_int_equal(ruleset_count(rs), 4);
	k = ruleset_get(rs, 0);
	assert_string_equal(k->name, "k");
	assert_string_equal(k->desc, "what");
	assert_int_equal(k->priority, RULE_CRITICAL);
	assert_int_equal(k->action, RULE_ACT_KILL);
	assert_int_equal(k->scope, RULE_SCOPE_PROCESS);
	assert_int_equal(k->state, RULE_LOADED);
	assert_int_equal(k->tags_n, 3);
	assert_true(str_eqz(k->tags[2], "c"));
	assert_int_equal(k->attack_n, 2);
	assert_int_equal(k->throttle_ns, 30000000000ull);
	assert_string_equal(k->file, "t.yaml");
	assert_int_equal(k->line, 1);
	assert_int_equal(ruleset_get(rs, 1)->state, RULE_DISABLED);
	assert_int_equal(ruleset_get(rs, 2)->state, RULE_REFUSED);
	assert_string_equal(ruleset_get(rs, 2)->why, "source 'k8s_audit' is not supported");
	assert_int_equal(ruleset_get(rs, 3)->state, RULE_REFUSED);
	assert_null(ruleset_get(rs, 4));
	assert_string_equal(fires(rs, "exec"), "k");
	ruleset_free(rs);
}

static void warnings_do_not_stop(void **state)
{
	static const struct bad warned[] = {
		{ RULE("r", "kind = exec") "  colour_of_it: x\n",
		  "6:3: warning: unknown key 'colour_of_it' in rule 'r'" },
		{ "- macro: unused\n  condition: kind = exec\n",
		  "1:3: warning: macro 'unused' is not used" },
		{ "- list: unused\n  items: [a]\n", "warning: list 'unused' is not used" },
		{ RULE("r", "kind = exec") RULE("r", "kind = exec"),
		  "warning: rule 'r' replaces the one at line 1" },
		{ RULE("r", "proc.comm = a"), "warning: rule 'r' names no event kind" },
		{ RULE("r", "kind = exec and kind = exit"), "warning: rule 'r' can never fire" },
		{ RULE("r", "kind = file.open and proc.memfd = true"),
		  "warning: rule 'r' can never fire" },
		{ RULE("r", "kind = exec and proc.comm = a-name-longer-than-15"),
		  "at most 15 bytes" },
		{ RULE("r", "evt.type = execve and evt.dir = <"), "'evt.dir' is obsolete" },
		{ "- required_engine_version: 9.0.0\n", "written for Falco engine 9.0.0" },
		{ "- plugin_colours: x\n", "unknown item 'plugin_colours': ignored" },
		{ RULE("r", "kind = exec") "  desc: again\n", "key 'desc' stands twice" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(warned); i++) {
		struct said said;
		struct ruleset *rs = load(warned[i].text, &said);

		assert_non_null(rs);
		if (!strstr(said.text, warned[i].says))
			fail_msg("should say: %s\nsaid:\n%s", warned[i].says, said.text);
		ruleset_free(rs);
	}
}

static void absent_fields_degrade(void **state)
{
	struct said said;
	struct ruleset *rs =
		load(RULE("image", "kind = exec and container.image.repository = x") RULE(
			     "not", "kind = exec and not k8s.ns.name = x")
			     RULE("empty", "kind = exec and not container.image.repository in ()"),
		     &said);

	(void)state;
	assert_non_null(rs);
	assert_int_equal(ruleset_get(rs, 0)->state, RULE_DEGRADED);
	assert_string_equal(ruleset_get(rs, 0)->why,
			    "can never fire: no container.image.repository");
	assert_int_equal(ruleset_get(rs, 1)->state, RULE_DEGRADED);
	assert_string_equal(ruleset_get(rs, 1)->why, "field 'k8s.ns.name' is not known here");
	assert_int_equal(ruleset_get(rs, 2)->state, RULE_LOADED);
	assert_string_equal(fires(rs, "exec"), "not,empty");
	ruleset_free(rs);
}

/* ---- limits ---- */

static char *many(const char *before, const char *piece, size_t n, const char *after)
{
	struct buf b;

	buf_init(&b, 0);
	buf_addz(&b, before);
	for (size_t i = 0; i < n; i++)
		buf_addz(&b, piece);
	buf_addz(&b, after);
	buf_addc(&b, 0);
	assert_false(b.failed);
	return b.p;
}

static void sizes_have_limits(void **state)
{
	struct said said;
	struct ruleset *rs;
	char *text;

	(void)state;
	text = many(HEAD "  condition: kind = exec and ", "(", 100, "proc.pid = 1");
	assert_null(load(text, &said)); /* not closed */
	free(text);
	text = many(HEAD "  condition: ", "(", 1000000, "");
	assert_null(load(text, &said));
	assert_non_null(strstr(said.text, "nested deeper than"));
	free(text);
	text = many(HEAD "  condition: ", "not ", 100000, "kind = exec");
	rs = load(text, &said);
	assert_non_null(rs);
	assert_string_equal(fires(rs, "exec"), "r");
	ruleset_free(rs);
	free(text);
	text = many(HEAD "  condition: kind = exec and (proc.pid = 0",
		    " or proc.comm contains xyz and proc.uid = 5", 10000, ")");
	rs = load(text, &said);
	assert_non_null(rs);
	assert_string_equal(fires(rs, "exec; proc.pid=0"), "r");
	ruleset_free(rs);
	free(text);
	text = many("- x: ", "[", 200, "");
	assert_null(load(text, &said));
	assert_non_null(strstr(said.text, "YAML nested deeper than"));
	free(text);
}

/* Bytes that the loader took for n parts of one thing: a copy of the whole for each part would be n times as many. */
static size_t load_parts(const char *head, const char *part, int n)
{
	auto_buf struct buf b = { 0 };
	struct ruleset *rs = NULL;
	size_t total;

	buf_init(&b, 16 << 20);
	buf_addz(&b, head);
	for (int i = 0; i < n; i++)
		for (const char *p = part; *p; p++)
			*p == '@' ? buf_printf(&b, "%d", 1000 + i) : buf_addc(&b, *p);
	assert_false(b.failed);
	assert_int_equal(ruleset_new(&rs, NULL, NULL), 0);
	assert_int_equal(ruleset_add_text(rs, "f", (struct str){ b.p, b.n }, NULL), 0);
	assert_int_equal(ruleset_compile(rs, NULL), 0);
	assert_int_equal(ruleset_count(rs), 1);
	total = rs->arena.total;
	ruleset_free(rs);
	return total;
}

static void what_is_put_together_of_many_parts_is_linear(void **state)
{
	static const char *const cases[][2] = {
		{ "- macro: m\n  condition: kind = exec\n" HEAD "  condition: m\n",
		  "- macro: m\n  condition: or proc.comm = c@\n  override: {condition: append}\n" },
		{ HEAD "  condition: kind = exec\n",
		  "- rule: r\n  condition: or proc.comm = c@\n  append: true\n" },
		{ HEAD "  condition: kind = exec\n  tags: [a]\n  attack: [T1000]\n",
		  "- rule: r\n  output: o\n  desc: d\n  tags: [t@]\n  attack: [T@]\n"
		  "  override: {output: append, desc: append, tags: append, attack: append}\n" },
		{ HEAD "  condition: kind = exec\n  exceptions: [{name: e, fields: proc.comm}]\n",
		  "- rule: r\n  exceptions: [{name: e, values: [v@]}]\n  override: {exceptions: append}\n" },
		{ HEAD "  condition: kind = exec\n",
		  "- rule: r\n  exceptions: [{name: e@, fields: [proc.comm], values: [[v]]}]\n"
		  "  override: {exceptions: append}\n" },
		{ "- list: l\n  items: [a]\n" HEAD
		  "  condition: kind = exec and proc.comm in (l)\n",
		  "- list: l\n  items: [i@]\n  override: {items: append}\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t few = load_parts(cases[i][0], cases[i][1], 1000);
		size_t many = load_parts(cases[i][0], cases[i][1], 10000);

		if (many > 20 * few)
			fail_msg("case %zu: %zu bytes for 1,000 parts, %zu for 10,000", i, few,
				 many);
	}
}

/* Each macro names the one before twice: 2^n checks. */
static void macro_bombs_are_refused(void **state)
{
	struct said said;
	struct buf b;

	(void)state;
	buf_init(&b, 0);
	buf_addz(&b, "- macro: m0\n  condition: proc.pid = 1 or proc.uid = 1\n");
	for (int i = 1; i < 60; i++)
		buf_printf(&b, "- macro: m%d\n  condition: m%d and m%d\n", i, i - 1, i - 1);
	buf_addz(&b, HEAD "  condition: kind = exec and m59\n");
	buf_addc(&b, 0);
	assert_null(load(b.p, &said));
	assert_non_null(strstr(said.text, "condition has more than"));
	buf_done(&b);
}

static void deep_parentheses_work(void **state)
{
	struct said said;
	struct ruleset *rs;
	char *open = many(HEAD "  condition: ", "(not ", 100, "kind = exec");
	char *text = many(open, ")", 100, "\n");

	(void)state;
	rs = load(text, &said);
	assert_non_null(rs);
	assert_string_equal(fires(rs, "exec"), "r");
	ruleset_free(rs);
	free(open);
	free(text);
}

static void hash_covers_sources_in_order(void **state)
{
	static const char a[] = "- list: a\n  items: []\n", b[] = "- list: b\n  items: []\n";
	const char *const orders[][2] = { { a, b }, { b, a }, { a, b } };
	char hash[3][65];

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct ruleset *rs = NULL;

		assert_int_equal(ruleset_new(&rs, NULL, NULL), 0);
		assert_int_equal(ruleset_add_text(rs, "1", str_from(orders[i][0]), NULL), 0);
		assert_int_equal(ruleset_add_text(rs, "2", str_from(orders[i][1]), NULL), 0);
		assert_int_equal(ruleset_compile(rs, NULL), 0);
		snprintf(hash[i], sizeof(hash[i]), "%s", ruleset_hash(rs));
		assert_int_equal(strlen(hash[i]), 64);
		ruleset_free(rs);
	}
	assert_string_equal(hash[0], hash[2]);
	assert_string_not_equal(hash[0], hash[1]);
}

static void files_that_cannot_be_read(void **state)
{
	struct ruleset *rs = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(ruleset_new(&rs, NULL, NULL), 0);
	assert_int_equal(ruleset_add_file(rs, "/nonexistent/r.yaml", &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/r.yaml"));
	assert_int_equal(ruleset_add_file(rs, "/", &err), -EISDIR);
	ruleset_free(rs);
}

/* Falco's public rule file is test input that does not belong to the project. */
static void public_falco_rules_load(void **state)
{
	static const char *const places[] = { "../shared/corpus/falco/falco_rules.yaml",
					      "../../shared/corpus/falco/falco_rules.yaml" };
	const char *path = getenv("WARDER_FALCO_RULES");
	struct ruleset *rs = NULL;
	struct said said = { .n = 0 };

	(void)state;
	for (size_t i = 0; !path && i < ARRAY_SIZE(places); i++)
		if (!access(places[i], R_OK))
			path = places[i];
	if (!path) {
		print_message("set WARDER_FALCO_RULES to a copy of Falco's falco_rules.yaml\n");
		skip();
	}
	assert_int_equal(ruleset_new(&rs, hear, &said), 0);
	assert_int_equal(ruleset_add_file(rs, path, NULL), 0);
	assert_int_equal(ruleset_compile(rs, NULL), 0);
	assert_true(ruleset_count(rs) > 0);
	for (size_t i = 0; i < ruleset_count(rs); i++)
		assert_int_not_equal(ruleset_get(rs, i)->state, RULE_REFUSED);
	ruleset_free(rs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_name_the_place),
		cmocka_unit_test(every_error_of_a_file_is_told),
		cmocka_unit_test(err_carries_the_first_error),
		cmocka_unit_test(lists_are_substituted_as_text),
		cmocka_unit_test(lists_grow_and_are_replaced),
		cmocka_unit_test(macros_stand_for_conditions),
		cmocka_unit_test(rules_are_changed),
		cmocka_unit_test(exceptions_take_away),
		cmocka_unit_test(keys_reach_the_rule),
		cmocka_unit_test(warnings_do_not_stop),
		cmocka_unit_test(absent_fields_degrade),
		cmocka_unit_test(sizes_have_limits),
		cmocka_unit_test(what_is_put_together_of_many_parts_is_linear),
		cmocka_unit_test(macro_bombs_are_refused),
		cmocka_unit_test(deep_parentheses_work),
		cmocka_unit_test(hash_covers_sources_in_order),
		cmocka_unit_test(files_that_cannot_be_read),
		cmocka_unit_test(public_falco_rules_load),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
