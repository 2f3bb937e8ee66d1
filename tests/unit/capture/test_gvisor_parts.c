// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/syscall.h>

#include "userspace/base/auto.h"
#include "userspace/capture/gvisor_parts.h"

static bool may(uint64_t bits[GVISOR_PARTS][GVISOR_WORDS], enum gvisor_part part, int nr)
{
	return bits[part][nr / 64] >> (nr % 64) & 1;
}

/* What facts of both versions name as each part's work, and what none of them has any business with. */
static void test_baselines(void **state)
{
	static const int never[] = { SYS_mount,
				     SYS_setns,
				     SYS_unshare,
				     SYS_bpf,
				     SYS_keyctl,
				     SYS_init_module,
				     SYS_execve,
				     SYS_execveat,
				     SYS_chroot,
				     SYS_process_vm_readv,
				     SYS_process_vm_writev };
	uint64_t bits[GVISOR_PARTS][GVISOR_WORDS];

	(void)state;
	gvisor_baseline_fill(bits, false);
	for (int part = GVISOR_GOFER; part <= GVISOR_STUB; part++)
		for (size_t i = 0; i < ARRAY_SIZE(never); i++)
			assert_false(may(bits, (enum gvisor_part)part, never[i]));
	assert_true(may(bits, GVISOR_SENTRY, SYS_ptrace));
	assert_true(may(bits, GVISOR_SENTRY, SYS_pwritev2));
	assert_false(may(bits, GVISOR_SENTRY, SYS_openat));
	assert_false(may(bits, GVISOR_SENTRY, SYS_socket));
	assert_true(may(bits, GVISOR_GOFER, SYS_openat));
	assert_true(may(bits, GVISOR_GOFER, SYS_fgetxattr));
	assert_false(may(bits, GVISOR_GOFER, SYS_ptrace));
	assert_false(may(bits, GVISOR_GOFER, SYS_socket));
	assert_true(may(bits, GVISOR_STUB, SYS_mmap));
	assert_false(may(bits, GVISOR_STUB, SYS_openat));
	gvisor_baseline_fill(bits, true);
	assert_true(may(bits, GVISOR_SENTRY, SYS_socket));
	assert_false(may(bits, GVISOR_GOFER, SYS_socket));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_baselines) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
