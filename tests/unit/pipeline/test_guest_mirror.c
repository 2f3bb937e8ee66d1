// SPDX-License-Identifier: Apache-2.0
/* What the guest's kernel told and what the host's saw, joined; and what only one of them has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "bpf/abi/maps.h"
#include "userspace/base/auto.h"
#include "userspace/event/decode.h"
#include "userspace/pipeline/guest.h"
#include "userspace/pipeline/guest_mirror.h"

#define BOOT   5000000000000ull
#define OFFSET 1700000000000000000ll
#define EVENTS 64
#define NONE   ((const uint64_t[6]){ 0 })
#define PTR    0x7f0000001000ull

enum {
	OPENAT = 257,
	UNLINK = 87,
	UNLINKAT = 263,
	RENAMEAT = 264,
	MKDIR = 83,
	CHMOD = 90,
	FCHMOD = 91,
	CONNECT = 42,
	SENDTO = 44,
	SENDMMSG = 307,
	SECCOMP = 317,
	PTRACE = 101,
	FCHOWNAT = 260,
	SOCKET = 41
};

struct seen {
	struct event ev;
	struct arena arena;
};

static struct {
	struct guest *g;
	struct decoder *d;
	struct seen seen[EVENTS];
	size_t n;
	uint64_t now; /* moves on with each thing that happens */
	uint32_t dropped;
} bed;

static int feed(void *arg, const void *rec, size_t len)
{
	struct seen *s = &bed.seen[bed.n];
	int r;

	(void)arg;
	assert_true(bed.n < EVENTS);
	arena_reset(&s->arena);
	r = decoder_feed(bed.d, rec, len, &s->arena, &s->ev);
	assert_true(r > 0);
	bed.n++;
	return 0;
}

static void begin(bool has_mirror)
{
	const struct guest_options opt = { .sandbox_id = 9,
					   .real_offset_ns = OFFSET,
					   .since_ns = BOOT - 30000000000,
					   .has_mirror = has_mirror,
					   .feed = feed };

	guest_free(bed.g);
	bed.n = bed.dropped = 0;
	bed.now = BOOT;
	assert_int_equal(guest_new(&bed.g, &opt), 0);
}

static int set_up(void **state)
{
	(void)state;
	memset(&bed, 0, sizeof(bed));
	for (size_t i = 0; i < EVENTS; i++)
		arena_init(&bed.seen[i].arena, 1 << 20);
	assert_int_equal(decoder_new(&bed.d), 0);
	begin(true);
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

/* ---- the guest's kernel ---- */

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

static struct buf message(int pid, int nr, int64_t ret, unsigned nr_field)
{
	auto_buf struct buf c = { 0 }, x = { 0 };
	struct buf m = { 0 };

	bed.now += 1000000;
	num(&c, 1, OFFSET + (int64_t)bed.now);
	num(&c, 2, pid);
	num(&c, 4, pid);
	bytes(&c, 8, "/work", 5);
	bytes(&c, 9, "sh", 2);
	bytes(&m, 1, c.p, c.n);
	num(&x, 1, ret < 0 ? 0 : ret);
	num(&x, 2, ret < 0 ? -ret : 0);
	bytes(&m, 2, x.p ? x.p : "", x.n);
	num(&m, nr_field, nr);
	return m;
}

static void deliver(struct buf *m, uint8_t type)
{
	auto_buf struct buf p = { 0 };
	const uint8_t head[8] = { 8, 0, type, 0, (uint8_t)bed.dropped };

	buf_add(&p, head, sizeof(head));
	buf_add(&p, m->p, m->n);
	bed.now += 1000000;
	guest_packet(bed.g, (struct str){ p.p, p.n }, bed.now, OFFSET);
	buf_done(m);
}

static void tells(int pid, int nr, const uint64_t args[6], int64_t ret)
{
	struct buf m = message(pid, nr, ret, 4);

	for (unsigned i = 0; i < 6; i++)
		num(&m, 5 + i, (int64_t)args[i]);
	deliver(&m, SECCHECK_RAW);
}

static void tells_open(int pid, const char *path, int flags, int64_t fd)
{
	struct buf m = message(pid, OPENAT, fd, 3);

	num(&m, 4, AT_FDCWD);
	bytes(&m, 6, path, strlen(path));
	num(&m, 7, flags);
	deliver(&m, SECCHECK_OPEN);
}

static void tells_socket(int pid, int type, int64_t fd)
{
	struct buf m = message(pid, SOCKET, fd, 3);

	num(&m, 4, AF_INET);
	num(&m, 5, type);
	deliver(&m, SECCHECK_SOCKET);
}

static struct sockaddr_in server(uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };

	a.sin_addr.s_addr = htonl(0x0a000001);
	return a;
}

