// SPDX-License-Identifier: Apache-2.0
/* Files that are broken, by accident or by design: each gets file:line:col, the token and a hint, or loads;
 * none crashes and none takes what it likes of memory. */
#include "rules_test.h"

#include "rules/internal.h"

#define HEAD "- rule: r\n  desc: d\n  output: o\n  priority: INFO\n"

struct bad {
	const char *what;
	struct str text;
	const char *says; /* the whole first message, file included */
};

#define BAD(what, text, says)                                      \
	{                                                          \
		what, { text, sizeof(text) - 1 }, "d/r.yaml:" says \
	}

static const struct bad bad[] = {
	BAD("list without end", "- list: a\n  items: [a\n- x: y\n",
	    "3:4: YAML: did not find expected ',' or ']', while parsing a flow sequence, found ':': "
	    "a '[' before this has no ']', or a ',' is missing"),
	BAD("mapping without end", "- {rule: r, desc: d\n",
	    "2:1: YAML: did not find expected ',' or '}', while parsing a flow mapping: "
	    "a '{' before this has no '}', or a ',' is missing"),
	BAD("quote without end", "- rule: \"r\n  desc: d\n",
	    "3:1: YAML: found unexpected end of stream, while scanning a quoted scalar: "
	    "a quote before this has no end"),
	BAD("tab as indentation", "- list: a\n\titems: [b]\n",
	    "2:1: YAML: found a tab character that violates indentation, while scanning a plain "
	    "scalar: indent with blanks, not tabs"),
	BAD("colon in a value", "- rule: a: b\n",
	    "1:10: YAML: mapping values are not allowed in this context, found ':': "
	    "a value with ': ' in it needs quotes"),
	BAD("value that begins with %", HEAD "  output: %proc.comm\n",
	    "5:11: YAML: found character that cannot start any token, while scanning for the next "
	    "token, found '%proc.comm': a value that begins so needs quotes"),
	BAD("indentation", "- list: a\n  items: [b]\n   x: y\n",
	    "3:4: YAML: did not find expected key, while parsing a block mapping, found 'x:': "
	    "is the indentation right?"),
	BAD("alias of nothing", "- list: a\n  items: *b\n",
	    "2:10: YAML: no anchor named 'b' before this"),
	BAD("a mapping, not a list", "rule: r\n",
	    "1:1: a rule file is a list of items: '- rule: name'"),
	BAD("an item that is a word", "- rule\n", "1:3: expected a mapping such as '- rule: name'"),
	BAD("program",
	    "\x7f"
	    "ELF\x02\x01\0\0",
	    "1:1: byte 0x7f: not a text file"),
	BAD("NUL in the third line", "- list: a\n  items:\n  - b\0\n",
	    "3:6: byte 0x00: not a text file"),
	BAD("UTF-16", "\xff\xfe-\0 \0", "1:1: file is UTF-16: save it as UTF-8"),
	BAD("latin 1", "- list: a\n  items: [caf\xe9]\n",
	    "2:14: byte 0xe9: invalid trailing UTF-8 octet: the file must be UTF-8 text"),
	BAD("BOM, then an error", "\xef\xbb\xbf- list: a\n", "1:3: list 'a' has no 'items'"),
	BAD("CRLF, then an error",
	    "- rule: r\r\n  desc: d\r\n  output: o\r\n  priority: INFO\r\n  condition: >\r\n"
	    "    kind = exec\r\n    and proc.coom = x\r\n",
	    "7:9: unknown field 'proc.coom' (did you mean 'proc.comm'?)"),
	BAD("list in the place of text", HEAD "  condition: [a]\n",
	    "5:14: value of 'condition' must be a single value"),
	BAD("text in the place of a list", HEAD "  condition: kind = exec\n  tags: a\n",
	    "6:9: value of 'tags' must be a list: [a, b]"),
	BAD("mapping in a list", "- list: a\n  items: [{b: c}]\n",
	    "2:11: item of 'items' must be a single value"),
	BAD("nothing as a name", "- rule:\n  desc: d\n", "1:8: value of 'rule' is empty"),
	BAD("word in the place of yes or no", HEAD "  condition: kind = exec\n  enabled: maybe\n",
	    "6:12: value of 'enabled' must be true or false, not 'maybe'"),
	BAD("text compared as a number", HEAD "  condition: kind = exec and proc.pid > many\n",
	    "5:41: field 'proc.pid' is a number, 'many' is not"),
	BAD("operator of text on a number", HEAD "  condition: proc.pid startswith 4\n",
	    "5:23: operator 'startswith' does not fit field 'proc.pid', which is a number"),
	BAD("policy that no hash begins with",
	    HEAD "  condition: kind = exec\n  action: kill\n  for: {policy: [3fb2, zz]}\n",
	    "7:24: policy 'zz' is not the beginning of a plan's hash"),
	BAD("unknown field", HEAD "  condition: proc.coom = x\n",
	    "5:14: unknown field 'proc.coom' (did you mean 'proc.comm'?)"),
	BAD("unknown operator", HEAD "  condition: proc.comm startwith x\n",
	    "5:24: unknown operator 'startwith' after field 'proc.comm' (did you mean "
	    "'startswith'?)"),
	BAD("outcome that there is not", HEAD "  condition: kind = exec and outcome = sucess\n",
	    "5:40: no outcome is named 'sucess' (did you mean 'success'?)"),
	BAD("type of stdin that there is not", HEAD "  condition: proc.stdin in (tty, sock)\n",
	    "5:34: no type of stdin is named 'sock' (did you mean 'socket'?)"),
	BAD("unknown macro",
	    "- macro: shells\n  condition: kind = exec\n" HEAD "  condition: shels\n",
	    "7:14: undefined macro 'shels' (did you mean 'shells'?)"),
	BAD("unknown action", HEAD "  condition: kind = exec\n  action: kil\n",
	    "6:11: unknown action 'kil' (did you mean 'kill'?): one of alert deny kill freeze hold"),
	BAD("cycle of macros",
	    "- macro: a\n  condition: kind = exec\n- macro: a\n  condition: or a\n"
	    "  override: {condition: append}\n" HEAD "  condition: a\n",
	    "4:17: macro 'a' refers to itself"),
	BAD("cycle of two macros",
	    "- macro: b\n  condition: kind = exec\n- macro: a\n  condition: b\n"
	    "- macro: b\n  condition: a\n" HEAD "  condition: a\n",
	    "6:14: macro 'a' refers to itself"),
	BAD("broken regex", HEAD "  condition: proc.comm regex 'a(b'\n",
	    "5:30: regex 'a(b': missing closing parenthesis (at 3)"),
	BAD("regex that could read bytes apart", HEAD "  condition: proc.comm regex 'a\\\\C'\n",
	    "5:30: regex 'a\\C': using \\C is disabled by the application (at 3)"),
	BAD("condition that ends too early", HEAD "  condition: kind = exec and\n",
	    "5:29: expected a field, a macro or '(', found the end of the condition"),
	BAD("parenthesis without end", HEAD "  condition: (kind = exec\n",
	    "5:14: this '(' has no ')'"),
	BAD("quote without end in a condition", HEAD "  condition: proc.comm = 'abc\n",
	    "5:26: string that starts with ' has no end"),
};

