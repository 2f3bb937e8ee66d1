// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/event/decode.h"

struct fixture {
	struct decoder *decoder;
	struct arena arena;
	struct event ev;
	struct buf json;
	char rec[WIRE_RECORD_MAX];
	size_t n; /* bytes of rec in use */
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	*state = f;
	arena_init(&f->arena, 8 << 20);
	buf_init(&f->json, 0);
	return decoder_new(&f->decoder);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	decoder_free(f->decoder);
	arena_done(&f->arena);
	buf_done(&f->json);
	free(f);
	return 0;
}

static void *start(struct fixture *f, uint16_t kind, size_t size)
{
	struct wire_hdr *h = (void *)f->rec;

	memset(f->rec, 0, sizeof(f->rec));
	f->n = size;
	*h = (struct wire_hdr){ .kind = kind,
				.ts = 5,
				.start = 4,
				.sandbox = 1,
				.tgid = 10,
				.tid = 11,
				.ppid = 9,
				.uid = 1000,
				.gid = 1001,
				.nspid = 2,
				.nr = WIRE_NR_NONE,
				.comm = "sh" };
	return f->rec;
}

static struct wire_str tail(struct fixture *f, const void *p, size_t n)
{
	struct wire_str s = { (uint16_t)f->n, (uint16_t)n };

	memcpy(f->rec + f->n, p, n);
	f->n += n;
	return s;
}

static struct wire_str tailz(struct fixture *f, const char *z)
{
	return tail(f, z, strlen(z));
}

/* From an odd address in a block of exactly that size, so that a sanitizer sees every overrun. */
static int feed(struct fixture *f)
{
	char *copy = malloc(f->n + 1);
	int r;

	((struct wire_hdr *)(void *)f->rec)->len = (uint32_t)f->n;
	memcpy(copy + 1, f->rec, f->n);
	arena_reset(&f->arena);
	r = decoder_feed(f->decoder, copy + 1, f->n, &f->arena, &f->ev);
	free(copy);
	return r;
}

static const char *json(struct fixture *f)
{
	buf_reset(&f->json);
	assert_int_equal(event_to_json(&f->ev, &f->json), 0);
	assert_int_equal(buf_addc(&f->json, 0), 0);
	return f->json.p;
}

static void assert_field(struct fixture *f, enum field_id id, const char *want)
{
	assert_true(event_has(&f->ev, id));
	assert_int_equal(f->ev.v[id].s.n, strlen(want));
	assert_memory_equal(f->ev.v[id].s.p, want, strlen(want));
}

static void feed_exec(struct fixture *f, const void *args, size_t n, size_t total)
{
	struct wire_exec *w = start(f, WIRE_EXEC, sizeof(*w));

	w->exec_id = 77;
	w->args_total = (uint32_t)total;
	w->exe = tailz(f, "/bin/sh");
	w->cwd = tailz(f, "/tmp");
	w->args = tail(f, args, n);
	w->ancestors_n = 1;
	w->ancestors[0] = (struct wire_ancestor){ .tgid = 9, .start = 3, .comm = "init" };
	assert_int_equal(feed(f), 1);
}

static void exec_becomes_json(void **state)
{
	struct fixture *f = *state;

	feed_exec(f, "sh\0-c\0\0", 7, 7);
	assert_string_equal(
		json(f),
		"{\"v\":1,\"mono\":5,\"kind\":\"exec\",\"vantage\":\"kernel\",\"outcome\":\"success\","
		"\"proc\":{\"pid\":10,\"tid\":11,\"nspid\":2,\"ppid\":9,\"uid\":1000,\"gid\":1001,"
		"\"ruid\":0,\"loginuid\":0,\"comm\":\"sh\",\"exe\":\"/bin/sh\","
		"\"args\":[\"sh\",\"-c\",\"\"],\"argc\":0,\"args_len\":7,\"cwd\":\"/tmp\",\"start\":4,"
		"\"stdin\":\"none\",\"caps\":\"0x0\",\"caps_permitted\":\"0x0\",\"pcomm\":\"init\","
		"\"ancestors\":[{\"pid\":9,\"start\":3,\"comm\":\"init\"}]}}");
}

