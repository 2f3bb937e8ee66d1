// SPDX-License-Identifier: Apache-2.0
/* Paths inside -> paths on the host, and when nothing is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/enrich/enrich.h"

static const struct enrich_place places[] = {
	{ "/usr", "/usr" },	{ "/mnt", "/srv/data" }, { "/mnt/private", NULL },
	{ "/mnt/x", "/first" }, { "/mnt/x", "/second" }, { "/file", "/etc/thing" },
};
static const char *const watch[] = { "/mnt/a", "/mnt/keys/" };

struct fixture {
	struct enrich *enrich;
	struct arena arena;
	struct event ev;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct enrich_session s = { .sandbox_id = 1,
				    .session = "S",
				    .name = "n",
				    .places = places,
				    .places_n = ARRAY_SIZE(places),
				    .watch = watch,
				    .watch_n = ARRAY_SIZE(watch) };

	*state = f;
	arena_init(&f->arena, 1 << 20);
	return enrich_new(&f->enrich, NULL) || enrich_session_add(f->enrich, &s);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	enrich_free(f->enrich);
	arena_done(&f->arena);
	free(f);
	return 0;
}

static struct event *start(struct fixture *f, enum wire_kind kind)
{
	arena_reset(&f->arena);
	event_init(&f->ev, kind, &f->arena);
	f->ev.hdr.sandbox = 1;
	event_set_u64(&f->ev, F_MONO, 1000);
	event_set_strz(&f->ev, F_OUTCOME, "success");
	return &f->ev;
}

static void is_at(struct fixture *f, const char *path, const char *host)
{
	struct event *ev = start(f, WIRE_FILE_DELETE);

	event_set_strz(ev, F_FILE_PATH, path);
	assert_int_equal(enrich_apply(f->enrich, ev), 0);
	assert_int_equal(event_has(ev, F_FILE_HOST_PATH), host != NULL);
	if (host)
		assert_true(str_eqz(event_str(ev, F_FILE_HOST_PATH), host));
}

static void longest_place_counts(void **state)
{
	is_at(*state, "/mnt", "/srv/data");
	is_at(*state, "/mnt/a/b", "/srv/data/a/b");
	is_at(*state, "/mnt/private/a", NULL);
	is_at(*state, "/mnt/privately", "/srv/data/privately");
	is_at(*state, "/mnt/x/y", "/second/y");
	is_at(*state, "/file", "/etc/thing");
	is_at(*state, "/files", NULL);
	is_at(*state, "/usr/bin/sh", NULL); /* the same path */
	is_at(*state, "/elsewhere", NULL);
	is_at(*state, "memfd:/mnt", NULL);
}

static void a_path_that_is_not_whole_says_nothing(void **state)
{
	static const enum field_id marks[] = { F_FILE_PATH_TRUNCATED, F_FILE_UNREACHABLE };
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		struct event *ev = start(f, WIRE_FILE_OPEN);

		event_set_strz(ev, F_FILE_PATH, "/mnt/a");
		event_set_bool(ev, marks[i], true);
		assert_int_equal(enrich_apply(f->enrich, ev), 0);
		assert_false(event_has(ev, F_FILE_HOST_PATH));
	}
}

static void nothing_after_a_change(void **state)
{
	struct fixture *f = *state;
	struct event *ev = start(f, WIRE_ESCAPE);

	event_set_strz(ev, F_ESCAPE_TYPE, "chroot");
	event_set_strz(ev, F_OUTCOME, "failure");
	assert_int_equal(enrich_apply(f->enrich, ev), 0);
	is_at(f, "/mnt/a", "/srv/data/a");
	ev = start(f, WIRE_MOUNT); /* our own, while the sandbox is built */
	event_set_bool(ev, F_PROC_RUNTIME, true);
	event_set_strz(ev, F_FILE_PATH, "/mnt");
	assert_int_equal(enrich_apply(f->enrich, ev), 0);
	is_at(f, "/mnt/a", "/srv/data/a");
	ev = start(f, WIRE_ESCAPE);
	event_set_strz(ev, F_ESCAPE_TYPE, "chroot");
	assert_int_equal(enrich_apply(f->enrich, ev), 0);
	is_at(f, "/mnt/a", NULL);
}

static void entries_by_number(void **state)
{
	static const struct {
		const char *is, *becomes;
	} rows[] = { { "#1", "/mnt/a" }, { "#2", "/mnt/keys/" }, { "#3", "#3" }, { "#0", "#0" } };
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct event *ev = start(f, WIRE_FILE_OPEN);

		event_set_strz(ev, F_FILE_PATH, "/mnt/a");
		event_set_strz(ev, F_FILE_WATCHED, rows[i].is);
		assert_int_equal(enrich_apply(f->enrich, ev), 0);
		assert_true(str_eqz(event_str(ev, F_FILE_WATCHED), rows[i].becomes));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(longest_place_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(a_path_that_is_not_whole_says_nothing, setup,
						teardown),
		cmocka_unit_test_setup_teardown(nothing_after_a_change, setup, teardown),
		cmocka_unit_test_setup_teardown(entries_by_number, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