static void tells_connect(int pid, int fd, uint16_t port)
{
	struct buf m = message(pid, CONNECT, 0, 3);
	const struct sockaddr_in a = server(port);

	num(&m, 4, fd);
	bytes(&m, 6, &a, sizeof(a));
	deliver(&m, SECCHECK_CONNECT);
}

/* ---- the host's ---- */

struct parts {
	const char *base, *path, *base2, *path2;
	struct str addr, data;
	uint32_t index;
};

static struct wire_str put(struct buf *b, const void *p, size_t n)
{
	struct wire_str s = { (uint16_t)b->n, (uint16_t)n };

	if (!p || !n)
		return (struct wire_str){ 0, 0 };
	buf_add(b, p, n);
	return s;
}

static struct wire_str put_text(struct buf *b, const char *z)
{
	return put(b, z, z ? strlen(z) : 0);
}

static void shows(enum gvisor_part part, int nr, const uint64_t args[6], int32_t ret,
		  const struct parts *p)
{
	struct wire_mirror w = { .h = { .kind = WIRE_MIRROR,
					.nr = (uint16_t)nr,
					.ret = ret,
					.sandbox = 9,
					.tgid = 4000,
					.flags = (uint16_t)(part << WIRE_PART_SHIFT) },
				 .index = p->index };
	auto_buf struct buf b = { 0 };

	bed.now += 1000000;
	w.h.ts = bed.now;
	for (int i = 0; i < 6; i++)
		w.args[i] = args[i];
	buf_add(&b, &w, sizeof(w));
	w.base = put_text(&b, p->base);
	w.path = put_text(&b, p->path);
	w.base2 = put_text(&b, p->base2);
	w.path2 = put_text(&b, p->path2);
	w.addr = put(&b, p->addr.p, p->addr.n);
	w.data = put(&b, p->data.p, p->data.n);
	w.total = (uint32_t)p->data.n;
	w.h.len = (uint32_t)b.n;
	memcpy(b.p, &w, sizeof(w));
	guest_mirror(bed.g, b.p, b.n, bed.now);
}

static void stub(int nr, const uint64_t args[6], int32_t ret, const char *path)
{
	shows(GVISOR_STUB, nr, args, ret, &(struct parts){ .path = path });
}

static void gofer(int nr, const char *base, const char *path)
{
	shows(GVISOR_GOFER, nr, NONE, 0, &(struct parts){ .base = base, .path = path });
}

/* All that was sent until now was read. */
static bool settles(bool was_full)
{
	for (int i = 0; i < 2; i++) { /* the first time it begins to wait, perhaps */
		bed.now += 10 * MIRROR_ASK_NS;
		if (guest_wants_quiet(bed.g, bed.now))
			break;
		if (i)
			return false;
	}
	guest_quiet(bed.g, was_full, false);
	return true;
}

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

static void expect_file(size_t i, enum wire_kind kind, const char *vantage, const char *path,
			uint32_t pid)
{
	assert_int_equal(event(i)->kind, kind);
	expect(i, F_VANTAGE, vantage);
	if (path)
		expect(i, F_FILE_PATH, path);
	assert_int_equal(event(i)->hdr.tgid, pid);
}

static void expect_contradiction(size_t i, const char *part)
{
	assert_int_equal(event(i)->kind, WIRE_ESCAPE);
	expect(i, F_ESCAPE_TYPE, "guest_divergence");
	assert_non_null(memmem(event_str(event(i), F_ESCAPE_DETAIL).p,
			       event_str(event(i), F_ESCAPE_DETAIL).n, part, strlen(part)));
}

static uint64_t unseen(void)
{
	struct guest_stats st;

	guest_stats(bed.g, &st);
	return st.unseen;
}

/* ---- joined ---- */

