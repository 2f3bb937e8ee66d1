// SPDX-License-Identifier: Apache-2.0
/* Records to journal, one thread, no kernel: decode, enrich, the built-in rules, JSON, hash chain,
 * compression. What a stored session of this mix costs to replay. `bench_pipeline [RECORDS]` */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "tests/bench/made_rules.h"
#include "userspace/pipeline/pipeline.h"
#include "userspace/pipeline/redaction.h"

#define RECORDS_DEFAULT 1000000
#define PROCESSES	64
#define REPLAY_EVENTS	1024
#define REPLAY_HOT	64
#define STORM_RUNS	8
#define STORM_NAMES	512
#define SESSION		"01JBENCH0000000000000000AB"

struct bench {
	struct pipeline *pipeline;
	char rec[2048];
};

static void fail(const char *what, int r, const struct err *err)
{
	fprintf(stderr, "bench_pipeline: %s: %s\n", what,
		err && err->code ? err_text(err) : strerror(-r));
	exit(1);
}

static void *begin(struct bench *b, enum wire_kind kind, size_t size, unsigned i)
{
	struct wire_hdr *h = (struct wire_hdr *)b->rec;
	unsigned proc = i / 8 % PROCESSES;

	memset(b->rec, 0, size);
	h->len = (uint32_t)size;
	h->kind = (uint16_t)kind;
	h->ts = 1000000000ull + i * 1000ull;
	h->start = 1000 + proc;
	h->sandbox = 1;
	h->tgid = h->tid = 1000 + proc;
	h->ppid = 1000;
	h->uid = h->gid = 70000;
	h->nr = WIRE_NR_NONE;
	memcpy(h->comm, "proc", 4);
	h->comm[4] = (char)('0' + proc / 10);
	h->comm[5] = (char)('0' + proc % 10);
	return b->rec;
}

static struct wire_str text(struct bench *b, const char *p, size_t n)
{
	struct wire_hdr *h = (struct wire_hdr *)b->rec;
	struct wire_str s = { (uint16_t)h->len, (uint16_t)n };

	memcpy(b->rec + h->len, p, n);
	h->len += (uint32_t)n;
	return s;
}

static void make_exec(struct bench *b, unsigned i)
{
	static const char args[] = "python3\0-m\0pytest\0tests/unit/test_model.py";
	struct wire_exec *e = begin(b, WIRE_EXEC, sizeof(*e), i);

	e->exec_id = i;
	e->ino = 4711;
	e->nlink = 1;
	e->mode = 0100755;
	e->args_total = sizeof(args);
	e->argc = 4;
	e->exe = text(b, "/usr/bin/python3.11", 19);
	e->cwd = text(b, "/workspace/project", 18);
	e->args = text(b, args, sizeof(args));
	e->ancestors_n = 2;
	e->ancestors[0] = (struct wire_ancestor){ .start = 900, .tgid = 1000, .comm = "sh" };
	e->ancestors[1] = (struct wire_ancestor){ .start = 800, .tgid = 999, .comm = "init" };
}

static void make_open(struct bench *b, unsigned i)
{
	struct wire_file *f = begin(b, WIRE_FILE_OPEN, sizeof(*f), i);
	char path[64];
	int n = snprintf(path, sizeof(path), "/workspace/project/build/obj/file%u.o", i % 5000);

	f->h.nr = 257;
	f->ino = 1000 + i % 5000;
	f->dev = 44;
	f->mode = 0100644;
	f->open_flags = O_WRONLY | O_CREAT | O_TRUNC;
	f->fd = 3;
	f->path = text(b, path, (size_t)n);
}

static void make_delete(struct bench *b, unsigned i)
{
	struct wire_file *f = begin(b, WIRE_FILE_DELETE, sizeof(*f), i);

	f->h.nr = 87;
	f->h.flags = WIRE_F_TOCTOU;
	f->base = text(b, "/workspace/project", 18);
	f->path = text(b, "build/tmp.o", 11);
}

static void make_connect(struct bench *b, unsigned i)
{
	struct wire_net *n = begin(b, WIRE_NET_CONNECT, sizeof(*n), i);

	n->h.nr = 42;
	n->cookie = i;
	n->family = 2;
	n->type = 1;
	n->proto = 6;
	n->sport = (uint16_t)(32768 + i % 20000);
	n->dport = 443;
	memcpy(n->saddr, "\x0a\x00\x00\x02", 4);
	memcpy(n->daddr, "\x97\x65\x01\x2d", 4);
}

static void make_exit(struct bench *b, unsigned i)
{
	(void)begin(b, WIRE_EXIT, sizeof(struct wire_exit), i);
}

/* A build or test run: mostly files, some processes, few connections. */
static void feed_one(struct bench *b, unsigned i)
{
	int r;

	switch (i % 8) {
	case 0:
		make_exec(b, i);
		break;
	case 6:
		make_connect(b, i);
		break;
	case 7:
		make_exit(b, i);
		break;
	case 5:
		make_delete(b, i);
		break;
	default:
		make_open(b, i);
	}
	r = pipeline_feed(b->pipeline, b->rec, ((struct wire_hdr *)b->rec)->len);
	if (r < 0)
		fail("feed", r, NULL);
}

