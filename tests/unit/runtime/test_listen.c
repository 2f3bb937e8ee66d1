// SPDX-License-Identifier: Apache-2.0
/* Init's own source, its system calls answered here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/init/sys.h"

#define FIRST_FD 40

static jmp_buf over;
static int next_fd, pipes_good, closed[16], closed_n, is_helper, interrupted, sent;
static long read_gives, answered, answers;

static long fake(long nr, long a, long b)
{
	switch (nr) {
	case __NR_pipe2:
		if (pipes_good-- <= 0)
			return -24; /* EMFILE */
		((int *)a)[0] = next_fd++;
		((int *)a)[1] = next_fd++;
		return 0;
	case __NR_clone:
		return is_helper ? 0 : -11; /* EAGAIN */
	case __NR_read:
		if (interrupted-- > 0)
			return -4; /* EINTR */
		assert_int_equal(a, FIRST_FD);
		*(int *)b = 7;
		return read_gives;
	case __NR_write:
		assert_int_equal(a, FIRST_FD + 3);
		answered = *(long *)b;
		answers++;
		return sizeof(long);
	case __NR_close:
		assert_true(closed_n < 16);
		closed[closed_n++] = (int)a;
		return 0;
	default:
		fail();
		return -1;
	}
}

static void fake_exit(int code)
{
	(void)code;
	longjmp(over, 1);
}

#undef SYS
#define SYS(nr, a, b, c, d, e, f) ((void)(c), fake(__NR_##nr, (long)(a), (long)(b)))
#define exit_now		  fake_exit
#include "runtime/init/listen.c"

long process1_send(const struct init_frame *f, int fd)
{
	assert_int_equal(f->type, FRAME_LISTENER);
	assert_int_equal(fd, 7);
	sent++;
	return sizeof(*f);
}

static int begin(void **state)
{
	(void)state;
	next_fd = FIRST_FD;
	pipes_good = 2;
	closed_n = is_helper = interrupted = sent = 0;
	answers = answered = 0;
	read_gives = sizeof(int);
	return 0;
}

static long install_now(void)
{
	struct sock_fprog filter = { 0 };

	return setjmp(over) ? 0 : filter_install(&filter, INIT_NOTIFY_HELPER, 1);
}

/* Of a payload that may have few descriptors: those of others stay open. */
static void test_closes_only_its_own(void **state)
{
	(void)state;
	for (int good = 0; good <= 2; good++) {
		begin(NULL);
		pipes_good = good;
		assert_int_equal(install_now(), good < 2 ? -24 : -11);
		assert_int_equal(closed_n, good * 2);
		for (int i = 0; i < closed_n; i++)
			assert_int_equal(closed[i], FIRST_FD + i);
	}
}

static void test_helper_always_answers(void **state)
{
	static const struct {
		long read, answer;
		int interrupted, sent;
	} t[] = {
		{ sizeof(int), 0, 0, 1 }, { sizeof(int), 0, 3, 1 }, { 0, -EIO, 0, 0 },
		{ 2, -EIO, 0, 0 },	  { -EBADF, -EBADF, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		begin(NULL);
		is_helper = 1;
		read_gives = t[i].read;
		interrupted = t[i].interrupted;
		install_now();
		assert_int_equal(answers, 1);
		assert_int_equal(answered, t[i].answer);
		assert_int_equal(sent, t[i].sent);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_closes_only_its_own, begin),
		cmocka_unit_test_setup(test_helper_always_answers, begin),
	};

	return cmocka_run_group_tests_name("runtime/init/listen", tests, NULL, NULL);
}