static void bytes_that_are_not_utf8_stay_recoverable(void **state)
{
	struct fixture *f = *state;

	feed_exec(f, "a\0\xff\xfe\0", 5, 5);
	assert_non_null(strstr(json(f), "\"args\":[\"a\",\"\xef\xbf\xbd\xef\xbf\xbd\"]"));
	assert_non_null(strstr(json(f), ",\"raw\":{\"proc.args.1\":\"//4=\"}}"));
}

static void feed_chunk(struct fixture *f, const char *p, size_t offset, size_t n)
{
	struct wire_chunk *w = start(f, WIRE_CHUNK, sizeof(*w));

	w->exec_id = 77;
	w->offset = (uint32_t)offset;
	w->n = (uint32_t)n;
	tail(f, p + offset, n);
	assert_int_equal(feed(f), 0);
}

static void long_argv_comes_in_chunks(void **state)
{
	struct fixture *f = *state;
	size_t total = 100 << 10;
	char *argv = malloc(total);

	for (size_t i = 0; i < total; i++)
		argv[i] = (char)(i % 100 == 99 ? 0 : 'a' + i % 26);
	for (size_t at = 1000; at < total; at += 16000)
		feed_chunk(f, argv, at, total - at < 16000 ? total - at : 16000);
	feed_exec(f, argv, 1000, total);
	assert_false(event_has(&f->ev, F_PROC_ARGS_TRUNCATED));
	assert_int_equal(f->ev.v[F_PROC_ARGS].list.n, total / 100);
	for (size_t i = 0; i < total / 100; i++)
		assert_memory_equal(f->ev.v[F_PROC_ARGS].list.v[i].p, argv + i * 100, 100);
	assert_int_equal(decoder_stats(f->decoder)->chunks_lost, 0);

	/* the same again with a hole: what lies before it stays, the event says that it was cut */
	feed_chunk(f, argv, 1000, 16000);
	feed_chunk(f, argv, 33000, 16000);
	feed_exec(f, argv, 1000, total);
	assert_true(event_has(&f->ev, F_PROC_ARGS_TRUNCATED));
	assert_true(event_has(&f->ev, F_TRUNCATED));
	assert_int_equal(f->ev.v[F_PROC_ARGS].list.n, 170);
	assert_int_equal(decoder_stats(f->decoder)->chunks_lost, 1);
	free(argv);
}

/* Longer than is kept: head, tail and a hash of what was sent. The hashes are Python's hashlib's. */
static void argv_beyond_the_cap(void **state)
{
	static const char
		of_200k[] = "9f0cded48c5938cf7f0cacd3ef8d4340871377fc83308b0b28a66e1f70c5d654",
		of_400k[] = "b552e2092459c740f3d617ae231406d89df19039c38d163bca047db446a817c3";
	struct fixture *f = *state;
	size_t total = 200 << 10, head = 96 << 10, tail_n = 32 << 10;
	char *argv = malloc(400 << 10);
	const union field_value *v = f->ev.v;

	for (size_t i = 0; i < 400 << 10; i++)
		argv[i] = (char)(i % 100 == 99 ? 0 : 'a' + i % 26);
	for (size_t at = 1000; at < total; at += 16000)
		feed_chunk(f, argv, at, total - at < 16000 ? total - at : 16000);
	feed_exec(f, argv, 1000, total);
	assert_true(event_has(&f->ev, F_PROC_ARGS_TRUNCATED));
	assert_int_equal(v[F_PROC_ARGS].list.n, (head + 99) / 100);
	assert_memory_equal(v[F_PROC_ARGS].list.v[982].p, argv + 98200, 100);
	assert_memory_equal(v[F_PROC_ARGS_TAIL].list.v[0].p, argv + total - tail_n, 20);
	assert_string_equal(v[F_PROC_ARGS_SHA256].s.p, of_200k);
	assert_int_equal(v[F_PROC_ARGS_HASHED].u, total);
	assert_int_equal(v[F_PROC_ARGS_LEN].u, total);

	/* beyond what is sent: the middle is not there, the hash says how much it covers */
	total = 400 << 10;
	for (size_t at = 1000; at < 224 << 10; at += 16000)
		feed_chunk(f, argv, at, (224 << 10) - at < 16000 ? (224 << 10) - at : 16000);
	feed_chunk(f, argv, total - tail_n, 16384);
	feed_chunk(f, argv, total - 16384, 16384);
	feed_exec(f, argv, 1000, total);
	assert_string_equal(v[F_PROC_ARGS_SHA256].s.p, of_400k);
	assert_int_equal(v[F_PROC_ARGS_HASHED].u, 256 << 10);
	assert_memory_equal(v[F_PROC_ARGS_TAIL].list.v[0].p, argv + total - tail_n, 20);
	assert_int_equal(decoder_stats(f->decoder)->chunks_lost, 0);

	/* a piece of the end is lost: no hash and no tail rather than wrong ones */
	for (size_t at = 1000; at < 224 << 10; at += 16000)
		feed_chunk(f, argv, at, (224 << 10) - at < 16000 ? (224 << 10) - at : 16000);
	feed_chunk(f, argv, total - 16384, 16384);
	feed_exec(f, argv, 1000, total);
	assert_int_equal(v[F_PROC_ARGS].list.n, (head + 99) / 100);
	assert_false(event_has(&f->ev, F_PROC_ARGS_TAIL));
	assert_false(event_has(&f->ev, F_PROC_ARGS_SHA256));
	assert_int_equal(decoder_stats(f->decoder)->chunks_lost, 1);
	free(argv);
}

