// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "exporters/exporter.h"
#include "userspace/base/fd.h"

struct rig {
	char dir[64], path[128];
	struct exporter *x;
};

static int set_up(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	snprintf(r->dir, sizeof(r->dir), "/tmp/warder-file-XXXXXX");
	if (!mkdtemp(r->dir))
		return -1;
	snprintf(r->path, sizeof(r->path), "%s/out.jsonl", r->dir);
	*state = r;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *r = *state;
	char cmd[128];
	int rc;

	if (r->x)
		r->x->class->close(r->x);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", r->dir);
	rc = system(cmd);
	free(r);
	return rc;
}

static int try_open(struct rig *r, const char *text, struct err *err)
{
	struct exporter_config cfg;
	int rc = exporter_config_parse(&cfg, text, err);

	if (rc == 0) {
		rc = cfg.class->open(&r->x, &cfg, err);
		exporter_config_done(&cfg);
	}
	return rc;
}

static void open_path(struct rig *r, const char *options)
{
	char text[256];
	struct err err = { 0 };

	snprintf(text, sizeof(text), "file:%s%s", r->path, options);
	if (try_open(r, text, &err) < 0)
		fail_msg("%s", err.text);
}

static enum export_result put(struct rig *r, uint64_t seq, size_t pad)
{
	char *line = malloc(pad + 64);
	struct export_record rec = { .seq = seq };
	enum export_result res;
	int n = snprintf(line, 64, "{\"seq\":%llu,\"pad\":\"", (unsigned long long)seq);

	memset(line + n, 'x', pad);
	memcpy(line + n + pad, "\"}", 2);
	rec.json = (struct str){ line, (size_t)n + pad + 2 };
	res = r->x->class->write(r->x, &rec);
	free(line);
	return res;
}

static uint64_t poll_sink(struct rig *r)
{
	return r->x->class->poll(r->x, 0);
}

/* The file holds whole lines with the seqs first..last, each once. */
static void expect_lines(const char *path, uint64_t first, uint64_t last)
{
	char *text, *p, want[64];
	size_t n;

	assert_int_equal(file_read_at(AT_FDCWD, path, 64 << 20, &text, &n), 0);
	p = text;
	for (uint64_t s = first; s <= last; s++) {
		int k = snprintf(want, sizeof(want), "{\"seq\":%llu,", (unsigned long long)s);

		if (strncmp(p, want, (size_t)k))
			fail_msg("expected %s at %.40s", want, p);
		p = strchr(p, '\n');
		assert_non_null(p);
		assert_int_equal(p[-1], '}');
		p++;
	}
	assert_int_equal(*p, 0);
	free(text);
}

static void test_appends(void **state)
{
	struct rig *r = *state;

	open_path(r, "");
	for (uint64_t s = 1; s <= 3000; s++)
		assert_int_equal(put(r, s, 200), EXPORT_OK);
	assert_int_equal(poll_sink(r), 3000);
	r->x->class->close(r->x);
	open_path(r, ",sync=no");
	assert_int_equal(put(r, 3001, 0), EXPORT_OK);
	assert_int_equal(poll_sink(r), 3001);
	assert_string_equal(r->x->class->status(r->x), "");
	expect_lines(r->path, 1, 3001);
}

static void test_refuses_what_is_no_line(void **state)
{
	struct rig *r = *state;
	struct export_record rec = { .seq = 1, .json = STR("{\n}") };

	open_path(r, "");
	assert_int_equal(r->x->class->write(r->x, &rec), EXPORT_POISON);
	assert_string_equal(r->x->why, "holds a line end");
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	fputs(text, f);
	fclose(f);
}

static void test_torn_line_of_a_crash(void **state)
{
	struct rig *r = *state;

	write_file(r->path, "{\"seq\":1,\"a\":\"}\n{\"seq\":2,\"a\":\"ha");
	open_path(r, "");
	put(r, 2, 10);
	assert_int_equal(poll_sink(r), 2);
	expect_lines(r->path, 1, 2);
}

