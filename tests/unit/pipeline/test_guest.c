// SPDX-License-Identifier: Apache-2.0
/* Messages of a sentry as events: through the decoder, which is what the pipeline does with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "userspace/base/auto.h"
#include "userspace/event/decode.h"
#include "userspace/pipeline/guest.h"

#define BOOT   5000000000000ull /* CLOCK_BOOTTIME of arrival */
#define OFFSET 1700000000000000000ll
#define NOW    (OFFSET + (int64_t)BOOT)
#define START  (NOW - 1000000000)
#define EVENTS 64

struct seen {
	struct event ev;
	struct arena arena;
};

static struct {
	struct guest *g;
	struct decoder *d;
	struct seen seen[EVENTS];
	size_t n;
	uint64_t chunks;
} bed;

static int feed(void *arg, const void *rec, size_t len)
{
	struct seen *s = &bed.seen[bed.n];
	int r;

	(void)arg;
	assert_true(bed.n < EVENTS);
	arena_reset(&s->arena);
	r = decoder_feed(bed.d, rec, len, &s->arena, &s->ev);
	assert_true(r >= 0);
	bed.n += r > 0;
	bed.chunks += r == 0;
	return 0;
}

static const char *const watch[] = { "/data/plans", "/etc/app.conf" };

static void begin(bool has_net)
{
	const struct guest_options opt = { .sandbox_id = 9,
					   .real_offset_ns = OFFSET,
					   .since_ns = BOOT - 30000000000,
					   .watch = watch,
					   .watch_n = ARRAY_SIZE(watch),
					   .has_net = has_net,
					   .feed = feed };

	guest_free(bed.g);
	bed.n = 0;
	assert_int_equal(guest_new(&bed.g, &opt), 0);
}

static int set_up(void **state)
{
	(void)state;
	memset(&bed, 0, sizeof(bed));
	for (size_t i = 0; i < EVENTS; i++)
		arena_init(&bed.seen[i].arena, 4 << 20);
	assert_int_equal(decoder_new(&bed.d), 0);
	begin(false);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	guest_free(bed.g);
	decoder_free(bed.d);
	for (size_t i = 0; i < EVENTS; i++)
		arena_done(&bed.seen[i].arena);
	return 0;
}

/* ---- a sentry ---- */

static void varint(struct buf *b, uint64_t v)
{
	for (; v > 0x7f; v >>= 7)
		buf_addc(b, (char)(v | 0x80));
	buf_addc(b, (char)v);
}

static void num(struct buf *b, unsigned field, int64_t v)
{
	if (!v)
		return;
	varint(b, field << 3);
	varint(b, (uint64_t)v);
}

static void bytes(struct buf *b, unsigned field, const void *p, size_t n)
{
	varint(b, field << 3 | 2);
	varint(b, n);
	buf_add(b, p, n);
}

static void text(struct buf *b, unsigned field, const char *z)
{
	bytes(b, field, z, strlen(z));
}

struct who {
	int tid, pid;
	const char *comm;
	int64_t time;
	uint32_t uid;
};

static struct buf message(const struct who *w)
{
	auto_buf struct buf c = { 0 }, cred = { 0 };
	struct buf m = { 0 };

	num(&c, 1, w->time ? w->time : NOW - 1000);
	num(&c, 2, w->tid ? w->tid : w->pid);
	num(&c, 4, w->pid);
	num(&c, 5, START + w->pid);
	num(&cred, 1, w->uid);
	num(&cred, 2, w->uid);
	bytes(&c, 7, cred.p, cred.n);
	text(&c, 8, "/work");
	text(&c, 9, w->comm ? w->comm : "sh");
	bytes(&m, 1, c.p, c.n);
	return m;
}

static void result(struct buf *m, int64_t ret, int64_t error, uint64_t sysno, bool raw)
{
	auto_buf struct buf x = { 0 };

	num(&x, 1, ret);
	num(&x, 2, error);
	bytes(m, 2, x.p ? x.p : "", x.n);
	num(m, raw ? 4 : 3, (int64_t)sysno);
}

static void deliver_dropped(struct buf *m, uint16_t type, uint32_t dropped)
{
	auto_buf struct buf p = { 0 };
	const uint8_t head[8] = { 8,
				  0,
				  (uint8_t)type,
				  (uint8_t)(type >> 8),
				  (uint8_t)dropped,
				  (uint8_t)(dropped >> 8),
				  (uint8_t)(dropped >> 16),
				  (uint8_t)(dropped >> 24) };

	buf_add(&p, head, sizeof(head));
	buf_add(&p, m->p, m->n);
	assert_false(p.failed);
	guest_packet(bed.g, (struct str){ p.p, p.n }, BOOT, OFFSET);
	buf_done(m);
	*m = (struct buf){ 0 };
}

