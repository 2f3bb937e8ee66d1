// SPDX-License-Identifier: Apache-2.0
/* A tree there and back again, and archives that are not to leave a trace outside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/workspace/archive.h"

#define MIB (1ull << 20)

static char top[] = "/tmp/warder-pack-XXXXXX";
static struct workspace_place from[2], to[2];

static int sh(const char *command)
{
	char line[1024];

	snprintf(line, sizeof(line), "cd '%s' && { %s; }", top, command);
	return system(line);
}

static int setup(void **state)
{
	static const char *const names[] = { "/workspace", "/tmp" };
	char path[64];

	(void)state;
	strcpy(top, "/tmp/warder-pack-XXXXXX");
	if (!mkdtemp(top) || sh("mkdir -p from/workspace from/tmp to/workspace to/tmp") != 0)
		return -1;
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/from%s", top, names[i]);
		from[i] = (struct workspace_place){ names[i],
						    open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) };
		snprintf(path, sizeof(path), "%s/to%s", top, names[i]);
		to[i] = (struct workspace_place){ names[i],
						  open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) };
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		close(from[i].fd);
		close(to[i].fd);
	}
	return sh("chmod -R u+rwx . && rm -rf '../'\"$(basename \"$PWD\")\"");
}

static int file(void)
{
	return memfd_create("archive", MFD_CLOEXEC);
}

static int pack(int fd, struct archive_facts *ret, uint64_t max, struct err *err)
{
	int r = archive_pack(ret, from, 2, max, fd, err);

	lseek(fd, 0, SEEK_SET);
	return r;
}

static void test_there_and_back(void **state)
{
	struct archive_facts a = { 0 }, b = { 0 };
	auto_close int fd = file();
	struct err err = { 0 };

	(void)state;
	assert_int_equal(
		sh("cd from/workspace && mkdir -p d/e empty && echo text > d/e/f && chmod 640 d/e/f && "
		   "ln d/e/f d/hard && ln -s ../nowhere d/soft && mkfifo pipe && "
		   "printf x > \"$(printf 'n\\377\\nl')\" && : > nothing && chmod 000 nothing && "
		   "truncate -s 3G sparse && printf mid | dd of=sparse bs=1 seek=1000000 conv=notrunc "
		   "2>/dev/null && truncate -s 1M hole && head -c 300000 /dev/urandom > random && "
		   "mkdir ro && echo in > ro/x && chmod 555 ro && chmod 1777 empty && "
		   "touch -d '2001-02-03 04:05:06.789' d/e/f d/e && echo t > ../tmp/t"),
		0);
	assert_int_equal(pack(fd, &a, 64 * MIB, &err), 0);
	assert_true(a.stored < MIB && a.files == 15);
	assert_int_equal(archive_unpack(&b, to, 2, a.sha256, fd, &err), 0);
	assert_int_equal(b.files, a.files);
	assert_int_equal(b.stored, a.stored);
	/* The same names, types, modes, times, links and bytes. */
	assert_int_equal(
		sh("list() { cd $1 && find workspace tmp -mindepth 1 -printf "
		   "'%p %y %m %T@ %l %n ' -a '(' -type d -printf 'dir\\n' -o -printf '%s\\n' ')' "
		   "| sort; }; (list from) > a; (list to) > b; cmp a b && chmod 600 "
		   "from/workspace/nothing to/workspace/nothing && "
		   "for f in d/e/f sparse hole random ro/x nothing; do "
		   "cmp from/workspace/$f to/workspace/$f || exit 1; done; "
		   "[ to/workspace/d/hard -ef to/workspace/d/e/f ] && "
		   "[ $(du -k to/workspace/sparse | cut -f1) -lt 100 ]"),
		0);
	/* What others make of it. */
	lseek(fd, 0, SEEK_SET);
	dup2(fd, 9);
	assert_int_equal(sh("mkdir other && tar --zstd -C other -xf - <&9 2>/dev/null && "
			    "cmp other/workspace/random from/workspace/random && "
			    "cmp other/workspace/sparse from/workspace/sparse"),
			 0);
	close(9);
}

static void test_sockets_and_setuid_stay_behind(void **state)
{
	struct archive_facts a;
	auto_close int fd = file();
	struct err err = { 0 };

	(void)state;
	assert_int_equal(
		sh("cd from/workspace && cp /bin/true s && chmod 6755 s && python3 -c 'import "
		   "socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'"),
		0);
	assert_int_equal(pack(fd, &a, 64 * MIB, &err), 0);
	assert_int_equal(a.files, 1);
	assert_int_equal(archive_unpack(&a, to, 2, a.sha256, fd, &err), 0);
	assert_int_equal(sh("[ $(stat -c %a to/workspace/s) = 755 ] && [ ! -e to/workspace/sock ]"),
			 0);
}

static void test_limits(void **state)
{
	struct archive_facts a;
	auto_close int fd = file();
	struct err err = { 0 };

	(void)state;
	assert_int_equal(sh("head -c 3M /dev/urandom > from/tmp/x"), 0);
	assert_int_equal(pack(fd, &a, 2 * MIB, &err), -EFBIG);
	assert_non_null(strstr(err_text(&err), "more than 2 MiB"));
	err = (struct err){ 0 };
	assert_int_equal(sh("truncate -s 100G from/tmp/y"), 0);
	assert_int_equal(pack(fd, &a, 8 * MIB, &err), -EFBIG);
	assert_non_null(strstr(err_text(&err), "holes"));
	err = (struct err){ 0 };
	assert_int_equal(
		sh("rm from/tmp/?; cd from/tmp; for i in $(seq 140); do mkdir d && cd d; done"), 0);
	assert_int_equal(pack(fd, &a, 8 * MIB, &err), -E2BIG);
	assert_non_null(strstr(err_text(&err), "depth"));
}

