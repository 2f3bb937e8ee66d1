// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "userspace/base/auto.h"
#include "userspace/oci/config.h"

#define SPACES                                                                                  \
	"\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"mount\"},{\"type\":\"ipc\"},{\"type\":" \
	"\"uts\"},{\"type\":\"network\"}]"
#define PROCESS "\"process\":{\"args\":[\"a\",\"b\"],\"cwd\":\"/\"}"
#define HEAD	"{\"ociVersion\":\"1.0.2\",\"root\":{\"path\":\"rootfs\",\"readonly\":true}"
#define WHOLE	HEAD "," PROCESS ",\"linux\":{" SPACES "}}"

static struct oci_config c;
static struct arena mem;
static struct err err;

static int parse(const char *text)
{
	arena_done(&mem);
	arena_init(&mem, OCI_CONFIG_MEM);
	err = (struct err){ 0 };
	return oci_config_parse(&c, &mem, "config.json", str_from(text), &err);
}

static void test_least(void **state)
{
	(void)state;
	assert_int_equal(parse(WHOLE), 0);
	assert_string_equal(c.root, "rootfs");
	assert_true(c.container.readonly);
	assert_int_equal(c.process.argc, 2);
	assert_string_equal(c.process.argv[1], "b");
	assert_null(c.process.argv[2]);
	assert_int_equal(c.net, OCI_NET_NONE);
	assert_int_equal(c.container.umask, 022);
	assert_int_equal(c.notes_n, 0);
	assert_int_equal(c.memory, 0);
}

static void test_parts(void **state)
{
	(void)state;
	assert_int_equal(
		parse(HEAD
		      ",\"process\":{\"args\":[\"x\"],\"cwd\":\"/w\",\"env\":[\"A=b\",\"odd\"],\"user\":"
		      "{\"uid\":5,\"gid\":6,\"umask\":63},\"terminal\":true,\"consoleSize\":{\"height\":7,"
		      "\"width\":8},\"rlimits\":[{\"type\":\"RLIMIT_NOFILE\",\"soft\":1,\"hard\":2}],"
		      "\"capabilities\":{\"bounding\":[\"CAP_KILL\"]}},"
		      "\"hostname\":\"h\",\"mounts\":[{\"destination\":\"/proc\",\"type\":\"proc\"},"
		      "{\"destination\":\"//v//w/\",\"type\":\"bind\",\"source\":\"/s\",\"options\":[\"ro\",\"rbind\"]},"
		      "{\"destination\":\"/t\",\"type\":\"tmpfs\",\"source\":\"tmpfs\",\"options\":[\"size=64k\","
		      "\"noexec\"]},{\"destination\":\"/etc/hosts\",\"type\":\"bind\",\"source\":\"/h\"}],"
		      "\"annotations\":{\"warder.policy\":\"p\",\"k\":\"v\"},\"linux\":{\"namespaces\":["
		      "{\"type\":\"pid\"},{\"type\":\"mount\"},{\"type\":\"ipc\"},{\"type\":\"uts\"},{\"type\":"
		      "\"network\",\"path\":\"/run/netns/x\"}],\"resources\":{\"memory\":{\"limit\":1000},\"cpu\":"
		      "{\"quota\":150000,\"period\":100000},\"pids\":{\"limit\":-1}},\"sysctl\":{\"net.a-b\":"
		      "\"1\"},\"maskedPaths\":[\"/proc/x\",\"/sys/y\"],\"seccomp\":{\"a\":[\"}\\\"\"]}}}"),
		0);
	assert_int_equal(c.process.env_n, 1);
	assert_int_equal(c.process.uid, 5);
	assert_int_equal(c.process.gid, 6);
	assert_int_equal(c.container.umask, 077);
	assert_true(c.process.terminal);
	assert_int_equal(c.process.rows, 7);
	assert_int_equal(c.nofile, 2);
	assert_int_equal(c.container.rlimits[0].which, RLIMIT_NOFILE);
	assert_int_equal(c.binds_n, 2);
	assert_string_equal(c.binds[0].target, "/v/w");
	assert_false(c.binds[0].writable);
	assert_false(c.binds[1].writable); /* the tool's own */
	assert_int_equal(c.container.tmpfs_n, 1);
	assert_int_equal(c.container.tmpfs[0].size, 65536);
	assert_false(c.container.tmpfs[0].exec);
	assert_int_equal(c.net, OCI_NET_GIVEN);
	assert_string_equal(c.container.netns, "/run/netns/x");
	assert_int_equal(c.memory, 1000);
	assert_int_equal(c.cpu_milli, 1500);
	assert_int_equal(c.pids, 0);
	assert_string_equal(c.container.sysctls[0].path, "net/a-b");
	assert_int_equal(c.container.masked_n, 1);
	assert_int_equal(c.seccomp.n, strlen("{\"a\":[\"}\\\"\"]}"));
	assert_int_equal(c.words_n, 2);
	assert_string_equal(c.words[0], "--policy");
	assert_int_equal(c.annotations_n, 2);
	assert_true(c.notes_n >= 3);
}

/* A size that nobody says is none of 0. */
static void test_terminal_size(void **state)
{
	(void)state;
	assert_int_equal(parse(WHOLE), 0);
	assert_int_equal(c.process.rows, 24);
	assert_int_equal(c.process.cols, 80);
	assert_int_equal(
		parse(HEAD
		      ",\"process\":{\"args\":[\"a\"],\"cwd\":\"/\",\"consoleSize\":{\"height\":"
		      "0,\"width\":0}},\"linux\":{" SPACES "}}"),
		0);
	assert_int_equal(c.process.rows, 24);
	assert_int_equal(c.process.cols, 80);
}

