// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/landlock.h"
#include "userspace/pipeline/confine_files.h"

static char top[64];

static const char *at(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", top, name);
	return path;
}

static int make(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600),
	    r = fd < 0 || write(fd, "x", 1) != 1;

	close(fd);
	return r;
}

static int setup(void **state)
{
	(void)state;
	strcpy(top, "/tmp/test-confine-XXXXXX");
	if (!mkdtemp(top) || chdir(top) < 0 || mkdir("mine", 0700) < 0 ||
	    mkdir("others", 0700) < 0 || mkdir("logs", 0700) < 0)
		return -1;
	return make("others/secret") || make("mine/own") || make("logs/ca.pem") ||
	       symlink("others/secret", "link") < 0;
}

static int teardown(void **state)
{
	char cmd[128];
	(void)state;

	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", top);
	return chdir("/") < 0 || system(cmd) != 0;
}

/* Exit code of what is done in a process of its own. */
static int in_child(int (*fn)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(fn());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

#define CHECK(what)                                \
	do {                                       \
		if (!(what))                       \
			return __LINE__ % 250 + 1; \
	} while (0)

static bool refused(const char *path, int flags)
{
	return open(path, flags, 0600) < 0 && errno == EACCES;
}

static int own_place(void)
{
	int fd = open("mine", O_RDONLY | O_DIRECTORY), secret = open("others/secret", O_RDONLY);
	const struct confine_place v[] = { { .fd = fd, .writes = true }, { .fd = -1 } };
	char byte;

	CHECK(confine_files_only(v, 2, NULL) == 0);
	CHECK(openat(fd, "own", O_RDWR) >= 0);
	CHECK(openat(fd, "new", O_WRONLY | O_CREAT, 0600) >= 0);
	CHECK(mkdirat(fd, "blobs", 0700) == 0 && unlinkat(fd, "new", 0) == 0);
	CHECK(refused("others/secret", O_RDONLY) && refused("link", O_RDONLY));
	CHECK(openat(fd, "../others/secret", O_RDONLY) < 0 && errno == EACCES);
	CHECK(openat(fd, "..", O_RDONLY | O_DIRECTORY) < 0 && errno == EACCES);
	CHECK(linkat(AT_FDCWD, "others/secret", fd, "stolen", 0) < 0);
	CHECK(refused("/etc/passwd", O_RDONLY));
	CHECK(read(secret, &byte, 1) == 1); /* what is open stays open */
	if (landlock_abi() >= 6)
		CHECK(kill(getppid(), 0) < 0 && errno == EPERM);
	return 0;
}

static int read_only(void)
{
	const struct confine_place v[] = { { .path = "mine" }, { .path = "/nonexistent" } };

	CHECK(confine_files_only(v, 2, NULL) == 0);
	CHECK(open("mine/own", O_RDONLY) >= 0);
	CHECK(refused("mine/own", O_WRONLY) && refused("mine/new", O_WRONLY | O_CREAT));
	return 0;
}

static int sinks(void)
{
	struct exporter_config file = { 0 }, web = { 0 };
	struct confine_files c;
	char text[256];

	snprintf(text, sizeof(text), "file:%s", at("logs/out.jsonl"));
	CHECK(exporter_config_parse(&file, text, NULL) == 0);
	snprintf(text, sizeof(text), "syslog:tls://127.0.0.1:1,ca=%s", at("mine/own"));
	CHECK(exporter_config_parse(&web, text, NULL) == 0);
	CHECK(confine_files_begin(&c, NULL) == 0 && confine_files_add_sink(&c, &file, NULL) == 0 &&
	      confine_files_add_sink(&c, &web, NULL) == 0 &&
	      confine_files_add_libraries(&c, NULL) == 0 && confine_files_end(&c, NULL) == 0);
	CHECK(open(at("logs/out.jsonl"), O_WRONLY | O_CREAT | O_APPEND, 0600) >= 0);
	CHECK(rename(at("logs/out.jsonl"), "logs/out.jsonl.1") == 0);
	CHECK(open(at("mine/own"), O_RDONLY) >= 0 && refused("mine/own", O_WRONLY));
	CHECK(refused("others/secret", O_RDONLY));
	CHECK(open("/etc/passwd", O_RDONLY) >= 0 && refused("/etc/passwd", O_WRONLY));
	return 0;
}

static void test_own_place(void **state)
{
	(void)state;
	if (!landlock_abi())
		skip();
	assert_int_equal(in_child(own_place), 0);
}

static void test_read_only(void **state)
{
	(void)state;
	if (!landlock_abi())
		skip();
	assert_int_equal(in_child(read_only), 0);
}

static void test_sinks(void **state)
{
	(void)state;
	if (!landlock_abi())
		skip();
	assert_int_equal(in_child(sinks), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_own_place, setup, teardown),
		cmocka_unit_test_setup_teardown(test_read_only, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sinks, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