static void test_who_from_the_guest_and_what_from_the_host(void **state)
{
	const uint64_t a[6] = { PTR, 0700 };

	(void)state;
	tells(7, MKDIR, a, 0);
	assert_int_equal(bed.n, 0);
	stub(MKDIR, a, 0, "d");
	expect_file(0, WIRE_FILE_MKDIR, "kernel", "/work/d", 7);
	assert_int_equal(event(0)->v[F_FILE_MODE].u, 0700);
	stub(UNLINK, a, -EACCES, "/etc/x"); /* the other way round */
	tells(8, UNLINK, a, -EACCES);
	expect_file(1, WIRE_FILE_DELETE, "kernel", "/etc/x", 8);
	expect(1, F_OUTCOME, "denied");
	assert_false(settles(false));
	assert_int_equal(bed.n, 2);
}

static void test_the_gofer_knows_the_file(void **state)
{
	const uint64_t a[6] = { PTR }, at[6] = { 5, PTR, 6, PTR + 64 }, fd[6] = { 3, 0600 };

	(void)state;
	gofer(UNLINKAT, "/real/dir", "y"); /* another's */
	gofer(UNLINKAT, "/real/dir", "x");
	tells(7, UNLINK, a, 0);
	stub(UNLINK, a, 0, "link/../x");
	expect_file(0, WIRE_FILE_DELETE, "kernel", "/real/dir/x", 7);
	/* relative to directories that only numbers are known of */
	shows(GVISOR_GOFER, RENAMEAT, NONE, 0,
	      &(struct parts){ "/a", "old", "/b", "new", .index = 0 });
	tells(7, RENAMEAT, at, 0);
	shows(GVISOR_STUB, RENAMEAT, at, 0, &(struct parts){ .path = "old", .path2 = "new" });
	expect_file(1, WIRE_FILE_RENAME, "kernel", "/b/new", 7);
	expect(1, F_FILE_OLD_PATH, "/a/old");
	/* by a descriptor, and with no name at all; not one that gave a new file its owner */
	gofer(FCHMOD, NULL, "/a/f");
	gofer(FCHOWNAT, "/a/f", NULL);
	tells(7, FCHMOD, fd, 0);
	stub(FCHMOD, fd, 0, NULL);
	expect_file(2, WIRE_FILE_ATTR, "kernel", "/a/f", 7);
	/* a page that the host cannot read */
	gofer(UNLINKAT, "/a", "z");
	tells(7, UNLINK, a, 0);
	stub(UNLINK, a, 0, NULL);
	expect_file(3, WIRE_FILE_DELETE, "kernel", "/a/z", 7);
}

static void test_without_stubs(void **state)
{
	const uint64_t a[6] = { PTR };

	(void)state;
	begin(false);
	gofer(UNLINKAT, "/a", "x");
	tells(7, UNLINK, a, 0);
	assert_int_equal(bed.n, 0);
	guest_host_read(bed.g, bed.now + 1);
	expect_file(0, WIRE_FILE_DELETE, "kernel", "/a/x", 7);
	tells(7, UNLINK, a, 0);
	guest_host_read(bed.g, bed.now + 1);
	expect_file(1, WIRE_FILE_DELETE, "guest", NULL, 7);
	assert_false(settles(false));
}

static void test_what_the_host_has_not(void **state)
{
	const uint64_t a[6] = { PTR };

	(void)state;
	tells(7, UNLINK, a, 0);
	assert_int_equal(guest_deadline(bed.g), bed.now + MIRROR_WAIT_NS);
	bed.now += MIRROR_WAIT_NS - 1;
	guest_tick(bed.g, bed.now);
	assert_int_equal(bed.n, 0); /* it may come yet */
	guest_tick(bed.g, ++bed.now);
	assert_int_equal(bed.n, 1);
	expect_file(0, WIRE_FILE_DELETE, "guest", NULL, 7);
	/* it stood still meanwhile, and goes on: nothing waits, no contradiction */
	stub(UNLINK, a, 0, "x");
	assert_false(settles(false));
	assert_int_equal(bed.n, 1);
	/* the same once more, which was not told */
	stub(UNLINK, a, 0, "x");
	assert_true(settles(false));
	assert_int_equal(bed.n, 3);
	expect_file(1, WIRE_FILE_DELETE, "kernel", "x", 4000);
	expect_contradiction(2, "x");
}

static void test_what_waits_at_the_end(void **state)
{
	const uint64_t a[6] = { PTR };

	(void)state;
	tells(7, UNLINK, a, 0);
	tells(7, UNLINK, a, 0);
	guest_host_read(bed.g, bed.now + 1);
	assert_int_equal(bed.n, 0);
	guest_host_read(bed.g, UINT64_MAX);
	expect_file(0, WIRE_FILE_DELETE, "guest", NULL, 7);
	expect_file(1, WIRE_FILE_DELETE, "guest", NULL, 7);
	guest_quiet(bed.g, false, true);
	assert_int_equal(bed.n, 2);
}

