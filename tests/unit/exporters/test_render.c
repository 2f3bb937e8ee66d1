// SPDX-License-Identifier: Apache-2.0
/* What the renderers say is checked against schemas and parsers by tests/export/test_formats.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "exporters/render/render.h"

static void test_no_room(void **state)
{
	static struct event ev;
	static char longer[5000];
	struct arena arena;

	(void)state;
	memset(longer, 'x', sizeof(longer));
	arena_init(&arena, 1 << 16);
	for (const struct format *f = render_formats + 1; f->name; f++) {
		struct buf out;

		buf_init(&out, 4096);
		buf_addz(&out, "before");
		event_init(&ev, WIRE_EXEC, &arena);
		event_set_str(&ev, F_PROC_CWD, (struct str){ longer, sizeof(longer) });
		assert_int_equal(f->render(f, &ev, &out), -EMSGSIZE);
		assert_int_equal(out.n, 6);
		buf_done(&out);
	}
	arena_done(&arena);
}

static void test_a_record(void **state)
{
	static const char line[] = "{\"v\":1,\"kind\":\"exec\",\"session\":\"s\",\"seq\":7}";
	struct err err = { 0 };
	struct renderer *r = NULL;
	struct str text;

	(void)state;
	assert_int_equal(renderer_new(&r, format_find("ecs", &err), &err), 0);
	assert_int_equal(renderer_record(r, str_from(line), &text, &err), 0);
	assert_non_null(memmem(text.p, text.n, "\"sequence\":7", 12));
	assert_int_equal(renderer_record(r, STR("{\"v\":1,\"kind\":\"later\"}"), &text, &err),
			 -EBADMSG);
	assert_non_null(strstr(err.text, "unknown kind"));
	assert_int_equal(renderer_record(r, str_from(line), &text, &err), 0); /* it goes on */
	renderer_free(r);
	renderer_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_a_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
