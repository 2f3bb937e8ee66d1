// SPDX-License-Identifier: Apache-2.0
/* What the golden cases cannot show: limits, many sandboxes, memory given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/abi/maps.h"
#include "userspace/enrich/enrich.h"
#include "userspace/event/decode.h"

struct fixture {
	struct enrich *enrich;
	struct arena arena;
	struct event ev;
};

static int setup(void **state)
{
	struct enrich_limits limits = { .processes = 100, .dns_entries = 50, .files = 60 };
	struct fixture *f = calloc(1, sizeof(*f));

	*state = f;
	arena_init(&f->arena, 1 << 20);
	return enrich_new(&f->enrich, &limits);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	enrich_free(f->enrich);
	arena_done(&f->arena);
	free(f);
	return 0;
}

static int add_session(struct fixture *f, uint32_t id)
{
	struct enrich_session s = {
		.sandbox_id = id, .session = "S", .name = "n", .host = "h", .real_offset_ns = -5
	};

	return enrich_session_add(f->enrich, &s);
}

static struct event *start(struct fixture *f, enum wire_kind kind, uint32_t sandbox, uint64_t pid)
{
	arena_reset(&f->arena);
	event_init(&f->ev, kind, &f->arena);
	f->ev.hdr.sandbox = sandbox;
	event_set_u64(&f->ev, F_MONO, 1000 + pid);
	event_set_u64(&f->ev, F_PROC_PID, pid);
	event_set_u64(&f->ev, F_PROC_START, pid);
	event_set_strz(&f->ev, F_OUTCOME, "success");
	return &f->ev;
}

static void exec_of(struct fixture *f, uint32_t sandbox, uint64_t pid, const char *exe, size_t cwd)
{
	struct event *ev = start(f, WIRE_EXEC, sandbox, pid);
	char *long_cwd = arena_zalloc(&f->arena, cwd + 1);

	memset(long_cwd, 'd', cwd);
	event_set_strz(ev, F_PROC_EXE, exe);
	event_set_str(ev, F_PROC_CWD, (struct str){ long_cwd, cwd });
	assert_int_equal(enrich_apply(f->enrich, ev), 0);
}

static bool knows(struct fixture *f, uint32_t sandbox, uint64_t pid)
{
	struct event *ev = start(f, WIRE_FILE_MKDIR, sandbox, pid);

	assert_int_equal(enrich_apply(f->enrich, ev), 0);
	return event_has(ev, F_PROC_EXE);
}

static void values_in_the_environment_are_cut_off(void **state)
{
	static const char *const whole[] = { "PATH=/bin", "API_KEY=s3cret", "LD_PRELOAD=/x.so",
					     "API",	  "LD=1",	    "=odd",
					     "LANG=" };
	static const char *const kept[] = { "PATH", "API_KEY", "LD_PRELOAD=/x.so", "API", "LD",
					    "",	    "LANG=" };
	struct fixture *f = *state;
	struct enrich_session s = {
		.sandbox_id = 1, .session = "S", .name = "n", .env_values = "LD_*,LANG"
	};
	struct event *ev;
	struct str *v;

	assert_int_equal(enrich_session_add(f->enrich, &s), 0);
	ev = start(f, WIRE_EXEC, 1, 7);
	v = arena_alloc(&f->arena, sizeof(*v) * 7);
	for (size_t i = 0; i < 7; i++)
		v[i] = str_from(whole[i]);
	event_set_list(ev, F_PROC_ENV, v, 7);
	assert_int_equal(enrich_apply(f->enrich, ev), 0);
	for (size_t i = 0; i < 7; i++)
		assert_true(str_eqz(ev->v[F_PROC_ENV].list.v[i], kept[i]));
	/* nobody chose anything: names only */
	assert_int_equal(add_session(f, 2), 0);
	ev = start(f, WIRE_EXEC, 2, 7);
	v = arena_alloc(&f->arena, sizeof(*v));
	v[0] = str_from(whole[2]);
	event_set_list(ev, F_PROC_ENV, v, 1);
	assert_int_equal(enrich_apply(f->enrich, ev), 0);
	assert_true(str_eqz(ev->v[F_PROC_ENV].list.v[0], "LD_PRELOAD"));
}

