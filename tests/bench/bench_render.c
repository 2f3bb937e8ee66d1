// SPDX-License-Identifier: Apache-2.0
/* CPU nanoseconds to write one event in each format, from the event and from the journal's line (which has to
 * be read first), for an exec and for a file opened. Measured in slices: the median says what this machine does
 * now, the best one what the code does when nothing else has the core.
 *
 *	bench_render [FORMAT [SLICES]] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/render/render.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"

#define ROUNDS	   2000 /* of a slice */
#define SLICES_MAX 1000

static unsigned slices = 101;
static double times[SLICES_MAX];

static const char EXEC[] =
	"{\"v\":1,\"id\":\"01JV8Z6T0Y4M5K2Q9X3W7R1ABC-00000042\",\"seq\":42,"
	"\"time\":\"2026-01-31T12:34:56.123456789Z\",\"mono\":123456789012,\"kind\":\"exec\","
	"\"vantage\":\"kernel\",\"session\":\"01JV8Z6T0Y4M5K2Q9X3W7R1ABC\",\"sandbox\":\"agent-7\","
	"\"tenant\":\"acme\",\"host\":\"node-12\",\"outcome\":\"success\",\"syscall\":\"execve\","
	"\"proc\":{\"pid\":4242,\"tid\":4242,\"nspid\":12,\"ppid\":4241,\"uid\":1000,\"gid\":1000,"
	"\"comm\":\"python3\",\"exe\":\"/usr/bin/python3.11\",\"args\":[\"python3\",\"-m\",\"pip\","
	"\"install\",\"requests\"],\"argc\":5,\"args_len\":36,\"cwd\":\"/workspace/project\","
	"\"start\":123456789,\"stdin\":\"pipe\",\"pexe\":\"/bin/bash\",\"pcomm\":\"bash\"}}";

static const char OPEN[] =
	"{\"v\":1,\"id\":\"01JV8Z6T0Y4M5K2Q9X3W7R1ABC-00000043\",\"seq\":43,"
	"\"time\":\"2026-01-31T12:34:56.123456789Z\",\"mono\":123456789012,\"kind\":\"file.open\","
	"\"vantage\":\"kernel\",\"session\":\"01JV8Z6T0Y4M5K2Q9X3W7R1ABC\",\"sandbox\":\"agent-7\","
	"\"tenant\":\"acme\",\"host\":\"node-12\",\"outcome\":\"success\",\"syscall\":\"openat\","
	"\"proc\":{\"pid\":4242,\"tid\":4242,\"nspid\":12,\"ppid\":4241,\"uid\":1000,\"gid\":1000,"
	"\"comm\":\"python3\",\"exe\":\"/usr/bin/python3.11\",\"cwd\":\"/workspace/project\","
	"\"start\":123456789},\"file\":{\"path\":\"/workspace/project/build/module.py\","
	"\"name\":\"module.py\",\"write\":true,\"created\":true,\"mode\":33188,\"type\":\"regular\","
	"\"fd\":5,\"ino\":991,\"dev\":\"8:1\"}}";

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void row(const char *what, const char *name, const char *kind, size_t n, const char *target)
{
	qsort(times, slices, sizeof(times[0]), compare);
	printf("render: %s, %s, %s (%zu bytes)\t%.0f\tns\t%s\tbest %.0f\n", what, name, kind, n,
	       times[slices / 2], target, times[0]);
}

/* Times what `body` does, a slice after the other. */
#define MEASURE(body)                                                                            \
	do {                                                                                     \
		for (unsigned s = 0; s < slices; s++) {                                          \
			uint64_t from = clock_ns(CLOCK_PROCESS_CPUTIME_ID);                      \
                                                                                                 \
			for (int i = 0; i < ROUNDS; i++)                                         \
				body;                                                            \
			times[s] = (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - from) / ROUNDS; \
		}                                                                                \
	} while (0)

static int render_event(const struct format *f, const struct event *ev, struct buf *out)
{
	buf_reset(out);
	return f->render ? f->render(f, ev, out) : event_to_json(ev, out);
}

static void measure(const struct format *f, const char *line, const char *kind)
{
	static struct event ev;
	struct err err = { 0 };
	struct renderer *r;
	struct arena arena;
	struct str text;
	struct buf out;

	arena_init(&arena, 1 << 20);
	buf_init(&out, 0);
	if (event_from_json(&ev, &arena, str_from(line), &err) < 0 ||
	    renderer_new(&r, f, &err) < 0) {
		fprintf(stderr, "bench_render: %s\n", err_text(&err));
		exit(1);
	}
	MEASURE(if (render_event(f, &ev, &out)) abort());
	row("event", f->name, kind, out.n, !f->render ? "<= 500" : f->is_json ? "<= 2000" : "-");
	MEASURE(if (renderer_record(r, str_from(line), &text, &err) < 0) abort());
	row("journal's line", f->name, kind, text.n, f->render && f->is_json ? "<= 2000" : "-");
	renderer_free(r);
	arena_done(&arena);
	buf_done(&out);
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "native", "ocsf", "ocsf-1.1", "ecs", "cef", "leef" };

	if (argc > 2)
		slices = (unsigned)MIN(MAX(strtoul(argv[2], NULL, 10), 1), SLICES_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const struct format *f = format_find(names[i], NULL);

		if (argc > 1 && strcmp(argv[1], names[i]))
			continue;

		measure(f, EXEC, "exec");
		measure(f, OPEN, "file.open");
	}
	return 0;
}