static void deliver(struct buf *m, uint16_t type)
{
	deliver_dropped(m, type, 0);
}

static void starts(void)
{
	struct buf m = message(&(struct who){ .pid = 1 });

	text(&m, 2, "an-id-of-the-sentrys-own");
	text(&m, 4, "/bin/sh");
	text(&m, 4, "-c");
	text(&m, 5, "PATH=/bin");
	deliver(&m, SECCHECK_START);
}

static void forks(int parent, int child)
{
	struct buf m = message(&(struct who){ .pid = parent });

	num(&m, 3, child);
	num(&m, 4, child);
	num(&m, 5, START + child);
	num(&m, 6, SIGCHLD);
	deliver(&m, SECCHECK_CLONE);
}

static void begins_exec(int pid)
{
	struct buf m = message(&(struct who){ .pid = pid });

	num(&m, 4, 59);
	deliver(&m, SECCHECK_RAW);
}

static void execs(int pid, const char *path, const char *const *argv, size_t n)
{
	struct buf m = message(&(struct who){ .pid = pid });

	text(&m, 2, path);
	for (size_t i = 0; i < n; i++)
		text(&m, 3, argv[i]);
	text(&m, 4, "SECRET=x");
	deliver(&m, SECCHECK_EXEC);
}

static void exec_fails(int pid, const char *path, int error)
{
	struct buf m = message(&(struct who){ .pid = pid });

	result(&m, 0, error, 59, false);
	text(&m, 6, path);
	deliver(&m, SECCHECK_EXECVE);
}

static void ends(int pid, int status)
{
	struct buf m = message(&(struct who){ .pid = pid });

	num(&m, 2, status);
	deliver(&m, SECCHECK_TASK_EXIT);
}

static void opens(int pid, const char *dir, const char *path, int flags, int64_t fd, int error)
{
	struct buf m = message(&(struct who){ .pid = pid });

	result(&m, fd, error, 257, false);
	num(&m, 4, dir ? 5 : -100);
	if (dir)
		text(&m, 5, dir);
	text(&m, 6, path);
	num(&m, 7, flags);
	deliver(&m, SECCHECK_OPEN);
}

static void writes(int pid, int fd, const char *path, int64_t n)
{
	struct buf m = message(&(struct who){ .pid = pid, .comm = "dd" });

	result(&m, n, 0, 1, false);
	num(&m, 4, fd);
	text(&m, 5, path);
	deliver(&m, SECCHECK_WRITE);
}

static void calls(int pid, int nr, const uint64_t args[6], int64_t ret, int error)
{
	struct buf m = message(&(struct who){ .pid = pid });

	result(&m, ret, error, (uint64_t)nr, true);
	for (unsigned i = 0; i < 6; i++)
		num(&m, 5 + i, (int64_t)args[i]);
	deliver(&m, SECCHECK_RAW);
}

/* ---- what comes of it ---- */

static const struct event *event(size_t i)
{
	assert_true(i < bed.n);
	return &bed.seen[i].ev;
}

static void expect(size_t i, enum field_id f, const char *z)
{
	struct str s = event_str(event(i), f);

	if (!str_eqz(s, z))
		fail_msg("event %zu: %s is '%.*s', not '%s'", i, event_fields[f].name, (int)s.n,
			 s.p ? s.p : "", z);
}

static void expect_kind(size_t i, enum wire_kind kind)
{
	assert_int_equal(event(i)->kind, kind);
	expect(i, F_VANTAGE, "guest");
	assert_int_equal(event(i)->hdr.sandbox, 9);
}

static struct guest_stats stats(void)
{
	struct guest_stats st;

	guest_stats(bed.g, &st);
	return st;
}