static void sessions_come_and_go(void **state)
{
	struct fixture *f = *state;
	struct enrich_stats st;

	assert_int_equal(enrich_apply(f->enrich, start(f, WIRE_EXIT, 1, 1)), -ENOENT);
	assert_int_equal(add_session(f, 1), 0);
	assert_int_equal(add_session(f, 1), -EEXIST);
	exec_of(f, 1, 7, "/bin/a", 1);
	assert_true(str_eqz(event_str(&f->ev, F_SESSION), "S"));
	assert_true(str_eqz(event_str(&f->ev, F_HOST), "h"));
	assert_false(event_has(&f->ev, F_TENANT));
	assert_int_equal(event_u64(&f->ev, F_TIME), 1002);
	assert_true(knows(f, 1, 7));
	enrich_session_remove(f->enrich, 1);
	enrich_session_remove(f->enrich, 1);
	assert_int_equal(enrich_apply(f->enrich, start(f, WIRE_EXIT, 1, 1)), -ENOENT);
	/* a sandbox that gets the number again starts from nothing */
	assert_int_equal(add_session(f, 1), 0);
	assert_false(knows(f, 1, 7));
	enrich_stats(f->enrich, &st);
	assert_int_equal(st.sandboxes, 1);
	assert_int_equal(st.processes, 0);
}

static void a_live_sandbox_is_never_forgotten_for_another(void **state)
{
	struct fixture *f = *state;

	for (uint32_t id = 1; id <= SANDBOXES_MAX; id++)
		assert_int_equal(add_session(f, id), 0);
	assert_int_equal(add_session(f, SANDBOXES_MAX + 1), -ENOSPC);
	assert_int_equal(enrich_apply(f->enrich, start(f, WIRE_EXIT, 1, 1)), 0);
	enrich_session_remove(f->enrich, 5);
	assert_int_equal(add_session(f, SANDBOXES_MAX + 1), 0);
}

static void sandboxes_do_not_see_each_other(void **state)
{
	struct fixture *f = *state;

	add_session(f, 1);
	add_session(f, 2);
	exec_of(f, 1, 7, "/bin/a", 1);
	assert_true(knows(f, 1, 7));
	assert_false(knows(f, 2, 7));
	/* and one cannot push the other's processes out */
	for (uint64_t pid = 1000; pid < 2000; pid++)
		exec_of(f, 2, pid, "/bin/b", 1);
	assert_true(knows(f, 1, 7));
}

static void tables_stay_within_their_limits(void **state)
{
	struct fixture *f = *state;
	struct enrich_stats st;
	struct event *ev;

	add_session(f, 1);
	for (uint64_t i = 1; i <= 5000; i++) {
		exec_of(f, 1, i, "/bin/a", 10);
		ev = start(f, WIRE_FORK, 1, i);
		event_set_u64(ev, F_CHILD_PID, i + 100000);
		event_set_u64(ev, F_CHILD_START, i);
		assert_int_equal(enrich_apply(f->enrich, ev), 0);
		ev = start(f, WIRE_FILE_WRITE, 1, i);
		event_set_str(ev, F_FILE_PATH, arena_printf(&f->arena, "/f%u", (unsigned)i));
		assert_int_equal(enrich_apply(f->enrich, ev), 0);
	}
	enrich_stats(f->enrich, &st);
	assert_int_equal(st.processes, 100);
	assert_int_equal(st.files, 60);
	assert_int_equal(st.evicted, 10000 - 100 + 5000 - 60);
	assert_true(knows(f, 1, 5000));
	assert_false(knows(f, 1, 1));
}

