// SPDX-License-Identifier: Apache-2.0
/* Judging an event takes no memory: the default packs and every operator, with what they remember of a sandbox. */
#include "rules_test.h"

#include <stdatomic.h>

#if defined(__SANITIZE_ADDRESS__)
#define OTHERS_ALLOCATOR 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define OTHERS_ALLOCATOR 1
#endif
#endif

static atomic_ulong taken;

#ifndef OTHERS_ALLOCATOR
/* In the place of the C library's own, which it has by these names, too. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

void *malloc(size_t n)
{
	taken++;
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	taken++;
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	taken++;
	return __libc_realloc(p, n);
}

void *aligned_alloc(size_t align, size_t n)
{
	taken++;
	return __libc_memalign(align, n);
}
#endif

static const char rules[] = RULE("text", "proc.cmdline contains a or proc.exe icontains b or proc.name glob 'c*' or proc.exe iglob '*D'") RULE(
	"made",
	"tolower(proc.exe) startswith /x or b64(proc.comm) endswith 'g=' or basename(proc.exe) = y")
	RULE("lists", "proc.args intersects (a, b) or proc.aname[2] = z or proc.args contains allof (q, r)") RULE(
		"paths",
		"file.path pmatch (/etc, /usr/lib) or fd.name bstartswith 2f65 or file.path bcontains 7373")
		RULE("regex", "proc.cmdline regex '(a|b)*c.*[0-9]+x' or file.path regex '.*/[.]ssh/.*'") RULE(
			"nets",
			"net.dst.ip in (10.0.0.0/8, '::1') or fd.rport > 1000 or proc.pid = val(proc.ppid)")
			RULE("counts", "kind exists") "  count: 3\n  window: 1h\n  distinct: proc.comm\n  by: proc.exe\n" RULE(
				"steps",
				"kind = net.connect") "  sequence: [kind = exec, kind = file.open]\n  within: 1h\n" RULE("held",
															 "kind = exec") "  throttle: 1s\n";

static const char *const events[] = {
	"exec; mono=1; proc.comm=sh; proc.exe=/usr/bin/dash; proc.args=sh|-c|echo aaaaaaaaaaaaaaaaaaaab | tee x; "
	"proc.pid=7; proc.ppid=7; proc.ancestors=make:/usr/bin/make|z:/bin/z; outcome=success",
	"file.open; mono=2; proc.comm=cat; proc.exe=/usr/bin/cat; file.path=/home/a/.ssh/id_rsa; outcome=success; "
	"file.write=true",
	"net.connect; mono=3; proc.comm=curl; proc.exe=/usr/bin/curl; net.dst.ip=10.1.2.3; net.dst.port=443; "
	"net.family=inet; net.proto=tcp; outcome=success",
	"escape; mono=4; escape.type=setns; proc.comm=x; proc.exe=/x; outcome=denied",
};

static void judging_takes_no_memory(void **state)
{
	struct made_event made[ARRAY_SIZE(events)];
	struct rule_memory *memory = NULL;
	struct ruleset *rs = NULL;
	struct said said = { .n = 0 };
	struct err err = { 0 };
	size_t fired = 0;

	(void)state;
#ifdef OTHERS_ALLOCATOR
	print_message("a sanitizer has its own allocator\n");
	skip();
#endif
	assert_int_equal(ruleset_new(&rs, hear, &said), 0);
	ruleset_allow_state(rs);
	for (size_t i = 0; i < rule_packs_n; i++)
		assert_int_equal(ruleset_add_text(rs, rule_packs[i].name, rule_packs[i].text, &err),
				 0);
	if (ruleset_add_text(rs, "t", str_from(rules), &err) < 0 || ruleset_compile(rs, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(rule_memory_new(&memory, rs), 0);
	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		make_event(&made[i], events[i]);
	for (unsigned round = 0; round < 1000; round++) {
		if (round == 1) { /* a thread's first events make what it keeps */
			assert_true(taken > 0);
			taken = 0;
		}
		for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
			struct rule_matches m;

			event_set_u64(&made[i].ev, F_MONO, 1000000ull * round + i);
			fired += ruleset_judge(rs, memory, &made[i].ev, &m);
		}
	}
	assert_int_equal(taken, 0);
	assert_true(fired > 1000);
	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		drop_event(&made[i]);
	rule_memory_free(memory);
	ruleset_free(rs);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(judging_takes_no_memory) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