static void test_sends(void **state)
{
	static const char question[] = "\x12\x34\1\0\0\1\0\0\0\0\0\0\3www\7example\3com\0\0\1\0\1";
	const uint64_t to[6] = { 4, PTR, 10, 0, PTR + 64, 16 },
		       plain[6] = { 5, PTR, sizeof(question) - 1 }, two[6] = { 5, PTR, 2 };
	const struct sockaddr_in a = server(9999);
	const struct str data = { question, sizeof(question) - 1 };

	(void)state;
	tells_socket(7, SOCK_DGRAM, 4);
	tells(7, SENDTO, to, 10);
	shows(GVISOR_STUB, SENDTO, to, 10,
	      &(struct parts){ .addr = { (const char *)&a, sizeof(a) } });
	assert_int_equal(bed.n, 1);
	assert_int_equal(event(0)->kind, WIRE_NET_SEND);
	expect(0, F_VANTAGE, "kernel");
	assert_int_equal(event(0)->v[F_NET_DST_PORT].u, 9999);
	assert_int_equal(event(0)->hdr.tgid, 7);
	tells_socket(7, SOCK_DGRAM, 5);
	tells_connect(7, 5, 53);
	stub(CONNECT, (const uint64_t[6]){ 5 }, 0, NULL);
	tells(7, SENDTO, plain, sizeof(question) - 1);
	shows(GVISOR_STUB, SENDTO, plain, sizeof(question) - 1, &(struct parts){ .data = data });
	assert_int_equal(bed.n, 3);
	assert_int_equal(event(2)->kind, WIRE_DNS_QUERY);
	expect(2, F_DNS_NAME, "www.example.com");
	/* two messages of one call, in both orders */
	tells(7, SENDMMSG, two, 2);
	shows(GVISOR_STUB, SENDMMSG, two, 2, &(struct parts){ .data = data });
	shows(GVISOR_STUB, SENDMMSG, two, 2, &(struct parts){ .data = data, .index = 1 });
	assert_int_equal(bed.n, 5);
	shows(GVISOR_STUB, SENDMMSG, two, 2, &(struct parts){ .data = data });
	shows(GVISOR_STUB, SENDMMSG, two, 2, &(struct parts){ .data = data, .index = 1 });
	tells(7, SENDMMSG, two, 2);
	assert_int_equal(bed.n, 7);
	/* what looks like a question, and goes to no name server */
	tells_socket(7, SOCK_STREAM, 6);
	tells_connect(7, 6, 80);
	tells(7, SENDTO, (const uint64_t[6]){ 6, PTR, 29 }, 29);
	shows(GVISOR_STUB, SENDTO, (const uint64_t[6]){ 6, PTR, 29 }, 29,
	      &(struct parts){ .data = data });
	settles(false);
	assert_int_equal(bed.n, 8); /* the connect */
}

/* ---- contradictions ---- */

static void test_a_call_that_was_not_told(void **state)
{
	const uint64_t a[6] = { PTR };

	(void)state;
	stub(UNLINK, a, 0, "/work/x");
	assert_true(settles(false));
	expect_file(0, WIRE_FILE_DELETE, "kernel", "/work/x", 4000);
	expect_contradiction(1, "/work/x");
	stub(OPENAT, (const uint64_t[6]){ 0, PTR, O_RDWR }, 3, "/work/secret");
	assert_true(settles(false));
	assert_int_equal(bed.n, 3);
	expect_contradiction(2, "/work/secret");
	stub(CONNECT, (const uint64_t[6]){ 3 }, 0, NULL);
	assert_true(settles(false));
	assert_int_equal(bed.n, 4);
	assert_false(settles(false)); /* told once */
}

