// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/option.h"

struct target {
	bool quiet;
	const char *name;
	struct option_list rules;
	uint64_t pids, memory, timeout, cpus;
};

#define AT(m) offsetof(struct target, m)

static const struct option_def defs[] = {
	{ "quiet", 'q', OPT_FLAG, AT(quiet), NULL, "say less" },
	{ "name", 'n', OPT_STR, AT(name), "NAME", "name of it" },
	{ "rules", 0, OPT_STRLIST, AT(rules), "FILE", "rule file" },
	{ "pids", 0, OPT_U64, AT(pids), "N", "most tasks" },
	{ "memory", 'm', OPT_SIZE, AT(memory), "SIZE", "most memory" },
	{ "timeout", 0, OPT_DURATION, AT(timeout), "TIME", "longest run" },
	{ "cpus", 0, OPT_FRACTION, AT(cpus), "X", "processors" },
	{ 0 },
};

#define PARSE(t, rest, err, ...)                                          \
	({                                                                \
		const char *argv_[] = { "cmd", __VA_ARGS__, NULL };       \
		int argc_ = (int)(sizeof(argv_) / sizeof(argv_[0])) - 1;  \
		options_parse(defs, t, argc_, (char **)argv_, rest, err); \
	})

static void all_types_in_all_spellings(void **state)
{
	struct target t = { 0 };
	int rest = 0;

	(void)state;
	assert_int_equal(PARSE(&t, &rest, NULL, "--quiet", "--name=y", "-n", "y", "-m64M",
			       "--rules", "a", "--rules=b", "--pids", "7", "--timeout", "1.5s",
			       "--cpus", "0.25", "--", "--quiet"),
			 0);
	assert_int_equal(rest, 16);
	assert_true(t.quiet);
	assert_string_equal(t.name, "y");
	assert_int_equal(t.rules.n, 2);
	assert_string_equal(t.rules.v[1], "b");
	assert_int_equal(t.pids, 7);
	assert_int_equal(t.memory, 64 << 20);
	assert_int_equal(t.timeout, 1500000000);
	assert_int_equal(t.cpus, 250);
	/* the first plain word ends the options: what follows belongs to the command */
	assert_int_equal(PARSE(&t, &rest, NULL, "-q", "sh", "-c", "x"), 0);
	assert_int_equal(rest, 2);
	assert_int_equal(PARSE(&t, &rest, NULL, "-"), 0);
	assert_int_equal(rest, 1);
	assert_int_equal(PARSE(&t, &rest, NULL, "--name", "--quiet"), 0);
	assert_string_equal(t.name, "--quiet");
	assert_int_equal(PARSE(&t, &rest, NULL, "--name="), 0);
	assert_string_equal(t.name, "");
}

static void errors_name_option_and_value(void **state)
{
	static const char *const cases[][3] = {
		{ "--memry=1", NULL, "did you mean '--memory'" },
		{ "--zzzzzz", NULL, "unknown option '--zzzzzz'" },
		{ "-x", NULL, "unknown option '-x'" },
		{ "--quiet=yes", NULL, "'--quiet' takes no value, got 'yes'" },
		{ "-qx", NULL, "'--quiet' takes no value, got 'x'" },
		{ "--name", NULL, "'--name' needs a value (NAME)" },
		{ "--name", "--", "'--name' needs a value (NAME)" },
		{ "--pids", "1x", "'--pids': '1x' is not a number" },
		{ "--pids=", NULL, "'--pids': '' is not a number" },
		{ "--pids", "99999999999999999999", "'99999999999999999999' is too large" },
		{ "--memory", "64Q", "'64Q' is not a size" },
		{ "--timeout", "-1", "'-1' is not a duration" },
		{ "--cpus", "1e3", "'1e3' is not a number" },
	};
	struct target t = { 0 };
	struct err err;
	int rest;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *argv[] = { "cmd", cases[i][0], cases[i][1], NULL };

		err = (struct err){ 0 };
		assert_int_equal(
			options_parse(defs, &t, cases[i][1] ? 3 : 2, (char **)argv, &rest, &err),
			-EINVAL);
		if (!strstr(err.text, cases[i][2]))
			fail_msg("%s: %s", cases[i][0], err.text);
	}
}

static void a_word_is_given_once(void **state)
{
	struct target t = { 0 };
	struct err err = { 0 };
	int rest;

	(void)state;
	assert_int_equal(PARSE(&t, &rest, &err, "--name=x", "-n", "y"), -EINVAL);
	assert_string_equal(err.text, "option '--name' is given twice: 'x' and 'y'");
	assert_int_equal(PARSE(&t, &rest, NULL, "--pids=1", "--pids=2"), 0);
	assert_int_equal(t.pids, 2);
	assert_int_equal(option_is_list(defs, "rules"), 1);
	assert_int_equal(option_is_list(defs, "name"), 0);
	assert_int_equal(option_is_list(defs, "nmae"), -ENOENT);
}

static void lists_have_an_end(void **state)
{
	const char *argv[2 + OPTION_LIST_MAX];
	struct target t = { 0 };
	int rest;

	(void)state;
	for (int i = 0; i < 2 + OPTION_LIST_MAX; i++)
		argv[i] = "--rules=x";
	assert_int_equal(options_parse(defs, &t, 1 + OPTION_LIST_MAX, (char **)argv, &rest, NULL),
			 0);
	t.rules.n = 0;
	assert_int_equal(options_parse(defs, &t, 2 + OPTION_LIST_MAX, (char **)argv, &rest, NULL),
			 -E2BIG);
}

