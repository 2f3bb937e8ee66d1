// SPDX-License-Identifier: Apache-2.0
// ours: replay
/* A report without a bundle: `report_page EVENTS [FRAMES [MAX]] > page.html`. EVENTS: JSON lines, as `warder events`
 * prints them. FRAMES: lines "mono type stream hex", hex the bytes (o, i), "cols rows" (r) or a number (c, w). Both
 * in the order of the record; '-' is no file. MAX: events in the page. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/fd.h"
#include "userspace/replay/report.h"

static int write_out(void *arg, const void *p, size_t n)
{
	return fwrite(p, 1, n, arg) == n ? 0 : -5;
}

static int add_events(struct report *r, const char *path)
{
	FILE *f = fopen(path, "re");
	static struct event ev;
	struct arena arena;
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	int k = f ? 0 : -2;

	arena_init(&arena, 64 << 20);
	while (k == 0 && (n = getline(&line, &cap, f)) > 0) {
		struct err err = { 0 };

		arena_reset(&arena);
		k = event_from_json(&ev, &arena, (struct str){ line, (size_t)n }, &err);
		if (k < 0)
			fprintf(stderr, "%s: %s\n", path, err_text(&err));
		else
			k = report_add(r, &ev);
	}
	free(line);
	arena_done(&arena);
	if (f)
		fclose(f);
	return k;
}

static size_t unhex(char *s)
{
	size_t n = 0;

	for (char *p = s; p[0] && p[1]; p += 2) {
		char two[3] = { p[0], p[1], 0 };

		s[n++] = (char)strtoul(two, NULL, 16);
	}
	return n;
}

static int add_frames(struct report *r, const char *path)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t cap = 0;
	int k = f ? 0 : -2;

	while (k == 0 && getline(&line, &cap, f) > 0) {
		struct report_frame frame = { 0 };
		unsigned long long mono, bytes = 0;
		char type;
		unsigned stream, cols = 0, rows = 0;
		int at = 0;

		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "%llu %c %u %n", &mono, &type, &stream, &at) < 3)
			return -22;
		frame.type = (enum report_terminal_type)type;
		frame.stream = stream;
		frame.mono = mono;
		if (type == 'r') {
			sscanf(line + at, "%u %u", &cols, &rows);
			frame.cols = (uint16_t)cols;
			frame.rows = (uint16_t)rows;
		} else if (type == 'o' || type == 'i') {
			frame.data = (struct str){ line + at, unhex(line + at) };
		} else {
			sscanf(line + at, "%llu", &bytes);
			frame.bytes = bytes;
		}
		k = report_terminal(r, &frame);
	}
	free(line);
	if (f)
		fclose(f);
	return k;
}

int main(int argc, char **argv)
{
	static const struct report_alias aliases[] = { { "proc.name", F_PROC_COMM } };
	const struct report_evidence e = { .text = "intact and sealed: made by a test",
					   .head = "00",
					   .host_key = "" };
	struct report_options opt = {
		.write = write_out, .write_arg = stdout, .aliases = aliases, .aliases_n = 1
	};
	struct report *r = NULL;
	int k;

	if (argc < 2)
		return 2;
	opt.has_terminal = argc > 2 && strcmp(argv[2], "-") != 0;
	opt.events_max = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
	k = report_begin(&r, &opt, &e);
	if (k == 0)
		k = add_events(r, argv[1]);
	if (k == 0 && opt.has_terminal)
		k = add_frames(r, argv[2]);
	if (k == 0)
		k = report_end(r, NULL);
	report_free(r);
	if (k < 0)
		fprintf(stderr, "report_page: error %d\n", -k);
	return k < 0;
}
