// SPDX-License-Identifier: Apache-2.0
/* What a hostile init can say to the launcher. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "runtime/backend.h"
#include "runtime/init/frame.h"
#include "runtime/sandbox_priv.h"

static struct sandbox s;
static int init_end;

static int setup(void **state)
{
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	s = (struct sandbox){ .stage = STAGE_RUNNING, .control = pair[0], .pidfd = -1 };
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

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_nothing_said),	 T(test_exit),	     T(test_only_the_first_end_counts),
		T(test_impossible_ends), T(test_junk),	     T(test_too_long_is_not_a_frame),
		T(test_flood),		 T(test_silent_end), T(test_deaf_init_does_not_block_us),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
