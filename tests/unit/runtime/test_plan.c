// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char *const command[] = { "true", "a b", NULL };

/* A host that gives everything and has no file but those that a test makes. */
static struct host full_host(void)
{
	struct host h = {
		.root = "/nonexistent",
		.v2 = "/sys/fs/cgroup",
		.controller = { CONTROLLER_V2, CONTROLLER_V2, CONTROLLER_V2 },
		.userns = true,
		.landlock_abi = 6,
		.seccomp = true,
		.seccomp_notify = true,
		.fd_max = 1024,
	};

	return h;
}

static struct sandbox_spec good_spec(void)
{
	struct sandbox_spec spec;

	sandbox_spec_defaults(&spec);
	spec.session = "s1";
	spec.argv = command;
	return spec;
}

static struct sandbox_plan *build(const struct sandbox_spec *spec, const struct host *h)
{
	struct sandbox_plan *p = NULL;
	struct err err = { 0 };
	int r = plan_build(&p, spec, h, &err);

	if (r < 0)
		print_error("%s\n", err_text(&err));
	assert_int_equal(r, 0);
	return p;
}

/* The plan is refused and the text names `word`. */
static void refuse(const struct sandbox_spec *spec, const struct host *h, int code,
		   const char *word)
{
	struct sandbox_plan *p = NULL;
	struct err err = { 0 };

	assert_int_equal(plan_build(&p, spec, h, &err), -code);
	assert_null(p);
	if (!strstr(err_text(&err), word))
		fail_msg("'%s' does not name '%s'", err_text(&err), word);
}

static const struct root_op *find(const struct sandbox_plan *p, const char *target)
{
	for (size_t i = p->root_n; i > 0; i--)
		if (!strcmp(p->root[i - 1].target, target))
			return &p->root[i - 1];
	return NULL;
}

static const char *env_get(const struct sandbox_plan *p, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < p->env_n; i++)
		if (!strncmp(p->env[i], name, n) && p->env[i][n] == '=')
			return p->env[i] + n + 1;
	return NULL;
}

static void test_defaults_are_hardened(void **state)
{
	struct sandbox_spec spec = good_spec();
	struct host h = full_host();
	struct sandbox_plan *p = build(&spec, &h);

	(void)state;
	assert_true(p->limits.memory && p->limits.pids && p->limits.nofile && p->limits.disk);
	assert_int_equal(p->net, SANDBOX_NET_NONE);
	assert_true(p->userns);
	assert_int_equal(p->degraded_n, 0);
	assert_int_equal(p->notify, SECCOMP_NOTIFY_BLIND);
	/* Nothing of the host is writable. */
	for (size_t i = 0; i < p->root_n; i++)
		if (p->root[i].kind == ROOT_BIND)
			assert_false(p->root[i].writable);
	assert_non_null(find(p, "/usr"));
	assert_null(find(p, "/root"));
	assert_null(find(p, "/home"));
	assert_null(find(p, "/sys"));
	assert_null(find(p, "/etc/shadow"));
	sandbox_plan_free(p);
}

/* Sources of the default root come from two places only. */
static void test_allow_list(void **state)
{
	struct sandbox_spec spec = good_spec();
	struct host h = full_host();
	struct sandbox_plan *p;

	(void)state;
	h.root[0] = 0; /* this machine's own */
	p = build(&spec, &h);
	for (size_t i = 0; i < p->root_n; i++) {
		const struct root_op *op = &p->root[i];

		if (op->kind != ROOT_BIND && op->kind != ROOT_COPY)
			continue;
		if (strncmp(op->source, "/usr", 4) && strncmp(op->source, "/etc/", 5) &&
		    strncmp(op->source, "/lib", 4) && strncmp(op->source, "/bin", 4) &&
		    strncmp(op->source, "/sbin", 5))
			fail_msg("'%s' is shared", op->source);
		assert_null(strstr(op->source, "private"));
		assert_null(strstr(op->source, "shadow"));
	}
	sandbox_plan_free(p);
}