static void test_rotation(void **state)
{
	struct rig *r = *state;
	char moved[160];

	snprintf(moved, sizeof(moved), "%s.1", r->path);
	open_path(r, "");
	put(r, 1, 0);
	poll_sink(r);
	rename(r->path, moved);
	put(r, 2, 0);
	assert_int_equal(poll_sink(r), 2);
	expect_lines(moved, 1, 1);
	expect_lines(r->path, 2, 2);
	unlink(r->path);
	put(r, 3, 0);
	assert_int_equal(poll_sink(r), 3);
	expect_lines(r->path, 3, 3);
}

/* A full disk (here: the limit on file size, which cuts a write the same way). */
static void test_full(void **state)
{
	struct rig *r = *state;
	struct rlimit old, small = { 0 };
	struct stat st;
	uint64_t s = 1;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	small.rlim_cur = 100000;
	small.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_FSIZE, &small);
	open_path(r, "");
	while (put(r, s, 3000) == EXPORT_OK) {
		poll_sink(r);
		assert_true(++s < 1000);
	}
	assert_true(poll_sink(r) < s);
	assert_non_null(strstr(r->x->class->status(r->x), "cannot write"));
	stat(r->path, &st);
	assert_true(st.st_size <= 100000);
	expect_lines(r->path, 1,
		     poll_sink(r)); /* whole lines only, none that is not acknowledged */
	setrlimit(RLIMIT_FSIZE, &old);
	for (; s <= 500; s++)
		assert_int_equal(put(r, s, 3000), EXPORT_OK);
	assert_int_equal(poll_sink(r), 500);
	assert_string_equal(r->x->class->status(r->x), "");
	expect_lines(r->path, 1, 500);
}

static void test_pipe(void **state)
{
	struct rig *r = *state;
	static char text[1 << 20];
	size_t n = 0;
	uint64_t s = 1;
	int rd;

	assert_int_equal(mkfifo(r->path, 0600), 0);
	open_path(r, ""); /* no reader: opens all the same */
	assert_non_null(strstr(r->x->class->status(r->x), "cannot open"));
	put(r, s++, 100);
	assert_int_equal(poll_sink(r), 0);
	rd = open(r->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_int_equal(poll_sink(r), 1);
	while (put(r, s, 1000) == EXPORT_OK) /* nobody reads: full, and never blocked */
		assert_true(++s < 10000);
	assert_true(r->x->poll_in_ms > 0);
	for (int i = 0; i < 1000 && poll_sink(r) < s - 1; i++) {
		ssize_t got = read(rd, text + n, sizeof(text) - n);

		n += got > 0 ? (size_t)got : 0;
	}
	n += (size_t)read(rd, text + n, sizeof(text) - n);
	assert_int_equal(poll_sink(r), s - 1);
	assert_int_equal(text[n - 1], '\n');
	for (uint64_t k = 0; n; n--)
		if (text[n - 1] == '\n')
			assert_true(++k < s);
	/* The reader goes, another comes: it starts with a whole line. */
	close(rd);
	signal(SIGPIPE, SIG_IGN);
	put(r, s, 10);
	poll_sink(r);
	assert_true(r->x->rewind);
	r->x->rewind = false;
	rd = open(r->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	put(r, s, 10);
	assert_int_equal(poll_sink(r), s);
	assert_true(read(rd, text, sizeof(text)) > 0);
	assert_int_equal(memcmp(text, "{\"seq\":", 7), 0);
	close(rd);
}

static void test_bad_config(void **state)
{
	struct rig *r = *state;
	struct err err = { 0 };

	assert_int_equal(try_open(r, "file:/nonexistent/dir/x", &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/dir/x"));
	assert_int_equal(try_open(r, "file:/tmp", &err), -EISDIR);
	assert_int_equal(try_open(r, "file:/tmp/x,sync=maybe", &err), -EINVAL);
	assert_non_null(strstr(err.text, "maybe"));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_appends),
		TEST(test_refuses_what_is_no_line),
		TEST(test_torn_line_of_a_crash),
		TEST(test_rotation),
		TEST(test_full),
		TEST(test_pipe),
		TEST(test_bad_config),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
