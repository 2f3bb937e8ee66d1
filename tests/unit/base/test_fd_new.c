// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/fd_new.h"

static uid_t owner_of(const char *path, const char *uid, const char *gid)
{
	struct fd_new f;
	struct stat st;

	if (uid)
		setenv("SUDO_UID", uid, 1);
	else
		unsetenv("SUDO_UID");
	if (gid)
		setenv("SUDO_GID", gid, 1);
	else
		unsetenv("SUDO_GID");
	assert_int_equal(fd_new_open(&f, path, 0600, NULL), 0);
	fd_new_give_to_caller(&f);
	assert_int_equal(fd_new_write(&f, "x", 1), 0);
	assert_int_equal(access(path, F_OK), -1); /* whole or not at all */
	assert_int_equal(fd_new_commit(&f, NULL), 0);
	fd_new_done(&f);
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(st.st_size, 1);
	unlink(path);
	return st.st_uid;
}

/* Root's files go to who called sudo; others cannot give any away. */
static void test_owner(void **state)
{
	char dir[] = "/tmp/warder-fd-new-XXXXXX", path[64];
	uid_t root = geteuid();

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
	assert_int_equal(owner_of(path, NULL, NULL), root);
	assert_int_equal(owner_of(path, "1000", NULL), root);
	assert_int_equal(owner_of(path, "what", "1000"), root);
	assert_int_equal(owner_of(path, "4294967295", "1000"), root);
	assert_int_equal(owner_of(path, "1000", "1000"), root ? root : 1000);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_owner) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
