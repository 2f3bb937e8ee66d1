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
	r->opt = (struct fanout_options){ .session = "s",
					  .cursor_dirfd = r->dirfd,
					  .open_source = fake_open_source,
					  .open_source_arg = &r->journal };
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
	assert_string_equal(st.text, "");
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
	r->sink.cursor_dirfd =
		dir; /* the disk has room again: status no longer says that it has none */
	assert_true(run(r, 200));
	assert_string_equal(r->sink.text, "");
	assert_true(r->sink.errors > 0);
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

/* Matches records whose seq is a multiple of the number that the filter's text is. */
static int even_open(void **ret, const char *text, struct err *err)
{
	if (!strcmp(text, "broken"))
		return err_set(err, EINVAL, "1:1: no such field");
	*ret = strdup(text);
	return 0;
}

static bool even_match(void *filter, struct str json)
{
	const char *seq = memmem(json.p, json.n, "\"seq\":", 6);

	return strtoull(seq + 6, NULL, 10) % strtoull(filter, NULL, 10) == 0;
}

static const struct export_filter_ops even_filters = { even_open, even_match, free };

static void open_with(struct rig *r, const char *key, char *value)
{
	struct exporter_config cfg = fake_config("k");
	char name[16];

	snprintf(name, sizeof(name), "%s", key);
	cfg.props[cfg.props_n].key = name;
	cfg.props[cfg.props_n++].value = value;
	fake_next_peer = r->peer;
	assert_int_equal(sink_open(&r->sink, &cfg, &r->opt, -1, NULL), 0);
}

/* What the filter keeps away counts as done, also at the end, but never before what it lets through. */
static void test_filter(void **state)
{
	struct rig *r = *state;
	struct fanout_status st;
	uint64_t at;
	char by[] = "7";

	r->journal.n = 100;
	r->opt.filters = &even_filters;
	r->peer->hold = true;
	open_with(r, "filter", by);
	sink_turn(&r->sink, r->now, false, &at);
	assert_int_equal(r->sink.passed, 100);
	assert_int_equal(r->sink.cursor, 0);
	r->peer->hold = false;
	for (int i = 0; i < 5; i++)
		sink_turn(&r->sink, r->now, true, &at);
	assert_int_equal(r->sink.cursor, 100);
	for (int i = 1; i <= 100; i++)
		assert_int_equal(r->peer->got[i], i % 7 == 0);
	sink_status(&r->sink, &st);
	assert_int_equal(st.skipped, 100 - 100 / 7);
	assert_int_equal(stored(r), 100);
	sink_close(&r->sink);
}

static void test_bad_filter(void **state)
{
	struct rig *r = *state;
	struct exporter_config cfg = fake_config("k");
	char key[] = "filter", value[] = "broken";
	struct err err = { 0 };

	cfg.props[cfg.props_n].key = key;
	cfg.props[cfg.props_n++].value = value;
	assert_int_equal(sink_open(&r->sink, &cfg, &r->opt, -1, &err), -ENOTSUP);
	r->opt.filters = &even_filters;
	assert_int_equal(sink_open(&r->sink, &cfg, &r->opt, -1, &err), -EINVAL);
	assert_string_equal(err.text, "sink 'k': property 'filter': 1:1: no such field");
}

/* 50 a second: 1,000 records take 20 s less the burst; nothing is dropped, and no turn is for nothing. */
static void test_rate(void **state)
{
	struct rig *r = *state;
	uint64_t began = r->now;
	char rate[] = "50";

	r->journal.n = 1000;
	open_with(r, "rate", rate);
	assert_true(run(r, 3000));
	assert_int_equal(r->sink.cursor, 1000);
	assert_true(r->now - began > 19 * NSEC_PER_SEC);
	assert_true(r->now - began < 22 * NSEC_PER_SEC);
	for (int i = 1; i <= 1000; i++)
		assert_int_equal(r->peer->got[i], 1);
	sink_close(&r->sink);
}

/* A required sink that never came up holds the journal; one that took everything lets it go. */
static void test_required(void **state)
{
	struct rig *r = *state;
	char yes[] = "yes", behind[CURSOR_SINK_MAX];
	uint64_t floor;

	assert_int_equal(cursor_floor(r->dirfd, "s", &floor, behind), 0);
	assert_true(floor == UINT64_MAX);
	r->journal.n = 10;
	r->peer->down = true;
	open_with(r, "required", yes);
	assert_int_equal(cursor_floor(r->dirfd, "s", &floor, behind), 0);
	assert_int_equal(floor, 0);
	assert_string_equal(behind, "k");
	r->peer->down = false;
	assert_true(run(r, 100));
	assert_int_equal(cursor_floor(r->dirfd, "s", &floor, behind), 0);
	assert_int_equal(floor, 10);
	sink_close(&r->sink);
}

/* The numbers of a stream are its own: nothing can be compared with them, so a stream that has all asks for nothing
 * any more. */
static void test_required_stream(void **state)
{
	struct rig *r = *state;
	char yes[] = "yes", behind[CURSOR_SINK_MAX];
	uint64_t floor;

	r->journal.n = 3;
	r->peer->down = true;
	open_with(r, "required", yes);
	r->sink.own_seq = true;
	run(r, 20);
	sink_store_cursor(&r->sink, r->now);
	assert_int_equal(cursor_floor(r->dirfd, "s", &floor, behind), 0);
	assert_int_equal(floor, 0);
	r->peer->down = false;
	assert_true(run(r, 100));
	sink_store_cursor(&r->sink, r->now);
	assert_int_equal(cursor_floor(r->dirfd, "s", &floor, behind), 0);
	assert_true(floor == UINT64_MAX);
	r->journal.n = 5;
	r->peer->down = true;
	run(r, 20);
	sink_store_cursor(&r->sink, r->now);
	assert_int_equal(cursor_floor(r->dirfd, "s", &floor, behind), 0);
	assert_int_equal(floor, 3);
	sink_close(&r->sink);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_required_stream),   TEST(test_plain),
		TEST(test_refused),	      TEST(test_refused_waits_for_those_before),
		TEST(test_down_then_up),      TEST(test_restart),
		TEST(test_damaged_cursor),    TEST(test_filter),
		TEST(test_bad_filter),	      TEST(test_rate),
		TEST(test_required),	      TEST(test_damaged_journal),
		TEST(test_cursor_unwritable), TEST(test_storm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
