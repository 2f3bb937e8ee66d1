// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "userspace/base/err.h"

static void set_and_wrap(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_int_equal(err_set(&err, ENOENT, "file '%s': %m", "x"), -ENOENT);
	assert_string_equal(err.text, "file 'x': No such file or directory");
	assert_int_equal(err_set(&err, -EPERM, "no"), -EPERM);
	assert_int_equal(err.code, EPERM);
	assert_int_equal(err_wrap(&err, -EPERM, "rules '%s'", "r.yaml"), -EPERM);
	assert_string_equal(err.text, "rules 'r.yaml': no");
	assert_int_equal(err_set(NULL, EIO, "nobody listens"), -EIO);
	assert_int_equal(err_wrap(NULL, -EIO, "nobody"), -EIO);
}

static void a_code_without_text_is_said(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_int_equal(err_wrap(&err, -EACCES, "open"), -EACCES);
	assert_int_equal(err.code, EACCES);
	err = (struct err){ .code = ENOENT };
	assert_string_equal(err_text(&err), "No such file or directory");
	assert_string_equal(err_text(NULL), "");
}

/* Text that is too long is cut at its end; what was put in front stays readable. */
static void long_texts_are_cut(void **state)
{
	char x[2 * ERR_TEXT_MAX];
	struct err err = { 0 };

	(void)state;
	memset(x, 'x', sizeof(x));
	x[sizeof(x) - 1] = 0;
	err_set(&err, EINVAL, "%s", x);
	assert_int_equal(strlen(err.text), ERR_TEXT_MAX - 1);
	assert_string_equal(err.text + ERR_TEXT_MAX - 5, "x" ERR_CUT);
	err_wrap(&err, -EINVAL, "front");
	assert_int_equal(strlen(err.text), ERR_TEXT_MAX - 1);
	assert_memory_equal(err.text, "front: xxx", 10);
	assert_string_equal(err.text + ERR_TEXT_MAX - 5, "x" ERR_CUT);
	err_wrap(&err, -EINVAL, "%s", x);
	assert_int_equal(strlen(err.text), ERR_TEXT_MAX - 1);
	assert_string_equal(err.text + ERR_TEXT_MAX - 5, "x" ERR_CUT);
	/* What just fits is not cut. */
	err_set(&err, EINVAL, "%.*s", ERR_TEXT_MAX - 1, x);
	assert_null(strstr(err.text, ERR_CUT));
	for (size_t n = ERR_TEXT_MAX - 6; n < ERR_TEXT_MAX + 3; n++) {
		err_set(&err, EINVAL, "abc");
		err_wrap(&err, -EINVAL, "%.*s", (int)n, x);
		assert_in_range(strlen(err.text), 1, ERR_TEXT_MAX - 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_and_wrap),
		cmocka_unit_test(a_code_without_text_is_said),
		cmocka_unit_test(long_texts_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