/* The limit on bytes works as the one on processes does: the oldest go. */
static void long_names_are_bounded_by_bytes(void **state)
{
	struct enrich_limits limits = { .processes = 100000 };
	struct fixture *f = *state;
	struct enrich_stats st;

	enrich_free(f->enrich);
	assert_int_equal(enrich_new(&f->enrich, &limits), 0);
	add_session(f, 1);
	for (uint64_t i = 1; i <= 20000; i++)
		exec_of(f, 1, i, "/bin/a", 4000);
	enrich_stats(f->enrich, &st);
	assert_true(st.processes * 4000 < 32 << 20);
	assert_true(st.processes > 7000);
	assert_true(knows(f, 1, 20000));
	assert_false(knows(f, 1, 1));
}

static void processes_that_ended_are_forgotten_in_time(void **state)
{
	struct enrich_limits limits = { .processes = 100000 };
	struct fixture *f = *state;
	struct enrich_stats st;

	enrich_free(f->enrich);
	assert_int_equal(enrich_new(&f->enrich, &limits), 0);
	add_session(f, 1);
	for (uint64_t i = 1; i <= 3000; i++) {
		exec_of(f, 1, i, "/bin/true", 1);
		assert_int_equal(enrich_apply(f->enrich, start(f, WIRE_EXIT, 1, i)), 0);
		assert_true(knows(f, 1, i)); /* a late record is still named */
	}
	enrich_stats(f->enrich, &st);
	assert_int_equal(st.processes, 512);
	assert_int_equal(st.evicted, 0);
	assert_false(knows(f, 1, 1));
}

/* A chain in which each process starts the next and ends: no ancestor list grows without end. */
static void a_chain_of_forks_keeps_eight_ancestors(void **state)
{
	struct fixture *f = *state;
	struct event *ev;

	add_session(f, 1);
	exec_of(f, 1, 1, "/bin/first", 1);
	for (uint64_t i = 1; i < 1000; i++) {
		ev = start(f, WIRE_FORK, 1, i);
		event_set_strz(ev, F_PROC_COMM, "chain");
		event_set_u64(ev, F_CHILD_PID, i + 1);
		event_set_u64(ev, F_CHILD_START, i + 1);
		assert_int_equal(enrich_apply(f->enrich, ev), 0);
		assert_int_equal(enrich_apply(f->enrich, start(f, WIRE_EXIT, 1, i)), 0);
	}
	ev = start(f, WIRE_FILE_MKDIR, 1, 1000);
	assert_int_equal(enrich_apply(f->enrich, ev), 0);
	assert_true(str_eqz(event_str(ev, F_PROC_EXE), "/bin/first"));
	assert_int_equal(ev->v[F_PROC_ANCESTORS].ancestors.n, WIRE_ANCESTORS);
	for (size_t i = 0; i < WIRE_ANCESTORS; i++) {
		assert_int_equal(ev->v[F_PROC_ANCESTORS].ancestors.v[i].pid, 999 - i);
		assert_true(str_eqz(ev->v[F_PROC_ANCESTORS].ancestors.v[i].exe, "/bin/first"));
	}
}

static void a_full_arena_is_an_error(void **state)
{
	struct fixture *f = *state;
	struct arena small;
	struct event ev;

	add_session(f, 1);
	exec_of(f, 1, 7, "/bin/a", 1);
	for (size_t limit = 8; limit <= 16; limit += 8) {
		arena_init(&small, limit);
		event_init(&ev, WIRE_FILE_MKDIR, &small);
		ev.hdr.sandbox = 1;
		event_set_u64(&ev, F_PROC_PID, 7);
		event_set_u64(&ev, F_PROC_START, 7);
		assert_int_equal(enrich_apply(f->enrich, &ev), limit < 16 ? -ENOMEM : 0);
		arena_done(&small);
	}
}

/* Paths of open files outlast any number of those whose writes were told; of those the last ones are kept. */
static void path_of_writes(struct fixture *f, uint64_t id, const char *path)
{
	struct event *ev = start(f, WIRE_FILE_WRITE, 7, 10);

	event_set_u64(ev, F_FILE_OPEN_ID, id);
	assert_int_equal(enrich_apply(f->enrich, ev), 0);
	assert_true(str_eqz(event_str(ev, F_FILE_PATH), path ? path : ""));
	assert_int_equal(event_has(ev, F_DEGRADED), !path);
}

