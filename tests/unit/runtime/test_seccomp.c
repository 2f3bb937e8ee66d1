// SPDX-License-Identifier: Apache-2.0
/* The payload's filter, run over calls by an interpreter of our own. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <cmocka.h>

#include "runtime/plan.h"
#include "runtime/seccomp.h"
#include "runtime/seccomp_profile.h"
#include "userspace/base/auto.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

#define ERRNO(e) (SECCOMP_RET_ERRNO | (e))

/* What seccomp filters may use of classic BPF. */
static uint32_t run(const struct sock_filter *f, size_t n, const struct seccomp_data *d)
{
	uint32_t a = 0;

	for (size_t pc = 0; pc < n; pc++) {
		const struct sock_filter *i = &f[pc];

		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			memcpy(&a, (const char *)d + i->k, sizeof(a));
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			break;
		case BPF_JMP | BPF_JA:
			pc += i->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += a == i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			pc += a > i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += a >= i->k ? i->jt : i->jf;
			break;
		case BPF_RET | BPF_K:
			return i->k;
		default:
			fail_msg("instruction %#x", i->code);
		}
	}
	fail_msg("ran off its end");
	return 0;
}

static uint32_t answer(const struct sandbox_plan *p, enum seccomp_notify how, int nr, uint64_t a0,
		       uint64_t a1)
{
	const struct seccomp_data d = { .nr = nr, .arch = ARCH, .args = { a0, a1 } };
	const struct sock_filter *f;
	struct err err = { 0 };
	size_t n;

	assert_int_equal(seccomp_get(p, how, &f, &n, &err), 0);
	return run(f, n, &d);
}

static uint32_t expected(const char *name, enum seccomp_notify how)
{
	if (!strcmp(name, "clone3"))
		return ERRNO(ENOSYS);
	return seccomp_is_notified(name, how) ? SECCOMP_RET_USER_NOTIF : ERRNO(EPERM);
}

static void test_denied(void **state)
{
	const struct sandbox_plan p = { 0 };
	size_t told[SECCOMP_NOTIFY_COUNT] = { 0 }, all = 0;
	const char *name;

	(void)state;
	for (size_t i = 0; (name = seccomp_denied(i)); i++) {
		int nr = seccomp_call(name);

		if (nr < 0)
			continue;
		all++;
		for (int how = 0; how < SECCOMP_NOTIFY_COUNT; how++) {
			assert_int_equal(answer(&p, how, nr, 1, 1), expected(name, how));
			told[how] += seccomp_is_notified(name, how);
		}
	}
	assert_int_equal(told[SECCOMP_NOTIFY_NONE], 0);
	assert_true(told[SECCOMP_NOTIFY_BLIND] >= 15);
	assert_int_equal(told[SECCOMP_NOTIFY_ALL], all - 1); /* but clone3 */
}

/* The hook sees these, and none of those. */
static void test_who_tells(void **state)
{
	(void)state;
	assert_false(seccomp_is_notified("mount", SECCOMP_NOTIFY_BLIND));
	assert_false(seccomp_is_notified("umount2", SECCOMP_NOTIFY_BLIND));
	assert_false(seccomp_is_notified("ptrace", SECCOMP_NOTIFY_BLIND));
	assert_true(seccomp_is_notified("ptrace", SECCOMP_NOTIFY_ALL));
	assert_true(seccomp_is_notified("kcmp", SECCOMP_NOTIFY_BLIND));
	assert_true(seccomp_is_notified("io_uring_enter", SECCOMP_NOTIFY_BLIND));
	assert_true(seccomp_is_notified("listmount", SECCOMP_NOTIFY_BLIND));
	assert_false(seccomp_is_notified("kcmp", SECCOMP_NOTIFY_NONE));
	assert_false(seccomp_is_notified("getpid", SECCOMP_NOTIFY_ALL));
	assert_false(seccomp_is_notified("no such call", SECCOMP_NOTIFY_ALL));
}

