// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "userspace/base/clock.h"
#include "userspace/pipeline/sink_watch.h"

struct rig {
	struct sink_watch w;
	struct fanout_status row;
	uint64_t now, last;
	unsigned said_n;
	char said[512];
};

static int set_up(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	r->row = (struct fanout_status){ .name = "k", .class_name = "kafka", .up = true };
	r->now = 1000 * NSEC_PER_SEC;
	*state = r;
	return 0;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

static void say(void *arg, const char *text)
{
	struct rig *r = arg;

	r->said_n++;
	snprintf(r->said, sizeof(r->said), "%s", text);
}

static void look(struct rig *r, int seconds)
{
	for (int i = 0; i < seconds; i++, r->now += SINK_WATCH_NS) {
		assert_true(sink_watch_is_due(&r->w, r->now));
		sink_watch_look(&r->w, &r->row, 1, r->last, r->now, say, r);
		assert_false(sink_watch_is_due(&r->w, r->now + 1));
	}
}

/* One event when a sink is down for a while, one when it is back; a short absence is no news. */
static void test_down_and_up(void **state)
{
	struct rig *r = *state;

	look(r, 20);
	assert_int_equal(r->said_n, 0);
	r->row.up = false;
	snprintf(r->row.text, sizeof(r->row.text), "connection refused");
	look(r, 3);
	r->row.up = true;
	look(r, 3);
	assert_int_equal(r->said_n, 0);
	r->row.up = false;
	look(r, 100);
	assert_int_equal(r->said_n, 1);
	assert_string_equal(r->said, "sink 'k' takes nothing: connection refused");
	r->row.up = true;
	r->last = 50;
	r->row.acked = 8;
	look(r, 100);
	assert_int_equal(r->said_n, 2);
	assert_string_equal(r->said, "sink 'k' takes events again, 42 to go");
}

/* Refusals are told with their number, and not so often that the telling would keep itself going. */
static void test_dead_letters(void **state)
{
	struct rig *r = *state;

	snprintf(r->row.why, sizeof(r->row.why), "too large");
	for (int i = 0; i < 100; i++) {
		r->row.poison += 3;
		look(r, 1);
	}
	assert_int_equal(r->said_n, 10);
	look(r, 20);
	assert_int_equal(r->said_n, 11);
	assert_string_equal(r->said, "sink 'k' refused 27 records for good, they are dead letters: "
				     "too large");
}

static void test_bounded(void **state)
{
	struct rig *r = *state;

	for (int i = 0; i < 2 * SINK_EVENTS_MAX; i++) {
		r->row.errors++;
		r->now += SINK_EVENT_NS;
		look(r, 1);
	}
	assert_int_equal(r->said_n, SINK_EVENTS_MAX);
	assert_non_null(strstr(r->said, "no more events"));
}

static void test_json(void **state)
{
	struct rig *r = *state;
	struct buf out = { 0 };

	assert_true(sink_watch_is_needed(&r->w, 0)); /* nobody looked yet */
	r->last = 1000;
	for (int i = 0; i < 30; i++) {
		r->row.acked += 20;
		look(r, 1);
	}
	assert_true(sink_watch_is_needed(&r->w, r->last));
	r->row.poison = 2;
	r->row.required = true;
	snprintf(r->row.why, sizeof(r->row.why), "say \"no\"");
	look(r, 1);
	assert_int_equal(sink_watch_json(&r->w, r->last, &out), 0);
	buf_addc(&out, 0);
	assert_string_equal(out.p, "[{\"name\":\"k\",\"class\":\"kafka\",\"up\":true,"
				   "\"required\":true,\"acked\":600,\"lag\":400,\"rate\":14,"
				   "\"dead_letters\":2,\"errors\":0,\"rewinds\":0,\"filtered\":0,"
				   "\"text\":\"say \\\"no\\\"\"}]");
	buf_done(&out);
	r->row.acked = 1000;
	look(r, 60); /* long since nothing moved */
	assert_false(sink_watch_is_needed(&r->w, 1000));
	assert_true(sink_watch_is_needed(&r->w, 1001));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_down_and_up),
		TEST(test_dead_letters),
		TEST(test_bounded),
		TEST(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
