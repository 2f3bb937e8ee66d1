// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/cli/run_secret.h"

static void test_words(void **state)
{
	static const char *const good[] = { "a=b", "a=/x/y,ttl=5s", "a=b=c,ttl=1h",
					    "a=b,ttl=x,ttl=2s" };
	static const char *const bad[] = { "",		"a",	    "=b",	 "a=",
					   "a=,ttl=5s", "a=b,ttl=", "a=b,ttl=0", "a=b,ttl=-1s" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_int_equal(secret_check(good[i], NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_true(secret_check(bad[i], NULL) < 0);
}

/* A file of the caller's with this content and mode, as the one secret. */
static int read_one(struct run_secrets *s, struct sandbox_spec *spec, const char *text, size_t n,
		    mode_t mode, struct err *err)
{
	char path[] = "/tmp/warder-secret-XXXXXX", word[128];
	struct option_list list = { { word }, 1 };
	int fd = mkstemp(path), r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, n), (ssize_t)n);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	snprintf(word, sizeof(word), "x=%s,ttl=3s", path);
	memset(spec, 0, sizeof(*spec));
	r = secrets_read(s, spec, &list, err);
	unlink(path);
	return r;
}

static void test_read(void **state)
{
	static const char text[] = "two\nlines\0and a NUL\r\n\n";
	struct run_secrets s = { 0 };
	struct sandbox_spec spec;

	(void)state;
	assert_int_equal(read_one(&s, &spec, text, sizeof(text) - 1, 0400, NULL), 0);
	assert_int_equal(spec.secrets_n, 1);
	assert_string_equal(spec.secrets[0].name, "x");
	assert_int_equal(spec.secrets[0].ttl_ns, 3000000000ull);
	assert_int_equal(spec.secrets[0].n, sizeof(text) - 1);
	assert_memory_equal(spec.secrets[0].value, text, sizeof(text) - 1);
	assert_int_equal(secret_text(&spec.secrets[0]).n, sizeof(text) - 4);
	secrets_forget(&s);
	assert_null(s.value[0]);
}

static void test_refused(void **state)
{
	static char big[SANDBOX_SECRET_MAX + 1];
	const struct {
		const char *text;
		size_t n;
		mode_t mode;
		const char *why;
	} rows[] = {
		{ big, sizeof(big), 0600, "longer" }, { "12345\n\n\n", 8, 0600, "less than" },
		{ "", 0, 0600, "less than" },	      { "123456", 6, 0604, "alone" },
		{ "123456", 6, 0620, "alone" },
	};

	(void)state;
	memset(big, 'x', sizeof(big));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct run_secrets s = { 0 };
		struct sandbox_spec spec;
		struct err err = { 0 };

		assert_true(read_one(&s, &spec, rows[i].text, rows[i].n, rows[i].mode, &err) < 0);
		assert_non_null(strstr(err_text(&err), rows[i].why));
		secrets_forget(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
