// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/pipeline/notify.h"

static const uint64_t T0 = 1000 * NSEC_PER_SEC;

static void test_rate(void **state)
{
	struct notify n = { 0 };
	uint64_t now = T0;

	(void)state;
	for (int i = 0; i <= NOTIFY_BURST; i++) {
		assert_int_equal(notify_wait(&n, now), 0);
		notify_took(&n, now);
	}
	assert_int_equal(notify_wait(&n, now), NOTIFY_EVERY_NS);
	/* From then on one each NOTIFY_EVERY_NS, however hard it is tried. */
	for (int i = 0; i < 1000; i++) {
		now += notify_wait(&n, now);
		assert_int_equal(notify_wait(&n, now), 0);
		notify_took(&n, now);
	}
	assert_int_equal(now - T0, 1000ull * NOTIFY_EVERY_NS);
	/* Who was quiet has a burst again, not more. */
	now += 3600 * NSEC_PER_SEC;
	for (int i = 0; i <= NOTIFY_BURST; i++)
		notify_took(&n, now);
	assert_true(notify_wait(&n, now) > 0);
}

static struct seccomp_notif call(uint32_t pid, int nr, uint64_t arg)
{
	return (struct seccomp_notif){
		.id = 1,
		.pid = pid,
		.data = { .nr = nr, .instruction_pointer = 0x1000, .args = { arg } }
	};
}

static void write_file(const char *dir, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void see_fork(struct notify *n, uint32_t tgid, uint64_t start)
{
	const struct wire_fork f = { .h = { .kind = WIRE_FORK, .len = sizeof(f) },
				     .child_tgid = tgid,
				     .child_start = start };

	notify_see(n, &f, sizeof(f));
	notify_see(n, &f, sizeof(f.h) - 1); /* cut: of no use */
}

static void test_record(void **state)
{
	char dir[] = "/tmp/test_notify.XXXXXX", sub[64], at[128];
	struct seccomp_notif req = call(4711, SYS_kcmp, 0xfeedface12345678);
	struct notify n = { 0 };
	struct wire_escape rec;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	notify_record(&rec, 3, fd, &req, EPERM); /* nothing is known of it */
	notify_find_start(&n, &rec);
	assert_int_equal(rec.h.tgid, 4711);
	assert_int_equal(rec.h.start, 0);

	for (int i = 0; i < 2; i++) {
		snprintf(sub, sizeof(sub), "%s/%d", dir, i ? 4700 : 4711);
		assert_int_equal(mkdir(sub, 0700), 0);
	}
	snprintf(sub, sizeof(sub), "%s/4711", dir);
	/* A name with all that could be taken for a line of its own, as the kernel escapes it. */
	write_file(
		sub, "status",
		"Name:\t\\nTgid:\\t9\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t4700\nNgid:\t0\nPid:\t4711\n"
		"PPid:\t4600\nUid:\t11\t12\t13\t14\nGid:\t21\t22\t23\t24\nNStgid:\t4700\t5\t2\nNSpid:\t4711\t9\t3\n");
	write_file(sub, "comm", "\nTgid:\t9\n");
	snprintf(sub, sizeof(sub), "%s/4700", dir);
	write_file(
		sub, "stat",
		"4700 (a) b) S 4600 4700 4700 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 12345 0 0\n");
	see_fork(&n, 4700, 123450000001ull - 10000000); /* another one of that number, before */
	see_fork(&n, 4700, 123456789012ull);
	notify_record(&rec, 3, fd, &req, EPERM);
	notify_find_start(&n, &rec);
	assert_int_equal(rec.h.kind, WIRE_ESCAPE);
	assert_int_equal(rec.h.vantage, WIRE_V_RUNTIME);
	assert_int_equal(rec.h.len, sizeof(rec));
	assert_int_equal(rec.h.sandbox, 3);
	assert_int_equal(rec.h.nr, SYS_kcmp);
	assert_int_equal(rec.h.ret, -EPERM);
	assert_int_equal(rec.type, WIRE_ESCAPE_SECCOMP);
	assert_int_equal(rec.args[0], 0xfeedface12345678);
	assert_int_equal(rec.h.tid, 4711);
	assert_int_equal(rec.h.tgid, 4700);
	assert_int_equal(rec.h.ppid, 4600);
	assert_int_equal(rec.h.uid, 12);
	assert_int_equal(rec.h.gid, 22);
	assert_int_equal(rec.h.nspid, 2);
	assert_int_equal(rec.h.start, 123456789012ull);
	assert_string_equal(rec.h.comm, "\nTgid:\t9");
	assert_int_equal(rec.detail.len, 0);

	see_fork(&n, 4700, 223456789012ull); /* /proc tells of one that was born at another time */
	notify_record(&rec, 3, fd, &req, EPERM);
	notify_find_start(&n, &rec);
	assert_int_equal(rec.h.start, 0);

	notify_forget_who(&rec, &req);
	assert_int_equal(rec.h.tgid, 4711);
	assert_int_equal(rec.h.uid, 0);
	assert_int_equal(rec.h.nr, SYS_kcmp);
	close(fd);
	snprintf(at, sizeof(at), "rm -r %s", dir);
	assert_int_equal(system(at), 0);
}

/* Many processes: the newest ones are known. */
static void test_births(void **state)
{
	struct notify n = { 0 };
	size_t known = 0;

	(void)state;
	for (uint32_t i = 1; i <= 10 * NOTIFY_BIRTHS; i++)
		see_fork(&n, i, i);
	for (size_t i = 0; i < NOTIFY_BIRTHS; i++)
		known += n.births[i].tgid > 9 * NOTIFY_BIRTHS &&
			 n.births[i].start == n.births[i].tgid;
	assert_int_equal(known, NOTIFY_BIRTHS);
}

static void test_types(void **state)
{
	(void)state;
	assert_int_equal(notify_type(SYS_mount), WIRE_ESCAPE_MOUNT);
	assert_int_equal(notify_type(SYS_clone), WIRE_ESCAPE_CLONE_NS);
	assert_int_equal(notify_type(SYS_io_uring_enter), WIRE_ESCAPE_IO_URING);
	assert_int_equal(notify_type(SYS_fanotify_mark), WIRE_ESCAPE_FANOTIFY);
	assert_int_equal(notify_type(SYS_socket), WIRE_ESCAPE_SOCKET_FAMILY);
	assert_int_equal(notify_type(SYS_ioctl), WIRE_ESCAPE_SECCOMP);
	assert_int_equal(notify_type(SYS_kcmp), WIRE_ESCAPE_SECCOMP);
	assert_int_equal(notify_type(-1), WIRE_ESCAPE_SECCOMP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_record),
		cmocka_unit_test(test_births),
		cmocka_unit_test(test_types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
