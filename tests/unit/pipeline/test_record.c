// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/pipeline/record.h"

static const char *text_of(const struct buf *b, struct wire_str s, size_t *ret_n)
{
	assert_true((size_t)s.off + s.len <= b->n);
	*ret_n = s.len;
	return b->p + s.off;
}

static void assert_text(const struct buf *b, struct wire_str s, const char *want)
{
	size_t n;
	const char *p = text_of(b, s, &n);

	assert_int_equal(n, strlen(want));
	assert_memory_equal(p, want, n);
}

static void start_carries_every_string(void **state)
{
	char *const command[] = { "sh", "-c", "", NULL };
	static const char *const degraded[] = { "limit.memory", "landlock" };
	const struct session_record s = {
		.sandbox_id = 7,
		.backend = "ns",
		.name = "box",
		.tenant = "acme",
		.policy = "abcd",
		.host = "node1",
		.command = command,
		.degraded = degraded,
		.degraded_n = 2,
	};
	const struct wire_session *rec;
	struct buf b = { 0 };
	size_t n;

	(void)state;
	assert_int_equal(record_session_start(&b, &s), 0);
	rec = (const struct wire_session *)b.p;
	assert_int_equal(rec->h.len, b.n);
	assert_int_equal(b.n % 8, 0);
	assert_int_equal(rec->h.kind, WIRE_SESSION_START);
	assert_int_equal(rec->h.sandbox, 7);
	assert_int_equal(rec->h.vantage, WIRE_V_RUNTIME);
	assert_int_equal(rec->h.flags, 0);
	assert_text(&b, rec->backend, "ns");
	assert_text(&b, rec->name, "box");
	assert_text(&b, rec->tenant, "acme");
	assert_text(&b, rec->policy, "abcd");
	assert_text(&b, rec->host, "node1");
	assert_memory_equal(text_of(&b, rec->command, &n), "sh\0-c\0\0", 7);
	assert_int_equal(n, 7);
	assert_memory_equal(text_of(&b, rec->degraded, &n), "limit.memory\0landlock\0", 22);
	assert_int_equal(n, 22);
	buf_done(&b);
}

static void a_command_that_does_not_fit_is_cut_and_says_so(void **state)
{
	char *big = malloc(70000);
	char *command[] = { "first", big, NULL };
	const struct session_record s = { .sandbox_id = 1, .command = command };
	const struct wire_session *rec;
	struct buf b = { 0 };

	(void)state;
	memset(big, 'x', 69999);
	big[69999] = 0;
	assert_int_equal(record_session_start(&b, &s), 0);
	rec = (const struct wire_session *)b.p;
	assert_true(rec->h.len <= WIRE_RECORD_MAX);
	assert_true(rec->h.flags & WIRE_F_TRUNC);
	assert_int_equal(rec->command.len, 6);
	buf_done(&b);
	free(big);
}

static void stop_carries_reason_and_usage(void **state)
{
	const struct session_record s = { .sandbox_id = 2, .name = "box" };
	const struct run_facts facts = {
		.signal = 9, .cpu_usec = 11, .mem_peak = 22, .pids_peak = 33
	};
	const struct outcome o = { "oom", 137 };
	const struct wire_session *rec;
	struct buf b = { 0 };

	(void)state;
	assert_int_equal(record_session_stop(&b, &s, &facts, &o), 0);
	rec = (const struct wire_session *)b.p;
	assert_int_equal(rec->h.kind, WIRE_SESSION_STOP);
	assert_int_equal(rec->exit_code, 137);
	assert_int_equal(rec->signal, 9);
	assert_int_equal(rec->cpu_usec, 11);
	assert_int_equal(rec->mem_peak, 22);
	assert_int_equal(rec->pids_peak, 33);
	assert_text(&b, rec->reason, "oom");
	assert_int_equal(rec->tenant.len, 0);
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(start_carries_every_string),
		cmocka_unit_test(a_command_that_does_not_fit_is_cut_and_says_so),
		cmocka_unit_test(stop_carries_reason_and_usage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
