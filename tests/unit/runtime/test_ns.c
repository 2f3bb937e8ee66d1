// SPDX-License-Identifier: Apache-2.0
/* What a hostile init can say to the launcher. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <errno.h>
#include <cmocka.h>

#include "runtime/backend.h"
#include "runtime/init/frame.h"
#include "runtime/sandbox_priv.h"

static const struct sandbox_plan host_plan = { .net = SANDBOX_NET_HOST };
static struct sandbox s;
static int init_end;

static int setup(void **state)
{
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	s = (struct sandbox){
		.stage = STAGE_RUNNING, .control = pair[0], .pidfd = -1, .plan = &host_plan
	};
	init_end = pair[1];
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close(s.control);
	if (init_end >= 0)
		close(init_end);
	return 0;
}

static void say(const void *p, size_t n)
{
	assert_int_equal(send(init_end, p, n, MSG_DONTWAIT), n);
}

static void say_exit(int code, int sig)
{
	struct init_frame f = {
		.magic = INIT_FRAME_MAGIC, .type = FRAME_EXIT, .code = code, .signal = sig
	};

	say(&f, sizeof(f));
}

static void test_nothing_said(void **state)
{
	(void)state;
	assert_int_equal(backend_ns.dispatch(&s), SANDBOX_RUNNING);
}

static void test_exit(void **state)
{
	(void)state;
	say_exit(7, 0);
	assert_int_equal(backend_ns.dispatch(&s), SANDBOX_EXITED);
	assert_int_equal(s.exit_code, 7);
	assert_int_equal(s.exit_signal, 0);
}

static void test_only_the_first_end_counts(void **state)
{
	(void)state;
	say_exit(7, 0);
	say_exit(0, 0);
	assert_int_equal(backend_ns.dispatch(&s), SANDBOX_EXITED);
	assert_int_equal(backend_ns.dispatch(&s), SANDBOX_EXITED);
	assert_int_equal(s.exit_code, 7);
}

static void test_impossible_ends(void **state)
{
	static const struct {
		int code, sig, want;
	} rows[] = {
		{ -1, 0, 255 }, { 256, 0, 0 },	   { 0x7fffffff, 0, 255 },
		{ 3, 1000, 3 }, { 4, -9, 4 },	   { 0, SIGKILL, 128 + SIGKILL },
		{ 5, 64, 192 }, { 1, 1 << 30, 1 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (i) {
			teardown(state);
			setup(state);
		}
		say_exit(rows[i].code, rows[i].sig);
		assert_int_equal(backend_ns.dispatch(&s), SANDBOX_EXITED);
		assert_int_equal(s.exit_code, rows[i].want);
	}
}

static void test_junk(void **state)
{
	char junk[4096];
	struct init_frame f = { .magic = INIT_FRAME_MAGIC, .type = 12345 };

	(void)state;
	memset(junk, 0xff, sizeof(junk));
	say(junk, 1);
	say(junk, sizeof(f) - 1);
	say(junk, sizeof(f));
	say(junk, sizeof(junk)); /* cut by the receiver, and none of ours */
	say(&f, sizeof(f));
	f.type = FRAME_FAILED;
	say(&f, sizeof(f));
	assert_int_equal(backend_ns.dispatch(&s), SANDBOX_RUNNING);
	say_exit(1, 0);
	assert_int_equal(backend_ns.dispatch(&s), SANDBOX_EXITED);
}

/* A frame of the right size but with a tail is not cut down to a good one. */
static void test_too_long_is_not_a_frame(void **state)
{
	struct {
		struct init_frame f;
		char more;
	} big = { .f = { .magic = INIT_FRAME_MAGIC, .type = FRAME_EXIT } };

	(void)state;
	say(&big, sizeof(big));
	assert_int_equal(backend_ns.dispatch(&s), SANDBOX_RUNNING);
}

/* A turn ends however much is said. */
static void test_flood(void **state)
{
	struct init_frame f = { .magic = INIT_FRAME_MAGIC, .type = FRAME_STARTED };
	int sent = 0;

	(void)state;
	while (send(init_end, &f, sizeof(f), MSG_DONTWAIT) == sizeof(f))
		sent++;
	assert_true(sent > 64);
	assert_int_equal(backend_ns.dispatch(&s), SANDBOX_RUNNING);
	assert_int_equal(send(init_end, &f, sizeof(f), MSG_DONTWAIT), sizeof(f));
}

static void test_silent_end(void **state)
{
	(void)state;
	close(init_end);
	init_end = -1;
	assert_true(backend_ns.dispatch(&s) < 0);
}

static void test_deaf_init_does_not_block_us(void **state)
{
	int r = 0;

	(void)state;
	for (int i = 0; r == 0 && i < 100000; i++)
		r = backend_ns.signal(&s, SIGTERM);
	assert_int_equal(r, -EAGAIN);
}

static int follow(uint32_t type, int code)
{
	struct init_frame f = { .magic = INIT_FRAME_MAGIC, .type = type, .code = code };

	say(&f, sizeof(f));
	return backend_ns.follow(&s, 0, NULL);
}

/* A sandbox that was frozen at its first act says nothing: whoever has to thaw or kill it is not kept. */
static void test_a_start_is_not_waited_for(void **state)
{
	(void)state;
	assert_int_equal(backend_ns.follow(&s, 0, NULL), SANDBOX_STARTING);
	assert_int_equal(backend_ns.follow(&s, 1, NULL), SANDBOX_STARTING);
	assert_int_equal(follow(FRAME_STARTED, 0), SANDBOX_RUNNING);
}

static void test_starts_that_failed(void **state)
{
	static char *argv[] = { "x", NULL };
	static const struct sandbox_plan plan = { .net = SANDBOX_NET_HOST, .argv = argv };
	static const struct {
		uint32_t type;
		int code, want;
	} rows[] = {
		{ FRAME_EXEC_FAILED, ENOENT, -ENOENT },
		{ FRAME_EXEC_FAILED, EPERM, -EACCES },
		{ FRAME_EXEC_FAILED, -1, -EIO },
		{ FRAME_FAILED, ENOENT, -EIO }, /* that number is the command's */
		{ FRAME_FAILED, ENOSPC, -ENOSPC },
		{ FRAME_FAILED, 1 << 20, -EIO },
		{ FRAME_EXIT, 0, -EPROTO },
		{ FRAME_MAPPED, 0, -EPROTO },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (i) {
			teardown(state);
			setup(state);
		}
		s.plan = &plan;
		assert_int_equal(follow(rows[i].type, rows[i].code), rows[i].want);
	}
	close(init_end);
	init_end = -1;
	assert_int_equal(backend_ns.follow(&s, 0, NULL), -EIO);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_nothing_said),
		T(test_exit),
		T(test_only_the_first_end_counts),
		T(test_impossible_ends),
		T(test_junk),
		T(test_too_long_is_not_a_frame),
		T(test_flood),
		T(test_silent_end),
		T(test_deaf_init_does_not_block_us),
		T(test_a_start_is_not_waited_for),
		T(test_starts_that_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