static void failed_exec_is_the_callers(void **state)
{
	struct fixture *f = *state;
	struct wire_exec *w = start(f, WIRE_EXEC, sizeof(*w));

	w->h.ret = -2;
	w->tries = 3;
	w->exe = tailz(f, "../bin/none");
	w->cwd = tailz(f, "/home/a");
	assert_int_equal(feed(f), 1);
	assert_string_equal(f->ev.v[F_EXEC_PATH].s.p, "/home/bin/none");
	assert_int_equal(f->ev.v[F_EXEC_TRIES].u, 3);
	assert_string_equal(f->ev.v[F_OUTCOME].s.p, "failure");
	assert_string_equal(f->ev.v[F_ERRNO].s.p, "ENOENT");
	assert_false(event_has(&f->ev, F_PROC_EXE));
	assert_false(event_has(&f->ev, F_PROC_ARGS));
	assert_false(event_has(&f->ev, F_PROC_RUID));
}

static void chunks_that_nobody_asks_for_are_bounded(void **state)
{
	struct fixture *f = *state;
	static char data[16384];
	uint64_t sent = 0;

	for (uint64_t id = 1; id <= 1000; id++) {
		for (int k = 0; k < 8; k++) {
			struct wire_chunk *w = start(f, WIRE_CHUNK, sizeof(*w));

			w->exec_id = id;
			w->offset = (uint32_t)k * 16000;
			w->n = 3000;
			tail(f, data, 3000);
			assert_int_equal(feed(f), 0);
			sent++;
		}
	}
	/* 64 execs are kept, the pieces of all others are counted as lost */
	assert_int_equal(decoder_stats(f->decoder)->chunks_lost, sent - 64 * 8);
}

static void feed_open(struct fixture *f, const char *base, const char *path)
{
	struct wire_file *w = start(f, WIRE_FILE_OPEN, sizeof(*w));

	w->open_flags = 01 | 0100 | 01000; /* O_WRONLY O_CREAT O_TRUNC */
	w->mode = 0100644;
	w->ino = 12;
	w->dev = 8 << 20 | 1;
	w->fd = 3;
	w->base = tailz(f, base);
	w->path = tailz(f, path);
	assert_int_equal(feed(f), 1);
}

static void paths_are_joined_and_the_raw_one_kept(void **state)
{
	static const char *const cases[][3] = {
		{ "", "/etc/passwd", "/etc/passwd" },
		{ "/tmp", "a", "/tmp/a" },
		{ "/tmp/", "./a//b/../c/", "/tmp/a/c" },
		{ "/tmp", "../../../etc/shadow", "/etc/shadow" },
		{ "/tmp", "/abs/./x", "/abs/x" },
		{ "/", "a", "/a" },
		{ "/a/b", "..", "/a" },
		{ "/a", "../..", "/" },
		{ "", "//x", "/x" },
		{ "", "/a/..b", "/a/..b" },
		{ "", "/a/.", "/a" },
		{ "/w", "", "/w" },
		{ "", "rel/../../x", "../x" },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		feed_open(f, cases[i][0], cases[i][1]);
		assert_field(f, F_FILE_PATH, cases[i][2]);
		if (!cases[i][1][0] || !strcmp(cases[i][1], cases[i][2]))
			assert_false(event_has(&f->ev, F_FILE_RAW_PATH));
		else
			assert_field(f, F_FILE_RAW_PATH, cases[i][1]);
	}
	feed_open(f, "/tmp", "a");
	assert_field(f, F_FILE_NAME, "a");
	assert_field(f, F_FILE_TYPE, "regular");
	assert_field(f, F_FILE_DEV, "8:1");
	assert_int_equal(f->ev.v[F_FILE_FLAGS].list.n, 3);
	assert_true(event_u64(&f->ev, F_FILE_WRITE));
	assert_true(event_u64(&f->ev, F_FILE_CREATED));
	assert_int_equal(event_u64(&f->ev, F_FILE_MODE), 0644);
}