/* The host may be far ahead or behind; calls that look alike are told in order. */
static void test_many_that_look_alike(void **state)
{
	const uint64_t a[6] = { 0, PTR, O_RDWR };

	(void)state;
	for (int i = 0; i < 5; i++)
		stub(OPENAT, a, 3, "x");
	guest_wants_quiet(bed.g, bed.now);
	bed.now += 2 * MIRROR_ASK_NS;
	assert_true(guest_wants_quiet(bed.g, bed.now));
	for (int i = 0; i < 5; i++)
		tells_open(7, "x", O_RDWR, 3);
	stub(OPENAT, a, 3, "later"); /* of which nobody has asked yet */
	bed.n = 0;
	guest_quiet(bed.g, false, false);
	assert_int_equal(bed.n, 0);
	tells_open(7, "later", O_RDWR, 3);
	for (int i = 0; i < 5; i++)
		tells_open(7, "x", O_RDWR, 3);
	for (int i = 0; i < 5; i++)
		stub(OPENAT, a, 3, "x");
	bed.n = 0;
	assert_false(settles(false));
	stub(OPENAT, a, 3, "one more");
	assert_true(settles(false));
	assert_int_equal(bed.n, 1);
	expect_contradiction(0, "one more");
}

/* A full socket loses messages, which the next one says: a gap, and no contradiction. */
static void test_messages_that_were_lost(void **state)
{
	const uint64_t a[6] = { 0, PTR, O_RDWR };

	(void)state;
	stub(OPENAT, a, 3, "x");
	assert_true(settles(true));
	assert_int_equal(bed.n, 0);
	assert_int_equal(unseen(), 0); /* not known yet */
	bed.dropped = 1;
	tells_open(7, "y", O_RDONLY, 9);
	assert_true(settles(false));
	assert_int_equal(unseen(), 1);
	assert_int_equal(bed.n, 0);
	/* and where none was lost */
	stub(OPENAT, (const uint64_t[6]){ 0, PTR, O_RDONLY }, 9, "y");
	stub(OPENAT, a, 3, "x");
	assert_true(settles(true));
	tells_open(7, "z", O_RDONLY, 10);
	assert_true(settles(true));
	assert_int_equal(unseen(), 1);
	assert_int_equal(bed.n, 1);
	expect_contradiction(0, "x");
	/* at the end nobody says anything any more */
	begin(true);
	stub(OPENAT, a, 3, "x");
	guest_quiet(bed.g, true, true);
	assert_int_equal(unseen(), 1);
	assert_int_equal(bed.n, 0);
	begin(true);
	stub(OPENAT, a, 3, "x");
	guest_quiet(bed.g, false, true);
	assert_int_equal(bed.n, 1);
}

/* A guest's own filter may answer in the place of its kernel: with 0 or an error, not with a descriptor. */
static void test_filters_of_the_guest(void **state)
{
	const uint64_t a[6] = { PTR };

	(void)state;
	tells(7, SECCOMP, (const uint64_t[6]){ 1 }, 0);
	stub(UNLINK, a, 0, "x");
	stub(UNLINK, a, -EPERM, "y");
	assert_true(settles(false));
	assert_int_equal(bed.n, 2); /* the acts themselves */
	stub(OPENAT, NONE, 3, "z");
	assert_true(settles(false));
	assert_int_equal(bed.n, 3);
	expect_contradiction(2, "z");
	tells(7, PTRACE, (const uint64_t[6]){ 31, 9 }, 0);
	bed.n = 0; /* that is a signal of its own */
	stub(OPENAT, NONE, 3, "z");
	settles(false);
	assert_int_equal(bed.n, 0);
}

static bool is_blind(void)
{
	struct guest_stats st;

	guest_stats(bed.g, &st);
	return st.is_blind;
}

/* Nothing is said any more of a call that was not told: the calls before it may have been forgotten. */
static void expect_blind(void)
{
	assert_true(is_blind());
	bed.n = 0;
	stub(UNLINK, (const uint64_t[6]){ 1, 2, 3 }, 0, "/work/untold");
	stub(OPENAT, NONE, 1 << 20, "/work/untold");
	assert_true(settles(false));
	assert_int_equal(bed.n, 1);
	expect_file(0, WIRE_FILE_DELETE, "kernel", "/work/untold", 4000);
}

static void test_more_of_the_host_than_is_kept(void **state)
{
	uint64_t a[6] = { PTR };
	const unsigned n = MIRROR_ENTRIES_MAX + 10;

	(void)state;
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(is_blind(), i > MIRROR_ENTRIES_MAX);
		a[1] = i;
		stub(UNLINK, a, 0, "x");
	}
	assert_int_equal(bed.n, 0);
	for (unsigned i = n; i--;) {
		bed.n = 0;
		a[1] = i;
		tells(7, UNLINK, a, 0);
		assert_int_equal(bed.n, i >= 10); /* those are not kept any more */
	}
	bed.now += MIRROR_WAIT_NS;
	guest_tick(bed.g, bed.now);
	assert_int_equal(bed.n, 10);
	expect_file(9, WIRE_FILE_DELETE, "guest", NULL, 7);
	expect_blind();
}