static void test_processes(void **state)
{
	static const char *const argv[] = { "cat", "-n", "a b" };

	(void)state;
	assert_false(stats().started);
	starts();
	assert_true(stats().started);
	forks(1, 2);
	begins_exec(2);
	execs(2, "/usr/bin/cat", argv, 3);
	exec_fails(2, "/usr/bin/cat", 0); /* the call's own message, of one that worked */
	ends(2, 3 << 8);
	ends(1, 15);
	assert_int_equal(bed.n, 5);
	expect_kind(0, WIRE_EXEC);
	expect(0, F_PROC_EXE, "/bin/sh");
	expect(0, F_PROC_CWD, "/work");
	assert_int_equal(event(0)->v[F_PROC_ARGC].u, 2);
	expect_kind(1, WIRE_FORK);
	assert_int_equal(event(1)->v[F_CHILD_PID].u, 2);
	assert_int_equal(event(1)->v[F_CHILD_START].u, BOOT - 1000000000 + 2);
	expect_kind(2, WIRE_EXEC);
	expect(2, F_PROC_EXE, "/usr/bin/cat");
	expect(2, F_PROC_COMM, "cat");
	expect(2, F_OUTCOME, "success");
	assert_int_equal(event(2)->v[F_PROC_PPID].u, 1);
	assert_int_equal(event(2)->v[F_PROC_START].u, BOOT - 1000000000 + 2);
	assert_int_equal(event(2)->v[F_PROC_ARGS].list.n, 3);
	assert_true(str_eqz(event(2)->v[F_PROC_ARGS].list.v[2], "a b"));
	assert_false(event_has(event(2), F_PROC_STDIN)); /* what is not told is not there */
	assert_false(event_has(event(2), F_PROC_CAPS));
	expect_kind(3, WIRE_EXIT);
	assert_int_equal(event(3)->v[F_EXIT_CODE].u, 3);
	expect_kind(4, WIRE_EXIT);
	expect(4, F_EXIT_SIGNAL, "SIGTERM");
	assert_int_equal(stats().undescribed, 0);
}

static void test_threads_are_no_processes(void **state)
{
	struct buf m = message(&(struct who){ .pid = 1 });

	(void)state;
	num(&m, 3, 2);
	num(&m, 4, 1);
	num(&m, 6, 0x10000);
	deliver(&m, SECCHECK_CLONE);
	m = message(&(struct who){ .tid = 2, .pid = 1 });
	deliver(&m, SECCHECK_TASK_EXIT);
	assert_int_equal(bed.n, 0);
}

static void test_new_namespaces(void **state)
{
	struct buf m = message(&(struct who){ .pid = 1 });

	(void)state;
	num(&m, 3, 2);
	num(&m, 4, 2);
	num(&m, 6, 0x10000000 | SIGCHLD);
	deliver(&m, SECCHECK_CLONE);
	expect_kind(0, WIRE_ESCAPE);
	expect(0, F_ESCAPE_TYPE, "clone_ns");
	expect(0, F_ESCAPE_DETAIL, "CLONE_NEWUSER");
	expect_kind(1, WIRE_FORK);
}

static void test_long_arguments(void **state)
{
	char big[100001];
	const char *const argv[] = { "cc", big, "-o" };

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = 0;
	execs(1, "/usr/bin/cc", argv, 3);
	assert_int_equal(bed.n, 1);
	assert_in_range(bed.chunks, 5, 7);
	assert_int_equal(event(0)->v[F_PROC_ARGS].list.n, 3);
	assert_int_equal(event(0)->v[F_PROC_ARGS].list.v[1].n, 100000);
	assert_true(str_eqz(event(0)->v[F_PROC_ARGS].list.v[2], "-o"));
	assert_false(event_has(event(0), F_PROC_ARGS_TRUNCATED));
	assert_int_equal(decoder_stats(bed.d)->chunks_lost, 0);
	assert_int_equal(stats().records, 1);
}

/* Too large for the sentry's buffer: only the call's number comes through. */
static void test_an_exec_without_description(void **state)
{
	(void)state;
	starts();
	begins_exec(1);
	assert_int_equal(bed.n, 1);
	writes(1, 1, "host:[2]", 5);
	assert_int_equal(bed.n, 2);
	expect_kind(1, WIRE_EXEC);
	expect(1, F_OUTCOME, "success");
	assert_true(event(1)->v[F_PROC_ARGS_TRUNCATED].u);
	assert_true(event(1)->v[F_TRUNCATED].u);
	assert_false(event_has(event(1), F_PROC_EXE));
	assert_int_equal(stats().undescribed, 1);
	/* one that then does nothing at all */
	begins_exec(1);
	assert_int_equal(guest_deadline(bed.g), BOOT + GUEST_EXEC_WAIT_NS);
	guest_tick(bed.g, BOOT + GUEST_EXEC_WAIT_NS - 1);
	assert_int_equal(bed.n, 2);
	guest_tick(bed.g, BOOT + GUEST_EXEC_WAIT_NS);
	assert_int_equal(bed.n, 3);
	assert_int_equal(guest_deadline(bed.g), UINT64_MAX);
	/* of which only the call's own end got through */
	begins_exec(1);
	exec_fails(1, "prog", 0);
	expect_kind(3, WIRE_EXEC);
	expect(3, F_PROC_EXE, "/work/prog");
	assert_int_equal(stats().undescribed, 2);
}