static void records_that_lie_are_counted(void **state)
{
	struct fixture *f = *state;
	const struct decode_stats *s = decoder_stats(f->decoder);
	struct wire_exec *w;
	struct wire_hdr h = { .kind = WIRE_EXEC, .len = sizeof(h) };

	assert_int_equal(decoder_feed(f->decoder, "", 0, &f->arena, &f->ev), 0);
	assert_int_equal(decoder_feed(f->decoder, &h, 10, &f->arena, &f->ev), 0);
	assert_int_equal(decoder_feed(f->decoder, &h, sizeof(h), &f->arena, &f->ev), 0);
	h.len = 1 << 20;
	assert_int_equal(decoder_feed(f->decoder, &h, sizeof(h), &f->arena, &f->ev), 0);
	assert_int_equal(s->bad_size, 4);

	start(f, 999, 200);
	assert_int_equal(feed(f), 0);
	start(f, WIRE_RULE_ALERT, 200); /* made by the agent: has no record */
	assert_int_equal(feed(f), 0);
	assert_int_equal(s->bad_kind, 2);

	w = start(f, WIRE_EXEC, sizeof(*w));
	w->exe = (struct wire_str){ 8, 16 };	      /* inside the fixed part */
	w->cwd = (struct wire_str){ 0xffff, 0xffff }; /* far outside */
	w->ancestors_n = 0xffff;
	assert_int_equal(feed(f), 1);
	assert_int_equal(s->bad_string, 2);
	assert_false(event_has(&f->ev, F_PROC_EXE));
	assert_true(event_has(&f->ev, F_TRUNCATED));
	assert_int_equal(s->records, 7);
}

static void outcomes(void **state)
{
	static const struct {
		int ret;
		uint16_t flags;
		const char *outcome, *error;
	} cases[] = {
		{ 3, 0, "success", NULL },
		{ -1, 0, "denied", "EPERM" },
		{ -13, 0, "denied", "EACCES" },
		{ -2, 0, "failure", "ENOENT" },
		{ -115, 0, "pending", "EINPROGRESS" },
		{ -512, 0, "failure", "ERESTARTSYS" },
		{ -4000, 0, "failure", "E4000" },
		{ 0, WIRE_F_DENIED, "denied", NULL },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wire_net *w = start(f, WIRE_NET_CONNECT, sizeof(*w));

		w->h.ret = cases[i].ret;
		w->h.flags = cases[i].flags;
		w->h.nr = 42;
		w->family = 2;
		w->type = 1;
		assert_int_equal(feed(f), 1);
		assert_field(f, F_OUTCOME, cases[i].outcome);
		if (cases[i].error)
			assert_field(f, F_ERRNO, cases[i].error);
		else
			assert_false(event_has(&f->ev, F_ERRNO));
	}
}

static void what_the_kernel_decided(void **state)
{
	static const struct {
		uint16_t flags, enforced;
		const char *verdict;
	} cases[] = {
		{ WIRE_F_DENIED, 7, "deny" },
		{ WIRE_F_DENIED | WIRE_F_KILLED, 65535, "kill" },
		{ WIRE_F_KILLED, 1, "kill" },
		{ WIRE_F_KILLED, 0, NULL }, /* for an escape, without an entry */
		{ 0, 7, NULL },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wire_net *w = start(f, WIRE_NET_CONNECT, sizeof(*w));

		w->h.flags = cases[i].flags;
		w->h.enforced = cases[i].enforced;
		w->family = 2;
		assert_int_equal(feed(f), 1);
		assert_int_equal(event_has(&f->ev, F_ENFORCE_ENTRY), cases[i].verdict != NULL);
		if (!cases[i].verdict)
			continue;
		assert_field(f, F_ENFORCE_VERDICT, cases[i].verdict);
		assert_int_equal(event_u64(&f->ev, F_ENFORCE_ENTRY), cases[i].enforced);
	}
}

