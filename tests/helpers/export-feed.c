// SPDX-License-Identifier: Apache-2.0
// ours: exporters
/* Feeds a file of JSON lines through the fan-out to a sink, as the pipeline does with a journal. Line n
 * is record n; the file may grow until the line "end" is read on stdin.
 *   export-feed JOURNAL CURSORDIR SESSION SINK...
 * stdin: "drain MS" waits for all that is in the file now, "status" asks, "reopen", "end" (or end of
 * file) stops without draining. Each answer is one JSON object a line. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporters/exporter.h"
#include "userspace/base/auto.h"
#include "userspace/base/json.h"

struct lines {
	FILE *f;
	char *line;
	size_t cap;
	uint64_t seq;
};

static int lines_next(void *arg, struct str *ret_rec, uint64_t *ret_seq, struct err *err)
{
	struct lines *l = arg;
	long pos = ftell(l->f);
	ssize_t n = getline(&l->line, &l->cap, l->f);

	(void)err;
	if (n <= 0 || l->line[n - 1] != '\n') { /* half a line: its writer is not done */
		clearerr(l->f);
		fseek(l->f, pos, SEEK_SET);
		return 0;
	}
	*ret_rec = (struct str){ l->line, (size_t)n - 1 };
	*ret_seq = ++l->seq;
	return 1;
}

static int lines_seek(void *arg, uint64_t seq, struct err *err)
{
	struct lines *l = arg;
	struct str rec;
	uint64_t at;

	rewind(l->f);
	l->seq = 0;
	while (l->seq < seq)
		if (lines_next(l, &rec, &at, err) <= 0)
			return err_set(err, ENODATA, "no line %llu", (unsigned long long)seq);
	return 0;
}

static void lines_free(void *arg)
{
	struct lines *l = arg;

	fclose(l->f);
	free(l->line);
	free(l);
}

static int lines_open(void *arg, struct export_source *ret, struct err *err)
{
	struct lines *l = calloc(1, sizeof(*l));

	l->f = fopen(arg, "re");
	if (!l->f) {
		free(l);
		return err_set(err, errno, "'%s': %m", (const char *)arg);
	}
	*ret = (struct export_source){ l, lines_next, lines_seek, lines_free };
	return 0;
}

static uint64_t count_lines(const char *path)
{
	struct err err = { 0 };
	struct export_source src;
	struct str rec;
	uint64_t seq = 0;

	if (lines_open((void *)path, &src, &err) < 0)
		return 0;
	while (src.next(src.arg, &rec, &seq, &err) > 0)
		continue;
	src.free(src.arg);
	return seq;
}

static void print_status(struct fanout *f, int behind)
{
	struct fanout_status rows[FANOUT_SINKS_MAX];
	size_t n = fanout_status(f, rows, FANOUT_SINKS_MAX);
	auto_buf struct buf b = { 0 };
	struct json j;

	json_init(&j, &b);
	json_object_begin(&j);
	json_key(&j, "behind");
	json_i64(&j, behind);
	json_key(&j, "sinks");
	json_array_begin(&j);
	for (size_t i = 0; i < n; i++) {
		json_object_begin(&j);
		json_key(&j, "name");
		json_strz(&j, rows[i].name);
		json_key(&j, "acked");
		json_u64(&j, rows[i].acked);
		json_key(&j, "sent");
		json_u64(&j, rows[i].sent);
		json_key(&j, "poison");
		json_u64(&j, rows[i].poison);
		json_key(&j, "errors");
		json_u64(&j, rows[i].errors);
		json_key(&j, "rewinds");
		json_u64(&j, rows[i].rewinds);
		json_key(&j, "up");
		json_bool(&j, rows[i].up);
		json_key(&j, "text");
		json_strz(&j, rows[i].text);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	printf("%.*s\n", (int)b.n, b.p);
	fflush(stdout);
}

static int fail(struct fanout *f, const struct err *err)
{
	fprintf(stderr, "export-feed: %s\n", err_text(err));
	fanout_free(f);
	return 2;
}

int main(int argc, char **argv)
{
	struct fanout_options opt = { 0 };
	struct err err = { 0 };
	struct fanout *f = NULL;
	char line[64];
	int ms;

	if (argc < 5) {
		fprintf(stderr, "usage: export-feed JOURNAL CURSORDIR SESSION SINK...\n");
		return 2;
	}
	opt = (struct fanout_options){
		.session = argv[3],
		.cursor_dirfd = open(argv[2], O_DIRECTORY | O_CLOEXEC),
		.open_source = lines_open,
		.open_source_arg = argv[1],
	};
	if (fanout_new(&f, &opt, &err) < 0)
		return fail(f, &err);
	for (int i = 4; i < argc; i++) {
		struct exporter_config cfg;
		int r = exporter_config_parse(&cfg, argv[i], &err);

		if (r == 0) {
			r = fanout_add(f, &cfg, &err);
			exporter_config_done(&cfg);
		}
		if (r < 0)
			return fail(f, &err);
	}
	if (fanout_start(f, &err) < 0)
		return fail(f, &err);
	while (fgets(line, sizeof(line), stdin) && strncmp(line, "end", 3)) {
		int behind = 0;

		fanout_notify(f);
		if (!strncmp(line, "reopen", 6))
			fanout_reopen(f);
		if (sscanf(line, "drain %d", &ms) == 1)
			behind = fanout_drain(f, count_lines(argv[1]), ms);
		print_status(f, behind);
	}
	fanout_free(f);
	return 0;
}