static void test_programs_that_are_not_there(void **state)
{
	(void)state;
	starts();
	begins_exec(1);
	exec_fails(1, "/usr/local/bin/x", ENOENT);
	begins_exec(1);
	exec_fails(1, "/usr/bin/x", ENOENT);
	assert_int_equal(bed.n, 1);
	ends(1, 127 << 8);
	assert_int_equal(bed.n, 3);
	expect_kind(1, WIRE_EXEC);
	expect(1, F_EXEC_PATH, "/usr/bin/x");
	expect(1, F_ERRNO, "ENOENT");
	assert_int_equal(event(1)->v[F_EXEC_TRIES].u, 2);
	/* refused: at once */
	begins_exec(3);
	exec_fails(3, "etc", EACCES);
	expect_kind(3, WIRE_EXEC);
	expect(3, F_EXEC_PATH, "/work/etc");
	expect(3, F_OUTCOME, "denied");
	/* found after all */
	exec_fails(3, "/a/x", ENOENT);
	execs(3, "/b/x", NULL, 0);
	ends(3, 0);
	assert_int_equal(bed.n, 6);
	expect_kind(4, WIRE_EXEC);
	expect_kind(5, WIRE_EXIT);
}

static void test_memfd(void **state)
{
	(void)state;
	execs(1, "/memfd:x (deleted)", NULL, 0);
	expect_kind(0, WIRE_EXEC);
	assert_true(event(0)->v[F_PROC_MEMFD].u);
	expect_kind(1, WIRE_ESCAPE);
	expect(1, F_ESCAPE_TYPE, "memfd_exec");
}

static void test_files(void **state)
{
	(void)state;
	opens(1, NULL, "lib.so", O_RDONLY, 3, 0); /* reading is ordinary */
	opens(1, NULL, "nothing", O_WRONLY, 0, ENOENT);
	opens(1, NULL, "/dev/null", O_WRONLY, 3, 0);
	assert_int_equal(bed.n, 0);
	opens(1, NULL, "../out", O_WRONLY | O_CREAT, 3, 0);
	expect_kind(0, WIRE_FILE_OPEN);
	expect(0, F_FILE_PATH, "/out");
	assert_int_equal(event(0)->v[F_FILE_FD].i, 3);
	assert_true(event(0)->v[F_FILE_WRITE].u);
	assert_true(event(0)->v[F_FILE_CREATED].u);
	expect(0, F_SYSCALL, "openat");
	opens(1, "/srv", "x", O_RDWR, 0, EACCES);
	expect(1, F_FILE_PATH, "/srv/x");
	expect(1, F_OUTCOME, "denied");
	opens(1, NULL, "/etc/shadow", O_RDONLY, 4, 0); /* of the watched names */
	expect(2, F_FILE_PATH, "/etc/shadow");
	opens(1, NULL, "/home/u/.docker/config.json", O_RDONLY, 0, ENOENT);
	expect(3, F_FILE_PATH, "/home/u/.docker/config.json");
	opens(1, NULL, "/x/config.json", O_RDONLY, 5, 0);
	opens(1, NULL, "/data/plans/x", O_RDONLY, 5, 0); /* and of the operator's */
	opens(1, NULL, "/data/plans2", O_RDONLY, 5, 0);
	assert_int_equal(bed.n, 5);
	expect(4, F_FILE_WATCHED, "#1");
}