static void mapped_addresses_are_unmapped(void **state)
{
	struct fixture *f = *state;
	struct wire_net *w = start(f, WIRE_NET_CONNECT, sizeof(*w));

	w->family = 10;
	w->type = 1;
	w->dport = 443;
	memcpy(w->daddr, "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\2\1", 16);
	assert_int_equal(feed(f), 1);
	assert_non_null(strstr(json(f), "\"net\":{\"family\":\"inet\",\"proto\":\"tcp\","
					"\"dst\":{\"ip\":\"192.0.2.1\",\"port\":443}}"));
}

static void escape_details_are_words(void **state)
{
	static const struct {
		uint32_t type;
		uint64_t arg0, arg1;
		const char *detail;
	} cases[] = {
		{ WIRE_ESCAPE_UNSHARE, 0x10020000, 0, "CLONE_NEWNS|CLONE_NEWUSER" },
		{ WIRE_ESCAPE_UNSHARE, 0x20000 | 0x400, 0, "CLONE_NEWNS|0x400" },
		{ WIRE_ESCAPE_SETNS, 3, 0x40000000, "CLONE_NEWNET" },
		{ WIRE_ESCAPE_SETNS, 3, 0, "any namespace" },
		{ WIRE_ESCAPE_PTRACE, 16, 12, "PTRACE_ATTACH pid 12" },
		{ WIRE_ESCAPE_PTRACE, 99999, 12, "0x1869f pid 12" },
		{ WIRE_ESCAPE_BPF, 5, 0, "BPF_PROG_LOAD" },
		{ WIRE_ESCAPE_CLONE_NS, 0x10000000 | 17, 0, "CLONE_NEWUSER" },
		{ WIRE_ESCAPE_SOCKET_FAMILY, 17, 0, "packet" },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wire_escape *w = start(f, WIRE_ESCAPE, sizeof(*w));

		w->h.ret = -1;
		w->type = cases[i].type;
		w->args[0] = cases[i].arg0;
		w->args[1] = cases[i].arg1;
		assert_int_equal(feed(f), 1);
		assert_field(f, F_ESCAPE_DETAIL, cases[i].detail);
		assert_field(f, F_OUTCOME, "denied");
	}
}

static void exit_status_is_split(void **state)
{
	struct fixture *f = *state;
	struct wire_exit *w = start(f, WIRE_EXIT, sizeof(*w));

	w->status = 7 << 8;
	assert_int_equal(feed(f), 1);
	assert_int_equal(event_u64(&f->ev, F_EXIT_CODE), 7);
	assert_false(event_has(&f->ev, F_EXIT_SIGNAL));
	w = start(f, WIRE_EXIT, sizeof(*w));
	w->status = 11 | 0x80;
	assert_int_equal(feed(f), 1);
	assert_field(f, F_EXIT_SIGNAL, "SIGSEGV");
	assert_true(event_u64(&f->ev, F_EXIT_CORE));
	assert_false(event_has(&f->ev, F_EXIT_CODE));
}

static void a_full_arena_is_an_error(void **state)
{
	struct fixture *f = *state;
	struct arena small;

	feed_exec(f, "sh\0-c\0\0", 7, 7);
	arena_init(&small, 64);
	assert_int_equal(decoder_feed(f->decoder, f->rec, f->n, &small, &f->ev), -ENOMEM);
	arena_done(&small);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(exec_becomes_json),
		TEST(bytes_that_are_not_utf8_stay_recoverable),
		TEST(long_argv_comes_in_chunks),
		TEST(argv_beyond_the_cap),
		TEST(failed_exec_is_the_callers),
		TEST(chunks_that_nobody_asks_for_are_bounded),
		TEST(paths_are_joined_and_the_raw_one_kept),
		TEST(records_that_lie_are_counted),
		TEST(outcomes),
		TEST(what_the_kernel_decided),
		TEST(mapped_addresses_are_unmapped),
		TEST(escape_details_are_words),
		TEST(exit_status_is_split),
		TEST(a_full_arena_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
