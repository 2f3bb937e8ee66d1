// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/store/bundle.h"

#include <errno.h>

#include "userspace/base/clock.h"
#include "userspace/pipeline/playback.h"
#include "userspace/store/terminal.h"

DEFINE_AUTO(playback, playback_free)

#define STEPS 3000

static uint64_t times[STEPS]; /* of each step, since the first */

/* A session of its own time: each step an event and a piece of output, every 500th an alert, and a commit now and
 * then, so that there are many frames. */
static void write_session(struct bundle *b)
{
	const struct journal_options jo = { .session = TEST_SESSION, .no_sync = true };
	struct terminal_log *tty = NULL;
	struct journal_seal seal = { 0 };
	struct journal *j = NULL;
	struct terminal_mark mark;
	struct terminal_end end;
	uint64_t start = 0;
	char text[512];

	assert_int_equal(journal_create(&j, b->fd, &jo, NULL), 0);
	assert_int_equal(terminal_log_create(&tty, b->fd, &jo, NULL), 0);
	for (unsigned i = 0; i < STEPS; i++) {
		uint64_t mono = clock_boot_ns();
		struct terminal_record rec = { .type = TERMINAL_OUTPUT, .mono = mono };
		int n;

		if (i && mono <= start + times[i - 1])
			mono = start + times[i - 1] + 1;
		rec.mono = mono;
		start = i ? start : mono;
		times[i] = mono - start;
		n = snprintf(
			text, sizeof(text),
			"{\"v\":1,\"id\":\"" TEST_SESSION ":%u\",\"seq\":%u,"
			"\"time\":\"2026-01-01T00:00:00.000000000Z\",\"mono\":%llu,\"kind\":\"%s\","
			"\"vantage\":\"kernel\",\"session\":\"" TEST_SESSION "\","
			"\"proc\":{\"pid\":%u,\"comm\":\"step%u\"}}",
			i + 1, i + 1, (unsigned long long)mono,
			i % 500 == 499 ? "rule.alert" : "exit", i + 1, i);
		assert_int_equal(journal_append(j, (struct str){ text, (size_t)n }), 0);
		if (i == 0)
			rec = (struct terminal_record){
				.type = TERMINAL_RESIZE, .mono = mono, .rows = 10, .cols = 40
			};
		n = snprintf(text, sizeof(text), "\033[3%um line %u%s", i % 8, i,
			     i % 7 ? "\r\n" : "\033[2;1H");
		rec.data = (struct str){ text, i ? (size_t)n : 0 };
		assert_int_equal(terminal_log_append(tty, &rec), 0);
		if (i % 50 == 49) {
			assert_int_equal(journal_commit(j), 0);
			assert_int_equal(terminal_log_commit(tty, &mark), 0);
		}
	}
	assert_int_equal(terminal_log_commit(tty, &mark), 0);
	terminal_log_end(tty, &end);
	seal.terminal = &end;
	assert_int_equal(journal_seal(j, &seal), 0);
	terminal_log_free(tty);
	journal_free(j);
}

static void take(const struct playback *p, bool screen, struct buf *out)
{
	for (unsigned i = 0; screen && i < 10; i++)
		screen_row(playback_screen(p), i, 40, true, out);
	for (size_t i = 0; i < PLAYBACK_LINES && playback_line(p, i); i++)
		buf_addz(out, playback_line(p, i)->text);
}

/* The screen of a jump is the true one as long as its context reaches back to the start: so many lines. */
static void assert_same(const struct playback *played, const struct playback *jumped, unsigned step)
{
	auto_buf struct buf a = { 0 }, b = { 0 };
	bool partial = playback_is_partial(jumped);

	assert_false(playback_is_partial(played));
	assert_int_equal(partial, step > 1800 ? true : step < 1700 ? false : partial);
	take(played, !partial, &a);
	take(jumped, !partial, &b);
	assert_int_equal(a.n, b.n);
	assert_memory_equal(a.p, b.p, a.n);
}

static void test_a_jump_is_what_playing_shows(void **state)
{
	struct bundle b = bundle_new();
	const struct playback_options opt = { 0 };
	AUTO(playback) struct playback *one = NULL, *two = NULL;
	unsigned rows, cols;

	(void)state;
	write_session(&b);
	assert_int_equal(playback_open(&one, b.fd, &opt, NULL), 0);
	assert_int_equal(playback_open(&two, b.fd, &opt, NULL), 0);
	assert_int_equal(playback_length(one), times[STEPS - 1]);
	screen_size(playback_screen(one), &rows, &cols);
	assert_int_equal(playback_step(one, 0, 1 << 20, NULL), 0);
	screen_size(playback_screen(one), &rows, &cols);
	assert_int_equal(rows, 10);
	assert_int_equal(cols, 40);
	for (unsigned i = 0; i < STEPS; i += 97) {
		int r;

		while ((r = playback_step(one, times[i], 100, NULL)) == 1)
			;
		assert_int_equal(r, 0);
		assert_int_equal(playback_seek(two, times[i], false, NULL), 0);
		assert_int_equal(playback_now(two), times[i]);
		assert_same(one, two, i);
		assert_int_equal(playback_next(two), i + 1 < STEPS ? times[i + 1] : PLAYBACK_NEVER);
	}
	/* and back */
	for (unsigned i = STEPS - 1; i > 300; i -= 293) {
		assert_int_equal(playback_seek(one, times[i], true, NULL), 0);
		while (playback_step(one, times[i], 4096, NULL) == 1)
			;
		assert_int_equal(playback_seek(two, times[i], false, NULL), 0);
		assert_same(one, two, i);
	}
	bundle_free(&b);
}