static void test_writes(void **state)
{
	(void)state;
	starts();
	opens(1, NULL, "/work/f", O_WRONLY | O_CREAT, 3, 0);
	writes(1, 3, "/work/f", 10);
	writes(1, 3, "/work/f", 20);
	writes(1, 1, "host:[1]", 99);
	writes(1, 4, "pipe:[7]", 99);
	assert_int_equal(bed.n, 3);
	expect_kind(2, WIRE_FILE_WRITE);
	expect(2, F_FILE_OP, "first");
	expect(2, F_FILE_PATH, "/work/f");
	assert_int_equal(event(2)->v[F_FILE_BYTES].u, 10);
	assert_int_equal(event(2)->v[F_FILE_OPEN_ID].u, event(1)->v[F_FILE_OPEN_ID].u);
	/* a child goes on with it: its own sum */
	forks(1, 2);
	writes(2, 3, "/work/f", 1);
	writes(2, 3, "/work/f", 1);
	expect(4, F_FILE_OP, "first");
	assert_int_equal(event(4)->v[F_FILE_OPEN_ID].u, event(1)->v[F_FILE_OPEN_ID].u);
	assert_int_equal(event(4)->v[F_PROC_PID].u, 2);
	ends(2, 0);
	expect_kind(5, WIRE_FILE_WRITE);
	expect(5, F_FILE_OP, "total");
	assert_int_equal(event(5)->v[F_FILE_BYTES].u, 2);
	assert_int_equal(event(5)->v[F_PROC_PID].u, 2);
	expect_kind(6, WIRE_EXIT);
	/* its number is used again: it was closed */
	opens(1, NULL, "/work/g", O_RDONLY, 3, 0);
	expect_kind(7, WIRE_FILE_WRITE);
	expect(7, F_FILE_OP, "total");
	assert_int_equal(event(7)->v[F_FILE_BYTES].u, 30);
	assert_int_equal(event(7)->v[F_FILE_WRITES].u, 2);
	assert_int_equal(bed.n, 8);
}

static void test_descriptor_copied(void **state)
{
	struct buf m;

	(void)state;
	opens(1, NULL, "/f", O_WRONLY, 3, 0);
	m = message(&(struct who){ .pid = 1 });
	result(&m, 1, 0, 33, false);
	num(&m, 4, 3);
	num(&m, 5, 1);
	deliver(&m, SECCHECK_DUP);
	writes(1, 1, "/f", 5);
	expect_kind(1, WIRE_FILE_WRITE);
	assert_int_equal(event(1)->v[F_FILE_OPEN_ID].u, event(0)->v[F_FILE_OPEN_ID].u);
	/* sendfile says which descriptor, and no path */
	calls(1, 40, (uint64_t[6]){ 1, 9 }, 7, 0);
	ends(1, 0);
	expect_kind(2, WIRE_FILE_WRITE);
	assert_int_equal(event(2)->v[F_FILE_BYTES].u, 12);
}

