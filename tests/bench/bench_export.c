// SPDX-License-Identifier: Apache-2.0
/* The journal to its sinks: a file, and librdkafka's mock cluster in a process of its own. `bench_export [RECORDS [kafka]]`. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include "exporters/exporter.h"
#include "exporters/record.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/store/store.h"

#define RECORD_LEN 500
#define SESSION	   "01JBENCH0000000000000000AB"
#define WAIT_MS	   120000
#define ROUNDS	   5

static char dir_path[64];
static int dir_fd;

static void die(const char *what, const struct err *err)
{
	fprintf(stderr, "bench_export: %s: %s\n", what, err ? err_text(err) : "failed");
	exit(1);
}

static void row(const char *name, double value, const char *unit, const char *target)
{
	printf("%s\t%.6g\t%s\t%s\n", name, value, unit, target);
	fflush(stdout);
}

static double cpu_seconds(void)
{
	return (double)clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9;
}

static double wall_seconds(void)
{
	return (double)clock_ns(CLOCK_MONOTONIC) / 1e9;
}

static size_t make_record(char out[RECORD_LEN + 1], uint64_t seq)
{
	unsigned x = (unsigned)seq * 2654435761u;
	size_t n = (size_t)snprintf(
		out, RECORD_LEN,
		"{\"v\":1,\"id\":\"" SESSION "-%08llu\",\"seq\":%llu,"
		"\"time\":\"2026-01-31T12:34:%02u.%09uZ\",\"mono\":%u,\"kind\":\"exec\","
		"\"vantage\":\"kernel\",\"session\":\"" SESSION "\",\"sandbox\":\"4026531%03u\","
		"\"proc\":{\"pid\":%u,\"ppid\":%u,\"exe\":\"/usr/bin/python3.11\",\"args\":"
		"[\"python3\",\"-c\",\"step %u\"],\"cwd\":\"/workspace\"},\"pad\":\"",
		(unsigned long long)seq, (unsigned long long)seq, x % 60, x % 1000000000, x, x % 7,
		x % 30000, x % 300, x % 100000);

	memset(out + n, 'x', RECORD_LEN - 2 - n);
	memcpy(out + RECORD_LEN - 2, "\"}", 3);
	return RECORD_LEN;
}

static void append(struct journal *j, uint64_t n)
{
	char text[RECORD_LEN + 1];

	for (uint64_t i = 0; i < n; i++) {
		struct str rec = { text, make_record(text, journal_next_seq(j)) };

		if (journal_append(j, rec) < 0)
			die("journal_append", NULL);
	}
	if (journal_commit(j) < 0)
		die("journal_commit", NULL);
}

/* ---- the fan-out over the journal, as the pipeline sets it up ---- */

static int source_next(void *arg, struct str *rec, uint64_t *seq, struct err *err)
{
	return journal_reader_next(arg, rec, seq, err);
}

static int source_seek(void *arg, uint64_t seq, struct err *err)
{
	return journal_reader_seek(arg, seq, err);
}

static void source_free(void *arg)
{
	journal_reader_free(arg);
}

static int source_open(void *arg, struct export_source *ret, struct err *err)
{
	struct journal_reader *reader;
	int r = journal_reader_open(&reader, *(int *)arg, err);

	if (r == 0)
		*ret = (struct export_source){ reader, source_next, source_seek, source_free };
	return r;
}

static struct fanout *start_fanout(const char *sink)
{
	struct fanout_options opt = { .session = SESSION,
				      .cursor_dirfd = -1,
				      .open_source = source_open,
				      .open_source_arg = &dir_fd };
	struct exporter_config cfg;
	struct err err = { 0 };
	struct fanout *f;

	if (fanout_new(&f, &opt, &err) < 0 || exporter_config_parse(&cfg, sink, &err) < 0 ||
	    fanout_add(f, &cfg, &err) < 0 || fanout_start(f, &err) < 0)
		die(sink, &err);
	exporter_config_done(&cfg);
	return f;
}

static void drain(struct fanout *f, uint64_t seq)
{
	if (fanout_drain(f, seq, WAIT_MS))
		die("drain", NULL);
}

/* ---- measurements ---- */

