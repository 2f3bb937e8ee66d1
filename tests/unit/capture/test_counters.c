/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "userspace/base/auto.h"
#include "userspace/capture/internal.h"

static struct counters shared; /* what the kernel would write */
static struct capture c;
static uint64_t positions[4];

static int setup(void **state)
{
	(void)state;
	memset(&shared, 0, sizeof(shared));
	memset(&c, 0, sizeof(c));
	memset(positions, 0, sizeof(positions));
	c.counters = &shared;
	c.cpus = 4;
	for (int i = 0; i < WIRE_RING_COUNT; i++) {
		c.rings[i].consumer = &positions[2 * i];
		c.rings[i].producer = &positions[2 * i + 1];
		c.rings[i].size = 4096;
	}
	return 0;
}

static void drop(size_t row, uint32_t sandbox, uint16_t kind, uint64_t count, uint64_t ts)
{
	shared.drops[row].key = drop_key(sandbox, DROP_FULL | kind);
	shared.drops[row].count += count;
	if (!shared.drops[row].first_ts)
		shared.drops[row].first_ts = ts;
	shared.drops[row].last_ts = ts;
	shared.cpu[1].lost[1] += count;
	shared.cpu[1].seq[1] += count;
}

static void each_loss_is_told_once(void **state)
{
	struct capture_gap g[8];

	(void)state;
	assert_int_equal(capture_gaps(&c, g, 8), 0);
	drop(7, 3, WIRE_FILE_OPEN, 10, 100);
	drop(900, 4, WIRE_EXIT, 1, 150);
	assert_int_equal(capture_gaps(&c, g, 8), 2);
	assert_int_equal(g[0].sandbox, 3);
	assert_int_equal(g[0].kind, WIRE_FILE_OPEN);
	assert_int_equal(g[0].count, 10);
	assert_int_equal(g[0].first_ts, 100);
	assert_int_equal(g[1].sandbox, 4);
	assert_int_equal(capture_gaps(&c, g, 8), 0);
	drop(7, 3, WIRE_FILE_OPEN, 5, 300);
	assert_int_equal(capture_gaps(&c, g, 8), 1);
	assert_int_equal(g[0].count, 5);
	assert_int_equal(g[0].first_ts, 100); /* not earlier than the last one told */
	assert_int_equal(g[0].last_ts, 300);
	drop(7, 3, WIRE_FILE_OPEN, 1, 400);
	assert_int_equal(capture_gaps(&c, g, 8), 1);
	assert_int_equal(g[0].first_ts, 300);
}

static void a_lost_piece_of_argv_is_a_lost_exec(void **state)
{
	struct capture_gap g[2];

	(void)state;
	drop(0, 9, WIRE_CHUNK, 2, 5);
	assert_int_equal(capture_gaps(&c, g, 2), 1);
	assert_int_equal(g[0].kind, WIRE_EXEC);
}

static void what_a_guest_did_is_of_any_kind(void **state)
{
	struct capture_gap g[2];

	(void)state;
	drop(0, 9, WIRE_MIRROR, 2, 5);
	assert_int_equal(capture_gaps(&c, g, 2), 1);
	assert_int_equal(g[0].sandbox, 9);
	assert_int_equal(g[0].kind, 0);
	assert_int_equal(g[0].count, 2);
}

static void runs_left_out_are_a_gap_of_nobody_known(void **state)
{
	struct capture_gap g[2];

	(void)state;
	shared.missed = 3;
	assert_int_equal(capture_gaps(&c, g, 2), 1);
	assert_int_equal(g[0].sandbox, 0);
	assert_int_equal(g[0].kind, 0);
	assert_int_equal(g[0].count, 3);
	assert_true(g[0].missed);
	assert_int_equal(capture_gaps(&c, g, 2), 0);
	shared.missed = 5;
	assert_int_equal(capture_gaps(&c, g, 0), 0); /* no room: kept for later */
	assert_int_equal(capture_gaps(&c, g, 2), 1);
	assert_int_equal(g[0].count, 2);
}

static void more_losses_than_rows(void **state)
{
	struct capture_gap g[1];

	(void)state;
	drop(1, 1, WIRE_EXEC, 1, 5);
	drop(2, 2, WIRE_EXEC, 1, 5);
	assert_int_equal(capture_gaps(&c, g, 1), 1);
	assert_int_equal(g[0].sandbox, 1);
	assert_int_equal(capture_gaps(&c, g, 1), 1);
	assert_int_equal(g[0].sandbox, 2);
	assert_int_equal(capture_gaps(&c, g, 1), 0);
}

static void numbers_that_never_came(void **state)
{
	struct capture_gap g[4];

	(void)state;
	shared.cpu[0].seq[0] = 60;
	shared.cpu[3].seq[1] = 40;
	c.order.records = 97;
	assert_int_equal(capture_gaps(&c, g, 4), 0); /* may still be under way */
	shared.cpu[3].seq[1] = 41;
	c.order.records = 98;
	assert_int_equal(capture_gaps(&c, g, 4), 0);
	assert_int_equal(capture_gaps(&c, g, 4), 1);
	assert_int_equal(g[0].count, 3);
	assert_int_equal(g[0].sandbox, 0);
	assert_int_equal(g[0].kind, 0);
	assert_int_equal(capture_gaps(&c, g, 4), 0);
	shared.cpu[3].seq[1] = 43;
	c.order.records = 99;
	assert_int_equal(capture_gaps(&c, g, 4), 0);
	assert_int_equal(capture_gaps(&c, g, 4), 1);
	assert_int_equal(g[0].count, 1);
}

static void waiting_records_are_not_missing(void **state)
{
	struct capture_gap g[4];

	(void)state;
	shared.cpu[0].seq[0] = 2;
	positions[1] = 200; /* the ring holds something */
	for (int i = 0; i < 3; i++)
		assert_int_equal(capture_gaps(&c, g, 4), 0);
	positions[0] = 200;
	c.order.held_n = 1;
	for (int i = 0; i < 3; i++)
		assert_int_equal(capture_gaps(&c, g, 4), 0);
	c.order.held_n = 0;
	c.order.records = 2;
	for (int i = 0; i < 3; i++)
		assert_int_equal(capture_gaps(&c, g, 4), 0);
}

static void failures_are_summed(void **state)
{
	struct capture_stats st;

	(void)state;
	shared.cpu[0].fails[FAIL_SIGNAL] = 2;
	shared.cpu[3].fails[FAIL_SIGNAL] = 3;
	c.order.late = 4;
	capture_stats(&c, &st);
	assert_int_equal(st.fails[FAIL_SIGNAL], 5);
	assert_int_equal(st.late, 4);
	assert_int_equal(st.ring_size[0], 4096);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup(fn, setup)
	const struct CMUnitTest tests[] = {
		T(each_loss_is_told_once),	    T(a_lost_piece_of_argv_is_a_lost_exec),
		T(more_losses_than_rows),	    T(numbers_that_never_came),
		T(waiting_records_are_not_missing), T(failures_are_summed),
		T(what_a_guest_did_is_of_any_kind), T(runs_left_out_are_a_gap_of_nobody_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