/* One process that makes, writes and deletes files: the records as the kernel's side sends them. */
static void make_storm(struct bench *b, unsigned i)
{
	static const char args[] = "/usr/lib/gcc/cc1\0-quiet\0main.c\0-o\0main.s";
	struct wire_file *f;
	struct wire_exec *e;
	static char names[STORM_NAMES][64];
	const char *path = names[i / 3 % STORM_NAMES];

	if (i == 0) {
		e = begin(b, WIRE_EXEC, sizeof(*e), 0);
		e->args_total = sizeof(args);
		e->argc = 5;
		e->exe = text(b, "/usr/lib/gcc/cc1", 16);
		e->cwd = text(b, "/workspace/project/build/obj", 28);
		e->args = text(b, args, sizeof(args));
		e->ancestors_n = 2;
		e->ancestors[0] =
			(struct wire_ancestor){ .start = 900, .tgid = 1000, .comm = "sh" };
		e->ancestors[1] =
			(struct wire_ancestor){ .start = 800, .tgid = 999, .comm = "init" };
		return;
	}
	f = begin(b,
		  i % 3 == 1   ? WIRE_FILE_OPEN
		  : i % 3 == 2 ? WIRE_FILE_WRITE
			       : WIRE_FILE_DELETE,
		  sizeof(*f), 0);
	f->h.ts += i * 3000ull;
	if (i % 3 == 0) {
		f->h.nr = 87;
		f->h.flags = WIRE_F_TOCTOU;
		f->base = text(b, path, 28);
		f->path = text(b, path + 29, strlen(path + 29));
		return;
	}
	f->ino = 100000 + i / 3;
	f->dev = 27;
	f->mode = 0100600;
	f->fd = 3;
	f->id = 1ull << 48 | i / 3;
	if (i % 3 == 1) {
		f->h.nr = 257;
		f->open_flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
		f->path = text(b, path, strlen(path));
		return;
	}
	f->size = 64;
	f->count = 1;
	f->first_ts = f->h.ts - 1000;
	f->op = WIRE_WRITE_TOTAL;
}

static void feed_storm(struct bench *b, unsigned i)
{
	int r;

	make_storm(b, i);
	r = pipeline_feed(b->pipeline, b->rec, ((struct wire_hdr *)b->rec)->len);
	if (r < 0)
		fail("feed", r, NULL);
}

static double run(unsigned records, const struct ruleset *rules, struct redaction *redaction,
		  const char *dir, uint64_t *ret_out, void (*feed)(struct bench *b, unsigned i))
{
	const struct journal_options jo = { .session = SESSION };
	struct session_options so = { .sandbox_id = 1,
				      .session = SESSION,
				      .name = "bench",
				      .host = "node",
				      .target = { -1, -1, -1, -1 } };
	auto_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct session_stats st;
	struct journal *journal;
	struct bench b;
	struct err err = { 0 };
	uint64_t began;
	double took;
	int r;

	r = journal_create(&journal, fd, &jo, &err);
	if (r < 0)
		fail("journal", r, &err);
	r = pipeline_new(&b.pipeline, rules);
	so.journal = journal;
	so.redaction = redaction;
	if (r < 0 || pipeline_session_add(b.pipeline, &so) < 0)
		fail("pipeline", r, NULL);
	began = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (unsigned i = 0; i < records; i++)
		feed(&b, i);
	journal_commit(journal);
	took = (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - began) / 1e9;
	pipeline_session_stats(b.pipeline, 1, &st);
	if (st.events < records || st.gaps)
		fail("events went missing", -EIO, NULL);
	*ret_out = st.events;
	pipeline_free(b.pipeline);
	journal_free(journal);
	return took;
}

/* Stored events, judged again and written again: rules and journal without the stages before. */
struct replay {
	struct event ev;
	struct arena arena;
	struct str json;
};

static size_t load_replay(struct replay *v, size_t max, const char *dir)
{
	auto_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct journal_reader *reader;
	struct err err = { 0 };
	struct str rec;
	uint64_t seq;
	size_t n = 0;
	int r;

	r = journal_reader_open(&reader, fd, &err);
	while (r >= 0 && n < max) {
		r = journal_reader_next(reader, &rec, &seq, &err);
		if (r <= 0)
			break;
		arena_init(&v[n].arena, 1 << 20);
		v[n].json = arena_strndup(&v[n].arena, rec.p, rec.n);
		r = event_from_json(&v[n].ev, &v[n].arena, rec, &err);
		n++;
	}
	if (r < 0 || !n)
		fail("stored events", r, &err);
	journal_reader_free(reader);
	return n;
}