static void bench_scan(void)
{
	enum { N = 2000000 };
	char text[RECORD_LEN + 1];
	struct str json = { text, make_record(text, 1) };
	struct export_record rec;
	double t = cpu_seconds();

	for (int i = 0; i < N; i++) {
		record_scan(&rec, json);
		__asm__ volatile("" ::"r"(rec.id.p) : "memory");
	}
	row("export: find id, kind, session", (cpu_seconds() - t) / N * 1e9, "ns/event", "-");
}

static void bench_file(uint64_t n)
{
	double t = wall_seconds();
	struct fanout *f;
	char sink[128];

	snprintf(sink, sizeof(sink), "file:%s/out.jsonl", dir_path);
	f = start_fanout(sink);
	drain(f, n);
	row("export: journal to file", (double)n / (wall_seconds() - t), "events/s", "-");
	fanout_free(f);
	unlinkat(dir_fd, "out.jsonl", 0);
}

/* CPU of one of our threads, in seconds, by its name. */
static double thread_seconds(const char *name)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *de;
	double sum = 0;

	while (dir && (de = readdir(dir))) {
		char path[300], comm[32] = "";
		unsigned long long ns = 0;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", de->d_name);
		f = fopen(path, "re");
		if (f && fscanf(f, "%31[^\n]", comm) != 1)
			comm[0] = 0;
		if (f)
			fclose(f);
		snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", de->d_name);
		f = strncmp(comm, name, strlen(name)) ? NULL : fopen(path, "re");
		if (f && fscanf(f, "%llu", &ns) == 1)
			sum += (double)ns / 1e9;
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
	return sum;
}

/* All of the journal, ROUNDS times, each to a topic of its own. What other work on the machine and the mock
 * (a process of its own, on the same two cores) take does not count as ours: so the rate is what our threads'
 * CPU time allows on two cores, where a thread has one core at most; the wall-clock rate stands beside it. */
static void bench_kafka_all(uint64_t n, const char *brokers)
{
	double best_wall = 0, best_rate = 0, best_cpu = 1e9;

	for (int i = 0; i < ROUNDS; i++) {
		double wall, cpu, reader, broker, busiest;
		struct fanout *f;
		char sink[256];

		snprintf(sink, sizeof(sink), "kafka:%s,topic=bench-%d,alerts-topic=", brokers, i);
		f = start_fanout(sink);
		wall = wall_seconds();
		cpu = cpu_seconds();
		reader = thread_seconds("warder-fanout");
		broker = thread_seconds("rdk:");
		drain(f, n);
		wall = wall_seconds() - wall;
		cpu = cpu_seconds() - cpu;
		reader = thread_seconds("warder-fanout") - reader;
		broker = thread_seconds("rdk:") - broker;
		busiest = MAX(MAX(reader, broker), cpu / 2);
		best_wall = MAX(best_wall, (double)n / wall);
		best_rate = MAX(best_rate, (double)n / busiest);
		best_cpu = MIN(best_cpu, cpu / (double)n * 1e6);
		if (getenv("BENCH_VERBOSE"))
			fprintf(stderr, "reader %.2f, librdkafka %.2f us\n",
				reader / (double)n * 1e6, broker / (double)n * 1e6);
		fanout_free(f);
	}
	row("export: journal to Kafka (zstd, acks=all), two cores of CPU time", best_rate,
	    "events/s", ">= 250000");
	row("export: the same by the clock, the mock beside it", best_wall, "events/s", "-");
	row("export: journal to Kafka, CPU", best_cpu, "us/event", "-");
}