static struct ruleset *try_text(struct str text, struct err *err)
{
	struct ruleset *rs = NULL;

	assert_int_equal(ruleset_new(&rs, NULL, NULL), 0);
	if (ruleset_add_text(rs, "d/r.yaml", text, err) == 0 && ruleset_compile(rs, err) == 0)
		return rs;
	ruleset_free(rs);
	return NULL;
}

static void each_error_says_where_and_what(void **state)
{
	unsigned wrong = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct err err = { 0 };
		struct ruleset *rs = try_text(bad[i].text, &err);

		if (rs || strcmp(err.text, bad[i].says) != 0) {
			print_error("%s: should say\n  %s\nsaid\n  %s\n", bad[i].what, bad[i].says,
				    rs ? "(it loaded)" : err.text);
			wrong++;
		}
		ruleset_free(rs);
	}
	assert_int_equal(wrong, 0);
}

/* Names that stand twice: the last counts, as in Falco, and somebody is told. */
static void names_that_stand_twice(void **state)
{
	static const char *const texts[][2] = {
		{ RULE("r", "kind = exit") RULE("r", "kind = exec"),
		  "6:3: warning: rule 'r' replaces the one at line 1\n" },
		{ "- list: l\n  items: [x]\n- list: l\n  items: [a]\n" RULE(
			  "r", "kind = exec and proc.comm in (l)"),
		  "3:3: warning: list 'l' replaces the one at line 1\n" },
		{ "- macro: m\n  condition: kind = exit\n- macro: m\n  condition: kind = exec\n" RULE(
			  "r", "m"),
		  "3:3: warning: macro 'm' replaces the one at line 1\n" },
		{ RULE("r", "kind = exec") "  condition: kind = exit\n",
		  "6:3: warning: key 'condition' stands twice in rule 'r': the first one counts\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct said said;
		struct ruleset *rs = load(texts[i][0], &said);

		assert_non_null(rs);
		assert_string_equal(said.text, texts[i][1]);
		assert_string_equal(fires(rs, "exec; proc.comm=a"), "r");
		ruleset_free(rs);
	}
}

/* before + n pieces + after, {i} in a piece is its number. */
static struct str many(const char *before, const char *piece, size_t n, const char *after)
{
	const char *mark = strstr(piece, "{i}");
	struct buf b;

	buf_init(&b, 64 << 20);
	buf_addz(&b, before);
	for (size_t i = 0; i < n; i++) {
		buf_add(&b, piece, mark ? (size_t)(mark - piece) : strlen(piece));
		if (mark)
			buf_printf(&b, "%zu%s", i, mark + 3);
	}
	buf_addz(&b, after);
	assert_false(b.failed);
	return (struct str){ b.p, b.n };
}

struct large {
	const char *what;
	const char *before, *piece, *after;
	size_t n;
	const char *event; /* on which it fires; NULL: it does not load */
	const char *says;
};

static const struct large large[] = {
	{ "10,000 terms", HEAD "  condition: kind = exec and (proc.pid = 1", " or proc.pid = {i}",
	  ")\n", 10000, "exec; proc.pid=9999", NULL },
	{ "10,000 different terms, and", HEAD "  condition: kind = exec",
	  " and not proc.exe = /x{i}", "\n", 10000, "exec; proc.exe=/y", NULL },
	{ "100 parentheses", HEAD "  condition: ", "(", "kind = exec", 100, NULL,
	  "5:113: this '(' has no ')'" },
	{ "more parentheses than there may be", HEAD "  condition: ", "(", "", 100000, NULL,
	  "5:142: parentheses nested deeper than 128" },
	{ "100,000 times not", HEAD "  condition: ", "not ", "kind = exec\n", 100000, "exec",
	  NULL },
	{ "a list of 200,000", "- list: l\n  items:\n", "  - item{i}\n",
	  HEAD "  condition: kind = exec and proc.comm in (l)\n", 200000,
	  "exec; proc.comm=item199999", NULL },
	{ "a list of many parts", "- list: l\n  items: [a]\n",
	  "- list: l\n  items: [item{i}]\n  append: true\n",
	  HEAD "  condition: kind = exec and proc.comm in (l)\n", 50000,
	  "exec; proc.comm=item49999", NULL },
	{ "a macro of many parts", "- macro: m\n  condition: kind = exec and proc.pid = 1\n",
	  "- macro: m\n  condition: or proc.pid = {i}\n  override: {condition: append}\n",
	  HEAD "  condition: m\n", 10000, "exec; proc.pid=9999", NULL },
	{ "a condition of many parts", HEAD "  condition: kind = exec and proc.pid = 1\n",
	  "- rule: r\n  condition: or proc.pid = {i}\n  override: {condition: append}\n", "", 10000,
	  "exec; proc.pid=9999", NULL },
	{ "many exceptions", HEAD "  condition: kind = exec\n",
	  "- rule: r\n  exceptions: [{name: e{i}, fields: proc.comm, values: [x]}]\n"
	  "  override: {exceptions: append}\n",
	  "", 10000, "exec; proc.comm=y", NULL },
	{ "more keys than an item may have", HEAD "  condition: kind = exec\n", "  x{i}: y\n", "",
	  252, NULL, "1:3: rule 'r' has 257 keys, at most 256 are allowed" },
	{ "a larger list", "- list: l\n  items:\n", "  - i\n", "", 200001, NULL,
	  "3:3: 'items' has 200001 items, at most 200000 are allowed" },
	{ "more YAML than there may be", "- list: l\n  items: [", "[],", "]\n", 1000001, NULL,
	  "more than 1000000 YAML values in one file" },
	{ "deep YAML", "- x: ", "[", "", 200, NULL, "1:37: YAML nested deeper than 32 levels" },
	{ "a condition that is too long", HEAD "  condition: kind = exec and proc.comm = ",
	  "xxxxxxxx", "\n", 300000, NULL, "5:14: condition longer than 2097152 bytes" },
	{ "a regex that is too long", HEAD "  condition: proc.comm regex '", "abcdefgh", "'\n",
	  1100, NULL, "5:30: regex 'abcdefghabcdefgh" },
	{ "a regex of nested repetitions", HEAD "  condition: proc.comm regex '", "(", "x'\n", 1000,
	  NULL, "5:30: regex '((((((((((((((((" },
	{ "more rules than there may be", "",
	  "- rule: n{i}\n  desc: d\n"
	  "  output: o\n  priority: INFO\n  condition: kind = exit\n",
	  "", 20001, NULL, "more than 20000 rules" },
	{ "a file that is too large", "# ", "xxxxxxxx", "\n", (8 << 20) / 8 + 1, NULL,
	  "larger than 8 MiB" },
};

static void sizes_have_an_end(void **state)
{
	unsigned wrong = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(large); i++) {
		const struct large *l = &large[i];
		struct str text = many(l->before, l->piece, l->n, l->after);
		struct err err = { 0 };
		struct ruleset *rs = try_text(text, &err);

		if (l->event ? !rs || strcmp(fires(rs, l->event), "r") != 0
			     : rs || !strstr(err.text, l->says)) {
			print_error("%s: should %s\nsaid\n  %s\n", l->what,
				    l->event ? "fire" : l->says, rs ? "(it loaded)" : err.text);
			wrong++;
		}
		ruleset_free(rs);
		free((char *)text.p);
	}
	assert_int_equal(wrong, 0);
}

