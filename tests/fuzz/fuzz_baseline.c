// SPDX-License-Identifier: Apache-2.0
/* The bytes as a baseline file: what is read is written the same again. And as names that a sandbox chose,
 * a line an event, fields behind tabs or \x1f: what was learned is read back and is not new. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/enrich/baseline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static struct baseline *again(const struct baseline *b, struct buf *text)
{
	struct baseline *c = NULL;

	buf_init(text, 0);
	must(baseline_write(b, text) == 0);
	must(baseline_read(&c, "f", (struct str){ text->p, text->n }, NULL) == 0);
	must(baseline_count(c) == baseline_count(b));
	return c;
}

static void as_file(struct str data)
{
	struct baseline *b = NULL, *c;
	auto_buf struct buf first = { 0 }, second = { 0 };
	struct err err = { 0 };

	if (baseline_read(&b, "f", data, &err) < 0) {
		must(!strncmp(err.text, "f:", 2));
		return;
	}
	c = again(b, &first);
	buf_init(&second, 0);
	must(baseline_write(c, &second) == 0);
	must(first.n == second.n && (!first.n || !memcmp(first.p, second.p, first.n)));
	baseline_free(b);
	baseline_free(c);
}

static void make(struct event *ev, struct arena *arena, struct str line)
{
	static const enum wire_kind kinds[] = { WIRE_EXEC, WIRE_FILE_OPEN, WIRE_NET_CONNECT };
	unsigned char first = (unsigned char)line.p[0];
	const char *mark = memchr(line.p, 0x1f, line.n);
	struct str exe = { line.p + 1, mark ? (size_t)(mark - line.p) : line.n };
	struct str rest = { mark, mark ? line.n - (size_t)(mark - line.p) : 0 };

	exe.n -= exe.n > 0;
	if (rest.n)
		rest = (struct str){ rest.p + 1, rest.n - 1 };
	event_init(ev, kinds[first % 3], arena);
	event_set_strz(ev, F_OUTCOME, "success");
	event_set_str(ev, F_PROC_EXE, exe);
	event_set_str(ev, F_FILE_PATH, rest);
	event_set_str(ev, first & 4 ? F_NET_PATH : F_NET_DST_NAME, rest);
	if (first & 8)
		event_set_u64(ev, F_NET_DST_PORT, first);
}

/* Two lines that cannot be told apart in the file would be one fact for another. */
static void as_names(struct str data)
{
	struct baseline *b = NULL, *c;
	auto_buf struct buf text = { 0 };
	struct arena arena;
	struct event ev;

	must(baseline_new(&b) == 0);
	arena_init(&arena, 1 << 20);
	for (int turn = 0; turn < 2; turn++) {
		struct str left = data;

		while (left.n) {
			const char *nl = memchr(left.p, 0x1e, left.n);
			struct str line = { left.p, nl ? (size_t)(nl - left.p) : left.n };

			left = (struct str){ left.p + line.n + !!nl, left.n - line.n - !!nl };
			/* What is longer than a line of the file is always new; so is a NUL. */
			if (!line.n || line.n > 1900 || memchr(line.p, 0, line.n))
				continue;
			arena_reset(&arena);
			make(&ev, &arena, line);
			if (!turn) {
				must(baseline_learn(b, &ev, NULL) == 0);
				continue;
			}
			baseline_apply(b, &ev);
			if (ev.kind != WIRE_FILE_OPEN && event_has(&ev, F_BASELINE_NEW))
				must(!event_u64(&ev, F_BASELINE_NEW));
		}
		if (turn)
			break;
		must(baseline_finish(b) == 0);
		c = again(b, &text);
		baseline_free(b);
		b = c;
	}
	arena_done(&arena);
	baseline_free(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };

	as_file(text);
	as_names(text);
	return 0;
}
