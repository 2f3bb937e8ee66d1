// SPDX-License-Identifier: Apache-2.0
/* The texts that exporters parse. First byte: 0 = a journal record, 1 = a sink description, 2 = a cursor
 * file. Looks for members that lie outside their record, a description that is taken but cannot be
 * used, and a damaged cursor that is believed. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporters/cursor.h"
#include "exporters/exporter.h"
#include "exporters/record.h"
#include "userspace/base/fd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(struct str part, struct str whole)
{
	if (part.p && (part.p < whole.p || part.p + part.n > whole.p + whole.n))
		abort();
	if (part.n && memchr(part.p, '"', part.n))
		abort();
}

static void fuzz_record(struct str json)
{
	struct export_record rec = { 0 };

	if (record_scan(&rec, json) < 0)
		return;
	check_inside(rec.id, json);
	check_inside(rec.kind, json);
	check_inside(rec.session, json);
	check_inside(rec.sandbox, json);
}

static void fuzz_description(struct str s)
{
	struct exporter_config cfg;
	struct err err = { 0 };
	char *text;

	if (memchr(s.p, '@', s.n)) /* would read files */
		return;
	text = malloc(s.n + 1); /* strndup may look for a NUL that is not there */
	if (!text)
		return;
	memcpy(text, s.p, s.n);
	text[s.n] = 0;
	if (exporter_config_parse(&cfg, text, &err) == 0) {
		if (!cfg.name[0] || strchr(cfg.name, '/') || !cfg.class)
			abort();
		exporter_config_done(&cfg);
	} else if (!err.text[0]) {
		abort();
	}
	free(text);
}

static void fuzz_cursor(struct str s)
{
	static int dir = -1;
	char path[256];
	uint64_t seq;
	char *again;
	size_t n;

	if (dir < 0) {
		snprintf(path, sizeof(path), "%s/fuzz-cursor-XXXXXX",
			 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
		dir = mkdtemp(path) ? open(path, O_DIRECTORY | O_CLOEXEC) : -1;
		if (dir < 0)
			abort();
	}
	file_replace_at(dir, "s.k.cursor", s.p, s.n, 0600);
	if (cursor_load(dir, "s", "k", &seq) == 0) {
		/* What is believed is exactly what we would have written. */
		if (cursor_store(dir, "s", "k", seq, memmem(s.p, s.n, " required ", 10)) < 0 ||
		    file_read_at(dir, "s.k.cursor", 4096, &again, &n) < 0)
			abort();
		if (n != s.n || memcmp(again, s.p, n))
			abort();
		free(again);
	}
	unlinkat(dir, "s.k.cursor", 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = { (const char *)data + 1, size - 1 };

	if (size < 1)
		return 0;
	if (data[0] == 0)
		fuzz_record(rest);
	else if (data[0] == 1)
		fuzz_description(rest);
	else if (data[0] == 2)
		fuzz_cursor(rest);
	return 0;
}
