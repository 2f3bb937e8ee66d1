// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/syscall.h>
#include <unistd.h>
#include "tests/unit/exporters/fake.h"

#define LONG_MS 60000 /* for what must happen; nothing waits this long when all is well */

static struct fake_journal journal;

/* Woken up and about to take the byte that did it, the thread finds that somebody kicks it: once, where this is set. */
static _Atomic(struct fanout *) kick_before_read;
static atomic_int kicks;

ssize_t read(int fd, void *buf, size_t n)
{
	struct fanout *f = n == sizeof(uint64_t) ? atomic_exchange(&kick_before_read, NULL) : NULL;

	if (f) {
		fanout_notify(f);
		atomic_fetch_add(&kicks, 1);
	}
	return syscall(SYS_read, fd, buf, n);
}

static struct fanout *make(struct fake_peer **peers, size_t n)
{
	struct fanout_options opt = { .session = "s",
				      .cursor_dirfd = -1,
				      .open_source = fake_open_source,
				      .open_source_arg = &journal };
	struct fanout *f;

	journal.n = 0;
	assert_int_equal(fanout_new(&f, &opt, NULL), 0);
	for (size_t i = 0; i < n; i++) {
		struct exporter_config cfg = fake_config(i ? "two" : "one");

		fake_next_peer = peers[i] = fake_peer_new();
		assert_int_equal(fanout_add(f, &cfg, NULL), 0);
	}
	return f;
}

static void test_delivers_in_order(void **state)
{
	struct fake_peer *peer[2];
	struct fanout *f = make(peer, 2);

	(void)state;
	assert_int_equal(fanout_start(f, NULL), 0);
	for (int i = 0; i < 1000; i++) {
		journal.n += 20;
		fanout_notify(f);
	}
	assert_int_equal(fanout_drain(f, 20000, LONG_MS), 0);
	fanout_free(f);
	for (int k = 0; k < 2; k++) {
		for (int i = 1; i <= 20000; i++)
			assert_int_equal(peer[k]->got[i], 1);
		assert_int_equal(peer[k]->order_errors, 0);
		free(peer[k]);
	}
}

/* One dead sink neither holds up the other nor the caller. */
static void test_dead_sink_alone(void **state)
{
	struct fake_peer *peer[2];
	struct fanout *f = make(peer, 2);
	struct fanout_status rows[2];

	(void)state;
	peer[0]->down = true;
	assert_int_equal(fanout_start(f, NULL), 0);
	journal.n = 500;
	fanout_notify(f);
	assert_int_equal(fanout_drain(f, 500, 300), 1);
	assert_int_equal(fanout_status(f, rows, 2), 2);
	assert_int_equal(rows[0].acked, 0);
	assert_false(rows[0].up);
	assert_string_equal(rows[0].text, "peer is down");
	assert_int_equal(rows[1].acked, 500);
	assert_true(rows[1].up);
	peer[0]->down = false;
	assert_int_equal(fanout_drain(f, 500, LONG_MS), 0);
	fanout_free(f);
	free(peer[0]);
	free(peer[1]);
}

/* With nothing to do the thread sleeps; with a silent or dead sink it looks rarely. */
static void test_no_busy_loop(void **state)
{
	struct fake_peer *peer[2];
	struct fanout *f = make(peer, 2);
	int before;

	(void)state;
	assert_int_equal(fanout_start(f, NULL), 0);
	journal.n = 10;
	fanout_notify(f);
	assert_int_equal(fanout_drain(f, 10, LONG_MS), 0);
	usleep(50000);
	before = peer[0]->polls;
	usleep(300000);
	assert_int_equal(peer[0]->polls, before);
	peer[0]->down = true;
	peer[1]->hold = true;
	journal.n = 1000;
	fanout_notify(f);
	usleep(300000);
	assert_true(peer[0]->polls - before < 200);
	fanout_free(f);
	free(peer[0]);
	free(peer[1]);
}

/* Whatever comes between the wake-up and its end: what is committed afterwards is seen. The mark that a kick is under
 * way must not outlive its byte, or no later kick writes one. */
static void test_no_kick_is_lost(void **state)
{
	struct fake_peer *peer[1];
	struct fanout *f = make(peer, 1);

	(void)state;
	assert_int_equal(fanout_start(f, NULL), 0);
	for (int i = 1; i <= 20; i++) {
		atomic_store(&kicks, 0);
		atomic_store(&kick_before_read, f);
		journal.n = (unsigned long)i;
		fanout_notify(f);
		for (int k = 0; !atomic_load(&kicks); k++) {
			assert_true(k < LONG_MS);
			usleep(1000);
		}
	}
	usleep(20000); /* it sleeps again; were it late, the next kick would only be easier */
	journal.n++;
	assert_int_equal(fanout_drain(f, 21, LONG_MS), 0);
	fanout_free(f);
	free(peer[0]);
}

static void test_refuses(void **state)
{
	struct fake_peer *peer[1], *other = fake_peer_new();
	struct fanout *f = make(peer, 1);
	struct exporter_config cfg = fake_config("one");
	struct err err = { 0 };

	(void)state;
	fake_next_peer = other;
	assert_int_equal(fanout_add(f, &cfg, &err), -EEXIST);
	assert_non_null(strstr(err.text, "'one'"));
	assert_int_equal(fanout_drain(f, 1, 0), 1); /* not started: does not hang */
	assert_int_equal(fanout_start(f, NULL), 0);
	cfg = fake_config("late");
	assert_int_equal(fanout_add(f, &cfg, &err), -EBUSY);
	fanout_free(f);
	fanout_free(NULL);
	free(peer[0]);
	free(other);
}

/* A stream has numbers of its own: drained when all that its source has was taken, not at the journal's
 * number, which is far higher. */
static void test_stream(void **state)
{
	static struct fake_journal other;
	struct fake_peer *peers[2] = { NULL, fake_peer_new() }; /* make() makes the first */
	struct exporter_config cfg = fake_config("stream");
	struct fanout_status rows[2];
	struct fanout *f;

	(void)state;
	f = make(peers, 1);
	fake_next_peer = peers[1];
	assert_int_equal(fanout_add_stream(f, &cfg, fake_open_source, &other, NULL), 0);
	other.n = 7;
	assert_int_equal(fanout_start(f, NULL), 0);
	journal.n = 5000;
	fanout_notify(f);
	assert_int_equal(fanout_drain(f, 5000, LONG_MS), 0);
	assert_int_equal(fanout_status(f, rows, 2), 2);
	assert_true(rows[1].own_seq);
	assert_int_equal(rows[1].acked, 7);
	/* What came just before the call counts, though nobody told the fan-out. */
	other.n = 9;
	peers[1]->hold = true;
	assert_int_equal(fanout_drain(f, 5000, 200), 1);
	peers[1]->hold = false;
	assert_int_equal(fanout_drain(f, 5000, LONG_MS), 0);
	fanout_status(f, rows, 2);
	assert_int_equal(rows[1].acked, 9);
	assert_int_equal(fanout_status_lag(&rows[1], 5000), 0);
	fanout_free(f);
	free(peers[0]);
	free(peers[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_delivers_in_order), cmocka_unit_test(test_dead_sink_alone),
		cmocka_unit_test(test_no_busy_loop),	  cmocka_unit_test(test_stream),
		cmocka_unit_test(test_no_kick_is_lost),	  cmocka_unit_test(test_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
