// SPDX-License-Identifier: Apache-2.0
/* Rules in the form of gitleaks: what is carried finds what it found there, what is not is named. */
#include <errno.h>
#include <stdlib.h>

#include "tests/unit/redact/redact_test.h"
#include "userspace/redact/gitleaks.h"

static const char FILE_TEXT[] = "title = 'x'\n"
				"[allowlist]\n"
				"paths = ['''\\.png$''']\n"
				"regexes = ['''^acme_test''', '(', '']\n"
				"stopwords = ['example']\n"
				"[[rules]]\n"
				"id = 'acme'\n"
				"description = \"it's \\\"acme\\\"\"\n"
				"regex = '''\\b(acme_[a-z0-9]{8,20})(?:['\"\\n\\x60]|$)'''\n"
				"keywords = ['ACME_',]\n"
				"[[rules]]\n"
				"id = 'two-ways'\n"
				"regex = '''(?i)twoways(?:=([a-z]{6,}[0-9]+)|:([A-F]{6,}))'''\n"
				"keywords = ['twoways']\n"
				"[[rules.allowlists]]\n"
				"stopwords = ['dummy', 'a.b']\n"
				"[[rules.allowlists]]\n"
				"regexTarget = 'line'\n"
				"regexes = ['.*']\n"
				"[[rules.allowlists]]\n"
				"condition = 'AND'\n"
				"paths = ['x']\n"
				"regexes = ['.*']\n"
				"[[rules]]\n"
				"id = 'second-group'\n"
				"regex = '''(secondgroup)-([a-z0-9]+)'''\n"
				"secretGroup = 2\n"
				"entropy = 2.5\n"
				"keywords = ['secondgroup']\n"
				"[[rules]]\n"
				"id = 'short'\n"
				"regex = 'ey[a-z]{9}'\n"
				"keywords = ['ey']\n"
				"[[rules]]\n"
				"id = 'no-words'\n"
				"regex = '[a-z]{9}'\n"
				"[[rules]]\n"
				"id = 'file'\n"
				"path = 'x'\n"
				"[[rules]]\n"
				"id = 'in-files'\n"
				"path = 'x'\n"
				"regex = 'infiles'\n"
				"keywords = ['infiles']\n"
				"[[rules]]\n"
				"id = 'broken'\n"
				"regex = 'broken('\n"
				"keywords = ['broken']\n"
				"[[rules]]\n"
				"id = 'a name with blanks'\n"
				"regex = 'blanks[0-9]'\n"
				"keywords = ['blanks']\n"
				"[[rules]]\n"
				"id = 'vertical'\n"
				"regex = 'vertical\\v([0-9]+)'\n"
				"keywords = ['vertical']\n";

static void add_note(void *arg, const char *rule, const char *text, bool out)
{
	buf_printf(arg, "%s%s%s\n", rule, out ? "! " : ": ", text);
}

struct imported {
	struct buf yaml, notes;
	struct gitleaks_result res;
};

static void import(struct imported *i, const char *toml)
{
	struct err err = { 0 };

	*i = (struct imported){ 0 };
	if (gitleaks_import("f.toml", str_from(toml), &i->yaml, add_note, &i->notes, &i->res,
			    &err) < 0)
		fail_msg("%s", err_text(&err));
	buf_addc(&i->yaml, 0);
	buf_addc(&i->notes, 0);
}

static void done(struct imported *i)
{
	buf_done(&i->yaml);
	buf_done(&i->notes);
}

