// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
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

/* What the program answers to a call with no argument set, by our own reading of it. */
static uint32_t answer(const struct sock_filter *v, int n, uint32_t nr, uint32_t arch)
{
	uint32_t a = 0;

	for (int i = 0; i < n; i++)
		switch (v[i].code) {
		case BPF_LD | BPF_W | BPF_ABS:
			a = v[i].k == 0 ? nr : v[i].k == 4 ? arch : 0;
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= v[i].k;
			break;
		case BPF_JMP | BPF_JA:
			i += (int)v[i].k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			i += a == v[i].k ? v[i].jt : v[i].jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			i += a >= v[i].k ? v[i].jt : v[i].jf;
			break;
		case BPF_RET | BPF_K:
			return v[i].k;
		default:
			fail_msg("instruction %d: %x", i, v[i].code);
		}
	fail_msg("it runs off its end");
	return 0;
}

static void test_every_number(void **state)
{
#ifdef __x86_64__
	const uint32_t arch = 0xc000003e;
#else
	const uint32_t arch = 0xc00000b7;
#endif
	struct sock_filter v[CONFINE_CALLS_MAX];
	int n = confine_calls_program(ALL, 1, v), allowed = 0, deadly = 0;
	(void)state;

	for (uint32_t nr = 0; nr < 2000; nr++) {
		uint32_t r = answer(v, n, nr, arch);

		assert_true(r == SECCOMP_RET_ALLOW || r == SECCOMP_RET_KILL_PROCESS ||
			    r == (SECCOMP_RET_ERRNO | EPERM) ||
			    (nr == SYS_clone3 && r == (SECCOMP_RET_ERRNO | ENOSYS)));
		allowed += r == SECCOMP_RET_ALLOW;
		deadly += r == SECCOMP_RET_KILL_PROCESS;
		assert_int_equal(answer(v, n, nr, arch ^ 1), SECCOMP_RET_KILL_PROCESS);
	}
	assert_in_range(allowed, 100, 170);
	assert_int_equal(deadly, 38);
	assert_int_equal(answer(v, n, SYS_bpf, arch), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(answer(v, n, SYS_openat, arch), SECCOMP_RET_ALLOW);
	assert_int_equal(answer(v, n, 0xffffffff, arch), SECCOMP_RET_KILL_PROCESS);
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
		cmocka_unit_test(test_every_number),
		cmocka_unit_test(test_it_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