/* However many warnings there are, rules mean what they say and errors are told. */
static void warnings_drown_nothing(void **state)
{
	struct err err = { 0 };
	struct str good = many(RULE("r", "kind = exec and proc.comm = a"), "- zz{i}: y\n",
			       2 * RULE_DIAGS_MAX, "");
	struct str broken = many(RULE("r", "kind = exec and proc.coom = a"), "- zz{i}: y\n",
				 2 * RULE_DIAGS_MAX, "");
	struct ruleset *rs = try_text(good, &err);

	(void)state;
	assert_non_null(rs);
	assert_string_equal(fires(rs, "exec; proc.comm=a"), "r");
	assert_string_equal(fires(rs, "exec; proc.comm=b"), "");
	assert_string_equal(fires(rs, "exit; proc.comm=a"), "");
	ruleset_free(rs);
	assert_null(try_text(broken, &err));
	assert_string_equal(err.text,
			    "d/r.yaml:5:30: unknown field 'proc.coom' (did you mean 'proc.comm'?)");
	free((char *)good.p);
	free((char *)broken.p);
}

/* BOM and CRLF load as if they were not there. */
static void marks_of_editors_are_no_text(void **state)
{
	struct said said;
	struct ruleset *rs =
		load("\xef\xbb\xbf- list: l\r\n  items: [a, b]\r\n- rule: r\r\n  desc: d\r\n"
		     "  output: o\r\n  priority: INFO\r\n  condition: >\r\n"
		     "    kind = exec\r\n    and proc.comm in (l)\r\n",
		     &said);

	(void)state;
	assert_non_null(rs);
	assert_string_equal(said.text, "");
	assert_string_equal(fires(rs, "exec; proc.comm=b"), "r");
	assert_string_equal(fires(rs, "exec; proc.comm=b\r"), "");
	ruleset_free(rs);
}

