// SPDX-License-Identifier: Apache-2.0
/* A part saves time and changes nothing: the text of an event is the same with it and without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "userspace/event/part.h"

#define SPAN ((2ull << F_PROC_ANCESTORS) - (1ull << F_PROC_PID))

struct fixture {
	struct arena arena;
	struct event ev;
	struct event_part part;
	struct buf out[2];
};

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){ 0 };
	arena_init(&f.arena, 1 << 20);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	event_part_done(&f->part);
	arena_done(&f->arena);
	buf_done(&f->out[0]);
	buf_done(&f->out[1]);
	return 0;
}

static void add_who(struct event *ev)
{
	static const struct str args[] = { STR("cc"), STR(""), STR("a \"b\"\n") };
	static const struct event_ancestor up[] = { { 1, 2, STR("sh"), STR("/bin/sh") },
						    { 3, 4, { 0 }, { 0 } } };

	event_set_u64(ev, F_PROC_PID, 7);
	event_set_u64(ev, F_PROC_UID, 0);
	event_set_strz(ev, F_PROC_COMM, "cc");
	event_set_list(ev, F_PROC_ARGS, args, 3);
	event_set_bool(ev, F_PROC_ARGS_TRUNCATED, true);
	event_set_strz(ev, F_PROC_CWD, "/w");
	ev->v[F_PROC_ANCESTORS].ancestors.v = up;
	ev->v[F_PROC_ANCESTORS].ancestors.n = 2;
	event_mark(ev, F_PROC_ANCESTORS);
}

static struct event *plain(struct fixture *f)
{
	event_init(&f->ev, WIRE_FILE_OPEN, &f->arena);
	event_set_strz(&f->ev, F_OUTCOME, "success");
	event_set_strz(&f->ev, F_FILE_PATH, "/w/a");
	return &f->ev;
}

static void same_text(struct fixture *f)
{
	const struct event_part *part = f->ev.part[EVENT_PART_WHO];

	buf_reset(&f->out[0]);
	buf_reset(&f->out[1]);
	assert_int_equal(event_to_json(&f->ev, &f->out[0]), 0);
	f->ev.part[EVENT_PART_WHO] = NULL;
	assert_int_equal(event_to_json(&f->ev, &f->out[1]), 0);
	f->ev.part[EVENT_PART_WHO] = part;
	assert_int_equal(f->out[0].n, f->out[1].n);
	assert_memory_equal(f->out[0].p, f->out[1].p, f->out[0].n);
}

/* The text that stands in is seen to be used: here it is a lie. */
static bool is_used(struct fixture *f)
{
	f->part.json = STR("\"lie\":1");
	buf_reset(&f->out[0]);
	assert_int_equal(event_to_json(&f->ev, &f->out[0]), 0);
	return memmem(f->out[0].p, f->out[0].n, "\"proc\":{\"lie\":1}", 16);
}

static void make(struct fixture *f)
{
	add_who(plain(f));
	assert_int_equal(event_part_make(&f->part, &f->ev, SPAN), 0);
	plain(f);
	event_part_give(&f->part, &f->ev);
	f->ev.part[EVENT_PART_WHO] = &f->part;
}

static void the_text_is_the_same(void **state)
{
	struct fixture *f = *state;

	make(f);
	same_text(f);
	assert_true(event_part_holds(&f->part, &f->ev));
	assert_true(str_eqz(f->ev.v[F_PROC_ARGS].list.v[2], "a \"b\"\n"));
	assert_true(is_used(f));
}

static void alone_and_without_neighbours(void **state)
{
	struct fixture *f = *state;

	make(f);
	event_unset(&f->ev, F_FILE_PATH);
	event_unset(&f->ev, F_OUTCOME);
	event_unset(&f->ev, F_V);
	event_unset(&f->ev, F_KIND);
	same_text(f);
	assert_true(is_used(f));
}

static void what_was_changed_is_told(void **state)
{
	static const struct str args[] = { STR("cc"), STR(""), STR("[redacted]") };
	struct fixture *f = *state;

	make(f);
	event_set_list(&f->ev, F_PROC_ARGS, args, 3);
	same_text(f);
	assert_false(event_part_holds(&f->part, &f->ev));
	assert_false(is_used(f));
	make(f);
	event_unset(&f->ev, F_PROC_CWD);
	same_text(f);
	assert_false(is_used(f));
	make(f);
	event_set_bool(&f->ev, F_PROC_RUNTIME, true); /* would stand between them */
	same_text(f);
	assert_false(is_used(f));
}

static void none_of_what_is_too_much(void **state)
{
	struct fixture *f = *state;
	static char big[EVENT_PART_BYTES];

	add_who(plain(f));
	event_set_str(&f->ev, F_PROC_EXE, (struct str){ "\xff", 1 });
	assert_int_equal(event_part_make(&f->part, &f->ev, SPAN), -EILSEQ);
	assert_int_equal(f->part.serial, 0);
	memset(big, 'x', sizeof(big));
	event_set_str(&f->ev, F_PROC_EXE, (struct str){ big, sizeof(big) });
	assert_int_equal(event_part_make(&f->part, &f->ev, SPAN), -EMSGSIZE);
	event_set_str(&f->ev, F_PROC_EXE, (struct str){ big, sizeof(big) / 2 });
	assert_int_equal(event_part_make(&f->part, &f->ev, SPAN), -EMSGSIZE); /* twice that */
	event_set_strz(&f->ev, F_PROC_EXE, "/cc");
	event_set_u64(&f->ev, F_PROC_CAPS, 1); /* not made for such a number */
	assert_int_equal(event_part_make(&f->part, &f->ev, SPAN), -EMSGSIZE);
	assert_int_equal(event_part_make(&f->part, plain(f), SPAN), -EMSGSIZE);
	assert_null(f->part.block);
}

static void no_two_have_the_same_number(void **state)
{
	struct fixture *f = *state;
	uint64_t serial;

	make(f);
	serial = f->part.serial;
	assert_true(serial);
	make(f);
	assert_int_not_equal(f->part.serial, serial);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(the_text_is_the_same),	   TEST(alone_and_without_neighbours),
		TEST(what_was_changed_is_told),	   TEST(none_of_what_is_too_much),
		TEST(no_two_have_the_same_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
