// SPDX-License-Identifier: Apache-2.0
/* What is learned to be usual, how it is kept, and what is new then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/enrich/baseline.h"

static struct arena arena;
static struct event ev;

static struct event *make(enum wire_kind kind, const char *exe, const char *outcome)
{
	arena_reset(&arena);
	event_init(&ev, kind, &arena);
	event_set_strz(&ev, F_PROC_EXE, exe);
	if (outcome)
		event_set_strz(&ev, F_OUTCOME, outcome);
	return &ev;
}

static struct event *exec_of(const char *exe)
{
	return make(WIRE_EXEC, exe, "success");
}

static struct event *open_of(const char *exe, const char *path)
{
	event_set_strz(make(WIRE_FILE_OPEN, exe, "success"), F_FILE_PATH, path);
	return &ev;
}

static struct event *connect_to(const char *exe, const char *ip, const char *name, uint64_t port)
{
	struct ip_addr a;

	make(WIRE_NET_CONNECT, exe, "pending");
	assert_int_equal(ip_addr_parse(str_from(ip), &a), 0);
	event_set_ip(&ev, F_NET_DST_IP, a);
	if (name)
		event_set_strz(&ev, F_NET_DST_NAME, name);
	event_set_u64(&ev, F_NET_DST_PORT, port);
	return &ev;
}

/* 1 new, 0 known, -1 says nothing. */
static int is_new(const struct baseline *b, struct event *e)
{
	baseline_apply(b, e);
	return event_has(e, F_BASELINE_NEW) ? (int)event_u64(e, F_BASELINE_NEW) : -1;
}

/* Finished, written and read again. */
static struct baseline *kept(struct baseline *b, struct buf *text)
{
	struct baseline *again = NULL;
	struct err err = { 0 };

