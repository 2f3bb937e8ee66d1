// SPDX-License-Identifier: Apache-2.0
/* What a sentry lists of processes that were kept, as events, and lists that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/event/decode.h"
#include "userspace/pipeline/guest.h"

#define BOOT 5000000000000ull

static struct {
	struct guest *g;
	struct decoder *d;
	struct arena arena;
	struct event ev;
	size_t n;
} bed;

static int feed(void *arg, const void *rec, size_t len)
{
	(void)arg;
	arena_reset(&bed.arena);
	assert_true(decoder_feed(bed.d, rec, len, &bed.arena, &bed.ev) > 0);
	bed.n++;
	return 0;
}

static int set_up(void **state)
{
	const struct guest_options opt = { .sandbox_id = 9, .since_ns = BOOT / 2, .feed = feed };

	(void)state;
	memset(&bed, 0, sizeof(bed));
	arena_init(&bed.arena, 4 << 20);
	assert_int_equal(decoder_new(&bed.d), 0);
	return guest_new(&bed.g, &opt);
}

static int tear_down(void **state)
{
	(void)state;
	guest_free(bed.g);
	decoder_free(bed.d);
	arena_done(&bed.arena);
	return 0;
}

static int known(const char *text)
{
	return guest_known(bed.g, str_from(text), BOOT);
}

static bool has_started(void)
{
	struct guest_stats st;

	guest_stats(bed.g, &st);
	return st.started;
}

#define STATUS \
	"\"status\":{\"comm\":\"sh\",\"pid\":7,\"ppid\":1,\"uid\":{\"real\":1,\"effective\":1000},\"vm\":18446744073709551615}"
#define SHELL                                                                                                \
	"{\"exe\":\"/bin/sh\",\"args\":[\"sh\",\"-c\",\"x y\"],\"env\":[\"A=B\"],\"cwd\":\"/w\",\"fdlist\":" \
	"[{\"number\":0,\"path\":\"host:[1]\"},{\"a\":[[]]}]," STATUS "}"

static void test_who_goes_on(void **state)
{
	struct event *ev = &bed.ev;

	(void)state;
	assert_int_equal(known("{\"success\":true,\"err\":\"\",\"result\":[" SHELL "]}"), 0);
	assert_true(has_started());
	assert_int_equal(bed.n, 1);
	assert_int_equal(ev->kind, WIRE_EXEC);
	assert_true(str_eqz(event_str(ev, F_VANTAGE), "runtime"));
	assert_true(str_eqz(event_str(ev, F_PROC_COMM), "sh"));
	assert_true(str_eqz(event_str(ev, F_PROC_EXE), "/bin/sh"));
	assert_true(str_eqz(event_str(ev, F_PROC_CWD), "/w"));
	assert_int_equal(ev->hdr.tgid, 7);
	assert_int_equal(ev->hdr.ppid, 1);
	assert_int_equal(ev->hdr.uid, 1000);
}

static void test_several(void **state)
{
	(void)state;
	assert_int_equal(known("{\"success\":true,\"result\":[" SHELL "," SHELL "]}"), 0);
	assert_int_equal(bed.n, 2);
}

/* Then nobody goes on. */
static void test_lists_that_are_none(void **state)
{
	static const char *const texts[] = {
		"",
		"{}",
		"[]",
		"{\"result\":[]}",
		"{\"result\":null}",
		"{\"success\":true,\"result\":{}}",
		"{\"result\":[{}]}",
		"{\"result\":[{\"status\":{\"pid\":0}}]}",
		"{\"result\":[{\"status\":{\"pid\":4294967296}}]}",
		"{\"result\":[{\"status\":{\"pid\":-1}}]}",
		"{\"result\":[{\"maps\":[}]}",
		"{\"result\":[{\"exe\":7}]}",
		"{\"result\":[{\"args\":[\"a\"",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		assert_int_equal(known(texts[i]), -EBADMSG);
		assert_false(has_started());
	}
	assert_int_equal(bed.n, 0);
}

/* Depth costs nothing, however much there is of it. */
static void test_a_deep_one(void **state)
{
	auto_buf struct buf text = { 0 };

	(void)state;
	buf_printf(&text, "{\"x\":");
	for (int i = 0; i < 1 << 20; i++)
		buf_addc(&text, '[');
	assert_int_equal(guest_known(bed.g, (struct str){ text.p, text.n }, BOOT), -EBADMSG);
}

/* More words than are kept are counted, and said to be cut. */
static void test_many_words(void **state)
{
	auto_buf struct buf text = { 0 };

	(void)state;
	buf_printf(&text, "{\"result\":[{\"args\":[\"first\"");
	for (int i = 0; i < 10000; i++)
		buf_printf(&text, ",\"word\"");
	buf_printf(&text, "]," STATUS "}]}");
	assert_int_equal(guest_known(bed.g, (struct str){ text.p, text.n }, BOOT), 0);
	assert_true(bed.ev.hdr.flags & WIRE_F_TRUNC);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_who_goes_on), TEST(test_several),    TEST(test_lists_that_are_none),
		TEST(test_a_deep_one),	TEST(test_many_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
