// SPDX-License-Identifier: Apache-2.0
/* The plan in gVisor's words. */
#include "runtime/gvisor/gvisor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/gvisor/keeper/config.h"
#include "runtime/sandbox.h"
#include "userspace/base/auto.h"

static char *const command[] = { "sh", "-c", "echo \"a\"\n", NULL };

static struct host full_host(void)
{
	return (struct host){
		.root = "/nonexistent",
		.v2 = "/sys/fs/cgroup",
		.controller = { CONTROLLER_V2, CONTROLLER_V2, CONTROLLER_V2 },
		.userns = true,
		.seccomp = true,
		.fd_max = 1024,
	};
}

static struct sandbox_plan *plan(void (*change)(struct sandbox_spec *))
{
	struct host h = full_host();
	struct sandbox_plan *p = NULL;
	struct sandbox_spec spec;
	struct err err = { 0 };

	sandbox_spec_defaults(&spec);
	spec.backend = "gvisor";
	spec.session = "s1";
	spec.argv = command;
	if (change)
		change(&spec);
	if (plan_build(&p, &spec, &h, &err) < 0)
		fail_msg("%s", err_text(&err));
	return p;
}

static char *bundle(const struct sandbox_plan *p)
{
	struct buf b;
	struct err err = { 0 };

	buf_init(&b, 1 << 20);
	assert_int_equal(gvisor_bundle(p, 1000, &b, &err), 0);
	assert_int_equal(buf_addc(&b, 0), 0);
	return b.p;
}

static void has(const char *text, const char *word)
{
	if (!strstr(text, word))
		fail_msg("no %s in %s", word, text);
}

static void has_not(const char *text, const char *word)
{
	if (strstr(text, word))
		fail_msg("%s in %s", word, text);
}

static void test_hardened(void **state)
{
	struct sandbox_plan *p = plan(NULL);
	auto_free char *text = bundle(p);

	(void)state;
	has(text, "\"args\":[\"sh\",\"-c\",\"echo \\\"a\\\"\\n\"]");
	has(text, "\"user\":{\"uid\":1000,\"gid\":1000}");
	has(text, "\"capabilities\":{}");
	has(text, "\"noNewPrivileges\":true");
	has(text, "\"terminal\":false");
	has(text, "{\"type\":\"RLIMIT_NPROC\",\"hard\":512,\"soft\":512}");
	has(text, "{\"type\":\"network\"}");
	has(text, "\"path\":\"/tree\"");
	/* Nothing of the host is named but by its place in the tree. */
	for (const char *at = text; (at = strstr(at, "\"source\":\"")); at++)
		assert_memory_equal(at, "\"source\":\"/tree/", 16);
	has(text,
	    "{\"destination\":\"/run\",\"type\":\"bind\",\"source\":\"/tree/run\",\"options\":[\"rbind\",\"rw\","
	    "\"nosuid\",\"nodev\",\"noexec\"]}");
	has(text,
	    "{\"destination\":\"/tmp\",\"type\":\"bind\",\"source\":\"/tree/tmp\",\"options\":[\"rbind\",\"rw\","
	    "\"nosuid\",\"nodev\"]}");
	has(text, "\"destination\":\"/workspace\"");
	has_not(text, "/usr\",\"type\"");
	sandbox_plan_free(p);
}

static void with_network(struct sandbox_spec *spec)
{
	spec->net = SANDBOX_NET_OPEN;
}

/* The sentry then lives in the namespace that was made for it. */
static void test_network(void **state)
{
	struct sandbox_plan *p = plan(with_network);
	auto_free char *text = bundle(p);

	(void)state;
	has_not(text, "{\"type\":\"network\"}");
	sandbox_plan_free(p);
}

static void with_bytes(struct sandbox_spec *spec)
{
	static char *const argv[] = { "echo", "\xff", NULL };

	spec->argv = argv;
}

static void test_what_cannot_be_said_is_refused(void **state)
{
	struct sandbox_plan *p = plan(with_bytes);
	auto_buf struct buf b = { 0 };
	struct err err = { 0 };

	(void)state;
	buf_init(&b, 1 << 20);
	assert_int_equal(gvisor_bundle(p, 1000, &b, &err), -EILSEQ);
	has(err_text(&err), "UTF-8");
	sandbox_plan_free(p);
}

static void test_too_large(void **state)
{
	struct sandbox_plan *p = plan(NULL);
	auto_buf struct buf b = { 0 };
	struct err err = { 0 };

	(void)state;
	buf_init(&b, 100);
	assert_int_equal(gvisor_bundle(p, 1000, &b, &err), -E2BIG);
	sandbox_plan_free(p);
}

static void served(struct sandbox_spec *spec)
{
	spec->serve = true;
}

/* All words of the block, one behind the other. */
static void words(const struct sandbox_plan *p, const struct gvisor_runsc *r, bool points, char *to,
		  size_t max)
{
	auto_buf struct buf b = { 0 };
	const struct gvisor_config *head;
	struct err err = { 0 };
	size_t n = 0;

	buf_init(&b, 1 << 20);
	assert_int_equal(gvisor_words(p, r, points, false, &b, &err), 0);
	head = (const struct gvisor_config *)b.p;
	assert_int_equal(head->size, b.n);
	assert_int_equal(head->gate, points);
	for (size_t i = head->strings_off; i < b.n && n < max - 1; i++)
		to[n++] = b.p[i] ? b.p[i] : ' ';
	to[n] = 0;
}

static void test_runsc_by_what_it_can(void **state)
{
	const struct gvisor_runsc old = { .has_ptrace = true, .has_overlay2 = true };
	const struct gvisor_runsc new = {
		.has_ptrace = true, .has_systrap = true, .has_overlay2 = true, .has_directfs = true
	};
	struct sandbox_plan *p = plan(served);
	char text[4096];

	(void)state;
	words(p, &old, false, text, sizeof(text));
	has(text, "--platform=ptrace --network=none --ignore-cgroups --overlay2=none create");
	has(text, " exec --console-socket=");
	has_not(text, "directfs");
	has_not(text, "pod-init");
	words(p, &new, true, text, sizeof(text));
	has(text, "--directfs=false");
	has(text, "--pod-init-config=/bundle/pod-init.json create --bundle=/bundle");
	assert_string_equal(gvisor_platform(&new, NULL), "ptrace");
	assert_string_equal(gvisor_platform(&new, "systrap"), "systrap");
	assert_null(gvisor_platform(&old, "systrap"));
	sandbox_plan_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hardened),
		cmocka_unit_test(test_network),
		cmocka_unit_test(test_what_cannot_be_said_is_refused),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_runsc_by_what_it_can),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