/* Without a network of its own it has the host's, which is asked for by name (--network=host). */
static void test_host_network(void **state)
{
	(void)state;
	assert_int_equal(parse(HEAD "," PROCESS
				    ",\"linux\":{\"namespaces\":[{\"type\":\"pid\"},{\"type\":"
				    "\"mount\"},{\"type\":\"ipc\"},{\"type\":\"uts\"}]}}"),
			 0);
	assert_int_equal(c.net, OCI_NET_HOST);
	assert_int_equal(parse(HEAD "," PROCESS
				    ",\"linux\":{\"sysctl\":{\"net.x\":\"1\"},\"namespaces\":[{"
				    "\"type\":\"pid\"},{\"type\":\"mount\"},{\"type\":\"ipc\"},{"
				    "\"type\":\"uts\"}]}}"),
			 -EOPNOTSUPP);
}

static void test_refused(void **state)
{
	static const struct {
		const char *text, *word;
	} rows[] = {
		{ "", "config.json:1:1" },
		{ "[]", "object" },
		{ "{}", "ociVersion" },
		{ HEAD "}", "process" },
		{ HEAD "," PROCESS "}", "linux" },
		{ HEAD "," PROCESS ",\"linux\":{}}", "namespace" },
		{ HEAD ",\"process\":{\"args\":[],\"cwd\":\"/\"},\"linux\":{" SPACES "}}", "args" },
		{ HEAD ",\"process\":{\"args\":[\"a\\u0000b\"],\"cwd\":\"/\"},\"linux\":{" SPACES
		       "}}",
		  "NUL" },
		{ HEAD
		  ",\"process\":{\"args\":[\"a\"],\"cwd\":\"/\",\"user\":{\"uid\":70000}},\"linux\":{" SPACES
		  "}}",
		  "uid" },
		{ HEAD "," PROCESS ",\"linux\":{" SPACES ",\"sysctl\":{\"net..x\":\"1\"}}}",
		  "sysctl" },
		{ HEAD "," PROCESS ",\"linux\":{" SPACES ",\"sysctl\":{\"net.a b\":\"1\"}}}",
		  "sysctl" },
		{ HEAD "," PROCESS ",\"linux\":{" SPACES ",\"maskedPaths\":[\"/proc/../etc\"]}}",
		  "maskedPaths" },
		{ HEAD "," PROCESS ",\"linux\":{" SPACES
		       ",\"resources\":{\"unified\":{\"a\":\"b\"}}}}",
		  "unified" },
		{ HEAD "," PROCESS ",\"linux\":{" SPACES
		       "},\"hooks\":{\"poststop\":[{\"path\":\"/x\"}]}}",
		  "poststop" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_true(parse(rows[i].text) < 0);
		if (!strstr(err.text, rows[i].word))
			fail_msg("'%s' has no '%s'", err.text, rows[i].word);
	}
}

/* Keys that are the same up to a NUL would be one option as often as there is room for, and then more. */
static void test_annotations(void **state)
{
	static char text[16384];
	size_t n;

	(void)state;
	n = (size_t)snprintf(text, sizeof(text),
			     HEAD "," PROCESS ",\"linux\":{" SPACES "},\"annotations\":{");
	for (int i = 0; i < OCI_ANNOTATIONS_MAX; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "%s\"warder.policy\\u0000%d\":\"p\"", i ? "," : "", i);
	snprintf(text + n, sizeof(text) - n, "}}");
	assert_int_equal(parse(text), -EBADMSG);
	assert_non_null(strstr(err.text, "NUL"));
	assert_int_equal(c.words_n, 0);

	assert_int_equal(parse(HEAD "," PROCESS ",\"linux\":{" SPACES
				    "},\"annotations\":{\"warder.timeout\":\"1s\",\"k\":\"v\","
				    "\"warder.policy\":\"p\"}}"),
			 0);
	assert_int_equal(c.annotations_n, 3);
	assert_int_equal(c.words_n, 4);
	assert_string_equal(c.words[1], "p");
	assert_string_equal(c.words[2], "--timeout");
	assert_true(parse(HEAD "," PROCESS ",\"linux\":{" SPACES
			       "},\"annotations\":{\"warder.policy\":null}}") < 0);
	assert_true(parse(HEAD "," PROCESS ",\"linux\":{" SPACES
			       "},\"annotations\":{\"warder.other\":\"x\"}}") < 0);
}

static void test_words(void **state)
{
	(void)state;
	assert_true(oci_id_is_good("a_b+c.d-0"));
	assert_false(oci_id_is_good(""));
	assert_false(oci_id_is_good("."));
	assert_false(oci_id_is_good(".."));
	assert_false(oci_id_is_good("a/b"));
	assert_int_equal(oci_signal("SIGTERM"), SIGTERM);
	assert_int_equal(oci_signal("KILL"), SIGKILL);
	assert_int_equal(oci_signal("37"), 37);
	assert_int_equal(oci_signal("0"), 0);
	assert_int_equal(oci_signal("900"), 0);
	assert_int_equal(oci_signal("NOSUCH"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_least),	      cmocka_unit_test(test_parts),
		cmocka_unit_test(test_host_network),  cmocka_unit_test(test_refused),
		cmocka_unit_test(test_terminal_size), cmocka_unit_test(test_annotations),
		cmocka_unit_test(test_words),
	};
	int r;

	arena_init(&mem, OCI_CONFIG_MEM);
	r = cmocka_run_group_tests(tests, NULL, NULL);
	arena_done(&mem);
	return r;
}