static void open_files_keep_their_paths(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(add_session(f, 7), 0);
	for (uint64_t id = 1; id <= 20000; id++) {
		struct event *ev = start(f, WIRE_FILE_OPEN, 7, 10);

		event_set_u64(ev, F_FILE_OPEN_ID, id);
		event_set_strz(ev, F_FILE_PATH, id == 1 ? "/w/long" : "/w/short");
		assert_int_equal(enrich_apply(f->enrich, ev), 0);
		if (id > 1)
			path_of_writes(f, id, "/w/short");
	}
	path_of_writes(f, 19000, "/w/short"); /* a copy of the descriptor was closed, too */
	path_of_writes(f, 1, "/w/long");
	path_of_writes(f, 1, "/w/long");
	path_of_writes(f, 2, NULL);
}

/* What events of one task have in common is told as for the first one, until the task changes. */
static struct str text_of(struct fixture *f, uint32_t sandbox, const char *comm)
{
	static char text[512];
	struct event *ev = start(f, WIRE_FILE_MKDIR, sandbox, 7);
	struct buf out = { 0 };
	struct str s;

	ev->hdr.tid = 7;
	event_set_u64(ev, F_PROC_TID, 7);
	event_set_strz(ev, F_PROC_COMM, comm);
	assert_int_equal(enrich_apply(f->enrich, ev), 0);
	assert_int_equal(event_to_json(ev, &out), 0);
	assert_true(out.n < sizeof(text));
	memset(text, 0, sizeof(text));
	memcpy(text, out.p, out.n);
	s = (struct str){ text, out.n };
	buf_done(&out);
	return s;
}

static void events_of_a_task_have_a_part_in_common(void **state)
{
	static const char *const exes[] = { "/bin/a", "/bin/b" };
	struct fixture *f = *state;
	struct str first;
	char kept[512];

	add_session(f, 1);
	add_session(f, 2);
	for (int turn = 0; turn < 4; turn++) {
		exec_of(f, 1, 7, exes[turn % 2], 3);
		first = text_of(f, 1, "a");
		memcpy(kept, first.p, first.n);
		first.p = kept;
		assert_non_null(memmem(first.p, first.n, exes[turn % 2], 6));
		assert_null(f->ev.part[EVENT_PART_WHO]);
		for (int i = 0; i < 3; i++)
			assert_true(str_eq(text_of(f, 1, "a"), first));
		assert_non_null(f->ev.part[EVENT_PART_WHO]);
		assert_non_null(f->ev.part[EVENT_PART_SESSION]);
		/* its own of another sandbox, though all of its numbers are the same */
		exec_of(f, 2, 7, "/bin/other", 3);
		for (int i = 0; i < 3; i++)
			assert_null(memmem(text_of(f, 2, "a").p, 400, exes[turn % 2], 6));
		for (int i = 0; i < 3; i++)
			assert_true(str_eq(text_of(f, 1, "a"), first));
		/* another name is told from the first event on that has it */
		for (int i = 0; i < 3; i++)
			assert_non_null(
				memmem(text_of(f, 1, "name").p, 400, "\"comm\":\"name\"", 13));
		for (int i = 0; i < 3; i++)
			assert_true(str_eq(text_of(f, 1, "a"), first));
	}
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(values_in_the_environment_are_cut_off),
		TEST(sessions_come_and_go),
		TEST(a_live_sandbox_is_never_forgotten_for_another),
		TEST(sandboxes_do_not_see_each_other),
		TEST(tables_stay_within_their_limits),
		TEST(long_names_are_bounded_by_bytes),
		TEST(processes_that_ended_are_forgotten_in_time),
		TEST(a_chain_of_forks_keeps_eight_ancestors),
		TEST(a_full_arena_is_an_error),
		TEST(open_files_keep_their_paths),
		TEST(events_of_a_task_have_a_part_in_common),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
