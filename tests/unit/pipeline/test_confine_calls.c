// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "userspace/pipeline/confine_calls.h"

#define ALL (~0u)

/* What a call gives in a process with these groups: 0, an errno, or minus the signal that ended it. */
static int try(uint32_t groups, long (*call)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || confine_calls(groups, NULL) < 0)
			_exit(200);
		errno = 0;
		_exit(call() < 0 ? errno : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status)) {
		assert_int_equal(confine_calls_death(status) != NULL, WTERMSIG(status) == SIGSYS);
		return -WTERMSIG(status);
	}
	assert_null(confine_calls_death(status));
	return WEXITSTATUS(status);
}

static long call_read(void)
{
	return read(-1, NULL, 0);
}

static long call_open(void)
{
	return open("/dev/null", O_RDONLY);
}

static long call_socket(void)
{
	return socket(AF_INET, SOCK_DGRAM, 0);
}

static long call_packet(void)
{
	return socket(AF_PACKET, SOCK_DGRAM, 0);
}

static long call_pair(void)
{
	int v[2];

	return socketpair(AF_UNIX, SOCK_STREAM, 0, v);
}

static long call_fork(void)
{
	return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static long call_vfork_like(void)
{
	return syscall(SYS_clone, CLONE_VM | SIGCHLD, 0, 0, 0, 0);
}

static void *nothing(void *arg)
{
	return arg;
}

static long call_thread(void)
{
	pthread_t t;
	int r = pthread_create(&t, NULL, nothing, NULL);

	errno = r;
	return r ? -1 : pthread_join(t, NULL);
}

static long call_abort(void)
{
	raise(SIGUSR1);
	return 0;
}

static long call_tgkill(void)
{
	return syscall(SYS_tgkill, getppid(), getppid(), 0);
}

static long call_kill(void)
{
	return kill(getppid(), 0);
}

static long call_execve(void)
{
	return execl("/bin/true", "true", (char *)NULL);
}

static long call_ptrace(void)
{
	return syscall(SYS_ptrace, 0, 0, 0, 0);
}

static long call_unknown(void)
{
	return syscall(SYS_acct, NULL);
}

static long call_x32(void)
{
	return syscall(0x40000000 | SYS_getpid);
}

static long call_mlock(void)
{
	static char page[4096];

	return mlock(page, sizeof(page));
}

static void test_each_group(void **state)
{
	(void)state;
	assert_int_equal(try(0, call_read), EBADF);
	assert_int_equal(try(0, call_open), EPERM);
	assert_int_equal(try(CONFINE_LOOK, call_open), 0);
	assert_int_equal(try(0, call_pair), EPERM);
	assert_int_equal(try(CONFINE_TALK, call_pair), 0);
	assert_int_equal(try(ALL & ~CONFINE_DIAL, call_socket), EPERM);
	assert_int_equal(try(CONFINE_DIAL, call_socket), 0);
	assert_int_equal(try(0, call_thread), EPERM);
	assert_int_equal(try(CONFINE_THREAD, call_thread), 0);
	assert_int_equal(try(0, call_mlock), 0);
}

static void test_whatever_the_group(void **state)
{
	(void)state;
	assert_int_equal(try(ALL, call_packet), EPERM);
	assert_int_equal(try(ALL, call_fork), EPERM);
	assert_int_equal(try(ALL, call_vfork_like), EPERM);
	assert_int_equal(try(ALL, call_unknown), EPERM);
	assert_int_equal(try(ALL, call_tgkill), EPERM);
	assert_int_equal(try(ALL, call_abort), -SIGUSR1);
	assert_int_equal(try(ALL, call_kill), -SIGSYS);
	assert_int_equal(try(ALL, call_execve), -SIGSYS);
	assert_int_equal(try(ALL, call_ptrace), -SIGSYS);
#ifdef __x86_64__
	assert_int_equal(try(ALL, call_x32), -SIGSYS);
#else
	(void)call_x32;
#endif
}

static void test_it_fits(void **state)
{
	struct sock_filter v[CONFINE_CALLS_MAX];
	(void)state;

	assert_in_range(confine_calls_program(ALL, 1, v), 100, CONFINE_CALLS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_group),
		cmocka_unit_test(test_whatever_the_group),
		cmocka_unit_test(test_it_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