/* 10,000 events/s in commits of 200 ms, writing the journal not counted. The best of some rounds. */
static void bench_kafka_paced(struct journal *j, const char *brokers)
{
	double best = 1e9;
	struct fanout *f;
	char sink[256];

	snprintf(sink, sizeof(sink), "kafka:%s,topic=paced,alerts-topic=", brokers);
	f = start_fanout(sink);
	drain(f, journal_next_seq(j) - 1);
	for (int i = 0; i < ROUNDS; i++) {
		double cpu = cpu_seconds(), append_cpu = 0;

		for (int k = 0; k < 10; k++) {
			struct timespec ts = { 0, 200000000 };
			double a = (double)clock_ns(CLOCK_THREAD_CPUTIME_ID);

			append(j, 2000);
			append_cpu += ((double)clock_ns(CLOCK_THREAD_CPUTIME_ID) - a) / 1e9;
			fanout_notify(f);
			nanosleep(&ts, NULL);
		}
		drain(f, journal_next_seq(j) - 1);
		best = MIN(best, (cpu_seconds() - cpu - append_cpu) / 20000 * 1e6);
	}
	row("export: Kafka at 10,000 events/s, CPU", best, "us/event", "<= 6");
	fanout_free(f);
}

/* CPU of the thread that writes the journal, in seconds: events as the pipeline appends and commits
 * them, with a sink or without. */
static double writer_cpu(struct journal *j, struct fanout *f)
{
	double t = (double)clock_ns(CLOCK_THREAD_CPUTIME_ID);

	for (int i = 0; i < 50; i++) {
		append(j, 2000);
		if (f)
			fanout_notify(f);
	}
	return ((double)clock_ns(CLOCK_THREAD_CPUTIME_ID) - t) / 1e9;
}

/* What a sink whose other side is dead costs the thread that drains the rings and writes the journal: the
 * probes wait for nothing else. In turns, the best of each, since other work on the machine only adds. */
static void bench_dead_sink(struct journal *j)
{
	double with = 1e9, without = 1e9;

	for (int i = 0; i < 6; i++) {
		struct fanout *f = start_fanout("kafka:127.0.0.1:1");
		double t = writer_cpu(j, f);

		fanout_free(f);
		with = MIN(with, t);
		t = writer_cpu(j, NULL);
		without = MIN(without, t);
	}
	row("export: writing the journal beside a dead sink", (with / without - 1) * 100,
	    "% more CPU", "<= 2");
}

static pid_t start_mock(char *ret_brokers, size_t size, int *ret_stop)
{
	int up[2], down[2];
	ssize_t n;
	pid_t pid;

	if (pipe2(up, O_CLOEXEC) < 0 || pipe2(down, O_CLOEXEC) < 0)
		die("pipe", NULL);
	pid = fork();
	if (pid == 0) {
		rd_kafka_conf_t *conf = rd_kafka_conf_new();
		rd_kafka_mock_cluster_t *c;
		rd_kafka_t *rk;
		char byte;

		close(down[1]);
		rd_kafka_conf_set(conf, "log_level", "0", NULL, 0);
		rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, NULL, 0);
		c = rd_kafka_mock_cluster_new(rk, 1);
		dprintf(up[1], "%s", rd_kafka_mock_cluster_bootstraps(c));
		close(up[1]);
		_exit(read(down[0], &byte, 1) < 0);
	}
	close(up[1]);
	close(down[0]);
	n = read(up[0], ret_brokers, size - 1);
	if (pid < 0 || n <= 0)
		die("mock cluster", NULL);
	ret_brokers[n] = 0;
	close(up[0]);
	*ret_stop = down[1];
	return pid;
}

int main(int argc, char **argv)
{
	uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 500000;
	const struct journal_options opt = { .session = SESSION, .no_sync = true };
	const char *tmp = getenv("TMPDIR");
	char brokers[128], cmd[128];
	struct err err = { 0 };
	struct journal *j;
	int stop;
	pid_t pid = start_mock(brokers, sizeof(brokers), &stop); /* before any thread of ours */

	snprintf(dir_path, sizeof(dir_path), "%.40s/bench-export-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(dir_path))
		die(dir_path, NULL);
	dir_fd = open(dir_path, O_DIRECTORY | O_CLOEXEC);
	if (journal_create(&j, dir_fd, &opt, &err) < 0)
		die("journal_create", &err);
	append(j, n);
	if (argc < 3) {
		bench_scan();
		bench_file(n);
	}
	bench_kafka_all(n, brokers);
	bench_kafka_paced(j, brokers);
	bench_dead_sink(j);
	journal_free(j);
	close(stop);
	waitpid(pid, NULL, 0);
	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir_path);
	return system(cmd) ? 1 : 0;
}
