// SPDX-License-Identifier: Apache-2.0
/* A long session, half events and half terminal, and jumps to places all over it: the time until the screen and
 * the last events are there. `bench_seek [DIR [RECORDS]]`; the bundle is made in DIR and removed. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/pipeline/playback.h"
#include "userspace/store/format.h"
#include "userspace/store/store.h"
#include "userspace/store/terminal.h"

#define SESSION "01JBENCH0000000000000000AC"
#define JUMPS	41

DEFINE_AUTO(playback, playback_free)

static int check(int r, const char *what, const struct err *err)
{
	if (r < 0) {
		fprintf(stderr, "bench_seek: %s: %s\n", what,
			err && err->code ? err_text(err) : strerror(-r));
		exit(1);
	}
	return r;
}

static size_t make_event(char *out, size_t cap, uint64_t seq, uint64_t mono)
{
	return (size_t)snprintf(
		out, cap,
		"{\"v\":1,\"id\":\"" SESSION
		":%llu\",\"seq\":%llu,\"time\":\"2026-01-31T12:34:00.000000000Z\","
		"\"mono\":%llu,\"kind\":\"file.open\",\"vantage\":\"kernel\",\"session\":\"" SESSION
		"\","
		"\"sandbox\":\"00000001\",\"host\":\"node-17\",\"outcome\":\"success\",\"proc\":{\"pid\":%llu,"
		"\"ppid\":7,\"uid\":1000,\"gid\":1000,\"comm\":\"cc1\",\"exe\":\"/usr/bin/cc1\",\"args\":"
		"[\"cc1\",\"-quiet\",\"main.c\"]},\"file\":{\"path\":\"/workspace/build/o%llu.o\"}}",
		(unsigned long long)seq, (unsigned long long)seq, (unsigned long long)mono,
		(unsigned long long)(1000 + seq % 30000),
		(unsigned long long)(seq * 7919 % 100000));
}

static void write_session(int dirfd, uint64_t records)
{
	const struct journal_options opt = { .session = SESSION, .no_sync = true };
	struct terminal_log *tty = NULL;
	struct terminal_record rec = { .type = TERMINAL_RESIZE, .rows = 24, .cols = 80 };
	struct journal_seal seal = { 0 };
	struct terminal_mark mark;
	struct terminal_end end;
	struct journal *j = NULL;
	struct err err = { 0 };
	char text[600];

	check(journal_create(&j, dirfd, &opt, &err), "create", &err);
	check(terminal_log_create(&tty, dirfd, &opt, &err), "create", &err);
	for (uint64_t i = 1; i <= records / 2; i++) {
		uint64_t mono = clock_boot_ns();

		check(journal_append(j,
				     (struct str){ text, make_event(text, sizeof(text), i, mono) }),
		      "append", NULL);
		rec.mono = mono;
		if (i > 1) {
			int n = snprintf(text, sizeof(text),
					 "\033[3%umcc1\033[0m -quiet main.c -o o%llu.o\r\n",
					 (unsigned)(i % 8), (unsigned long long)i);

			rec.type = TERMINAL_OUTPUT;
			rec.data = (struct str){ text, (size_t)n };
		}
		check(terminal_log_append(tty, &rec), "append", NULL);
		if (i % 4096 == 0) {
			check(journal_commit(j), "commit", NULL);
			check(terminal_log_commit(tty, &mark), "commit", NULL);
		}
	}
	check(terminal_log_commit(tty, &mark), "commit", NULL);
	terminal_log_end(tty, &end);
	seal.terminal = &end;
	check(journal_seal(j, &seal), "seal", NULL);
	terminal_log_free(tty);
	journal_free(j);
}

static void remove_bundle(int dirfd, const char *path)
{
	static const char *const kinds[] = { "events", "tty" };
	char name[64];

	for (int k = 0; k < 2; k++)
		for (unsigned i = 1;; i++) {
			snprintf(name, sizeof(name), "%s.%04u.seg", kinds[k], i);
			if (unlinkat(dirfd, name, 0) < 0)
				break;
		}
	unlinkat(dirfd, MANIFEST_NAME, 0);
	rmdir(path);
}

static int ascending(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int main(int argc, char **argv)
{
	uint64_t records = argc > 2 ? strtoull(argv[2], NULL, 10) : 10000000, t;
	const struct playback_options opt = { 0 };
	AUTO(playback) struct playback *p = NULL;
	auto_close int dirfd = -1;
	double ms[JUMPS], open_ms;
	struct err err = { 0 };
	char path[4096];

	snprintf(path, sizeof(path), "%s/bench-seek-XXXXXX", argc > 1 ? argv[1] : "/tmp");
	if (records < 1000 || !mkdtemp(path) ||
	    (dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
		perror("bench_seek");
		return 1;
	}
	write_session(dirfd, records);
	t = clock_ns(CLOCK_MONOTONIC);
	check(playback_open(&p, dirfd, &opt, &err), "open", &err);
	open_ms = (double)(clock_ns(CLOCK_MONOTONIC) - t) / 1e6;
	for (unsigned i = 0; i < JUMPS; i++) {
		uint64_t to =
			(uint64_t)((double)playback_length(p) / JUMPS * (i * 17 % JUMPS + 0.5));

		t = clock_ns(CLOCK_MONOTONIC);
		check(playback_seek(p, to, false, &err), "seek", &err);
		ms[i] = (double)(clock_ns(CLOCK_MONOTONIC) - t) / 1e6;
		if (!playback_line(p, PLAYBACK_LINES - 1)) {
			fprintf(stderr, "bench_seek: no events at %llu\n", (unsigned long long)to);
			return 1;
		}
	}
	remove_bundle(dirfd, path);
	qsort(ms, JUMPS, sizeof(ms[0]), ascending);
	printf("replay, seek in %.0f M records, median\t%.2f\tms\t<= 50\n", (double)records / 1e6,
	       ms[JUMPS / 2]);
	printf("replay, seek, slowest of %d\t%.2f\tms\t<= 50\n", JUMPS, ms[JUMPS - 1]);
	printf("replay, open\t%.2f\tms\t-\n", open_ms);
	return 0;
}
