// SPDX-License-Identifier: Apache-2.0
/* Journal alone, one thread: append and commit records of 500 bytes, read them back, verify. `bench_journal [DIR [RECORDS]]`; the bundle is made in DIR and removed. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/store/format.h"
#include "userspace/store/store.h"

#define RECORD_LEN   500
#define RECORD_KINDS 1024

/* Records as the pipeline writes them: much alike, numbers and paths differ. */
static size_t make_record(char *out, size_t cap, unsigned i)
{
	static const char *const kinds[] = { "exec", "exit", "file.open", "net.connect" };
	static const char *const paths[] = { "/usr/bin/python3.11", "/usr/bin/git", "/usr/bin/dash",
					     "/workspace/build/main.o" };
	unsigned x = i * 2654435761u;
	size_t n = (size_t)snprintf(
		out, cap,
		"{\"v\":1,\"id\":\"01JBENCH0000000000000000AB-%08u\",\"seq\":%u,\"time\":"
		"\"2026-01-31T12:34:%02u.%09uZ\",\"mono\":%u,\"kind\":\"%s\",\"vantage\":\"kernel\","
		"\"session\":\"01JBENCH0000000000000000AB\",\"sandbox\":\"4026531%03u\",\"host\":"
		"\"node-17\",\"proc\":{\"pid\":%u,\"tid\":%u,\"nspid\":%u,\"ppid\":%u,\"uid\":1000,"
		"\"gid\":1000,\"exe\":\"%s\",\"comm\":\"%s\",\"args\":[\"%s\",\"-c\",\"step %u\"],"
		"\"cwd\":\"/workspace\",\"start\":%u},\"outcome\":\"ok\",\"pad\":\"",
		i, i, x % 60, x % 1000000000, x, kinds[i % 4], i % 7, 1000 + x % 30000,
		1000 + x % 30000, x % 300, 1000 + x % 300, paths[i / 4 % 4], paths[i / 4 % 4] + 9,
		paths[i / 4 % 4], x % 100000, x / 3);

	while (n < RECORD_LEN - 2)
		out[n++] = 'x';
	memcpy(out + n, "\"}", 3);
	return n + 2;
}

static double cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int check(int r, const char *what, const struct err *err)
{
	if (r < 0) {
		fprintf(stderr, "bench_journal: %s: %s\n", what,
			err->code ? err_text(err) : strerror(-r));
		exit(1);
	}
	return r;
}

static uint64_t bytes_on_disk(int dirfd)
{
	char name[SEGMENT_NAME_LEN + 1];
	uint64_t bytes = 0;
	struct stat st;

	for (unsigned i = 1; segment_name(name, i), fstatat(dirfd, name, &st, 0) == 0; i++)
		bytes += (uint64_t)st.st_size;
	return bytes;
}

static void remove_bundle(int dirfd, const char *path)
{
	char name[SEGMENT_NAME_LEN + 1];

	for (unsigned i = 1; segment_name(name, i), unlinkat(dirfd, name, 0) == 0; i++)
		;
	unlinkat(dirfd, MANIFEST_NAME, 0);
	rmdir(path);
}

struct result {
	uint64_t records, bytes;
	double append_wall, append_cpu, read_cpu, verify_cpu, seek_ms;
};

static void write_all(int dirfd, struct result *res)
{
	struct journal_options opt = { .session = "01JBENCH0000000000000000AB" };
	struct journal_seal s = { .gaps = 0 };
	char(*recs)[RECORD_LEN + 64] = calloc(RECORD_KINDS, sizeof(*recs));
	struct journal *j = NULL;
	struct err err = { 0 };
	double cpu;
	uint64_t wall;

	for (unsigned i = 0; i < RECORD_KINDS; i++)
		make_record(recs[i], sizeof(recs[i]), i);
	check(journal_create(&j, dirfd, &opt, &err), "create", &err);
	wall = clock_ns(CLOCK_MONOTONIC);
	cpu = cpu_seconds();
	for (uint64_t i = 0; i < res->records; i++) {
		char *rec = recs[i % RECORD_KINDS];

		/* never the same bytes twice: the digits at the end of the id */
		for (uint64_t v = i, at = 40; at > 31; at--, v /= 10)
			rec[at] = (char)('0' + v % 10);
		check(journal_append(j, (struct str){ rec, RECORD_LEN }), "append", &err);
		if (i % 1024 == 0 && journal_deadline(j) &&
		    clock_ns(CLOCK_MONOTONIC) >= journal_deadline(j))
			check(journal_commit(j), "commit", &err);
	}
	check(journal_seal(j, &s), "seal", &err);
	res->append_cpu = cpu_seconds() - cpu;
	res->append_wall = (double)(clock_ns(CLOCK_MONOTONIC) - wall) / 1e9;
	res->bytes = bytes_on_disk(dirfd);
	journal_free(j);
	free(recs);
}

static void read_back(int dirfd, struct result *res)
{
	struct journal_reader *r = NULL;
	struct verify_report rep;
	struct err err = { 0 };
	uint64_t n = 0, t;
	struct str rec;
	double cpu;

	check(journal_reader_open(&r, dirfd, &err), "reader", &err);
	cpu = cpu_seconds();
	while (check(journal_reader_next(r, &rec, NULL, &err), "read", &err) == 1)
		n++;
	res->read_cpu = cpu_seconds() - cpu;
	t = clock_ns(CLOCK_MONOTONIC);
	check(journal_reader_seek(r, res->records * 6 / 7, &err), "seek", &err);
	check(journal_reader_next(r, &rec, NULL, &err), "read", &err);
	res->seek_ms = (double)(clock_ns(CLOCK_MONOTONIC) - t) / 1e6;
	journal_reader_free(r);
	cpu = cpu_seconds();
	check(store_verify(dirfd, &rep, NULL, NULL, &err), "verify", &err);
	res->verify_cpu = cpu_seconds() - cpu;
	if (n != res->records || rep.state != VERIFY_OK || rep.records != n) {
		fprintf(stderr, "bench_journal: read %llu of %llu; %s\n", (unsigned long long)n,
			(unsigned long long)res->records, rep.text);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	struct result res = { .records = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000000 };
	auto_close int dirfd = -1;
	char path[4096];
	double n;

	snprintf(path, sizeof(path), "%s/bench-journal-XXXXXX", argc > 1 ? argv[1] : "/tmp");
	if (!res.records || !mkdtemp(path) ||
	    (dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
		perror("bench_journal");
		return 1;
	}
	write_all(dirfd, &res);
	read_back(dirfd, &res);
	remove_bundle(dirfd, path);
	n = (double)res.records;
	/* tests/bench/run reads these: name, value, unit, target */
	printf("journal append, 500-byte records\t%.0f\trecords/s\t>= 500000\n",
	       n / res.append_cpu);
	printf("journal append, CPU a record\t%.3f\tus\t<= 1.5\n", res.append_cpu / n * 1e6);
	printf("journal append, wall clock a record\t%.3f\tus\t-\n", res.append_wall / n * 1e6);
	printf("journal, bytes on disk a record\t%.1f\tbytes\t<= 60\n", (double)res.bytes / n);
	printf("journal read\t%.0f\trecords/s\t-\n", n / res.read_cpu);
	printf("verify\t%.0f\trecords/s\t>= 1000000\n", n / res.verify_cpu);
	printf("journal seek\t%.2f\tms\t<= 50\n", res.seek_ms);
	return 0;
}
