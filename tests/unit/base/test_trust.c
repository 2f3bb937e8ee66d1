// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/trust.h"

static char top[256], dir[300], path[350], link_[350];
static struct trust me, stranger;

static int setup(void **state)
{
	const char *tmp = getenv("TMPDIR");
	int fd;

	(void)state;
	snprintf(top, sizeof(top), "%s/warder-trust-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(top))
		return -1;
	snprintf(dir, sizeof(dir), "%s/d", top);
	snprintf(path, sizeof(path), "%s/f", dir);
	snprintf(link_, sizeof(link_), "%s/l", top);
	if (mkdir(dir, 0755) < 0 || symlink("d/f", link_) < 0)
		return -1;
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		return -1;
	close(fd);
	trust_init(&me);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	unlink(link_);
	rmdir(dir);
	return rmdir(top);
}

static const char *says(const struct trust *t, const char *name)
{
	static struct err err;
	int fd = open(name, O_RDONLY | O_CLOEXEC), r;

	assert_true(fd >= 0);
	err = (struct err){ 0 };
	r = trust_check(t, fd, name, &err);
	close(fd);
	if (r == 0)
		return "";
	assert_int_equal(r, -EPERM);
	return err.text;
}

static void good(const char *name)
{
	assert_string_equal(says(&me, name), "");
}

static void bad(const struct trust *t, const char *name, const char *word)
{
	const char *text = says(t, name);

	if (!strstr(text, word))
		fail_msg("'%s' is not in '%s'", word, text);
}

static void what_others_can_write_is_refused(void **state)
{
	(void)state;
	good(path);
	chmod(path, 0646);
	bad(&me, path, "can be written by everybody (mode 0646): chmod o-w");
	chmod(path, 0664);
	if (getegid() == 0) /* root's own group */
		good(path);
	else
		bad(&me, path, "can be written by others of a group (mode 0664): chmod g-w");
	me.gid[me.gids++] = getegid();
	good(path);
	me.gids--;
	chmod(path, 0644);
	good(path);
}

static void where_others_can_replace_it_is_refused(void **state)
{
	(void)state;
	chmod(dir, 0757);
	bad(&me, path, "everybody may replace it, by its directory '");
	bad(&me, link_, "/d' (mode 0757): chmod o-w");
	chmod(dir, 01777); /* as /tmp */
	good(path);
	chmod(dir, 0755);
	/* The name's own place, and any above. */
	chmod(top, 0757);
	bad(&me, link_, "by its directory '");
	bad(&me, path, "by its directory '");
	chmod(top, 0700);
	good(path);
	good(link_);
}

static void by_a_name_that_is_relative(void **state)
{
	char was[4096];

	(void)state;
	assert_non_null(getcwd(was, sizeof(was)));
	assert_int_equal(chdir(dir), 0);
	good("f");
	chmod(dir, 0757);
	bad(&me, "f", "everybody may replace it");
	chmod(dir, 0755);
	assert_int_equal(chdir(was), 0);
}

static void strangers_files_are_refused(void **state)
{
	(void)state;
	stranger = (struct trust){ .uid = { 54321 }, .uids = 1 };
	bad(&stranger, path, "belongs to user ");
	/* It may be ours and lie in a directory that is not. */
	if (geteuid() == 0) {
		assert_int_equal(chown(dir, 54321, (gid_t)-1), 0);
		bad(&me, path, "' belongs to user 54321, neither root nor who runs this");
		assert_int_equal(chown(dir, 0, (gid_t)-1), 0);
		good(path);
	}
}

static void who_called_by_sudo_is_no_stranger(void **state)
{
	struct trust t;

	(void)state;
	setenv("SUDO_UID", "4321", 1);
	setenv("SUDO_GID", "8765", 1);
	trust_init(&t);
	assert_true(trust_uid(&t, 4321));
	assert_int_equal(t.gid[t.gids - 1], 8765);
	setenv("SUDO_UID", "-1", 1);
	setenv("SUDO_GID", "4294967295", 1);
	trust_init(&t);
	assert_false(trust_uid(&t, (uid_t)-1));
	assert_int_equal(t.gids, 1);
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	trust_init(&t);
	assert_false(trust_uid(&t, 4321));
	assert_true(trust_uid(&t, 0) && trust_uid(&t, geteuid()));
}

static void what_was_handed_over_is_taken(void **state)
{
	struct err err = { 0 };
	char name[64];
	int fd[2];

	(void)state;
	assert_int_equal(pipe(fd), 0);
	snprintf(name, sizeof(name), "/dev/fd/%d", fd[0]);
	assert_int_equal(trust_check(&me, fd[0], name, &err), 0);
	close(fd[0]);
	close(fd[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_others_can_write_is_refused),
		cmocka_unit_test(where_others_can_replace_it_is_refused),
		cmocka_unit_test(by_a_name_that_is_relative),
		cmocka_unit_test(strangers_files_are_refused),
		cmocka_unit_test(who_called_by_sudo_is_no_stranger),
		cmocka_unit_test(what_was_handed_over_is_taken),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, teardown);
}