	assert_int_equal(baseline_finish(b), 0);
	assert_int_equal(baseline_write(b, text), 0);
	if (baseline_read(&again, "f", (struct str){ text->p, text->n }, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(baseline_count(again), baseline_count(b));
	baseline_free(b);
	return again;
}

static struct baseline *fresh(void)
{
	struct baseline *b;

	assert_int_equal(baseline_new(&b), 0);
	return b;
}

static void what_was_seen_is_not_new(void **state)
{
	struct baseline *b = fresh();
	auto_buf struct buf text = { 0 };

	(void)state;
	for (int i = 0; i < 3000; i++) /* again and again */
		assert_int_equal(baseline_learn(b, exec_of("/usr/bin/git"), NULL), 0);
	baseline_learn(b, open_of("/usr/bin/git", "/workspace/.git/config"), NULL);
	baseline_learn(b, open_of("/usr/bin/git", "/proc/4711/status"), NULL);
	baseline_learn(b, connect_to("/usr/bin/git", "192.0.2.1", "github.com", 443), NULL);
	baseline_learn(b, connect_to("/usr/bin/git", "2001:db8::1", NULL, 22), NULL);
	/* What failed shows nothing but that it was tried. */
	baseline_learn(b, make(WIRE_EXEC, "/usr/bin/evil", "failure"), NULL);
	b = kept(b, &text);
	assert_int_equal(baseline_count(b), 5);
	assert_int_equal(is_new(b, exec_of("/usr/bin/git")), 0);
	assert_int_equal(is_new(b, exec_of("/usr/bin/evil")), 1);
	assert_int_equal(is_new(b, open_of("/usr/bin/git", "/workspace/.git/config")), 0);
	assert_int_equal(is_new(b, open_of("/usr/bin/git", "/workspace/.git/hooks")), 1);
	assert_int_equal(is_new(b, open_of("/usr/bin/vi", "/workspace/.git/config")), 1);
	assert_int_equal(is_new(b, open_of("/usr/bin/git", "/proc/12/status")), 0);
	assert_int_equal(is_new(b, open_of("/usr/bin/git", "/proc/12/mem")), 1);
	/* By name, wherever it leads; else by address and port. */
	assert_int_equal(is_new(b, connect_to("/usr/bin/git", "192.0.2.99", "github.com", 443)), 0);
	assert_int_equal(is_new(b, connect_to("/usr/bin/git", "192.0.2.1", NULL, 443)), 1);
	assert_int_equal(is_new(b, connect_to("/usr/bin/git", "192.0.2.1", "github.com", 80)), 1);
	assert_int_equal(is_new(b, connect_to("/usr/bin/git", "2001:db8::1", NULL, 22)), 0);
	assert_int_equal(is_new(b, make(WIRE_EXEC, "/usr/bin/evil", "failure")), -1);
	assert_int_equal(is_new(b, make(WIRE_EXIT, "/usr/bin/evil", "success")), -1);
	baseline_free(b);
}

static void many_files_become_their_directory(void **state)
{
	struct baseline *b = fresh();
	auto_buf struct buf text = { 0 };
	char path[128];

	(void)state;
	for (int i = 0; i < 40; i++) {
		snprintf(path, sizeof(path), "/workspace/src/f%d.c", i);
		baseline_learn(b, open_of("/usr/bin/cc", path), NULL);
		snprintf(path, sizeof(path), "/workspace/build/d%d/x/y.o", i);
		baseline_learn(b, open_of("/usr/bin/cc", path), NULL);
		snprintf(path, sizeof(path), "/etc/f%d", i);
		baseline_learn(b, open_of("/usr/bin/cc", path), NULL);
		snprintf(path, sizeof(path), "/root/.ssh/k%d", i);
		baseline_learn(b, open_of("/usr/bin/cc", path), NULL);
	}
	b = kept(b, &text);
	buf_addc(&text, 0);
	assert_int_equal(is_new(b, open_of("/usr/bin/cc", "/workspace/src/new.c")), 0);
	assert_int_equal(is_new(b, open_of("/usr/bin/cc", "/workspace/src/deep/new.c")), 0);
	assert_int_equal(is_new(b, open_of("/usr/bin/cc", "/workspace/other.c")), 1);
	/* A directory a file: each of them is known, another one is not. */
	assert_int_equal(is_new(b, open_of("/usr/bin/cc", "/workspace/build/d3/x/y.o")), 0);
	assert_int_equal(is_new(b, open_of("/usr/bin/cc", "/etc/f3")), 0);
	assert_int_equal(is_new(b, open_of("/usr/bin/cc", "/etc/shadow")), 1);
	assert_int_equal(is_new(b, open_of("/usr/bin/cc", "/root/.ssh/id_rsa")), 1);
	assert_int_equal(is_new(b, open_of("/usr/bin/ld", "/workspace/src/new.c")), 1);
	assert_non_null(strstr(text.p, "open\t/usr/bin/cc\t/workspace/src/\n"));
	assert_null(strstr(text.p, "/workspace/src/f"));
	baseline_free(b);
}

static void odd_names_survive_the_file(void **state)
{
	struct baseline *b = fresh();
	auto_buf struct buf text = { 0 };

	(void)state;
	baseline_learn(b, open_of("/usr/bin/x", "/workspace/a\\b\nc\x7f"), NULL);
	b = kept(b, &text);
	assert_int_equal(is_new(b, open_of("/usr/bin/x", "/workspace/a\\b\nc\x7f")), 0);
	assert_int_equal(is_new(b, open_of("/usr/bin/x", "/workspace/a\\b")), 1);
	baseline_free(b);
}

static void a_path_that_is_too_long_is_new(void **state)
{
	struct baseline *b = fresh();
	static char path[BASELINE_LINE_MAX + 10];

	(void)state;
	memset(path, 'a', sizeof(path) - 1);
	path[0] = '/';
	baseline_learn(b, open_of("/usr/bin/x", path), NULL);
	baseline_finish(b);
	assert_int_equal(baseline_count(b), 0);
	assert_int_equal(is_new(b, open_of("/usr/bin/x", path)), 1);
	baseline_free(b);
}

static void broken_files_are_refused(void **state)
{
	static const char *const bad[][2] = {
		{ "exec\n", "f:1:1: expected exec, open or connect" },
		{ "# x\n\nexce\t/bin/x\n", "f:3:1: expected exec, open or connect" },
		{ "exec\t\n", "f:1:1: a field is empty" },
		{ "exec\t/bin/x\t/y\n", "f:1:1: exec has one program" },
		{ "open\t/bin/x\n", "f:1:1: expected a program and what it reached" },
		{ "open\t/bin/x\t\\q\n", "f:1:13: expected a character or \\xHH" },
		{ "open\t/bin/x\t\\x0", "f:1:13: expected" },
		{ "open\t/bin/x\t\\x00\n", "f:1:13: expected" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct baseline *b = NULL;
		struct err err = { 0 };

		assert_int_equal(baseline_read(&b, "f", str_from(bad[i][0]), &err), -EINVAL);
		if (!strstr(err.text, bad[i][1]))
			fail_msg("%s: %s", bad[i][0], err.text);
	}
}

/* Names with a tab, a newline or a backslash are the sandbox's to choose: the file stays readable, and no
 * name can pass for two fields. */
static void names_cannot_forge_lines(void **state)
{
	static const char odd[] = "/tmp/a\t/etc\nexec\t/x\\y\x7f";
	struct baseline *b = NULL;
	auto_buf struct buf text = { 0 };

	(void)state;
	assert_int_equal(baseline_new(&b), 0);
	assert_int_equal(baseline_learn(b, exec_of(odd), NULL), 0);
	assert_int_equal(baseline_learn(b, open_of(odd, "/w/a\tb"), NULL), 0);
	b = kept(b, &text);
	assert_int_equal(baseline_count(b), 2);
	assert_int_equal(is_new(b, exec_of(odd)), 0);
	assert_int_equal(is_new(b, open_of(odd, "/w/a\tb")), 0);
	assert_int_equal(is_new(b, exec_of("/tmp/a")), 1);
	assert_int_equal(is_new(b, exec_of("/x\\y\x7f")), 1);
	assert_int_equal(is_new(b, open_of("/tmp/a", "/etc")), 1);
	baseline_free(b);
}

/* What no line can hold is not usual; it must not go by untold. */
static void too_long_is_new(void **state)
{
	struct baseline *b = NULL;
	char exe[4097];

	(void)state;
	memset(exe, 1, sizeof(exe) - 1);
	exe[sizeof(exe) - 1] = 0;
	assert_int_equal(baseline_new(&b), 0);
	assert_int_equal(baseline_learn(b, exec_of(exe), NULL), 0);
	assert_int_equal(baseline_finish(b), 0);
	assert_int_equal(is_new(b, exec_of(exe)), 1);
	assert_int_equal(is_new(b, connect_to(exe, "10.0.0.1", NULL, 1)), 1);
	baseline_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_seen_is_not_new),
		cmocka_unit_test(many_files_become_their_directory),
		cmocka_unit_test(odd_names_survive_the_file),
		cmocka_unit_test(names_cannot_forge_lines),
		cmocka_unit_test(too_long_is_new),
		cmocka_unit_test(a_path_that_is_too_long_is_new),
		cmocka_unit_test(broken_files_are_refused),
	};
	int r;

	arena_init(&arena, 1 << 20);
	r = cmocka_run_group_tests(tests, NULL, NULL);
	arena_done(&arena);
	return r;
}
