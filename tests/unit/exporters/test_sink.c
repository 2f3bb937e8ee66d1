// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <unistd.h>
#include "exporters/cursor.h"
#include "exporters/sink.h"
#include "tests/unit/exporters/fake.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"

struct rig {
	char dir[64];
	int dirfd;
	struct fake_journal journal;
	struct fake_peer *peer;
	struct fanout_options opt;
	struct sink sink;
	uint64_t now;
};

static int set_up(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	snprintf(r->dir, sizeof(r->dir), "/tmp/warder-sink-XXXXXX");
	if (!mkdtemp(r->dir))
		return -1;
	r->dirfd = open(r->dir, O_DIRECTORY | O_CLOEXEC);
	r->peer = fake_peer_new();
	r->opt = (struct fanout_options){ "s", r->dirfd, fake_open_source, &r->journal };
	r->now = 1000000000000;
	srandom(7);
	*state = r;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *r = *state;
	char cmd[128];
	int rc;

	snprintf(cmd, sizeof(cmd), "rm -rf %s", r->dir);
	rc = system(cmd);
	close(r->dirfd);
	free(r->peer);
	free(r);
	return rc;
}

static void open_sink(struct rig *r)
{
	struct exporter_config cfg = fake_config("k");

	fake_next_peer = r->peer;
	assert_int_equal(sink_open(&r->sink, &cfg, &r->opt, -1, NULL), 0);
}

/* Turns until nothing is left to do; time jumps to each deadline. Returns false when the sink still
 * wants to come back after `limit` turns. */
static bool run(struct rig *r, int limit)
{
	for (int i = 0; i < limit; i++) {
		uint64_t at;
		bool more = sink_turn(&r->sink, r->now, false, &at);

		for (uint64_t s = 1; s <= r->sink.cursor; s++)
			if (!r->peer->got[s] &&
			    !(r->peer->poison_every && s % r->peer->poison_every == 0))
				fail_msg("cursor %lu passed seq %lu, which never arrived",
					 r->sink.cursor, s);
		if (more)
			continue;
		if (at == SINK_NEVER)
			return true;
		if (at <= r->now)
			fail_msg("deadline in the past: a busy loop");
		r->now = at;
	}
	return false;
}

static uint64_t stored(struct rig *r)
{
	uint64_t seq;

	assert_int_equal(cursor_load(r->dirfd, "s", "k", &seq), 0);
	return seq;
}

static void test_plain(void **state)
{
	struct rig *r = *state;

	r->journal.n = 5000;
	open_sink(r);
	assert_true(run(r, 1000));
	assert_int_equal(r->sink.cursor, 5000);
	assert_int_equal(stored(r), 5000);
	for (int i = 1; i <= 5000; i++)
		assert_int_equal(r->peer->got[i], 1);
	sink_close(&r->sink);
}

static void test_refused(void **state)
{
	struct rig *r = *state;
	struct fanout_status st;
	char *text, *line;
	size_t n, lines = 0;

	r->journal.n = 100;
	r->peer->poison_every = 10; /* the last one, too */
	open_sink(r);
	assert_true(run(r, 1000));
	sink_status(&r->sink, &st);
	assert_int_equal(st.acked, 100);
	assert_int_equal(st.poison, 10);
	assert_true(st.up);
	assert_int_equal(file_read_at(r->dirfd, "s.k.dlq.jsonl", 1 << 20, &text, &n), 0);
	for (line = text; (line = strchr(line, '\n')); line++)
		lines++;
	assert_int_equal(lines, 10);
	assert_non_null(strstr(text, "\"id\":\"i-100\""));
	assert_non_null(strstr(text, "fake refusal"));
	free(text);
	sink_close(&r->sink);
}

/* A refused record must not carry the cursor over those before it. */
static void test_refused_waits_for_those_before(void **state)
{
	struct rig *r = *state;
	uint64_t at;

	r->journal.n = 10;
	r->peer->poison_every = 10;
	r->peer->hold = true;
	open_sink(r);
	sink_turn(&r->sink, r->now, false, &at);
	assert_int_equal(r->sink.passed, 10);
	assert_int_equal(r->sink.cursor, 0);
	assert_true(at != SINK_NEVER);
	r->peer->hold = false;
	assert_true(run(r, 100));
	assert_int_equal(r->sink.cursor, 10);
	sink_close(&r->sink);
}