static void test_what_is_found(void **state)
{
	static const struct {
		const char *text, *shown;
	} rows[] = {
		{ "x acme_abcdef12 y", "x acme_abcdef12 y" }, /* nothing of what may follow */
		{ "x 'acme_abcdef12' y", "x '[gitleaks.acme]' y" },
		{ "x acme_abcdef12", "x [gitleaks.acme]" },
		{ "'acme_test1234'", "'acme_test1234'" }, /* exceptions of all */
		{ "'acme_xexample1'", "'acme_xexample1'" },
		{ "TWOWAYS=secretly9", "TWOWAYS=[gitleaks.two-ways]" },
		{ "twoways:ABCDEFAB", "twoways:[gitleaks.two-ways]" },
		{ "twoways=DUMMYsecret9", "twoways=DUMMYsecret9" },
		{ "twoways=axbsecret9", "twoways=[gitleaks.two-ways]" }, /* a.b is no pattern */
		{ "secondgroup-abcdefgh", "secondgroup-[gitleaks.second-group]" },
		{ "secondgroup-aaaaaaab", "secondgroup-aaaaaaab" },
		{ "vertical\v123", "vertical\v[gitleaks.vertical]" },
	};
	struct imported i;
	struct fixture f;

	(void)state;
	import(&i, FILE_TEXT);
	fixture_start(&f, NULL, NULL, i.yaml.p);
	for (size_t k = 0; k < ARRAY_SIZE(rows); k++)
		assert_string_equal(shown(&f, rows[k].text), rows[k].shown);
	fixture_end(&f);
	done(&i);
}

static void test_what_is_told(void **state)
{
	static const char want[] =
		": exceptions by file or commit: a record has none, not carried\n"
		": an exception that is no pattern of PCRE2: not carried\n"
		"two-ways: exceptions by the whole match or line (regexTarget): not carried\n"
		"two-ways: exceptions that hold for some files or commits only: not carried\n"
		"short! a keyword has 3 to 256 bytes\n"
		"no-words! it has no keywords: every text would have to be searched with it\n"
		"file! it is about names of files, not about what is in a text\n"
		"in-files! it holds for some files only (path), and a record has none\n"
		"broken! regex, byte 7: missing closing parenthesis\n"
		"! a rule without an id, or with one that is not 1 to 39 of A-Z a-z 0-9 . + - _\n"
		"vertical: \\v is any vertical space here, and a vertical tab alone there\n";
	struct imported i;

	(void)state;
	import(&i, FILE_TEXT);
	assert_string_equal(i.notes.p, want);
	assert_int_equal(i.res.rules, 10);
	assert_int_equal(i.res.left_out, 6);
	done(&i);
}

/* A rule of ours with the same name goes on finding what it found. */
static void test_they_stand_beside_ours(void **state)
{
	struct imported i;
	struct fixture f;

	(void)state;
	import(&i, "[[rules]]\nid='payment-card'\nregex='neverever'\nkeywords=['never']\n"
		   "[[rules]]\nid='url-password'\nregex='neverevermore'\nkeywords=['never']\n");
	assert_int_equal(i.res.left_out, 0);
	fixture_start(&f, NULL, NULL, i.yaml.p);
	assert_string_equal(shown(&f, "card 4111111111111111 neverever https://me:hunter2@h/x"),
			    "card [payment-card] [gitleaks.payment-card] "
			    "https://me:[url-password]@h/x");
	fixture_end(&f);
	done(&i);
}

/* A thousand words to be excepted are a few patterns. */
static void test_many_words(void **state)
{
	auto_buf struct buf toml = { 0 };
	struct imported i;
	struct fixture f;

	(void)state;
	buf_addz(&toml, "[[rules]]\nid='many'\nregex='many_[a-z0-9]+'\nkeywords=['many_']\n"
			"[rules.allowlist]\nstopwords = [\n");
	for (int k = 0; k < 2000; k++)
		buf_printf(&toml, "'word%dx',\n", k);
	buf_addz(&toml, "]\n");
	buf_addc(&toml, 0);
	import(&i, toml.p);
	assert_int_equal(i.res.left_out, 0);
	fixture_start(&f, NULL, NULL, i.yaml.p);
	assert_string_equal(shown(&f, "many_secretly"), "[gitleaks.many]");
	assert_string_equal(shown(&f, "many_word0x"), "many_word0x");
	assert_string_equal(shown(&f, "many_word1999x"), "many_word1999x");
	fixture_end(&f);
	done(&i);
}

