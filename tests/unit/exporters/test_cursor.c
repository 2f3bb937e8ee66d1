// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "exporters/cursor.h"
#include "userspace/base/fd.h"

static int make_dir(void **state)
{
	char path[] = "/tmp/warder-cursor-XXXXXX";

	*state = mkdtemp(path) ? strdup(path) : NULL;
	return *state ? 0 : -1;
}

static int drop_dir(void **state)
{
	char cmd[256];

	snprintf(cmd, sizeof(cmd), "rm -rf %s", (char *)*state);
	free(*state);
	return system(cmd);
}

static void test_round_trip(void **state)
{
	int dir = open(*state, O_DIRECTORY | O_CLOEXEC);
	uint64_t seq = 99;

	assert_int_equal(cursor_load(dir, "s", "k", &seq), 0);
	assert_int_equal(seq, 0);
	assert_int_equal(cursor_store(dir, "s", "k", 42, false), 0);
	assert_int_equal(cursor_store(dir, "s", "k", UINT64_MAX, true), 0);
	assert_int_equal(cursor_load(dir, "s", "k", &seq), 0);
	assert_true(seq == UINT64_MAX);
	assert_int_equal(cursor_load(dir, "s", "other", &seq), 0);
	assert_int_equal(seq, 0);
	close(dir);
}

/* Any flipped, missing or added byte is noticed. */
static void test_damage(void **state)
{
	int dir = open(*state, O_DIRECTORY | O_CLOEXEC);
	char *text;
	size_t n;
	uint64_t seq;

	cursor_store(dir, "s", "k", 1234567, false);
	assert_int_equal(file_read_at(dir, "s.k.cursor", 4096, &text, &n), 0);
	for (size_t i = 0; i < n; i++) {
		text[i] ^= 1;
		file_replace_at(dir, "s.k.cursor", text, n, 0600);
		assert_int_equal(cursor_load(dir, "s", "k", &seq), -EBADMSG);
		text[i] ^= 1;
		file_replace_at(dir, "s.k.cursor", text, i, 0600);
		assert_int_equal(cursor_load(dir, "s", "k", &seq), -EBADMSG);
	}
	/* Another session's cursor under our name. */
	file_replace_at(dir, "t.k.cursor", text, n, 0600);
	assert_int_equal(cursor_load(dir, "t", "k", &seq), -EBADMSG);
	file_replace_at(dir, "s.k.cursor", text, n, 0600);
	assert_int_equal(cursor_load(dir, "s", "k", &seq), 0);
	assert_int_equal(seq, 1234567);
	free(text);
	close(dir);
}

static void test_names_stay_inside(void **state)
{
	int dir = open(*state, O_DIRECTORY | O_CLOEXEC);
	char longest[300];
	uint64_t seq;

	assert_int_equal(cursor_store(dir, "../x", "k", 1, false), -EINVAL);
	assert_int_equal(cursor_store(dir, "", "k", 1, false), -EINVAL);
	assert_int_equal(cursor_load(dir, "s", "a/b", &seq), -EINVAL);
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	assert_int_equal(cursor_store(dir, longest, "k", 1, false), -ENAMETOOLONG);
	close(dir);
}

static void test_dead_letter(void **state)
{
	int dir = open(*state, O_DIRECTORY | O_CLOEXEC);
	char *text;
	size_t n;

	assert_int_equal(
		dead_letter_append(dir, "s", "k", 7, STR("{\"a\":1}"), true, "too \"big\""), 0);
	assert_int_equal(dead_letter_append(dir, "s", "k", 8, STR("\xff{"), false, "no"), 0);
	assert_int_equal(file_read_at(dir, "s.k.dlq.jsonl", 4096, &text, &n), 0);
	assert_non_null(strstr(text, "{\"seq\":7,\"time\":\""));
	assert_non_null(strstr(text, "\"why\":\"too \\\"big\\\"\",\"record\":{\"a\":1}}\n"));
	assert_non_null(strstr(text, "\"record\":\"\xef\xbf\xbd{\"}\n"));
	free(text);
	close(dir);
}