static void test_kernel_files(void **state)
{
	static const struct {
		const char *path;
		int flags, error;
		const char *type;
	} cases[] = {
		{ "/proc/sys/kernel/core_pattern", O_WRONLY, 0, "kernel_file" },
		{ "/proc/sys/kernel/core_pattern", O_RDONLY, 0, NULL },
		{ "/sys/fs/x", O_RDWR, EACCES, "kernel_file" },
		{ "/proc/sysrq-trigger", O_WRONLY, ENOENT, "kernel_file" },
		{ "/home/release_agent", O_WRONLY, 0, "kernel_file" },
		{ "/proc/self/mem", O_RDWR, 0, "proc_mem" },
		{ "/proc/self/mem", O_RDONLY, 0, NULL },
		{ "/dev/mem", O_RDONLY, ENOENT, "device" },
		{ "/dev/sda", O_RDONLY, EACCES, "device" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t before = bed.n;

		opens(1, NULL, cases[i].path, cases[i].flags, 3, cases[i].error);
		if (!cases[i].type) {
			assert_int_equal(bed.n, before);
			continue;
		}
		assert_true(bed.n > before);
		expect_kind(bed.n - 1, WIRE_ESCAPE);
		expect(bed.n - 1, F_ESCAPE_TYPE, cases[i].type);
		expect(bed.n - 1, F_ESCAPE_DETAIL, cases[i].path);
	}
}

static void test_escapes(void **state)
{
	static const struct {
		int nr;
		uint64_t args[6];
		int error;
		const char *type;
	} cases[] = {
		{ 165, { 0 }, EPERM, "mount" },
		{ 101, { 16, 5 }, 0, "ptrace" },
		{ 272, { 0x10000000 }, 0, "unshare" },
		{ 272, { 0x400 }, 0, NULL }, /* descriptors only */
		{ 308, { 3, 0 }, ENOSYS, "setns" },
		{ 321, { 5 }, ENOSYS, "bpf" },
		{ 135, { 0xffffffff }, 0, NULL }, /* a question */
		{ 135, { 0x40000 }, 0, "personality" },
		{ 133, { 0, 0060600 }, EPERM, "mknod" },
		{ 133, { 0, 0010600 }, 0, NULL }, /* a pipe */
		{ 435, { 0 }, ENOSYS, NULL },	  /* every thread library asks for clone3 */
		{ 425, { 0 }, ENOSYS, "io_uring" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t before = bed.n;

		calls(1, cases[i].nr, cases[i].args, 0, cases[i].error);
		assert_int_equal(bed.n, before + !!cases[i].type);
		if (!cases[i].type)
			continue;
		expect_kind(before, WIRE_ESCAPE);
		expect(before, F_ESCAPE_TYPE, cases[i].type);
	}
	expect(0, F_OUTCOME, "denied");
	expect(1, F_ESCAPE_DETAIL, "PTRACE_ATTACH pid 5");
	expect(2, F_ESCAPE_DETAIL, "CLONE_NEWUSER");
}

static void test_names_that_are_not_told(void **state)
{
	(void)state;
	calls(1, 87, (uint64_t[6]){ 0x1000 }, 0, 0);
	calls(1, 87, (uint64_t[6]){ 0x1000 }, 0, ENOENT);
	assert_int_equal(bed.n, 0); /* the host may tell it yet */
	guest_host_read(bed.g, UINT64_MAX);
	assert_int_equal(bed.n, 1);
	expect_kind(0, WIRE_FILE_DELETE);
	expect(0, F_VANTAGE, "guest");
	assert_false(event_has(event(0), F_FILE_PATH));
	assert_true(event_has(event(0), F_DEGRADED));
}

static void socket_is(int pid, int domain, int type, int proto, int fd, int error)
{
	struct buf m = message(&(struct who){ .pid = pid });

	result(&m, fd, error, 41, false);
	num(&m, 4, domain);
	num(&m, 5, type);
	num(&m, 6, proto);
	deliver(&m, SECCHECK_SOCKET);
}

static void address(int pid, uint16_t type, int nr, int fd, const void *a, size_t n, int64_t ret,
		    int error)
{
	struct buf m = message(&(struct who){ .pid = pid });

	result(&m, ret, error, (uint64_t)nr, false);
	num(&m, 4, fd);
	bytes(&m, 6, a, n);
	deliver(&m, type);
}

static void test_network(void **state)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(443) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(80) };

	(void)state;
	in.sin_addr.s_addr = htonl(0x5db8d822);
	in6.sin6_addr = in6addr_loopback;
	socket_is(1, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0, 3, 0);
	address(1, SECCHECK_CONNECT, 42, 3, &in, sizeof(in), 0, EINPROGRESS);
	expect_kind(0, WIRE_NET_CONNECT);
	assert_int_equal(event(0)->v[F_NET_DST_PORT].u, 443);
	assert_int_equal(event(0)->v[F_NET_DST_IP].ip.b[0], 0x5d);
	expect(0, F_NET_PROTO, "tcp");
	expect(0, F_OUTCOME, "pending");
	socket_is(1, AF_INET6, SOCK_DGRAM, 0, 4, 0);
	address(1, SECCHECK_BIND, 49, 4, &in6, sizeof(in6), 0, 0);
	expect_kind(1, WIRE_NET_BIND);
	expect(1, F_NET_PROTO, "udp");
	assert_int_equal(event(1)->v[F_NET_SRC_PORT].u, 80);
	calls(1, 50, (uint64_t[6]){ 4, 5 }, 0, 0);
	expect_kind(2, WIRE_NET_LISTEN);
	assert_int_equal(event(2)->v[F_NET_SRC_PORT].u, 80);
	address(1, SECCHECK_ACCEPT, 288, 4, &in6, sizeof(in6), 9, 0);
	expect_kind(3, WIRE_NET_ACCEPT);
	address(1, SECCHECK_CONNECT, 42, 5, "\1\0/run/x.sock\0junk", 18, 0, 0);
	expect_kind(4, WIRE_NET_CONNECT);
	expect(4, F_NET_PATH, "/run/x.sock");
	socket_is(1, AF_PACKET, SOCK_RAW, 0, 0, EPERM);
	expect_kind(5, WIRE_ESCAPE);
	expect(5, F_ESCAPE_TYPE, "socket_family");
	expect_kind(6, WIRE_NET_SOCKET);
	assert_int_equal(bed.n, 7);
	/* bytes that are no address */
	address(1, SECCHECK_CONNECT, 42, 8, "\2", 1, 0, 0);
	address(1, SECCHECK_CONNECT, 42, 8, "\2\0\0", 3, 0, 0);
	address(1, SECCHECK_CONNECT, 42, 8, "", 0, 0, 0);
	assert_int_equal(bed.n, 7);
}