static double run_replay(unsigned records, const struct ruleset *rules, const char *from,
			 const char *to)
{
	const struct journal_options jo = { .session = SESSION };
	auto_close int fd = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct replay *v = calloc(REPLAY_EVENTS, sizeof(*v));
	size_t n = v ? load_replay(v, REPLAY_EVENTS, from) : 0;
	struct rule_matches m;
	struct journal *journal;
	struct err err = { 0 };
	uint64_t began;
	double took;
	int r;

	r = journal_create(&journal, fd, &jo, &err);
	if (r < 0 || !n)
		fail("journal", r, &err);
	began = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (unsigned i = 0; r >= 0 && i < records; i++) {
		/* Few structs, as the pipeline has one that stays in the cache; many texts, so that a
		 * frame does not hold the same one twice. */
		ruleset_eval(rules, &v[i % n % REPLAY_HOT].ev, &m);
		r = journal_append(journal, v[i % n].json);
	}
	if (r >= 0)
		r = journal_commit(journal);
	took = (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - began) / 1e9;
	if (r < 0)
		fail("append", r, NULL);
	for (size_t i = 0; i < n; i++)
		arena_done(&v[i].arena);
	free(v);
	journal_free(journal);
	return took;
}

static void report_replay(const char *name, unsigned records, const struct ruleset *rules,
			  const char *from, const char *dir, const char *target)
{
	char to[64];

	snprintf(to, sizeof(to), "%s/to", dir);
	if (mkdir(to, 0700) < 0)
		fail(to, -errno, NULL);
	printf("pipeline: rules and journal alone, %s, one core\t%.0f\tevents/s\t%s\n", name,
	       records / run_replay(records, rules, from, to), target);
	fflush(stdout);
	snprintf(to, sizeof(to), "rm -r %s/to", dir);
	if (system(to))
		fail(to, -EIO, NULL);
}

static struct ruleset *make_rules(int n)
{
	struct buf b = { 0 };
	struct ruleset *rs;
	struct err err = { 0 };
	int r;

	for (int i = 0; i < n; i++)
		add_rule(&b, i);
	r = ruleset_new(&rs, NULL, NULL);
	if (r == 0)
		r = ruleset_add_text(rs, "made", (struct str){ b.p, b.n }, &err);
	if (r == 0)
		r = ruleset_compile(rs, &err);
	if (r < 0)
		fail("made rules", r, &err);
	buf_done(&b);
	return rs;
}

/* What an event costs the agent while a program makes files as fast as it can; the middle of a few runs. */
static void report_storm(unsigned records, const struct ruleset *rules, const char *dir)
{
	AUTO(redactor) struct redactor *redactor = NULL;
	AUTO(redaction) struct redaction *redaction = NULL;
	static const uint8_t key[REDACT_KEY_LEN] = { 1 };
	struct err err = { 0 };
	double best = 1e9;
	char sub[64];
	uint64_t out;
	int r = redactor_new(&redactor, key, &err);

	if (r == 0)
		r = redactor_add_builtin(redactor, &err);
	if (r == 0)
		r = redactor_finish(redactor, &err);
	if (r == 0)
		r = redaction_new(&redaction, redactor);
	if (r < 0)
		fail("redaction", r, &err);
	for (int i = 0; i < STORM_RUNS; i++) {
		double took;

		snprintf(sub, sizeof(sub), "%s/storm%d", dir, i);
		if (mkdir(sub, 0700) < 0)
			fail(sub, -errno, NULL);
		took = run(records / STORM_RUNS, rules, redaction, sub, &out, feed_storm);
		best = took < best ? took : best;
	}
	printf("pipeline: a storm of files, default packs, redaction, an event\t%.3f\tus\t-\n",
	       best / (records / STORM_RUNS) * 1e6);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	unsigned records = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : RECORDS_DEFAULT;
	char dir[] = "/tmp/bench_pipeline.XXXXXX", sub[64], cmd[64];
	struct ruleset *rules, *made;
	struct err err = { 0 };
	uint64_t out;
	double took;
	int r;

	r = ruleset_new(&rules, NULL, NULL);
	if (r == 0)
		ruleset_allow_state(rules);
	for (size_t i = 0; r == 0 && i < rule_packs_n; i++)
		r = ruleset_add_text(rules, rule_packs[i].name, rule_packs[i].text, &err);
	if (r == 0)
		r = ruleset_compile(rules, &err);
	if (r < 0)
		fail("rules", r, &err);
	if (!mkdtemp(dir))
		fail(dir, -errno, NULL);
	for (int with = 0; with < 2; with++) {
		snprintf(sub, sizeof(sub), "%s/%d", dir, with);
		if (mkdir(sub, 0700) < 0)
			fail(sub, -errno, NULL);
		took = run(records, with ? rules : NULL, NULL, sub, &out, feed_one);
		if (with)
			printf("pipeline: records to journal, %zu rules, one core\t%.0f\tevents/s\t-\n",
			       ruleset_count(rules), records / took);
		else
			printf("pipeline: records to journal, no rules, one core\t%.0f\tevents/s\t-\n",
			       records / took);
		fflush(stdout);
	}
	report_storm(records, rules, dir);
	snprintf(sub, sizeof(sub), "%s/1", dir);
	report_replay("default packs", records, rules, sub, dir, "-");
	made = make_rules(50);
	report_replay("50 rules", records, made, sub, dir, ">= 500000");
	ruleset_free(made);
	ruleset_free(rules);
	snprintf(cmd, sizeof(cmd), "rm -r %s", dir);
	return system(cmd) ? 1 : 0;
}