static void test_no_rules(void **state)
{
	static const char *const files[] = { "", "a = 1", "- rule: x", "[[rules]" };
	struct gitleaks_result res;

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(files); k++) {
		auto_buf struct buf yaml = { 0 };
		struct err err = { 0 };

		assert_int_equal(
			gitleaks_import("f", str_from(files[k]), &yaml, NULL, NULL, &res, &err),
			-EINVAL);
		assert_non_null(strstr(err.text, "f:"));
	}
}

/* Files of which nothing would be left say why, and are no rules. */
static void test_no_rule_of_use(void **state)
{
	static const struct {
		const char *toml, *says;
	} rows[] = {
		{ "[[rules]]\nid='a'\nregex='foo[0-9]+'\n",
		  "f: of its 1 rule none can be used: a: it has no keywords" },
		{ "[[rules]]\n[[rules]]\n",
		  "f: of its 2 rules none can be used: a rule without an id" },
		{ "[[rules]]\nid='a'\npath='x'\n", "used: a: it is about names of files" },
		{ "[[rules]]\nid='a'\nregx='foo'\nkeywords=['foo']\n", "used: a: it has no regex" },
		{ "[[rules]]\nid='a'\nregex='foo'\nsecretGroup=9\nkeywords=['foo']\n",
		  "used: a: the regex has no such group" },
		{ "[[rules]]\nid='a'\nregex='foo|'\nkeywords=['foo']\n",
		  "used: a: the regex matches an empty text" },
		{ "[[rules]]\nid='a'\nregex='foo'\nkeywords=['fo']\n",
		  "used: a: a keyword has 3 to 256 bytes" },
	};
	struct gitleaks_result res;

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(rows); k++) {
		auto_buf struct buf yaml = { 0 };
		struct err err = { 0 };

		assert_int_equal(
			gitleaks_import("f", str_from(rows[k].toml), &yaml, NULL, NULL, &res, &err),
			-EINVAL);
		if (!strstr(err.text, rows[k].says))
			fail_msg("%s", err.text);
		assert_int_equal(yaml.n, 0);
	}
}

/* A value of another type, or a key twice: the rule is not what somebody meant. */
static void test_wrong_types(void **state)
{
#define OK "[[rules]]\nid='ok'\nregex='okay_[a-z]+'\nkeywords=['okay_']\n"
#define X  "[[rules]]\nid='x'\nkeywords=['xyz']\nregex='xyz[0-9]'\n"
	static const struct {
		const char *toml, *notes;
		size_t left_out, unknown;
	} rows[] = {
		{ OK "[[rules]]\nid='x'\nkeywords=['xyz']\nregex=5\n",
		  "x! its regex is no text, or is there twice\n", 1, 0 },
		{ OK X "entropy='x'\n",
		  "x! its entropy is no number from 0 to 8, or is there twice\n", 1, 0 },
		{ OK X "entropy=nan\n",
		  "x! its entropy is no number from 0 to 8, or is there twice\n", 1, 0 },
		{ OK X "entropy=99\n",
		  "x! its entropy is no number from 0 to 8, or is there twice\n", 1, 0 },
		{ OK X "secretGroup=-1\n",
		  "x! its secretGroup is no group's number, or is there twice\n", 1, 0 },
		{ OK X "secretGroup=0.5\n",
		  "x! its secretGroup is no group's number, or is there twice\n", 1, 0 },
		{ OK X "id='y'\n", "x! its id is no text, or is there twice\n", 1, 0 },
		{ OK X "regex='y'\n", "x! its regex is no text, or is there twice\n", 1, 0 },
		{ OK "[[rules]]\nid='x'\nkeywords=[5]\nregex='xyz[0-9]'\n",
		  "x! a keyword is no text\n", 1, 0 },
		{ X X, "x! another rule has this id\n", 1, 0 },
		{ X "secretgroup=1\ntags=['a']\nskipReport=true\n",
		  "x: the key 'secretgroup' is not known: not carried\n", 0, 1 },
		{ X
		  "[[rule]]\nid='y'\nregex='y'\n[rules.allowlist]\nregexs=['.']\nregexes=['xyz']\n",
		  ": the key 'rule' is not known: not carried\n"
		  "x: exceptions with a key or a condition that is not known: not carried\n",
		  0, 1 },
		{ X "[rules.allowlist]\ncondition='NOR'\nregexes=['.']\n",
		  "x: exceptions with a key or a condition that is not known: not carried\n", 0,
		  0 },
		{ X "[rules.allowlist]\ncondition='and'\nregexes=['.']\n",
		  "x: exceptions that hold only together (condition AND): not carried\n", 0, 0 },
		{ X "[rules.allowlist]\nregexes=[5]\n",
		  "x: an exception that is no pattern of PCRE2: not carried\n", 0, 0 },
		{ X "[extend]\nuseDefault=false\ndisabledRules=['a','b']\n",
		  ": extend.disabledRules: not carried, they are rules of files that are not read; "
		  "switch them off by name (off: true)\n",
		  0, 0 },
		{ "[extend]\nuseDefault=true\n" X,
		  ": extend: other files are not read, import them as well\n", 0, 0 },
	};

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(rows); k++) {
		struct imported i;

		import(&i, rows[k].toml);
		assert_string_equal(i.notes.p, rows[k].notes);
		assert_int_equal(i.res.left_out, rows[k].left_out);
		assert_int_equal(i.res.unknown, rows[k].unknown);
		if (strstr(rows[k].notes, "exception"))
			assert_null(strstr(i.yaml.p, "not:"));
		done(&i);
	}
}

