// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>

#include "userspace/event/names.h"

static void system_calls(void **state)
{
	static const struct {
		long nr;
		const char *name;
	} cases[] = { { SYS_read, "read" },
		      { SYS_execve, "execve" },
		      { SYS_openat, "openat" },
		      { SYS_setns, "setns" },
		      { SYS_unshare, "unshare" },
		      { SYS_mount, "mount" },
		      { SYS_bpf, "bpf" },
		      { SYS_connect, "connect" },
		      { SYS_clone3, "clone3" },
		      { SYS_io_uring_setup, "io_uring_setup" },
		      { SYS_landlock_restrict_self, "landlock_restrict_self" } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(name_syscall((uint16_t)cases[i].nr), cases[i].name);
	assert_null(name_syscall(0xffff));
	assert_null(name_syscall(400)); /* a hole that both tables have */
}

static void signals_as_the_c_library_names_them(void **state)
{
	(void)state;
	for (int sig = 1; sig < 32; sig++) {
		char want[32];

		if (sig == SIGIO) /* known as SIGPOLL, too */
			continue;
		snprintf(want, sizeof(want), "SIG%s", sigabbrev_np(sig));
		assert_string_equal(name_signal((uint32_t)sig), want);
	}
	assert_string_equal(name_signal((uint32_t)SIGRTMIN), "SIGRTMIN");
	assert_string_equal(name_signal((uint32_t)SIGRTMIN + 5), "SIGRTMIN+5");
	assert_string_equal(name_signal((uint32_t)SIGRTMAX), "SIGRTMAX");
	assert_null(name_signal(0));
	assert_null(name_signal(65));
}

static void errors(void **state)
{
	(void)state;
	assert_string_equal(name_errno(EPERM), "EPERM");
	assert_string_equal(name_errno(EINPROGRESS), "EINPROGRESS");
	assert_string_equal(name_errno(512), "ERESTARTSYS");
	assert_null(name_errno(4000));
}

static void flags(void **state)
{
	struct str list[4];
	struct arena a;

	(void)state;
	arena_init(&a, 4096);
	assert_string_equal(flags_text(&a, clone_flag_names, CLONE_NEWNS | CLONE_NEWNET).p,
			    "CLONE_NEWNS|CLONE_NEWNET");
	assert_string_equal(flags_text(&a, clone_flag_names, CLONE_NEWNS | 1).p, "CLONE_NEWNS|0x1");
	assert_string_equal(flags_text(&a, clone_flag_names, 0).p, "0");
	/* everything at once is long: it is cut, not overrun */
	assert_true(flags_text(&a, mount_flag_names, UINT64_MAX).n < 512);
	assert_int_equal(flags_list(open_flag_names, O_TMPFILE | O_SYNC, list, 4), 2);
	assert_true(str_eqz(list[0], "O_SYNC"));
	assert_true(str_eqz(list[1], "O_TMPFILE"));
	assert_int_equal(flags_list(open_flag_names, UINT64_MAX, list, 4), 4);
	arena_done(&a);
}

static void others(void **state)
{
	(void)state;
	assert_string_equal(name_family(1), "unix");
	assert_string_equal(name_family(10), "inet6");
	assert_null(name_family(99));
	assert_string_equal(name_ptrace(16), "PTRACE_ATTACH");
	assert_string_equal(name_ptrace(0x4206), "PTRACE_SEIZE");
	assert_null(name_ptrace(0x4300));
	assert_null(name_ptrace(UINT64_MAX));
	assert_string_equal(name_bpf_cmd(5), "BPF_PROG_LOAD");
	assert_null(name_bpf_cmd(1000));
	assert_string_equal(name_keyctl(1), "KEYCTL_JOIN_SESSION_KEYRING");
	assert_null(name_keyctl(1000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(system_calls),
		cmocka_unit_test(signals_as_the_c_library_names_them),
		cmocka_unit_test(errors),
		cmocka_unit_test(flags),
		cmocka_unit_test(others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