/* The journal is kept as far as the slowest required sink needs it; damage keeps all of it. */
static void test_floor(void **state)
{
	int dir = open(*state, O_DIRECTORY | O_CLOEXEC);
	char sink[CURSOR_SINK_MAX];
	uint64_t seq;

	assert_int_equal(cursor_store(dir, "s", "optional", 1, false), 0);
	assert_int_equal(cursor_store(dir, "s", "a.b", 40, true), 0);
	assert_int_equal(cursor_store(dir, "s", "c", 30, true), 0);
	assert_int_equal(cursor_store(dir, "s2", "d", 2, true), 0);
	assert_int_equal(cursor_floor(dir, "s", &seq, sink), 0);
	assert_int_equal(seq, 30);
	assert_string_equal(sink, "c");
	assert_int_equal(cursor_store(dir, "s", "c", 50, true), 0);
	assert_int_equal(cursor_floor(dir, "s", &seq, sink), 0);
	assert_int_equal(seq, 40);
	assert_string_equal(sink, "a.b");
	file_replace_at(dir, "s.optional.cursor", "x", 1, 0600);
	assert_int_equal(cursor_floor(dir, "s", &seq, sink), 0);
	assert_int_equal(seq, 0);
	assert_int_equal(cursor_floor(dir, "t", &seq, sink), 0);
	assert_true(seq == UINT64_MAX);
	assert_string_equal(sink, "");
	close(dir);
}

#define GONE  "01JFTESTCVRSXR000000000001"
#define THERE "01JFTESTCVRSXR000000000002"
#define YOUNG "01JFTESTCVRSXR000000000003"

static bool exists(int dir, const char *name)
{
	return faccessat(dir, name, F_OK, 0) == 0;
}

static bool is_there(void *arg, const char *session)
{
	(void)arg;
	return !strcmp(session, THERE);
}

static void age(int dir, const char *name, time_t seconds)
{
	struct timespec t[2] = { { .tv_sec = time(NULL) - seconds },
				 { .tv_sec = time(NULL) - seconds } };

	assert_int_equal(utimensat(dir, name, t, 0), 0);
}

static void test_forget(void **state)
{
	int dir = open(*state, O_DIRECTORY | O_CLOEXEC);

	cursor_store(dir, "s", "a", 1, false);
	cursor_store(dir, "s", "b.c", 1, true);
	cursor_store(dir, "s2", "a", 1, true);
	dead_letter_append(dir, "s", "a", 1, STR("{}"), true, "why");
	file_replace_at(dir, "s.a.mine", "x", 1, 0600);
	assert_int_equal(cursor_forget(dir, "s"), 3);
	assert_false(exists(dir, "s.a.cursor"));
	assert_false(exists(dir, "s.a.dlq.jsonl"));
	assert_true(exists(dir, "s2.a.cursor"));
	assert_true(exists(dir, "s.a.mine"));
	assert_int_equal(cursor_forget(dir, "s"), 0);
	close(dir);
}

/* Only of sessions that are gone, and only when the newest of its files is old. */
static void test_sweep(void **state)
{
	int dir = open(*state, O_DIRECTORY | O_CLOEXEC);

	cursor_store(dir, GONE, "a", 1, true);
	dead_letter_append(dir, GONE, "a", 1, STR("{}"), true, "why");
	cursor_store(dir, THERE, "a", 1, true);
	cursor_store(dir, YOUNG, "a", 1, true);
	cursor_store(dir, YOUNG, "b", 1, true);
	cursor_store(dir, "notours", "a", 1, true);
	age(dir, GONE ".a.cursor", 5000);
	age(dir, THERE ".a.cursor", 5000);
	age(dir, YOUNG ".a.cursor", 5000);
	age(dir, "notours.a.cursor", 5000);
	assert_int_equal(cursor_sweep(dir, 3600, is_there, NULL), 0); /* a young dead letter */
	age(dir, GONE ".a.dlq.jsonl", 5000);
	assert_int_equal(cursor_sweep(dir, 3600, is_there, NULL), 2);
	assert_false(exists(dir, GONE ".a.cursor"));
	assert_true(exists(dir, THERE ".a.cursor"));
	assert_true(exists(dir, YOUNG ".a.cursor"));
	assert_true(exists(dir, "notours.a.cursor"));
	close(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_round_trip, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(test_damage, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(test_names_stay_inside, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(test_dead_letter, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(test_floor, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(test_forget, make_dir, drop_dir),
		cmocka_unit_test_setup_teardown(test_sweep, make_dir, drop_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