static void test_by_argument(void **state)
{
	static const struct {
		int nr;
		uint64_t a0, a1;
		uint32_t is[SECCOMP_NOTIFY_COUNT];
	} rows[] = {
#define TOLD	  SECCOMP_RET_USER_NOTIF
#define ALWAYS(x) { x, x, x, x }
#define HOOKED                                         \
	{                                              \
		ERRNO(EPERM), ERRNO(EPERM), TOLD, TOLD \
	}
#define SOCKETS                                                \
	{                                                      \
		ERRNO(EPERM), ERRNO(EPERM), ERRNO(EPERM), TOLD \
	}
#define UNSEEN                                 \
	{                                      \
		ERRNO(EPERM), TOLD, TOLD, TOLD \
	}
		{ SYS_ioctl, 0, TIOCSTI, UNSEEN },
		{ SYS_ioctl, 0, 0xdeadbeef00000000 | TIOCSTI,
		  UNSEEN }, /* the kernel takes 32 bits */
		{ SYS_ioctl, 0, TIOCLINUX, UNSEEN },
		{ SYS_ioctl, 0, TIOCGWINSZ, ALWAYS(SECCOMP_RET_ALLOW) },
		{ SYS_clone, CLONE_NEWUSER | 17, 0, HOOKED },
		{ SYS_clone, 17, 0, ALWAYS(SECCOMP_RET_ALLOW) },
		{ SYS_clone3, 0, 0, ALWAYS(ERRNO(ENOSYS)) },
		{ SYS_personality, 0x40000, 0, HOOKED },
		{ SYS_personality, 0xffffffff, 0, ALWAYS(SECCOMP_RET_ALLOW) },
		{ SYS_socket, AF_VSOCK, 0, SOCKETS },
		{ SYS_socket, AF_INET, 0, ALWAYS(SECCOMP_RET_ALLOW) },
		{ SYS_getpid, 0, 0, ALWAYS(SECCOMP_RET_ALLOW) },
		{ 500, 0, 0, ALWAYS(ERRNO(ENOSYS)) },
#if defined(__x86_64__)
		{ 0x40000000 | 39, 0, 0, ALWAYS(SECCOMP_RET_KILL_PROCESS) },
#endif
	};
	const struct sandbox_plan p = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (int how = 0; how < SECCOMP_NOTIFY_COUNT; how++)
			assert_int_equal(answer(&p, how, rows[i].nr, rows[i].a0, rows[i].a1),
					 rows[i].is[how]);
}

/* A profile neither takes an attempt from us nor makes a notified one of its own. */
static void test_behind_a_profile(void **state)
{
	static const char text[] =
		"{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"syscalls\": ["
		"{\"names\": [\"kcmp\", \"mount\", \"getpid\", \"ioctl\"], \"action\": \"SCMP_ACT_ALLOW\"}]}";
	struct seccomp_profile profile = { 0 };
	struct sandbox_plan p = { .seccomp = &profile };
	struct err err = { 0 };
	struct arena mem;

	(void)state;
	arena_init(&mem, 1 << 20);
	assert_int_equal(seccomp_profile_parse(&profile, &mem, "p",
					       (struct str){ text, sizeof(text) - 1 }, "6.1.0",
					       &err),
			 0);
	for (int how = 0; how < SECCOMP_NOTIFY_COUNT; how++) {
		assert_int_equal(answer(&p, how, SYS_kcmp, 0, 0), expected("kcmp", how));
		assert_int_equal(answer(&p, how, SYS_mount, 0, 0), expected("mount", how));
		assert_int_equal(answer(&p, how, SYS_migrate_pages, 0, 0),
				 expected("migrate_pages", how)); /* in no list of its */
		assert_int_equal(answer(&p, how, SYS_ioctl, 0, TIOCSTI),
				 how ? SECCOMP_RET_USER_NOTIF : ERRNO(EPERM));
		assert_int_equal(answer(&p, how, SYS_getpid, 0, 0), SECCOMP_RET_ALLOW);
		assert_int_equal(answer(&p, how, SYS_sendmsg, 0, 0), ERRNO(EPERM));
	}
	arena_done(&mem);
}

struct notified {
	size_t n;
	bool sti, mount, clone;
};

static void note_notified(void *arg, const char *name)
{
	struct notified *l = arg;

	l->n++;
	l->sti |= !strcmp(name, "ioctl(TIOCSTI)");
	l->mount |= !strcmp(name, "mount");
	l->clone |= !strcmp(name, "clone(CLONE_NEW*)");
	assert_string_not_equal(name, "clone3");
}

static void test_list(void **state)
{
	struct notified none = { 0 }, blind = { 0 }, all = { 0 };

	(void)state;
	seccomp_notified_each(SECCOMP_NOTIFY_NONE, note_notified, &none);
	seccomp_notified_each(SECCOMP_NOTIFY_BLIND, note_notified, &blind);
	seccomp_notified_each(SECCOMP_NOTIFY_ALL, note_notified, &all);
	assert_int_equal(none.n, 0);
	assert_true(blind.sti && !blind.mount && !blind.clone);
	assert_true(all.sti && all.mount && all.clone);
	assert_true(all.n > blind.n + 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_denied),	    cmocka_unit_test(test_who_tells),
		cmocka_unit_test(test_by_argument), cmocka_unit_test(test_behind_a_profile),
		cmocka_unit_test(test_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
