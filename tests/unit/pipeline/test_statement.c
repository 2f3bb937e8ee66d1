// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/pipeline/statement.h"

static struct statement s;
static struct arena arena;
static struct event ev;

static void note_names(enum wire_kind kind, const char *rules, const struct str *degraded, size_t n)
{
	event_init(&ev, kind, &arena);
	if (rules)
		event_set_strz(&ev, F_RULE_SET, rules);
	if (n)
		event_set_list(&ev, F_DEGRADED, degraded, n);
	statement_note(&s, &ev);
}

static void note_gap(uint64_t count)
{
	event_init(&ev, WIRE_GAP, &arena);
	event_set_strz(&ev, F_GAP_KIND, "file.open");
	event_set_strz(&ev, F_GAP_REASON, "ring_full");
	event_set_u64(&ev, F_GAP_COUNT, count);
	event_set_u64(&ev, F_GAP_FIRST, 1000000000);
	statement_note(&s, &ev);
}

static void assert_said(const char *want)
{
	auto_buf struct buf out = { 0 };
	struct json j;

	json_init(&j, &out);
	json_object_begin(&j);
	statement_json(&s, &j);
	json_object_end(&j);
	assert_false(out.failed);
	buf_addc(&out, 0);
	assert_string_equal(out.p, want);
}

static void test_each_is_told_once(void **state)
{
	const struct str names[] = { STR("dns"), STR("file"), STR("dns") };

	(void)state;
	s = (struct statement){ 0 };
	assert_said("{\"rules\":[],\"degraded\":[],\"gaps\":[],\"more\":0}");
	note_names(WIRE_SESSION_START, "aa", names, 2);
	note_names(WIRE_AUDIT_DEGRADED, NULL, names, 3);
	note_names(WIRE_AUDIT_RULES, "bb", NULL, 0);
	note_names(WIRE_AUDIT_RULES, "aa", NULL, 0);
	note_names(WIRE_RULE_ALERT, "cc", NULL, 0); /* says only which set was it */
	note_gap(7);
	assert_said(
		"{\"rules\":[\"aa\",\"bb\"],\"degraded\":[\"dns\",\"file\"],\"gaps\":[{\"kind\":"
		"\"file.open\",\"reason\":\"ring_full\",\"count\":7,\"first\":"
		"\"1970-01-01T00:00:01.000000000Z\",\"last\":null}],\"more\":0}");
}

static void test_what_does_not_fit_is_counted(void **state)
{
	char name[100];
	struct str one = { name, 0 };

	(void)state;
	s = (struct statement){ 0 };
	for (int i = 0; i < STATEMENT_GAPS_MAX + 3; i++)
		note_gap(1);
	assert_int_equal(s.gaps_n, STATEMENT_GAPS_MAX);
	assert_int_equal(s.more, 3);
	for (int i = 0; i < STATEMENT_DEGRADED_MAX + 2; i++) {
		one.n = (size_t)snprintf(name, sizeof(name), "probe %d", i);
		note_names(WIRE_AUDIT_DEGRADED, NULL, &one, 1);
	}
	assert_int_equal(s.more, 5);
	memset(name, 'x', sizeof(name));
	one.n = sizeof(name);
	s.degraded_n = 0;
	note_names(WIRE_AUDIT_DEGRADED, NULL, &one, 1);
	assert_int_equal(s.more, 6);
	assert_int_equal(s.degraded_n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_is_told_once),
		cmocka_unit_test(test_what_does_not_fit_is_counted),
	};

	arena_init(&arena, 1 << 20);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