/* Cutting a good file anywhere, and changing any of its bytes: no crash, and never a silent refusal. */
static void damage_anywhere(void **state)
{
	static const char good[] =
		"- list: l\n  items: [a, 'b c', \"d\"]\n- macro: m\n  condition: proc.comm in (l) or "
		"proc.args[1] startswith \"-\"\n- rule: r\n  desc: d\n  output: '%20proc.comm "
		"%toupper(proc.exe)'\n  priority: INFO\n  condition: >\n    kind = exec and m and not "
		"proc.exe regex '/u(s|r)+'\n  exceptions:\n  - name: e\n    fields: [proc.comm]\n"
		"    values:\n    - [x]\n  tags: [a]\n";
	static const char to[] = "\0\xff\n\t'\"[]{}():,-*&%!\\ 0";
	char text[sizeof(good)];

	(void)state;
	for (size_t i = 0; i < sizeof(good); i++) {
		for (size_t k = 0; k <= sizeof(to); k++) {
			struct err err = { 0 };
			struct ruleset *rs;

			memcpy(text, good, sizeof(good));
			if (k < sizeof(to))
				text[i] = to[k];
			rs = try_text((struct str){ text, k < sizeof(to) ? sizeof(good) - 1 : i },
				      &err);
			if (!rs && strncmp(err.text, "d/r.yaml:", 9) != 0)
				fail_msg("byte %zu: '%s'", i, err.text);
			ruleset_free(rs);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_error_says_where_and_what),
		cmocka_unit_test(names_that_stand_twice),
		cmocka_unit_test(sizes_have_an_end),
		cmocka_unit_test(warnings_drown_nothing),
		cmocka_unit_test(marks_of_editors_are_no_text),
		cmocka_unit_test(damage_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
