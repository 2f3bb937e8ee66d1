/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the redactor share. Secrets are put together at run time: none stands in the sources. */
#ifndef WARDER_TESTS_REDACT_TEST_H
#define WARDER_TESTS_REDACT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/base/auto.h"
#include "userspace/redact/redact.h"

static const uint8_t TEST_KEY[REDACT_KEY_LEN] = "a key of the tests, 32 bytes";

struct fixture {
	struct redactor *r;
	struct redact *x;
};

static inline void fixture_start(struct fixture *f, const char *name, const char *value,
				 const char *rules)
{
	struct err err = { 0 };

	assert_int_equal(redactor_new(&f->r, TEST_KEY, &err), 0);
	if (redactor_add_builtin(f->r, &err) < 0)
		fail_msg("%s", err_text(&err));
	if (rules && redactor_add_rules(f->r, "own.yaml", str_from(rules), &err) < 0)
		fail_msg("%s", err_text(&err));
	if (value)
		assert_int_equal(redactor_add_value(f->r, name, str_from(value)), 0);
	assert_int_equal(redactor_finish(f->r, &err), 0);
	assert_int_equal(redact_new(&f->x, f->r), 0);
}

static inline void fixture_end(struct fixture *f)
{
	redact_free(f->x);
	redactor_free(f->r);
}

/* The text with its marks, cut to their rules: "a [aws-access-key] b". */
static inline const char *shown_n(struct fixture *f, struct str in)
{
	static char plain[8192];
	auto_buf struct buf out = { 0 };
	size_t n = 0;

	if (redact_text(f->x, in, &out) == 0) {
		snprintf(plain, sizeof(plain), "%.*s", (int)in.n, in.p);
		return plain;
	}
	for (size_t i = 0; i < out.n && n + 1 < sizeof(plain); i++) {
		if (out.n - i > 10 && !memcmp(out.p + i, REDACT_MARK, 10)) {
			plain[n++] = '[';
			for (i += 10; i < out.n && out.p[i] != ':'; i++)
				plain[n++] = out.p[i];
			while (i < out.n && out.p[i] != ']')
				i++;
			plain[n++] = ']';
			continue;
		}
		plain[n++] = out.p[i];
	}
	plain[n] = 0;
	return plain;
}

static inline const char *shown(struct fixture *f, const char *in)
{
	return shown_n(f, str_from(in));
}

#endif