static void test_down_then_up(void **state)
{
	struct rig *r = *state;
	struct fanout_status st;

	r->journal.n = 3000;
	r->peer->down = true;
	open_sink(r);
	assert_false(run(r, 200)); /* never gives up, and 200 turns took a while: no busy loop */
	assert_true(r->now > 1000000000000 + 100 * NSEC_PER_SEC);
	sink_status(&r->sink, &st);
	assert_false(st.up);
	assert_string_equal(st.text, "peer is down");
	r->peer->down = false;
	assert_true(run(r, 1000));
	assert_int_equal(r->sink.cursor, 3000);
	sink_close(&r->sink);
}

static void test_restart(void **state)
{
	struct rig *r = *state;

	r->journal.n = 1000;
	open_sink(r);
	assert_true(run(r, 1000));
	sink_close(&r->sink);
	r->journal.n = 1500;
	open_sink(r);
	assert_int_equal(r->sink.cursor, 1000);
	assert_true(run(r, 1000));
	for (int i = 1; i <= 1500; i++)
		assert_int_equal(r->peer->got[i], 1);
	sink_close(&r->sink);
}

static void test_damaged_cursor(void **state)
{
	struct rig *r = *state;

	r->journal.n = 10;
	file_replace_at(r->dirfd, "s.k.cursor", "garbage", 7, 0600);
	open_sink(r);
	assert_int_equal(r->sink.errors, 1);
	assert_non_null(strstr(r->sink.text, "cursor file damaged"));
	assert_true(run(r, 100));
	assert_int_equal(stored(r), 10);
	sink_close(&r->sink);
}

static void test_damaged_journal(void **state)
{
	struct rig *r = *state;
	struct fanout_status st;

	r->journal.n = 10;
	r->journal.fail = EBADMSG;
	open_sink(r);
	assert_false(run(r, 50));
	sink_status(&r->sink, &st);
	assert_false(st.up);
	assert_non_null(strstr(st.text, "segment 1 is damaged"));
	r->journal.fail = 0;
	assert_true(run(r, 100));
	sink_status(&r->sink, &st);
	assert_true(st.up);
	assert_int_equal(st.acked, 10);
	sink_close(&r->sink);
}

static void test_cursor_unwritable(void **state)
{
	struct rig *r = *state;
	int dir = r->dirfd;

	r->journal.n = 10;
	r->dirfd = r->opt.cursor_dirfd = open("/proc/self", O_DIRECTORY | O_CLOEXEC);
	open_sink(r);
	assert_false(run(r, 20)); /* keeps trying to store it, once a second */
	assert_int_equal(r->sink.cursor, 10);
	assert_true(r->sink.errors > 0);
	assert_non_null(strstr(r->sink.text, "cursor file"));
	sink_close(&r->sink);
	close(r->dirfd);
	r->dirfd = dir;
}

/* All at once: acknowledgements in any order, refusals, a full sink, rewinds, crashes. */
static void test_storm(void **state)
{
	struct rig *r = *state;

	r->peer->shuffle = true;
	r->peer->poison_every = 97;
	r->peer->full_chance = 50;
	r->peer->rewind_chance = 300;
	open_sink(r);
	while (r->journal.n < 20000) {
		r->journal.n += (unsigned long)random() % 400;
		if (r->journal.n > 20000)
			r->journal.n = 20000;
		run(r, (int)(random() % 20));
		if (one_in(10)) { /* crash: only what is on disk survives */
			sink_close(&r->sink);
			open_sink(r);
			assert_int_equal(r->sink.cursor, stored(r));
		}
	}
	r->peer->rewind_chance = 0;
	assert_true(run(r, 100000));
	assert_int_equal(r->sink.cursor, 20000);
	for (unsigned i = 1; i <= 20000; i++)
		assert_true(i % 97 == 0 ? !r->peer->got[i] : r->peer->got[i] > 0);
	sink_close(&r->sink);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_plain),
		TEST(test_refused),
		TEST(test_refused_waits_for_those_before),
		TEST(test_down_then_up),
		TEST(test_restart),
		TEST(test_damaged_cursor),
		TEST(test_damaged_journal),
		TEST(test_cursor_unwritable),
		TEST(test_storm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
