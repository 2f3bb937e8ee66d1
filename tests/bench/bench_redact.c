// SPDX-License-Identifier: Apache-2.0
/* What redaction costs where there is nothing to take out: an event, a megabyte of output by our own pass and by
 * Hyperscan, and what that costs before it has looked at anything. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "userspace/base/clock.h"
#include "userspace/event/event.h"
#include "userspace/redact/redact.h"
#include "userspace/redact/stream.h"

#define ROUNDS 200000

static struct redactor *r, *hyperscan;
static struct redact *x;

static double cpu_ns(void)
{
	return (double)clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static void fill(struct event *ev, struct arena *arena, unsigned i)
{
	static const struct str args[] = {
		STR("/usr/bin/python3"),	  STR("-m"), STR("pytest"),
		STR("tests/unit/test_parser.py"), STR("-k"), STR("not slow")
	};
	static const struct event_ancestor up[] = { { 812, 1, STR("make"), STR("/usr/bin/make") },
						    { 801, 1, STR("sh"), STR("/usr/bin/dash") } };
	struct str path =
		arena_printf(arena, "/workspace/build/lib/python3.11/site-packages/mod%u.py", i);

	event_init(ev, WIRE_FILE_OPEN, arena);
	event_set_strz(ev, F_SESSION, "01JD3K9XQZ2V5T8W1Y4B7N0M6P");
	event_set_strz(ev, F_SANDBOX, "7N0M6P2V");
	event_set_strz(ev, F_PROC_COMM, "python3");
	event_set_strz(ev, F_PROC_EXE, "/usr/bin/python3.11");
	event_set_list(ev, F_PROC_ARGS, args, ARRAY_SIZE(args));
	event_set_strz(ev, F_PROC_CWD, "/workspace");
	event_set_strz(ev, F_PROC_PEXE, "/usr/bin/make");
	event_set_strz(ev, F_PROC_PCOMM, "make");
	ev->v[F_PROC_ANCESTORS].ancestors.v = up;
	ev->v[F_PROC_ANCESTORS].ancestors.n = ARRAY_SIZE(up);
	event_mark(ev, F_PROC_ANCESTORS);
	event_set_str(ev, F_FILE_PATH, path);
	event_set_str(ev, F_FILE_NAME, (struct str){ path.p + 49, path.n - 49 });
}

static double per_event(void)
{
	struct arena arena;
	struct event ev[64], *made;
	double from, best = 1e18;

	arena_init(&arena, 1 << 20);
	for (unsigned i = 0; i < 64; i++)
		fill(&ev[i], &arena, i);
	for (int round = 0; round < 5; round++) {
		from = cpu_ns();
		for (unsigned i = 0; i < ROUNDS; i++)
			if (redact_event(x, &ev[i % 64], &made) != 0)
				exit(1);
		best = MIN(best, (cpu_ns() - from) / ROUNDS);
	}
	arena_done(&arena);
	return best;
}

static double per_mb(const struct redactor *by, size_t chunk)
{
	static const char line[] =
		"[ 42%] Building CXX object src/CMakeFiles/core.dir/parser.cpp.o\n"
		"src/parser.cpp:120:17: warning: unused variable 'n'\n"
		"-rw-r--r-- 1 root root 18273 Nov 30 07:47 libcore.so.1.2.3\n";
	auto_buf struct buf text = { 0 }, out = { 0 };
	double from, best = 1e18;

	while (text.n < (1 << 20))
		buf_add(&text, line, sizeof(line) - 1);
	for (int round = 0; round < 15; round++) {
		struct redact_stream *s = NULL;

		if (redact_stream_new(&s, by) < 0)
			exit(1);
		from = cpu_ns();
		for (size_t at = 0; at < text.n; at += chunk) {
			buf_reset(&out);
			redact_stream_feed(s, (struct str){ text.p + at, MIN(chunk, text.n - at) },
					   &out);
		}
		best = MIN(best, cpu_ns() - from);
		redact_stream_free(s);
	}
	return best / 1e6;
}

static void make(struct redactor **ret, uint64_t after, int values)
{
	static const uint8_t key[REDACT_KEY_LEN] = { 1 };
	struct err err = { 0 };
	int e = redactor_new(ret, key, &err);

	if (e == 0)
		e = redactor_add_builtin(*ret, &err);
	for (int i = 0; e == 0 && i < values; i++) {
		char value[64];

		snprintf(value, sizeof(value), "%08x-so-secret-%08x",
			 (unsigned)(i + 1) * 2654435761u, (unsigned)(i + 7) * 0x85ebca6bu);
		e = redactor_add_value(*ret, "env.TOKEN", str_from(value));
	}
	redactor_set_hyperscan_after(*ret, after);
	if (e == 0)
		e = redactor_finish(*ret, &err);
	if (e < 0) {
		fprintf(stderr, "bench_redact: %s\n", err_text(&err));
		exit(1);
	}
}

static void redact_text_once(const struct redactor *by)
{
	static char text[1024];
	struct redact *one;
	auto_buf struct buf out = { 0 };

	memset(text, ' ', sizeof(text));
	if (redact_new(&one, by) < 0 ||
	    redact_text(one, (struct str){ text, sizeof(text) }, &out) != 0)
		exit(1);
	redact_free(one);
}

static double anon_kib(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "re");
	char line[256];
	double n = 0;

	while (f && fgets(line, sizeof(line), f))
		(void)sscanf(line, "Anonymous: %lf", &n);
	if (f)
		fclose(f);
	return n;
}

static void by_hyperscan(int values)
{
	double from = cpu_ns(), before = anon_kib();
	struct redactor *own = NULL;
	const char *what;

	make(&hyperscan, 0, values);
	make(&own, UINT64_MAX, values);
	if (!redact_has_hyperscan(&what)) {
		fprintf(stderr, "bench_redact: no Hyperscan: %s\n", what);
		exit(0);
	}
	from = cpu_ns();
	before = anon_kib();
	redact_text_once(hyperscan);
	printf("redaction: Hyperscan for %d values, made\t%.2f\tms\t-\n", values,
	       (cpu_ns() - from) / 1e6);
	printf("redaction: Hyperscan for %d values, memory\t%.2f\tMiB\t<= 8\n", values,
	       (anon_kib() - before) / 1024);
	printf("redaction: output in 64 KiB, %d values, own pass\t%.2f\tms/MB\t-\n", values,
	       per_mb(own, 65536));
	printf("redaction: output in 64 KiB, %d values, Hyperscan\t%.2f\tms/MB\t-\n", values,
	       per_mb(hyperscan, 65536));
	printf("redaction: output in 4 KiB, %d values, own pass\t%.2f\tms/MB\t-\n", values,
	       per_mb(own, 4096));
	printf("redaction: output in 4 KiB, %d values, Hyperscan\t%.2f\tms/MB\t-\n", values,
	       per_mb(hyperscan, 4096));
	redactor_free(own);
	redactor_free(hyperscan);
}

int main(void)
{
	double from = cpu_ns(), made;

	make(&r, UINT64_MAX, 1);
	made = (cpu_ns() - from) / 1e6;
	if (redact_new(&x, r) < 0)
		return 1;
	printf("redaction: rules made\t%.2f\tms\t-\n", made);
	printf("redaction: an event with nothing to find\t%.3f\tus\t<= 0.3\n", per_event() / 1e3);
	printf("redaction: output in 64 bytes\t%.2f\tms/MB\t-\n", per_mb(r, 64));
	redact_free(x);
	redactor_free(r);
	by_hyperscan(1);
	by_hyperscan(256);
	return 0;
}