/* Who misspells the name goes on with a rule that he wanted off, or thinks so. */
static void test_off_wants_its_rule(void **state)
{
	AUTO(redactor) struct redactor *r = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(redactor_new(&r, TEST_KEY, &err), 0);
	assert_int_equal(redactor_add_builtin(r, &err), 0);
	assert_int_equal(
		redactor_add_rules(r, "f", STR("- rule: payment-card\n  off: true\n"), &err), 0);
	assert_int_equal(
		redactor_add_rules(r, "f", STR("- rule: payment-crad\n  off: true\n"), &err),
		-EINVAL);
	assert_string_equal(err.text,
			    "f:1:3: there is no rule of this name before it to switch off");
}

/* What one rule is too long for takes no other with it. */
static void test_sizes(void **state)
{
	static const char next[] = "[[rules]]\nid='ok'\nregex='okay_[a-z]+'\nkeywords=['okay_']\n";
	auto_buf struct buf toml = { 0 };
	struct imported i;

	(void)state;
	buf_addz(&toml, "[[rules]]\nid='long'\nkeywords=['long']\nregex='long");
	for (int k = 0; k < 900000; k++)
		buf_addc(&toml, '\\');
	buf_printf(&toml, "'\n%s%c", next, 0);
	import(&i, toml.p);
	assert_string_equal(i.notes.p, "long! regex longer than 8192 bytes\n");
	assert_int_equal(i.res.left_out, 1);
	done(&i);

	buf_reset(&toml);
	buf_addz(&toml, "[[rules]]\nid='words'\nregex='words'\nkeywords=[");
	for (int k = 0; k < 100000; k++)
		buf_addz(&toml, "'ab',");
	buf_printf(&toml, "]\n%s%c", next, 0);
	import(&i, toml.p);
	assert_string_equal(i.notes.p, "words! more than 256 keywords\n");
	assert_int_equal(i.res.left_out, 1);
	done(&i);
}

static void test_a_text_of_no_bytes_may_be_null(void **state)
{
	AUTO(redactor) struct redactor *r = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(redactor_new(&r, TEST_KEY, &err), 0);
	assert_int_equal(redactor_add_rules(r, "f", (struct str){ 0 }, &err), 0);
	assert_int_equal(redactor_rules(r), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_found),
		cmocka_unit_test(test_what_is_told),
		cmocka_unit_test(test_they_stand_beside_ours),
		cmocka_unit_test(test_many_words),
		cmocka_unit_test(test_no_rules),
		cmocka_unit_test(test_no_rule_of_use),
		cmocka_unit_test(test_wrong_types),
		cmocka_unit_test(test_off_wants_its_rule),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_a_text_of_no_bytes_may_be_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