static void test_environment(void **state)
{
	struct sandbox_spec spec = good_spec();
	struct host h = full_host();
	struct sandbox_plan *p;

	(void)state;
	spec.env[0] = "HOME=/elsewhere";
	spec.env[1] = "X=1";
	spec.env[2] = "X=2";
	spec.env[3] = "EMPTY=";
	spec.env_n = 4;
	p = build(&spec, &h);
	assert_string_equal(env_get(p, "HOME"), "/elsewhere");
	assert_string_equal(env_get(p, "X"), "2");
	assert_string_equal(env_get(p, "EMPTY"), "");
	assert_non_null(env_get(p, "PATH"));
	sandbox_plan_free(p);
	spec.env[1] = "novalue";
	refuse(&spec, &h, EINVAL, "novalue");
	spec.env[1] = "=x";
	refuse(&spec, &h, EINVAL, "=x");
}

static void test_refusals(void **state)
{
	static const char *const sessions[] = { "", "..", "a/b", "a b", "-a", "a\n", NULL };
	static char *const none[] = { NULL };
	struct sandbox_spec spec = good_spec();
	struct host h = full_host();

	(void)state;
	for (size_t i = 0; i < sizeof(sessions) / sizeof(sessions[0]); i++) {
		spec.session = sessions[i];
		refuse(&spec, &h, EINVAL, "session");
	}
	spec = good_spec();
	spec.argv = none;
	refuse(&spec, &h, EINVAL, "command");
	spec = good_spec();
	spec.backend = "gvisor2";
	refuse(&spec, &h, EINVAL, "gvisor2");
	refuse(&spec, &h, EINVAL, "ns");
	spec = good_spec();
	spec.limits.memory = 4096;
	refuse(&spec, &h, EINVAL, "memory");
	spec = good_spec();
	spec.limits.pids = 1;
	refuse(&spec, &h, EINVAL, "pids");
	spec = good_spec();
	spec.cwd = "relative";
	refuse(&spec, &h, EINVAL, "relative");
	spec.cwd = "/a/../b";
	refuse(&spec, &h, EINVAL, "/a/../b");
	spec = good_spec();
	h.v2[0] = 0;
	refuse(&spec, &h, ENOENT, "cgroup v2");
	h = full_host();
	h.seccomp = false;
	refuse(&spec, &h, ENOSYS, "seccomp");
}

static void test_degraded_by_name(void **state)
{
	struct sandbox_spec spec = good_spec();
	struct host h = full_host();
	const char *const *names;
	struct sandbox_plan *p;
	size_t n;

	(void)state;
	h.landlock_abi = 0;
	h.userns = false;
	h.seccomp_notify = false;
	h.controller[CONTROLLER_MEMORY] = CONTROLLER_ABSENT;
	h.controller[CONTROLLER_CPU] = CONTROLLER_ABSENT; /* not asked for: nothing is missing */
	spec.net = SANDBOX_NET_HOST;
	p = build(&spec, &h);
	n = sandbox_plan_degraded(p, &names);
	assert_int_equal(n, 5);
	assert_string_equal(names[0], "userns");
	assert_string_equal(names[1], "landlock");
	assert_string_equal(names[2], "unsafe.net_host");
	assert_string_equal(names[3], "seccomp.notify");
	assert_string_equal(names[4], "limit.memory");
	assert_int_equal(p->notify, SECCOMP_NOTIFY_NONE);
	sandbox_plan_free(p);
}

static void test_hash(void **state)
{
	struct sandbox_spec spec = good_spec();
	struct host h = full_host();
	struct sandbox_plan *a = build(&spec, &h), *b, *c;

	(void)state;
	spec.session = "another";
	spec.name = "n"; /* and with it the host name */
	spec.tenant = "t";
	spec.argv = (char *[]){ "/other", "command", NULL };
	spec.env[0] = "A=b";
	spec.env_n = 1;
	b = build(&spec, &h);
	spec.limits.pids = 7;
	c = build(&spec, &h);
	assert_int_equal(strlen(sandbox_plan_hash(a)), 64);
	assert_string_equal(sandbox_plan_hash(a), sandbox_plan_hash(b));
	assert_string_not_equal(sandbox_plan_hash(a), sandbox_plan_hash(c));
	sandbox_plan_free(a);
	sandbox_plan_free(b);
	sandbox_plan_free(c);
}