/* What the kernel's side tells by itself where it sees the connect: with gVisor's own network it does not. */
static void test_connects_that_are_signals(void **state)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(80) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(80) };
	static const uint8_t mapped[] = { 0xff, 0xff, 100, 100, 100, 200 };

	(void)state;
	in.sin_addr.s_addr = htonl(0xa9fea9fe);
	address(1, SECCHECK_CONNECT, 42, 3, &in, sizeof(in), 0, ENETUNREACH);
	expect_kind(1, WIRE_ESCAPE);
	expect(1, F_ESCAPE_TYPE, "metadata");
	expect(1, F_ESCAPE_DETAIL, "169.254.169.254:80");
	expect(1, F_OUTCOME, "failure");
	memcpy(&in6.sin6_addr.s6_addr[10], mapped, sizeof(mapped));
	address(1, SECCHECK_CONNECT, 42, 3, &in6, sizeof(in6), 0, 0);
	expect(3, F_ESCAPE_DETAIL, "100.100.100.200:80");
	address(1, SECCHECK_CONNECT, 42, 3, "\1\0/var/run/docker.sock\0", 24, 0, ENOENT);
	expect_kind(5, WIRE_ESCAPE);
	expect(5, F_ESCAPE_TYPE, "runtime_socket");
	expect(5, F_ESCAPE_DETAIL, "/var/run/docker.sock");
	assert_int_equal(bed.n, 6);
	/* its own: bound, abstract, of another name, another address */
	address(1, SECCHECK_BIND, 49, 3, "\1\0/var/run/docker.sock\0", 24, 0, 0);
	address(1, SECCHECK_CONNECT, 42, 3, "\1\0\0docker.sock", 14, 0, 0);
	address(1, SECCHECK_CONNECT, 42, 3, "\1\0/tmp/own.sock\0", 17, 0, 0);
	in.sin_addr.s_addr = htonl(0xa9fea9fd);
	address(1, SECCHECK_CONNECT, 42, 3, &in, sizeof(in), 0, 0);
	assert_int_equal(bed.n, 10);
	/* with a network the sentry's own connect is seen, and told */
	begin(true);
	in.sin_addr.s_addr = htonl(0xa9fea9fe);
	address(1, SECCHECK_CONNECT, 42, 3, &in, sizeof(in), 0, ENETUNREACH);
	address(1, SECCHECK_CONNECT, 42, 3, &in6, sizeof(in6), 0, 0);
	assert_int_equal(bed.n, 2);
	expect_kind(0, WIRE_NET_CONNECT);
	expect_kind(1, WIRE_NET_CONNECT);
}

static void fork_fails(int pid, int nr, int error)
{
	struct buf m = message(&(struct who){ .pid = pid });

	result(&m, 0, error, (uint64_t)nr, false);
	deliver(&m, nr == 56 ? SECCHECK_CLONE_CALL : SECCHECK_FORK_CALL);
}

/* What the guest's limits refuse: told at once, then with the number once a second. */
static void test_limits(void **state)
{
	static const struct {
		int error;
		const char *type;
	} cases[] = { { EMFILE, "nofile" }, { ENOSPC, "disk" }, { EFBIG, "fsize" } };

	(void)state;
	fork_fails(1, 56, EAGAIN);
	expect_kind(0, WIRE_LIMIT);
	expect(0, F_LIMIT_TYPE, "pids");
	expect(0, F_LIMIT_EFFECT, "refused");
	assert_int_equal(event(0)->v[F_LIMIT_COUNT].u, 1);
	fork_fails(1, 57, EAGAIN);
	fork_fails(1, 58, EAGAIN);
	assert_int_equal(bed.n, 1); /* within the second */
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		calls(1, 40, (uint64_t[6]){ 1, 2 }, 0, cases[i].error);
		expect_kind(1 + i, WIRE_LIMIT);
		expect(1 + i, F_LIMIT_TYPE, cases[i].type);
	}
	/* no limit: another error, another call, a fork that worked */
	fork_fails(1, 56, ENOMEM);
	fork_fails(1, 56, 0);
	calls(1, 44, (uint64_t[6]){ 1 }, 0, EAGAIN);
	assert_int_equal(bed.n, 4);
}

static void test_end_of_process_1(void **state)
{
	struct guest_stats st;

	(void)state;
	starts();
	forks(1, 2);
	ends(2, 7 << 8);
	guest_stats(bed.g, &st);
	assert_false(st.ended);
	ends(1, 3 << 8);
	guest_stats(bed.g, &st);
	assert_true(st.ended);
	assert_int_equal(st.status, 3 << 8);
}

static void dups(int pid, int from, int to, const char *name)
{
	struct buf m = message(&(struct who){ .pid = pid });

	result(&m, to, 0, 33, false);
	num(&m, 4, from);
	num(&m, 5, to);
	if (name)
		text(&m, 6, name);
	deliver(&m, SECCHECK_DUP);
}

