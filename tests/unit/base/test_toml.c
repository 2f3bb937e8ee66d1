// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "userspace/base/buf.h"
#include "userspace/base/toml.h"

/* All items, one a line: path, sign of the type, text. */
static int add_item(void *arg, const struct toml_item *it, struct err *err)
{
	static const char signs[] = "[=?#~";
	struct buf *out = arg;

	buf_printf(out, "%.*s%s%c", (int)it->path.n, it->path.p, it->in_list ? "+" : "",
		   signs[it->type]);
	buf_add(out, it->text.p, it->text.n);
	buf_addc(out, '\n');
	if (str_eqz(it->text, "stop"))
		return err_set(err, ECANCELED, "stopped");
	return 0;
}

static void check(const char *toml, const char *want)
{
	auto_buf struct buf out = { 0 };
	struct err err = { 0 };
	int r = toml_read("t", str_from(toml), add_item, &out, &err);

	buf_addc(&out, 0);
	if (r != 0 || strcmp(out.p, want) != 0)
		fail_msg("%s: %d %s: '%s'", toml, r, err.text, out.p);
}

static void test_values(void **state)
{
	(void)state;
	check("", "");
	check("# nothing\n\r\n  # more", "");
	check("a = 1\nb.c = -2.5e3\nd=true", "a#1\nb.c#-2.5e3\nd?true\n");
	check("\xef\xbb\xbf"
	      "a = 0x1F # x\r\nd = 2026-11-30T11:00:00Z\n",
	      "a#0x1F\nd~2026-11-30T11:00:00Z\n");
	check("[a]\nx = 1\n[b.\"c d\"]\ny = inf\n[[c]]\n[[c]]\nz=1_000\n",
	      "a[\na.x#1\nb.c d[\nb.c d.y#inf\nc+[\nc+[\nc.z#1_000\n");
	check("a = [1, [\"x\", 'y'], # z\n 2,\n]\n", "a+#1\na+=x\na+=y\na+#2\n");
	check("a = { b = 'c', d.e = [ {f = 1}, ] }\n", "a[\na.b=c\na.d.e+[\na.d.e.f#1\n");
	check("a = [] \nb = {}\n", "b[\n");
}

static void test_strings(void **state)
{
	(void)state;
	check("a = \"b\\t\\\"\\\\ \\u00e4 \\U0001F600\"", "a=b\t\"\\ \xc3\xa4 \xf0\x9f\x98\x80\n");
	check("a = 'C:\\no \"escape\"'", "a=C:\\no \"escape\"\n");
	check("a = '''\nb'c''d\n'''", "a=b'c''d\n\n");
	check("a = '''b'''''", "a=b''\n");
	check("a = \"\"\"x\\\n   y\\\"\\n\"\"\"\nb = ''", "a=xy\"\n\nb=\n");
	check("\"a.b\" = ''\n'' = 1\n", "a.b=\n#1\n");
}

static void test_errors(void **state)
{
	static const struct {
		const char *toml, *says;
	} rows[] = {
		{ "a", "t:1: '=' is wanted" },
		{ "\n\na = ", "t:3: a value is wanted" },
		{ "a = 'b", "without an end" },
		{ "a = 'b\n'", "without an end" },
		{ "a = \"\\q\"", "an escape" },
		{ "a = \"\\ud800\"", "no Unicode" },
		{ "a = \"\\u12\"", "hex" },
		{ "a = [1", "',' or ']'" },
		{ "a = {b = 1", "',' or '}'" },
		{ "[a", "']' is wanted" },
		{ "[[a]\n", "']' is wanted" },
		{ "a = 1 b = 2", "more than one" },
		{ "a = what", "a value is wanted" },
		{ "= 1", "a name is wanted" },
		{ "a = [[[[[[[[[1]]]]]]]]]", "nested deeper" },
		{ "a = 'stop'\nb", "stopped" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		auto_buf struct buf out = { 0 };
		struct err err = { 0 };

		assert_true(toml_read("t", str_from(rows[i].toml), add_item, &out, &err) < 0);
		if (!strstr(err.text, rows[i].says))
			fail_msg("%s: '%s'", rows[i].toml, err.text);
	}
}

static void test_long_names(void **state)
{
	char text[2 * TOML_PATH_MAX];
	auto_buf struct buf out = { 0 };
	struct err err = { 0 };
	int n;

	(void)state;
	for (int i = TOML_PATH_MAX - 4; i < TOML_PATH_MAX + 4; i++) {
		n = snprintf(text, sizeof(text), "[a]\n%0*d = 1", i, 0);
		assert_int_equal(
			toml_read("t", (struct str){ text, (size_t)n }, add_item, &out, &err),
			i + 2 <= TOML_PATH_MAX ? 0 : -E2BIG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_long_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