static void plain_words_may_stand_anywhere(void **state)
{
	const char *argv[] = { "cmd", "a", "-q", "b", "--name", "x", "--", "-q", NULL };
	struct target t = { 0 };
	int n = 0;

	(void)state;
	assert_int_equal(options_parse_mixed(defs, &t, 8, (char **)argv, &n, NULL), 0);
	assert_int_equal(n, 3);
	assert_string_equal(argv[1], "a");
	assert_string_equal(argv[2], "b");
	assert_string_equal(argv[3], "-q");
	assert_true(t.quiet);
	assert_string_equal(t.name, "x");
}

static void set_by_name(void **state)
{
	struct target t = { 0 };

	(void)state;
	assert_int_equal(options_set(defs, &t, "quiet", "true", NULL), 0);
	assert_true(t.quiet);
	assert_int_equal(options_set(defs, &t, "quiet", "no", NULL), -EINVAL);
	assert_int_equal(options_set(defs, &t, "memory", "1K", NULL), 0);
	assert_int_equal(t.memory, 1024);
	assert_int_equal(options_set(defs, &t, "none", "1", NULL), -ENOENT);
}

#define ULL(x) x##ull

static void numbers(void **state)
{
	static const struct {
		int (*parse)(const char *text, uint64_t *ret);
		const char *text;
		int r;
		uint64_t v;
	} cases[] = {
		{ parse_u64, "0", 0, 0 },
		{ parse_u64, "18446744073709551615", 0, UINT64_MAX },
		{ parse_u64, "18446744073709551616", -ERANGE, 0 },
		{ parse_u64, "", -EINVAL, 0 },
		{ parse_u64, " 1", -EINVAL, 0 },
		{ parse_u64, "+1", -EINVAL, 0 },
		{ parse_u64, "-1", -EINVAL, 0 },
		{ parse_u64, "0x10", -EINVAL, 0 },
		{ parse_size, "512", 0, 512 },
		{ parse_size, "512b", 0, 512 },
		{ parse_size, "64K", 0, 65536 },
		{ parse_size, "1.5k", 0, 1536 },
		{ parse_size, "0.4", 0, 1 },
		{ parse_size, "256MiB", 0, 256 << 20 },
		{ parse_size, "2g", 0, ULL(2) << 30 },
		{ parse_size, "16T", 0, ULL(16) << 40 },
		{ parse_size, "99999999999T", -ERANGE, 0 },
		{ parse_size, "M", -EINVAL, 0 },
		{ parse_size, "1 M", -EINVAL, 0 },
		{ parse_duration_ns, "250ms", 0, 250000000 },
		{ parse_duration_ns, "30", 0, ULL(30000000000) },
		{ parse_duration_ns, "0.5s", 0, 500000000 },
		{ parse_duration_ns, "5m", 0, ULL(300000000000) },
		{ parse_duration_ns, "2h", 0, ULL(7200000000000) },
		{ parse_duration_ns, "1d", 0, ULL(86400000000000) },
		{ parse_duration_ns, "10ns", 0, 10 },
		{ parse_duration_ns, "3us", 0, 3000 },
		{ parse_duration_ns, "999999999d", -ERANGE, 0 },
		{ parse_duration_ns, "s", -EINVAL, 0 },
		{ parse_duration_ns, "1w", -EINVAL, 0 },
		{ parse_fraction, "1", 0, 1000 },
		{ parse_fraction, "0.5", 0, 500 },
		{ parse_fraction, ".25", 0, 250 },
		{ parse_fraction, "2.", 0, 2000 },
		{ parse_fraction, "0.12345", 0, 124 },
		{ parse_fraction, "0.00001", 0, 1 },
		{ parse_fraction, "0.00000", 0, 0 },
		{ parse_fraction, ".", -EINVAL, 0 },
		{ parse_fraction, "1x", -EINVAL, 0 },
		{ parse_fraction, "18446744073709551.615", 0, UINT64_MAX },
		{ parse_fraction, "18446744073709551.999", -ERANGE, 0 },
		{ parse_fraction, "18446744073709551.6151", -ERANGE, 0 },
		{ parse_fraction, "18446744073709552", -ERANGE, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t v = 0;
		int r = cases[i].parse(cases[i].text, &v);

		if (r != cases[i].r || v != cases[i].v)
			fail_msg("'%s': %d, %llu", cases[i].text, r, (unsigned long long)v);
	}
}

static void the_closest_name(void **state)
{
	static const char *const names[] = { "run", "replay", "report", "verify" };
	char longest[200];

	(void)state;
	assert_string_equal(closest_name("replya", names, 4), "replay");
	assert_string_equal(closest_name("rn", names, 4), "run");
	assert_null(closest_name("frobnicate", names, 4));
	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = 0;
	assert_null(closest_name(longest, names, 4));
	assert_null(closest_name("run", names, 0));
}

static void help_has_a_line_for_each_row(void **state)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	(void)state;
	options_help(defs, f);
	fclose(f);
	assert_non_null(strstr(text, "  -m, --memory SIZE          most memory\n"));
	assert_non_null(strstr(text, "      --pids N               most tasks\n"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_types_in_all_spellings),
		cmocka_unit_test(errors_name_option_and_value),
		cmocka_unit_test(a_word_is_given_once),
		cmocka_unit_test(lists_have_an_end),
		cmocka_unit_test(plain_words_may_stand_anywhere),
		cmocka_unit_test(set_by_name),
		cmocka_unit_test(numbers),
		cmocka_unit_test(the_closest_name),
		cmocka_unit_test(help_has_a_line_for_each_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