static void test_what_stdin_is(void **state)
{
	static const struct {
		const char *name, *is;
	} cases[] = {
		{ "socket:[7]", "socket" }, { "pipe:[8]", "pipe" }, { "/dev/null", "null" },
		{ "/dev/pts/0", "tty" },    { "/f", "file" },
	};

	(void)state;
	starts();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		dups(1, 3, 0, cases[i].name);
		forks(1, (int)(10 + i));
		execs((int)(10 + i), "/bin/sh", (const char *const[]){ "sh" }, 1);
		expect_kind(2 + 2 * i, WIRE_EXEC);
		expect(2 + 2 * i, F_PROC_STDIN, cases[i].is);
	}
	/* not said what it is; another descriptor */
	dups(1, 3, 1, "socket:[7]");
	dups(1, 3, 0, NULL);
	execs(1, "/bin/sh", (const char *const[]){ "sh" }, 1);
	assert_false(event_has(event(bed.n - 1), F_PROC_STDIN));
}

static void test_times(void **state)
{
	static const struct {
		int64_t said;
		uint64_t is;
	} cases[] = {
		{ NOW - 5, BOOT - 5 },
		{ NOW + 1000000, BOOT }, /* not later than it came */
		{ NOW - 29000000000, BOOT - 29000000000 },
		{ NOW - 31000000000, BOOT }, /* from before the session */
		{ 1, BOOT },
		{ INT64_MIN, BOOT },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct buf m = message(&(struct who){ .pid = 7, .time = cases[i].said });

		num(&m, 2, 0);
		deliver(&m, SECCHECK_TASK_EXIT);
		assert_int_equal(event(i)->v[F_MONO].u, cases[i].is);
	}
}

static void test_drops(void **state)
{
	struct buf m;

	(void)state;
	for (uint32_t said = 3; said; said = said == 3 ? 10 : said == 10 ? 8 : 0) {
		m = message(&(struct who){ .pid = 1 });
		deliver_dropped(&m, SECCHECK_CLOSE, said);
	}
	assert_int_equal(stats().dropped, 10);
	assert_int_equal(stats().drops_back, 1);
	assert_int_equal(stats().unknown, 3);
}

/* The claim of a container's id, and pids that cannot be. */
static void test_lies(void **state)
{
	struct buf m = { 0 };

	(void)state;
	guest_packet(bed.g, STR("short"), BOOT, OFFSET);
	guest_packet(bed.g, (struct str){ "\x08\0\1\0\0\0\0\0\xff\xff\xff", 11 }, BOOT, OFFSET);
	assert_int_equal(stats().bad, 2);
	for (uint16_t type = 0; type < 40; type++) {
		struct buf c = { 0 };

		num(&c, 2, -1);
		num(&c, 4, INT32_MIN);
		bytes(&m, 1, c.p, c.n);
		result(&m, INT64_MIN, INT64_MAX, UINT64_MAX, type == SECCHECK_RAW);
		num(&m, 4, INT64_MIN);
		buf_done(&c);
		deliver(&m, type);
	}
	assert_int_equal(stats().packets, 42);
}

/* More processes and files than any table has: the oldest are forgotten. */
static void test_flood(void **state)
{
	(void)state;
	for (int i = 1; i < GUEST_FDS_MAX + 1000; i++) {
		writes(i, 3, "/x", 1);
		writes(i, 3, "/x", 1);
		bed.n = 0;
	}
	assert_int_equal(stats().packets, 2 * (GUEST_FDS_MAX + 999));
	/* one first each, and the sums of those that were forgotten */
	assert_int_equal(stats().records, GUEST_FDS_MAX + 999 + 999);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_processes),
		TEST(test_threads_are_no_processes),
		TEST(test_new_namespaces),
		TEST(test_long_arguments),
		TEST(test_an_exec_without_description),
		TEST(test_programs_that_are_not_there),
		TEST(test_memfd),
		TEST(test_files),
		TEST(test_writes),
		TEST(test_descriptor_copied),
		TEST(test_kernel_files),
		TEST(test_escapes),
		TEST(test_names_that_are_not_told),
		TEST(test_network),
		TEST(test_connects_that_are_signals),
		TEST(test_what_stdin_is),
		TEST(test_limits),
		TEST(test_end_of_process_1),
		TEST(test_times),
		TEST(test_drops),
		TEST(test_lies),
		TEST(test_flood),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
