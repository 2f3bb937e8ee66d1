// SPDX-License-Identifier: Apache-2.0
/* The state before: as it was written, and nothing of a file that is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/workspace/snapshot.h"

struct place {
	char path[64];
	int fd;
};

static struct place place_new(void)
{
	struct place p = { .path = "/tmp/warder-ws-XXXXXX" };

	assert_non_null(mkdtemp(p.path));
	p.fd = open(p.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(p.fd >= 0);
	assert_int_equal(mkdirat(p.fd, "d", 0700), 0);
	return p;
}

static void put(struct place *p, const char *name, const char *text)
{
	auto_close int fd = openat(p->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static void place_free(struct place *p)
{
	static const char *const names[] = { "a", "b", "d/c", "link" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		unlinkat(p->fd, names[i], 0);
	unlinkat(p->fd, "d", AT_REMOVEDIR);
	close(p->fd);
	assert_int_equal(rmdir(p->path), 0);
}

static int snapshot_of(struct place *p)
{
	const struct workspace_place places[] = { { "/w", p->fd } };
	int fd = memfd_create("snapshot", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(workspace_snapshot(places, 1, &workspace_limits_after, fd), 0);
	return fd;
}

static const struct entry *find(const struct snapshot *s, const char *path)
{
	for (size_t i = 0; i < s->n; i++)
		if (str_eqz(s->v[i].path, path))
			return &s->v[i];
	return NULL;
}

static void test_there_and_back(void **state)
{
	struct place p = place_new();
	struct snapshot s;
	int fd;

	(void)state;
	put(&p, "a", "first\n");
	put(&p, "d/c", "");
	assert_int_equal(symlinkat("/etc/shadow", p.fd, "link"), 0);
	fd = snapshot_of(&p);
	assert_int_equal(snapshot_read(&s, fd, 1), 0);
	assert_true(s.complete);
	assert_int_equal(find(&s, "a")->size, 6);
	assert_true(find(&s, "a")->has_hash && S_ISREG(find(&s, "a")->mode));
	assert_true(str_eqz(find(&s, "link")->target, "/etc/shadow"));
	assert_false(find(&s, "link")->has_hash); /* nobody went there */
	assert_non_null(find(&s, "d/c"));
	snapshot_done(&s);
	/* of a place that is not there any more */
	assert_int_equal(snapshot_read(&s, fd, 0), -EBADMSG);
	close(fd);
	place_free(&p);
}

/* Cut anywhere, and each byte changed: refused, or read within its bounds. */
static void test_damaged(void **state)
{
	struct place p = place_new();
	struct snapshot s;
	auto_free char *text = NULL;
	struct stat st;
	int fd;

	(void)state;
	put(&p, "a", "first\n");
	put(&p, "b", "second\n");
	fd = snapshot_of(&p);
	assert_int_equal(fstat(fd, &st), 0);
	text = malloc((size_t)st.st_size);
	assert_int_equal(pread(fd, text, (size_t)st.st_size, 0), st.st_size);
	for (off_t n = 0; n < st.st_size; n++) {
		assert_int_equal(ftruncate(fd, n), 0);
		assert_int_equal(snapshot_read(&s, fd, 1), -EBADMSG);
	}
	for (off_t i = 0; i < st.st_size; i++) {
		text[i] ^= 0x81;
		assert_int_equal(pwrite(fd, text, (size_t)st.st_size, 0), st.st_size);
		if (snapshot_read(&s, fd, 1) == 0)
			snapshot_done(&s);
		text[i] ^= 0x81;
	}
	close(fd);
	place_free(&p);
}

static size_t changes(struct place *p, int before_fd, struct wire_scan *ret)
{
	const struct workspace_place places[] = { { "/w", p->fd } };
	auto_close int fd = memfd_create("items", MFD_CLOEXEC);
	auto_buf struct buf b = { 0 };
	enum workspace_item_type type;
	size_t n = 0;
	int r;

	assert_int_equal(workspace_compare(places, 1, &workspace_limits_after, before_fd,
					   WIRE_SCAN_DEMAND, fd),
			 0);
	assert_true(lseek(fd, 0, SEEK_SET) == 0);
	while ((r = workspace_item_next(fd, &type, &b)) > 0) {
		struct wire_hdr h;

		if (type != WORKSPACE_RECORD)
			continue;
		assert_true(b.n >= sizeof(h));
		memcpy(&h, b.p, sizeof(h));
		n += h.kind == WIRE_WORKSPACE_CHANGE;
		if (h.kind == WIRE_WORKSPACE_SCAN)
			memcpy(ret, b.p, sizeof(*ret));
	}
	assert_int_equal(r, 0);
	return n;
}

static void test_compared(void **state)
{
	struct place p = place_new();
	struct wire_scan scan = { 0 };
	int fd;

	(void)state;
	put(&p, "a", "first\n");
	put(&p, "b", "second\n");
	fd = snapshot_of(&p);
	assert_int_equal(changes(&p, fd, &scan), 0);
	put(&p, "a", "First\n"); /* as long as before */
	put(&p, "d/c", "new");
	unlinkat(p.fd, "b", 0);
	assert_int_equal(changes(&p, fd, &scan), 3);
	close(fd);
	place_free(&p);
}

/* Items of which the length lies, or which are of no kind. */
static void test_bad_items(void **state)
{
	static const struct workspace_item bad[] = {
		{ 0, 4 },
		{ WORKSPACE_TEXT_BEFORE + 1, 4 },
		{ WORKSPACE_RECORD, WORKSPACE_ITEM_MAX + 1 },
		{ WORKSPACE_RECORD, 5 },
		{ WORKSPACE_RECORD, UINT32_MAX },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		auto_close int fd = memfd_create("items", MFD_CLOEXEC);
		auto_buf struct buf b = { 0 };
		enum workspace_item_type type;

		assert_int_equal(fd_write_all(fd, &bad[i], sizeof(bad[i])), 0);
		assert_int_equal(fd_write_all(fd, "1234", 4), 0);
		assert_true(lseek(fd, 0, SEEK_SET) == 0);
		assert_int_equal(workspace_item_next(fd, &type, &b), -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_compared),
		cmocka_unit_test(test_bad_items),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
