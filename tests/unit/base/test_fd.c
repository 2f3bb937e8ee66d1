// SPDX-License-Identifier: Apache-2.0
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
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"

static char dir[256];
static int dirfd_;

static int setup(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	snprintf(dir, sizeof(dir), "%s/warder-fd-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(dir))
		return -1;
	dirfd_ = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dirfd_ < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	unlinkat(dirfd_, "file", 0);
	unlinkat(dirfd_, "a/b/c", AT_REMOVEDIR);
	unlinkat(dirfd_, "a/b", AT_REMOVEDIR);
	unlinkat(dirfd_, "a", AT_REMOVEDIR);
	close(dirfd_);
	return rmdir(dir);
}

static void a_file_appears_whole(void **state)
{
	char *text;
	size_t n;
	struct stat st;

	(void)state;
	assert_int_equal(file_replace_at(dirfd_, "file", "one", 3, 0600), 0);
	assert_int_equal(file_replace_at(dirfd_, "file", "a\0b", 3, 0600), 0);
	assert_int_equal(file_read_at(dirfd_, "file", 100, &text, &n), 0);
	assert_int_equal(n, 3);
	assert_memory_equal(text, "a\0b\0", 4);
	free(text);
	assert_int_equal(fstatat(dirfd_, "file", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(fstatat(dirfd_, ".file.tmp", &st, 0), -1);
	assert_int_equal(file_replace_at(dirfd_, "no/file", "x", 1, 0600), -ENOENT);
}

static void reading_stops_at_the_limit(void **state)
{
	char *text = NULL;
	size_t n;

	(void)state;
	assert_int_equal(file_replace_at(dirfd_, "file", "12345", 5, 0600), 0);
	assert_int_equal(file_read_at(dirfd_, "file", 4, &text, &n), -EFBIG);
	assert_null(text);
	assert_int_equal(file_read_at(dirfd_, "file", 5, &text, &n), 0);
	assert_string_equal(text, "12345");
	free(text);
	assert_int_equal(file_read_at(dirfd_, "file", 5, &text, NULL), 0);
	free(text);
	assert_int_equal(file_read_at(dirfd_, "missing", 5, &text, &n), -ENOENT);
	assert_int_equal(file_write_at(dirfd_, "missing", "x"), -ENOENT);
	assert_int_equal(file_write_at(dirfd_, "file", "xy"), 0);
	assert_int_equal(file_read_at(dirfd_, "file", 9, &text, &n), 0);
	assert_string_equal(text, "xy345");
	free(text);
}

static void pipes_are_read_to_the_end(void **state)
{
	char got[16];
	int p[2];

	(void)state;
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_int_equal(fd_write_all(p[1], "abc", 3), 0);
	assert_int_equal(fd_write_all(p[1], "def", 3), 0);
	close(p[1]);
	assert_int_equal(fd_read_full(p[0], got, 4), 4);
	assert_int_equal(fd_read_full(p[0], got, 4), 2);
	assert_memory_equal(got, "ef", 2);
	assert_int_equal(fd_read_full(p[0], got, 4), 0);
	close(p[0]);
	assert_int_equal(fd_read_full(p[0], got, 4), -EBADF);
	assert_int_equal(fd_write_all(p[0], "x", 1), -EBADF);
}

static void folders_are_made_on_the_way(void **state)
{
	char path[512];
	struct stat st;

	(void)state;
	snprintf(path, sizeof(path), "%s/a/b/c", dir);
	assert_int_equal(dir_make_all(path, 0700), 0);
	assert_int_equal(dir_make_all(path, 0700), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(dir_make_all("", 0700), -ENAMETOOLONG);
	assert_int_equal(file_replace_at(dirfd_, "file", "", 0, 0600), 0);
	snprintf(path, sizeof(path), "%s/file/b", dir);
	assert_int_equal(dir_make_all(path, 0700), -ENOTDIR);
}

/* The lowest free number: the same before and after when nothing was left open. */
static int lowest(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

static void descriptors_come_in_the_number_asked_for_or_not_at_all(void **state)
{
	static const size_t sent[] = { 0, 1, 2, 3, 4, FD_SEND_MAX };
	const int many[FD_SEND_MAX] = { 0 };
	int pair[2], fds[FD_SEND_MAX], before;
	char text[4];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	before = lowest();
	for (size_t want = 0; want <= FD_SEND_MAX; want++) {
		for (size_t i = 0; i < ARRAY_SIZE(sent); i++) {
			assert_int_equal(fd_send(pair[0], "frame", 6, many, sent[i], 0), 6);
			assert_int_equal(fd_recv(pair[1], text, sizeof(text), fds, want, 0),
					 sizeof(text));
			for (size_t k = 0; k < want; k++) {
				assert_int_equal(fds[k] >= 0, sent[i] == want);
				if (fds[k] < 0)
					continue;
				assert_true(fcntl(fds[k], F_GETFD) & FD_CLOEXEC);
				close(fds[k]);
			}
			assert_int_equal(lowest(), before);
		}
	}
	fds[0] = 0;
	assert_int_equal(fd_recv(pair[1], text, sizeof(text), fds, 1, MSG_DONTWAIT), -EAGAIN);
	assert_int_equal(fds[0], -1);
	fd_send(pair[0], "frame", 6, NULL, 0, 0);
	assert_int_equal(fd_recv(pair[1], text, sizeof(text), NULL, 0, MSG_TRUNC), 6);
	assert_int_equal(fd_recv(pair[1], text, sizeof(text), fds, FD_SEND_MAX + 1, 0), -EINVAL);
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_appears_whole),
		cmocka_unit_test(reading_stops_at_the_limit),
		cmocka_unit_test(pipes_are_read_to_the_end),
		cmocka_unit_test(folders_are_made_on_the_way),
		cmocka_unit_test(descriptors_come_in_the_number_asked_for_or_not_at_all),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