static void test_more_bytes_than_are_kept(void **state)
{
	static char path[4001];
	uint64_t a[6] = { PTR };
	unsigned n = 0;

	(void)state;
	memset(path, 'x', sizeof(path) - 1);
	path[0] = '/';
	/* what the gofer did makes room for what counts */
	for (int i = 0; i < MIRROR_ENTRIES_MAX; i++)
		shows(GVISOR_GOFER, RENAMEAT, NONE, 0,
		      &(struct parts){ path, path, path, path, .index = 0 });
	for (int i = 0; i < 100; i++) {
		a[1] = n++;
		stub(UNLINK, a, 0, path);
	}
	assert_false(is_blind());
	for (unsigned i = 0; i < n; i++) {
		bed.n = 0;
		a[1] = i;
		tells(7, UNLINK, a, 0);
		assert_int_equal(bed.n, 1);
	}
	for (n = 0; n < MIRROR_ENTRIES_MAX && !is_blind(); n++) {
		a[1] = n;
		shows(GVISOR_STUB, RENAMEAT, a, 0, &(struct parts){ .path = path, .path2 = path });
	}
	assert_in_range(n, 1, MIRROR_ENTRIES_MAX - 1);
	assert_int_equal(bed.n, 1);
	for (unsigned i = 0; i < n; i++) {
		bed.n = 0;
		a[1] = i;
		tells(7, RENAMEAT, a, 0);
		assert_int_equal(bed.n, i < n - 1); /* all but the last were kept */
	}
	expect_blind();
}

static void test_more_acts_than_are_kept(void **state)
{
	uint64_t a[6] = { PTR };

	(void)state;
	for (unsigned i = 0; i < MIRROR_ENTRIES_MAX + 10; i++) {
		bed.n = 0;
		a[1] = i;
		tells(7, UNLINK, a, 0);
		/* told without a name, to make room */
		assert_int_equal(bed.n, i >= MIRROR_ENTRIES_MAX);
	}
	expect_file(0, WIRE_FILE_DELETE, "guest", NULL, 7);
	/* the host is late: those that are told already, and those that wait */
	for (unsigned i = 0; i < MIRROR_ENTRIES_MAX + 10; i++) {
		bed.n = 0;
		a[1] = i;
		stub(UNLINK, a, 0, "x");
		assert_int_equal(bed.n, i >= 10);
	}
	assert_false(settles(false));
	assert_false(is_blind());
}

static void test_more_calls_than_are_kept(void **state)
{
	(void)state;
	for (unsigned i = 0; i < MIRROR_KEYS_MAX + 10; i++) {
		assert_int_equal(is_blind(), i > MIRROR_KEYS_MAX);
		bed.n = 0;
		tells_open(7, "x", O_RDONLY, 3 + i);
	}
	for (unsigned i = 0; i < 10; i++) /* room again */
		stub(OPENAT, NONE, 3 + (int)i, "x");
	expect_blind();
}

/* The rings are written by the kernel; all the same nothing in a record is believed. */
static void test_bad_records(void **state)
{
	struct wire_mirror w = {
		.h = { .kind = WIRE_MIRROR, .nr = UNLINK, .flags = GVISOR_STUB << WIRE_PART_SHIFT },
		.path = { 60000, 60000 }
	};

	(void)state;
	guest_mirror(bed.g, &w, sizeof(w.h), BOOT);
	guest_mirror(bed.g, &w, sizeof(w), BOOT);
	w.h.nr = 60000;
	guest_mirror(bed.g, &w, sizeof(w), BOOT);
	guest_quiet(bed.g, false, true);
	assert_int_equal(bed.n, 2);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_who_from_the_guest_and_what_from_the_host),
		TEST(test_the_gofer_knows_the_file),
		TEST(test_without_stubs),
		TEST(test_what_the_host_has_not),
		TEST(test_what_waits_at_the_end),
		TEST(test_sends),
		TEST(test_a_call_that_was_not_told),
		TEST(test_many_that_look_alike),
		TEST(test_messages_that_were_lost),
		TEST(test_filters_of_the_guest),
		TEST(test_more_of_the_host_than_is_kept),
		TEST(test_more_bytes_than_are_kept),
		TEST(test_more_acts_than_are_kept),
		TEST(test_more_calls_than_are_kept),
		TEST(test_bad_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
