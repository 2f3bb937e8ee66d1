/* SPDX-License-Identifier: Apache-2.0 */
/* A bundle directory of a test's own, and records that look like events. */
#ifndef TESTS_UNIT_STORE_BUNDLE_H
#define TESTS_UNIT_STORE_BUNDLE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/store/format.h"
#include "userspace/store/store.h"

#define TEST_SESSION "01JTESTSESSION0000000000AB"

struct bundle {
	char path[64];
	int fd;
	int keys_fd; /* 0: not signed */
};

static inline struct bundle bundle_new(void)
{
	struct bundle b = { .path = "/tmp/warder-store-XXXXXX" };

	assert_non_null(mkdtemp(b.path));
	b.fd = open(b.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(b.fd >= 0);
	return b;
}

static inline void bundle_empty(struct bundle *b)
{
	DIR *d = opendir(b->path);
	struct dirent *e;

	assert_non_null(d);
	while ((e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			unlinkat(b->fd, e->d_name, 0);
	closedir(d);
}

static inline void bundle_free(struct bundle *b)
{
	bundle_empty(b);
	close(b->fd);
	assert_int_equal(rmdir(b->path), 0);
}

/* The text of record `seq`: its length and bytes depend on the number alone. */
static inline struct str record_text(uint64_t seq, char *room, size_t cap)
{
	size_t n =
		(size_t)snprintf(room, cap, "{\"v\":1,\"seq\":%llu,\"kind\":\"exec\",\"args\":\"",
				 (unsigned long long)seq);
	size_t fill = (size_t)(seq * 37 % 90);

	for (size_t i = 0; i < fill; i++)
		room[n++] = (char)('a' + (seq * 31 + i * 7) % 26);
	memcpy(room + n, "\"}", 3);
	return (struct str){ room, n + 2 };
}

static inline void append_records(struct journal *j, unsigned n)
{
	char room[256];

	while (n--)
		assert_int_equal(
			journal_append(j, record_text(journal_next_seq(j), room, sizeof(room))), 0);
}

static inline struct journal *create(struct bundle *b, uint64_t segment_max)
{
	struct journal_options opt = { .session = TEST_SESSION,
				       .tool = "warder test",
				       .segment_max = segment_max,
				       .no_sync = true,
				       .sign = b->keys_fd > 0,
				       .keys_dirfd = b->keys_fd };
	struct journal *j = NULL;
	struct err err = { 0 };

	assert_int_equal(journal_create(&j, b->fd, &opt, &err), 0);
	return j;
}

static inline void seal(struct journal *j, uint64_t gaps)
{
	struct journal_seal s = { .summary = STR("{\"exec\":1}"), .gaps = gaps };

	assert_int_equal(journal_seal(j, &s), 0);
}

/* `n` records in frames of `per_frame`, sealed. */
static inline void sealed_bundle(struct bundle *b, unsigned n, unsigned per_frame,
				 uint64_t segment_max, uint64_t gaps)
{
	struct journal *j = create(b, segment_max);

	for (unsigned i = 0; i < n; i += per_frame) {
		append_records(j, MIN(per_frame, n - i));
		assert_int_equal(journal_commit(j), 0);
	}
	seal(j, gaps);
	journal_free(j);
}

static inline char *slurp(int dirfd, const char *name, size_t *ret_n)
{
	char *p = NULL;

	assert_int_equal(file_read_at(dirfd, name, 64 << 20, &p, ret_n), 0);
	return p;
}

static inline void spit(int dirfd, const char *name, const void *p, size_t n)
{
	int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, p, n), 0);
	close(fd);
}

/* Reads all that is committed from `r`, checks each record; returns how many. */
static inline uint64_t read_all(struct journal_reader *r, uint64_t first)
{
	uint64_t seq = 0, n = 0;
	struct err err = { 0 };
	char room[256];
	struct str rec;
	int s;

	while ((s = journal_reader_next(r, &rec, &seq, &err)) == 1) {
		assert_int_equal(seq, first + n);
		assert_true(str_eq(rec, record_text(seq, room, sizeof(room))));
		n++;
	}
	if (s < 0)
		print_error("%s\n", err.text);
	assert_int_equal(s, 0);
	return n;
}

#endif
