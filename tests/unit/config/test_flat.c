// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "userspace/base/fd.h"
#include "userspace/config/flat.h"

static int load(struct flat_file *f, const char *text, size_t n, struct err *err)
{
	char path[] = "/tmp/test_flat.XXXXXX";
	int fd = mkstemp(path), r;

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, n), 0);
	close(fd);
	memset(err, 0, sizeof(*err));
	r = flat_load(f, path, err);
	unlink(path);
	return r;
}

static void nested_maps_and_lists_become_dotted_keys(void **state)
{
	static const char text[] = "name: x\nlimits:\n  memory: 256M\n  pids: 7\nmounts:\n  ro:\n"
				   "    - /a\n    - /b:/c\nlast: \"q: r\"\n";
	static const struct {
		const char *key, *value;
		int line, col;
	} want[] = {
		{ "name", "x", 1, 7 },		{ "limits.memory", "256M", 3, 11 },
		{ "limits.pids", "7", 4, 9 },	{ "mounts.ro", "/a", 7, 7 },
		{ "mounts.ro", "/b:/c", 8, 7 }, { "last", "q: r", 9, 7 },
	};
	struct flat_file f;
	struct err err;

	(void)state;
	assert_int_equal(load(&f, text, strlen(text), &err), 0);
	assert_int_equal(f.n, sizeof(want) / sizeof(want[0]));
	for (size_t i = 0; i < f.n; i++) {
		assert_string_equal(f.v[i].key, want[i].key);
		assert_string_equal(f.v[i].value, want[i].value);
		assert_int_equal(f.v[i].line, want[i].line);
		assert_int_equal(f.v[i].col, want[i].col);
		assert_int_equal(f.v[i].in_list, !strcmp(want[i].key, "mounts.ro"));
		assert_int_equal(flat_single(&f, &f.v[i], &err), f.v[i].in_list ? -EINVAL : 0);
	}
	assert_non_null(strstr(err.text, ":8:7: 'mounts.ro' has one value, not a list"));
	flat_done(&f);
}

static void bad_files_say_where(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "a: 1\na: 2\n", ":2:1: duplicate key" },
		{ "a:\n  b: 1\na.b: 2\n", ":3:1: duplicate key" },
		{ "- 1\n", ":1:1: expected 'key: value' lines" },
		{ "just text\n", ":1:1: expected 'key: value' lines" },
		{ "a: &x 1\nb: *x\n", ":2:4: aliases are not accepted here" },
		{ "a: [b: 1]\n", ":1:5: a list may hold plain values only" },
		{ "a: {b: {c: {d: {e: {f: {g: {h: {i: 1}}}}}}}}\n", "nested too deep" },
		{ "? [a]\n: 1\n", "a map or list cannot be a key" },
		{ "a: \"x\\0y\"\n", "NUL in a value" },
		{ "\"\": 1\n", "key is empty or too long" },
		{ "a: [1\n", ":2:1: " },
		{ "a: \x01\n", "control characters are not allowed" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct flat_file f;
		struct err err;

		assert_int_equal(load(&f, cases[i].text, strlen(cases[i].text), &err), -EINVAL);
		if (!strstr(err.text, cases[i].want))
			fail_msg("case %zu: got \"%s\", want \"%s\"", i, err.text, cases[i].want);
	}
}

static void too_many_entries_and_too_large_files_are_refused(void **state)
{
	size_t n = FLAT_FILE_MAX + 10;
	char *text = malloc(n);
	struct flat_file f;
	struct err err;
	size_t used = 0;

	(void)state;
	for (int i = 0; i < FLAT_ENTRIES_MAX + 1; i++)
		used += (size_t)sprintf(text + used, "k%d: 1\n", i);
	assert_int_equal(load(&f, text, used, &err), -EINVAL);
	assert_non_null(strstr(err.text, "too many entries"));
	memset(text, '#', n);
	assert_int_equal(load(&f, text, n, &err), -EFBIG);
	free(text);
}

static void a_missing_file_is_named(void **state)
{
	struct flat_file f;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(flat_load(&f, "/nonexistent/policy.yaml", &err), -ENOENT);
	assert_string_equal(err.text,
			    "configuration '/nonexistent/policy.yaml': No such file or directory");
}

static void a_text_of_no_bytes_may_be_null(void **state)
{
	struct flat_file f;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(flat_parse(&f, "f", NULL, 0, &err), 0);
	assert_int_equal(f.n, 0);
	flat_done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nested_maps_and_lists_become_dotted_keys),
		cmocka_unit_test(bad_files_say_where),
		cmocka_unit_test(too_many_entries_and_too_large_files_are_refused),
		cmocka_unit_test(a_missing_file_is_named),
		cmocka_unit_test(a_text_of_no_bytes_may_be_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
