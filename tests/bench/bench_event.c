// SPDX-License-Identifier: Apache-2.0
/* CPU nanoseconds per event of decode, enrich and JSON, each over the same records in memory, and of a
 * plain memcpy of the resulting line for comparison. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/clock.h"
#include "userspace/enrich/enrich.h"
#include "userspace/event/decode.h"

#define ROUNDS 300000

struct bench {
	struct decoder *decoder;
	struct enrich *enrich;
	struct arena arena;
	struct event ev;
	struct buf json;
	char rec[4096];
	size_t n;
};

static struct wire_str tail(struct bench *b, const void *p, size_t n)
{
	struct wire_str s = { (uint16_t)b->n, (uint16_t)n };

	memcpy(b->rec + b->n, p, n);
	b->n += n;
	return s;
}

static void *start(struct bench *b, uint16_t kind, size_t size, uint32_t pid)
{
	struct wire_hdr h = { .kind = kind,
			      .ts = 123456789012,
			      .start = 1000 + pid,
			      .sandbox = 7,
			      .tgid = pid,
			      .tid = pid,
			      .ppid = pid - 1,
			      .uid = 1000,
			      .gid = 1000,
			      .nspid = pid - 90,
			      .nr = 257,
			      .comm = "python3" };

	memset(b->rec, 0, size);
	memcpy(b->rec, &h, sizeof(h));
	b->n = size;
	return b->rec;
}

static void finish(struct bench *b)
{
	((struct wire_hdr *)(void *)b->rec)->len = (uint32_t)b->n;
}

static void make_exec(struct bench *b, uint32_t pid, uint32_t ancestors)
{
	static const char args[] =
		"python3\0-m\0pip\0install\0--index-url\0https://pypi.example.org/"
		"simple\0requests";
	struct wire_exec *w = start(b, WIRE_EXEC, sizeof(*w), pid);

	w->ancestors_n = (uint16_t)ancestors;
	for (uint32_t i = 0; i < ancestors; i++)
		w->ancestors[i] =
			(struct wire_ancestor){ 1000 + pid - 1 - i, pid - 1 - i, 0, "bash" };
	w->args_total = sizeof(args);
	w->argc = 7;
	w->ino = 4242;
	w->dev = 8 << 20 | 1;
	w->nlink = 1;
	w->exe = tail(b, "/usr/bin/python3.11", 19);
	w->cwd = tail(b, "/workspace/project", 18);
	w->args = tail(b, args, sizeof(args));
	finish(b);
}

static void make_open(struct bench *b, uint32_t pid)
{
	struct wire_file *w = start(b, WIRE_FILE_OPEN, sizeof(*w), pid);

	w->ino = 991;
	w->dev = 8 << 20 | 1;
	w->mode = 0100644;
	w->open_flags = 01 | 0100 | 01000 | 02000000;
	w->fd = 5;
	w->path = tail(b, "/workspace/project/build/lib/module.py", 38);
	finish(b);
}

static void feed(struct bench *b)
{
	arena_reset(&b->arena);
	if (decoder_feed(b->decoder, b->rec, b->n, &b->arena, &b->ev) != 1)
		abort();
}

static void learn(struct bench *b)
{
	for (uint32_t pid = 100; pid <= 105; pid++) {
		make_exec(b, pid, pid - 100);
		feed(b);
		if (enrich_apply(b->enrich, &b->ev) < 0)
			abort();
	}
}

static double per_event(uint64_t from)
{
	return (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - from) / ROUNDS;
}

static void measure(struct bench *b, const char *name)
{
	double decode, with_enrich, json, copy;
	uint64_t from, fields = 0;
	char *line;

	from = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (int i = 0; i < ROUNDS; i++)
		feed(b);
	decode = per_event(from);
	from = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (int i = 0; i < ROUNDS; i++) {
		feed(b);
		enrich_apply(b->enrich, &b->ev);
	}
	with_enrich = per_event(from);
	from = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (int i = 0; i < ROUNDS; i++) {
		buf_reset(&b->json);
		event_to_json(&b->ev, &b->json);
	}
	json = per_event(from);
	line = malloc(b->json.n);
	from = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (int i = 0; i < ROUNDS; i++) {
		memcpy(line, b->json.p, b->json.n);
		__asm__ volatile("" ::"r"(line) : "memory");
	}
	copy = per_event(from);
	for (int f = 0; f < F_COUNT; f++)
		fields += event_has(&b->ev, f);
	printf("event: decode, %s\t%.0f\tns\t-\n", name, decode);
	/* an exec is learned, too: the target is for what repeats */
	printf("event: enrich, %s\t%.0f\tns\t%s\n", name, with_enrich - decode,
	       strcmp(name, "exec") ? "<= 400" : "-");
	printf("event: to JSON, %s (%llu fields, %zu bytes)\t%.0f\tns\t-\n", name,
	       (unsigned long long)fields, b->json.n, json);
	/* 500 ns for an event of 700 bytes */
	printf("event: to JSON, %s, each byte\t%.2f\tns\t<= 0.72\n", name,
	       json / (double)b->json.n);
	printf("event: memcpy of that line\t%.0f\tns\t-\n", copy);
	free(line);
}

int main(void)
{
	static struct bench b;
	struct enrich_session session = { .sandbox_id = 7,
					  .session = "01JV8Z6T0Y4M5K2Q9X3W7R1ABC",
					  .name = "agent-7",
					  .tenant = "acme",
					  .host = "node-12",
					  .real_offset_ns = 1700000000000000000 };

	arena_init(&b.arena, 8 << 20);
	buf_init(&b.json, 0);
	if (decoder_new(&b.decoder) < 0 || enrich_new(&b.enrich, NULL) < 0 ||
	    enrich_session_add(b.enrich, &session) < 0)
		return 1;
	learn(&b);
	make_exec(&b, 105, 5);
	measure(&b, "exec");
	make_open(&b, 105);
	measure(&b, "file.open");
	enrich_free(b.enrich);
	decoder_free(b.decoder);
	arena_done(&b.arena);
	buf_done(&b.json);
	return 0;
}