static void test_binds(void **state)
{
	struct sandbox_spec spec = good_spec();
	struct host h = full_host();
	char dir[] = "/tmp/plan-XXXXXX", link[64];
	const struct root_op *op;
	struct sandbox_plan *p;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(link, sizeof(link), "%s/link", dir);
	assert_int_equal(symlink(dir, link), 0);
	spec.binds[0] = (struct sandbox_bind){ link, "/deep/er", true };
	spec.binds[1] = (struct sandbox_bind){ dir, "/deep", false };
	spec.binds_n = 2;
	p = build(&spec, &h);
	op = find(p, "/deep/er");
	assert_string_equal(op->source, dir); /* resolved */
	assert_true(op->writable && op->foreign && op->is_dir && op->ids);
	assert_true(op > find(p, "/deep")); /* parents first */
	assert_true(p->deny_suid);
	sandbox_plan_free(p);

	spec.binds_n = 1;
	spec.binds[0].target = "/proc/x";
	refuse(&spec, &h, EPERM, "/proc");
	spec.binds[0].target = "no/slash";
	refuse(&spec, &h, EINVAL, "no/slash");
	spec.binds[0] = (struct sandbox_bind){ "/dev/null", "/x", false };
	refuse(&spec, &h, EPERM, "/dev");
	spec.binds[0] = (struct sandbox_bind){ "/", "/x", false };
	refuse(&spec, &h, EPERM, "host");
	spec.binds[0] = (struct sandbox_bind){ "/proc/self", "/x", false };
	refuse(&spec, &h, EPERM, "/proc");
	unlink(link);
	rmdir(dir);
}

/* Of a container there are other ways to cover what is ours. */
static void test_nothing_covers_the_secrets(void **state)
{
	static const char *const targets[] = { "/run", SECRET_DIR, SECRET_DIR "/x", "/dev/x" };
	struct sandbox_container c = { .tmpfs_n = 1 };
	struct sandbox_spec spec = good_spec();
	struct host h = full_host();
	char root[] = "/tmp/warder-plan-XXXXXX";

	(void)state;
	assert_non_null(mkdtemp(root));
	spec.root = root;
	spec.container = &c;
	spec.secrets[0] = (struct sandbox_secret){ .name = "key", .value = "v", .n = 1 };
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		c.tmpfs[0].target = targets[i];
		spec.secrets_n = 1;
		refuse(&spec, &h, EPERM, targets[i]);
		spec.secrets_n = 0;
		if (i < 3)
			sandbox_plan_free(build(&spec, &h));
		else
			refuse(&spec, &h, EPERM, targets[i]);
	}
	rmdir(root);
}

static void test_clean_paths(void **state)
{
	static const char *const good[] = { "/a", "/a/b", "/...", "/a.b/..c" };
	static const char *const bad[] = { "",	    "/",  "a",	   "//a",  "/a/",
					   "/a//b", "/.", "/a/..", "/../a" };

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (!plan_path_is_clean(good[i]))
			fail_msg("'%s' is clean", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (plan_path_is_clean(bad[i]))
			fail_msg("'%s' is not clean", bad[i]);
}

static void test_print(void **state)
{
	static char *const hostile[] = { "a\x1b[31m", "\xff\xfe", NULL };
	struct sandbox_spec spec = good_spec();
	struct host h = full_host();
	struct sandbox_plan *p;
	char *text = NULL;
	size_t n;
	FILE *f;

	(void)state;
	spec.argv = hostile;
	p = build(&spec, &h);
	for (int json = 0; json < 2; json++) {
		f = open_memstream(&text, &n);
		assert_int_equal(sandbox_plan_print(p, json, f), 0);
		fclose(f);
		assert_null(memchr(text, 0x1b, n));
		assert_non_null(strstr(text, "landlock"));
		free(text);
		text = NULL;
	}
	sandbox_plan_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults_are_hardened),
		cmocka_unit_test(test_allow_list),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_degraded_by_name),
		cmocka_unit_test(test_hash),
		cmocka_unit_test(test_binds),
		cmocka_unit_test(test_nothing_covers_the_secrets),
		cmocka_unit_test(test_clean_paths),
		cmocka_unit_test(test_print),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