static int found(struct playback *p, enum playback_find what, const char *text, uint64_t *at)
{
	int r = playback_find(p, what, text, NULL);

	assert_int_equal(r, 0);
	while ((r = playback_find_more(p, 0, at, NULL)) == -EAGAIN)
		;
	return r;
}

static void test_finding(void **state)
{
	struct bundle b = bundle_new();
	const struct playback_options opt = { 0 };
	AUTO(playback) struct playback *p = NULL;
	uint64_t at = 0;

	(void)state;
	write_session(&b);
	assert_int_equal(playback_open(&p, b.fd, &opt, NULL), 0);
	for (unsigned i = 499; i < STEPS; i += 500) {
		assert_int_equal(found(p, PLAYBACK_FIND_NEXT, NULL, &at), 1);
		assert_int_equal(at, times[i]);
		assert_int_equal(playback_seek(p, at, false, NULL), 0);
	}
	assert_int_equal(found(p, PLAYBACK_FIND_NEXT, NULL, &at), 0);
	for (unsigned i = STEPS - 501; i > 499; i -= 500) {
		assert_int_equal(found(p, PLAYBACK_FIND_PREVIOUS, NULL, &at), 1);
		assert_int_equal(at, times[i]);
		assert_int_equal(playback_seek(p, at, false, NULL), 0);
	}
	assert_int_equal(playback_alerts(p), STEPS / 500);
	assert_true(playback_alert_within(p, times[499], times[499] + 1));
	assert_false(playback_alert_within(p, 0, times[499]));
	assert_int_equal(playback_seek(p, 0, true, NULL), 0);
	assert_int_equal(found(p, PLAYBACK_FIND_TEXT, "LINE 1234", &at), 1); /* shown */
	assert_int_equal(at, times[1234]);
	assert_int_equal(found(p, PLAYBACK_FIND_TEXT, "step2222", &at), 1); /* in an event */
	assert_int_equal(at, times[2222]);
	assert_int_equal(found(p, PLAYBACK_FIND_TEXT, "nowhere", &at), 0);
	assert_int_equal(found(p, PLAYBACK_FIND_TEXT, "8\n line 9", &at), 1); /* across records */
	assert_int_equal(at, times[9]);
	assert_true(playback_find(p, PLAYBACK_FIND_TEXT, "", NULL) < 0);
	bundle_free(&b);
}

static void test_damage_is_told(void **state)
{
	struct bundle b = bundle_new();
	const struct playback_options opt = { 0 };
	char path[128];

	(void)state;
	write_session(&b);
	for (unsigned i = 0; i < 40; i++) {
		const char *names[] = { "events.0001.seg", "tty.0001.seg" };
		AUTO(playback) struct playback *p = NULL;
		auto_close int fd = -1;
		struct err err = { 0 };
		uint64_t at;
		uint8_t byte;
		off_t off;
		int r;

		snprintf(path, sizeof(path), "%s/%s", b.path, names[i % 2]);
		fd = open(path, O_RDWR | O_CLOEXEC);
		assert_true(fd >= 0);
		off = lseek(fd, 0, SEEK_END) * (i + 1) / 41;
		assert_int_equal(pread(fd, &byte, 1, off), 1);
		byte ^= 0x40;
		assert_int_equal(pwrite(fd, &byte, 1, off), 1);
		r = playback_open(&p, b.fd, &opt, &err);
		if (r == 0) {
			r = playback_seek(p, playback_length(p) / 2, false, &err);
			while (r == 0 && playback_next(p) != PLAYBACK_NEVER &&
			       (r = playback_step(p, playback_next(p), 1 << 20, &err)) >= 0)
				;
			assert_true(playback_find(p, PLAYBACK_FIND_TEXT, "nowhere", NULL) < 1);
			while (playback_find_more(p, 1000, &at, NULL) == -EAGAIN)
				;
			while (playback_index(p, 1000))
				;
		}
		if (r < 0)
			assert_true(err.code != 0);
		byte ^= 0x40;
		assert_int_equal(pwrite(fd, &byte, 1, off), 1);
	}
	bundle_free(&b);
}

static void test_only_events(void **state)
{
	struct bundle b = bundle_new();
	const struct playback_options opt = { 0 };
	AUTO(playback) struct playback *p = NULL;

	(void)state;
	write_session(&b);
	assert_int_equal(unlinkat(b.fd, "tty.0001.seg", 0), 0);
	assert_int_equal(playback_open(&p, b.fd, &opt, NULL), 0);
	assert_null(playback_screen(p));
	assert_int_equal(playback_seek(p, times[100], false, NULL), 0);
	assert_non_null(strstr(playback_line(p, 0)->text, "step100"));
	assert_non_null(strstr(playback_line(p, 1)->text, "step99"));
	assert_null(playback_line(p, PLAYBACK_LINES));
	bundle_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_jump_is_what_playing_shows),
		cmocka_unit_test(test_finding),
		cmocka_unit_test(test_damage_is_told),
		cmocka_unit_test(test_only_events),
	};

	return cmocka_run_group_tests_name("pipeline/playback", tests, NULL, NULL);
}