static void test_other_bytes(void **state)
{
	struct archive_facts a, b;
	auto_close int fd = file();
	struct err err = { 0 };
	char c;

	(void)state;
	assert_int_equal(sh("head -c 100000 /dev/urandom > from/tmp/x"), 0);
	assert_int_equal(pack(fd, &a, 8 * MIB, &err), 0);
	assert_int_equal(pread(fd, &c, 1, 50000), 1);
	c ^= 1;
	assert_int_equal(pwrite(fd, &c, 1, 50000), 1);
	assert_int_equal(archive_unpack(&b, to, 2, a.sha256, fd, &err), -EBADMSG);
	/* Cut short. */
	c ^= 1;
	assert_int_equal(pwrite(fd, &c, 1, 50000), 1);
	assert_int_equal(ftruncate(fd, 60000), 0);
	assert_int_equal(sh("rm -f to/tmp/x"), 0);
	lseek(fd, 0, SEEK_SET);
	err = (struct err){ 0 };
	assert_int_equal(archive_unpack(&b, to, 2, a.sha256, fd, &err), -EBADMSG);
}

static la_ssize_t to_fd(struct archive *a, void *arg, const void *p, size_t n)
{
	(void)a;
	return fd_write_all(*(int *)arg, p, n) < 0 ? -1 : (la_ssize_t)n;
}

/* One of somebody else's making; its hash is right. */
static int hostile(const char *path, mode_t mode, const char *symlink, const char *hardlink,
		   struct err *err)
{
	struct archive_entry *e = archive_entry_new();
	struct archive *a = archive_write_new();
	crypto_hash_sha256_state hash;
	struct archive_facts facts;
	auto_close int fd = file();
	uint8_t sum[32];
	char buf[4096];
	ssize_t n;

	archive_write_set_format_pax(a);
	archive_write_add_filter_zstd(a);
	archive_write_set_bytes_in_last_block(a, 1);
	archive_write_open(a, &fd, NULL, to_fd, NULL);
	archive_entry_set_pathname(e, "workspace/link");
	archive_entry_set_filetype(e, AE_IFLNK);
	archive_entry_set_symlink(e, "../../outside");
	archive_write_header(a, e);
	archive_entry_clear(e);
	archive_entry_set_pathname(e, path);
	archive_entry_set_mode(e, mode);
	archive_entry_set_size(e, 0);
	if (symlink)
		archive_entry_set_symlink(e, symlink);
	if (hardlink)
		archive_entry_set_hardlink(e, hardlink);
	archive_write_header(a, e);
	archive_write_close(a);
	archive_write_free(a);
	archive_entry_free(e);
	crypto_hash_sha256_init(&hash);
	lseek(fd, 0, SEEK_SET);
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		crypto_hash_sha256_update(&hash, (unsigned char *)buf, (size_t)n);
	crypto_hash_sha256_final(&hash, sum);
	lseek(fd, 0, SEEK_SET);
	*err = (struct err){ 0 };
	return archive_unpack(&facts, to, 2, sum, fd, err);
}

static void test_hostile(void **state)
{
	static const struct {
		const char *path;
		mode_t mode;
		const char *symlink, *hardlink;
		int want;
	} rows[] = {
		{ "workspace/ok", S_IFREG | 0600, NULL, NULL, 0 },
		{ "/etc/x", S_IFREG | 0600, NULL, NULL, -EBADMSG },
		{ "workspace/../../outside/x", S_IFREG | 0600, NULL, NULL, -EBADMSG },
		{ "workspace/./x", S_IFREG | 0600, NULL, NULL, -EBADMSG },
		{ "workspace//x", S_IFREG | 0600, NULL, NULL, -EBADMSG },
		{ "workspace", S_IFDIR | 0700, NULL, NULL, -EBADMSG },
		{ "elsewhere/x", S_IFREG | 0600, NULL, NULL, -EBADMSG },
		{ "workspacex/x", S_IFREG | 0600, NULL, NULL, -EBADMSG },
		{ "workspace/link/x", S_IFREG | 0600, NULL, NULL, -ELOOP },
		{ "workspace/link", S_IFREG | 0600, NULL, NULL, -EEXIST },
		{ "workspace/nodir/x", S_IFREG | 0600, NULL, NULL, -ENOENT },
		{ "workspace/dev", S_IFCHR | 0600, NULL, NULL, -EBADMSG },
		{ "workspace/dev", S_IFBLK | 0600, NULL, NULL, -EBADMSG },
		{ "workspace/hard", S_IFREG | 0600, NULL, "../outside/secret", -EBADMSG },
		{ "workspace/hard", S_IFREG | 0600, NULL, "workspace/link/secret", -ELOOP },
		{ "workspace/soft", S_IFLNK | 0777, "/etc/passwd", NULL, 0 },
	};

	(void)state;
	assert_int_equal(sh("mkdir outside; echo s > outside/secret"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err err;
		int r = hostile(rows[i].path, rows[i].mode, rows[i].symlink, rows[i].hardlink,
				&err);

		if (r != rows[i].want)
			print_error("row %zu: %d: %s\n", i, r, err_text(&err));
		assert_int_equal(r, rows[i].want);
		assert_int_equal(sh("[ \"$(ls outside)\" = secret ] && rm -rf to/workspace/* && "
				    "[ -z \"$(ls to/tmp)\" ]"),
				 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_there_and_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sockets_and_setuid_stay_behind, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_limits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_bytes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
