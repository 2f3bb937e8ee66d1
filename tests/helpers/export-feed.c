// SPDX-License-Identifier: Apache-2.0
// ours: exporters
/* Feeds a file of JSON lines through the fan-out to a sink, as the pipeline does with a journal. Line n
 * is record n; the file may grow until the line "end" is read on stdin.
 *   export-feed JOURNAL CURSORDIR SESSION SINK...
 * JOURNAL and SESSION may be lists (a,b,c): then each has a fan-out of its own, as on a host with many
 * sessions; made:RATE:MAX:START is a journal that nobody has to write.
 * stdin: "drain MS" waits for all that is in the file now, "status" asks, "reopen", "end" (or end of
 * file) stops without draining. Each answer is one JSON object a line; "notify" only tells that a journal
 * grew, and has none. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporters/exporter.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/json.h"

#define FEEDS_MAX 256 /* sessions in one process */

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

/* ---- a made-up journal: "made:RATE:MAX:START", RATE records a second from START (CLOCK_MONOTONIC, ns)
 * on, MAX in all. It is the same in every process. ---- */

struct made {
	uint64_t rate, max, start, seq;
	const char *session;
	char line[512];
};

static uint64_t made_until_now(const struct made *m)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), n;

	n = now > m->start ? (uint64_t)((double)(now - m->start) / 1e9 * (double)m->rate) : 0;
	return MIN(n, m->max);
}

static int made_next(void *arg, struct str *ret_rec, uint64_t *ret_seq, struct err *err)
{
	struct made *m = arg;
	int n;

	(void)err;
	if (m->seq >= made_until_now(m))
		return 0;
	*ret_seq = ++m->seq;
	n = snprintf(
		m->line, sizeof(m->line),
		"{\"v\":1,\"id\":\"%s-%llu\",\"seq\":%llu,\"kind\":\"exec\",\"session\":\"%s\","
		"\"sandbox\":\"box\",\"proc\":{\"pid\":%llu,\"exe\":\"/usr/bin/python3.11\",\"args\":"
		"[\"python3\",\"-c\",\"import os; os.getpid()\"],\"cwd\":\"/workspace/%llu\"}}",
		m->session, (unsigned long long)m->seq, (unsigned long long)m->seq, m->session,
		(unsigned long long)(m->seq * 7919 % 30000),
		(unsigned long long)(m->seq * 104729 % 1000003));
	*ret_rec = (struct str){ m->line, (size_t)n };
	return 1;
}

static int made_seek(void *arg, uint64_t seq, struct err *err)
{
	(void)err;
	((struct made *)arg)->seq = seq;
	return 0;
}

static bool made_parse(struct made *m, const char *text)
{
	unsigned long long rate, max, start;

	if (sscanf(text, "made:%llu:%llu:%llu", &rate, &max, &start) != 3)
		return false;
	*m = (struct made){ .rate = rate, .max = max, .start = start };
	return true;
}

/* ---- one session ---- */

struct feed {
	const char *path, *session;
	struct fanout *fanout;
};

static int feed_open(void *arg, struct export_source *ret, struct err *err)
{
	struct feed *f = arg;
	struct made *m = calloc(1, sizeof(*m));

	if (made_parse(m, f->path)) {
		m->session = f->session;
		*ret = (struct export_source){ m, made_next, made_seek, free };
		return 0;
	}
	free(m);
	return lines_open((void *)f->path, ret, err);
}

static uint64_t count_lines(const char *path)
{
	struct err err = { 0 };
	struct export_source src;
	struct str rec;
	uint64_t seq = 0;
	struct made m;

	if (made_parse(&m, path))
		return m.max;
	if (lines_open((void *)path, &src, &err) < 0)
		return 0;
	while (src.next(src.arg, &rec, &seq, &err) > 0)
		continue;
	src.free(src.arg);
	return seq;
}

static void add_rows(struct json *jp, struct fanout *f)
{
	struct fanout_status rows[FANOUT_SINKS_MAX];
	size_t n = fanout_status(f, rows, FANOUT_SINKS_MAX);
	struct json j = *jp;

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
	*jp = j;
}

static void print_status(struct feed *feeds, size_t n, int behind)
{
	auto_buf struct buf b = { 0 };
	struct json j;

	json_init(&j, &b);
	json_object_begin(&j);
	json_key(&j, "behind");
	json_i64(&j, behind);
	json_key(&j, "sinks");
	json_array_begin(&j);
	for (size_t i = 0; i < n; i++)
		add_rows(&j, feeds[i].fanout);
	json_array_end(&j);
	json_object_end(&j);
	printf("%.*s\n", (int)b.n, b.p);
	fflush(stdout);
}

static int start(struct feed *f, int dirfd, char **sinks, int n, struct err *err)
{
	struct fanout_options opt = {
		.session = f->session,
		.cursor_dirfd = dirfd,
		.open_source = feed_open,
		.open_source_arg = f,
	};
	int r = fanout_new(&f->fanout, &opt, err);

	for (int i = 0; r == 0 && i < n; i++) {
		struct exporter_config cfg;

		r = exporter_config_parse(&cfg, sinks[i], err);
		if (r == 0) {
			r = fanout_add(f->fanout, &cfg, err);
			exporter_config_done(&cfg);
		}
	}
	return r < 0 ? r : fanout_start(f->fanout, err);
}

/* "JOURNAL" and "SESSION" may be lists: a,b,c. */
static size_t split(struct feed *feeds, char *journals, char *sessions)
{
	char *p = NULL, *q = NULL;
	size_t n = 0;

	for (char *j = strtok_r(journals, ",", &p), *s = strtok_r(sessions, ",", &q);
	     j && s && n < FEEDS_MAX; j = strtok_r(NULL, ",", &p), s = strtok_r(NULL, ",", &q))
		feeds[n++] = (struct feed){ .path = j, .session = s };
	return n;
}

int main(int argc, char **argv)
{
	static struct feed feeds[FEEDS_MAX];
	struct err err = { 0 };
	char line[64];
	int ms, dirfd;
	size_t n;

	if (argc < 5) {
		fprintf(stderr, "usage: export-feed JOURNAL CURSORDIR SESSION SINK...\n");
		return 2;
	}
	n = split(feeds, argv[1], argv[3]);
	dirfd = open(argv[2], O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < n; i++)
		if (start(&feeds[i], dirfd, argv + 4, argc - 4, &err) < 0) {
			fprintf(stderr, "export-feed: %s\n", err_text(&err));
			_exit(2);
		}
	while (fgets(line, sizeof(line), stdin) && strncmp(line, "end", 3)) {
		uint64_t began = clock_ns(CLOCK_MONOTONIC) / NSEC_PER_MSEC;
		int behind = 0;

		for (size_t i = 0; i < n; i++) {
			fanout_notify(feeds[i].fanout);
			if (!strncmp(line, "reopen", 6))
				fanout_reopen(feeds[i].fanout);
		}
		for (size_t i = 0; i < n && sscanf(line, "drain %d", &ms) == 1; i++) {
			uint64_t gone = clock_ns(CLOCK_MONOTONIC) / NSEC_PER_MSEC - began;

			behind += fanout_drain(feeds[i].fanout, count_lines(feeds[i].path),
					       MAX(ms - (int)gone, 0));
		}
		if (strncmp(line, "notify", 6))
			print_status(feeds, n, behind);
	}
	for (size_t i = 0; i < n; i++)
		fanout_free(feeds[i].fanout);
	return 0;
}
