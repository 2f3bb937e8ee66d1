// SPDX-License-Identifier: Apache-2.0
/* A sandbox from plan to nothing left, and a command in one that waits for it, against: the same program without
 * anything, in bare namespaces (clone3), in bubblewrap and in crun, in turns. The payload is one static program
 * that does nothing. Ours is started in-process, as the agent does; bubblewrap and crun are commands and pay for their own
 * exec, which a row takes out again. */
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/sandbox.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"

#define ROUNDS 100
#define POOL   10

extern char **environ;

static char *const payload[] = { "/bin/busybox", "true", NULL };
static int null_fd;

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_value);
	return v[n / 2];
}

static void fail(const char *what)
{
	fprintf(stderr, "bench_launch: %s\n", what);
	exit(1);
}

/* us from call to reaped. */
static double spawn(char *const argv[])
{
	uint64_t t = clock_ns(CLOCK_MONOTONIC);
	int status;
	pid_t pid;

	if (posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) != 0)
		fail(argv[0]);
	if (waitpid(pid, &status, 0) != pid || status != 0)
		fail(argv[0]);
	return (double)(clock_ns(CLOCK_MONOTONIC) - t) / 1000;
}

static double ours(double *ret_ready)
{
	static unsigned n;
	char session[64];
	struct sandbox_plan *plan = NULL;
	struct sandbox_spec spec;
	struct sandbox *s = NULL;
	struct err err = { 0 };
	uint64_t t = clock_ns(CLOCK_MONOTONIC);

	sandbox_spec_defaults(&spec);
	snprintf(session, sizeof(session), "bench-%d-%u", (int)getpid(), n++);
	spec.session = session;
	spec.argv = payload;
	if (sandbox_plan_new(&plan, &spec, &err) < 0 || sandbox_create(&s, plan, &err) < 0 ||
	    sandbox_start(s, (int[]){ null_fd, null_fd, null_fd }, &err) < 0)
		fail(err_text(&err));
	*ret_ready = (double)(clock_ns(CLOCK_MONOTONIC) - t) / 1000;
	for (;;) {
		struct pollfd pfd = { .fd = sandbox_fd(s), .events = POLLIN };
		struct sandbox_result res;
		int r;

		poll(&pfd, 1, -1);
		r = sandbox_dispatch(s);
		if (r < 0)
			fail("init ended without a word");
		if (r != SANDBOX_EXITED)
			continue;
		sandbox_result(s, &res);
		if (res.exit_code != 0)
			fail("payload failed");
		break;
	}
	sandbox_free(s);
	sandbox_plan_free(plan);
	return (double)(clock_ns(CLOCK_MONOTONIC) - t) / 1000;
}

/* The program in namespaces of its own and nothing else: no root, no limits, no filter, no capability less. */
static double bare(void)
{
	struct clone_args args = { .flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC |
					    CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_NEWNET |
					    CLONE_NEWUSER,
				   .exit_signal = SIGCHLD };
	uint64_t t = clock_ns(CLOCK_MONOTONIC);
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	int status;

	if (pid == 0) {
		execve(payload[0], payload, environ);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		fail("clone3");
	return (double)(clock_ns(CLOCK_MONOTONIC) - t) / 1000;
}

static double plain(void)
{
	uint64_t t = clock_ns(CLOCK_MONOTONIC);
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		execve(payload[0], payload, environ);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		fail("fork");
	return (double)(clock_ns(CLOCK_MONOTONIC) - t) / 1000;
}

/* ---- one that waits ---- */

struct waiting {
	struct sandbox_plan *plan;
	struct sandbox *s;
	bool done;
};

static void on_exec(void *arg, struct sandbox_exec_event *ev)
{
	struct waiting *w = arg;

	if (ev->what == SANDBOX_EXEC_FAILED || (ev->what == SANDBOX_EXEC_DONE && ev->code != 0))
		fail("a command in a waiting sandbox");
	w->done |= ev->what == SANDBOX_EXEC_DONE;
}

static void make_waiting(struct waiting *w)
{
	static unsigned n;
	char *const none[] = { NULL };
	char session[64];
	struct sandbox_spec spec;
	struct err err = { 0 };

	sandbox_spec_defaults(&spec);
	snprintf(session, sizeof(session), "pool-%d-%u", (int)getpid(), n++);
	spec.session = session;
	spec.serve = true;
	spec.argv = none;
	*w = (struct waiting){ 0 };
	if (sandbox_plan_new(&w->plan, &spec, &err) < 0 || sandbox_create(&w->s, w->plan, &err) < 0)
		fail(err_text(&err));
	sandbox_on_exec(w->s, on_exec, w);
	if (sandbox_start(w->s, (int[]){ null_fd, null_fd, null_fd }, &err) < 0)
		fail(err_text(&err));
}

static void end_waiting(struct waiting *w)
{
	sandbox_free(w->s);
	sandbox_plan_free(w->plan);
}

/* From asking to its exit code. Each sandbox is used once. */
static double pooled(struct waiting *w)
{
	char *const *env;
	struct sandbox_exec x = { .id = 1,
				  .argv = payload,
				  .stdio = { null_fd, null_fd, null_fd } };
	struct err err = { 0 };
	uint64_t t = clock_ns(CLOCK_MONOTONIC);

	x.env_n = sandbox_plan_env(w->plan, &env);
	x.env = env;
	if (sandbox_exec(w->s, &x, &err) < 0)
		fail(err_text(&err));
	while (!w->done) {
		struct pollfd pfd = { .fd = sandbox_fd(w->s), .events = POLLIN };

		poll(&pfd, 1, -1);
		if (sandbox_dispatch(w->s) < 0)
			fail("a waiting sandbox ended");
	}
	return (double)(clock_ns(CLOCK_MONOTONIC) - t) / 1000;
}

static void bench_pool(void)
{
	static double a[ROUNDS], b[ROUNDS], c[ROUNDS];
	static struct waiting w[POOL];
	double ma, mb;

	for (int i = 0; i < ROUNDS; i++) {
		if (i % POOL == 0)
			for (int k = 0; k < POOL; k++)
				make_waiting(&w[k]);
		a[i] = pooled(&w[i % POOL]);
		b[i] = plain();
		c[i] = bare();
		if (i % POOL == POOL - 1)
			for (int k = 0; k < POOL; k++)
				end_waiting(&w[k]);
	}
	ma = median(a, ROUNDS);
	mb = median(b, ROUNDS);
	printf("launch: command in a sandbox that waits, to its exit code\t%.0f\tus\t-\n", ma);
	printf("launch: fork, exec, wait\t%.0f\tus\t-\n", mb);
	printf("launch: clone3 with namespaces, exec, wait\t%.0f\tus\t-\n", median(c, ROUNDS));
	printf("launch: pooled / fork, exec, wait\t%.3f\tratio\t<= 1.2\n", ma / mb);
}

/* ---- crun ---- */

static const char CONFIG[] =
	"{\"ociVersion\":\"1.0.0\",\"process\":{\"user\":{\"uid\":1000,\"gid\":1000},\"args\":[\"/bin/busybox\",\"true\"],"
	"\"cwd\":\"/\",\"noNewPrivileges\":true},\"root\":{\"path\":\"rootfs\",\"readonly\":true},"
	"\"mounts\":[{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"},"
	"{\"destination\":\"/tmp\",\"type\":\"tmpfs\",\"source\":\"tmpfs\"}],"
	"\"linux\":{\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"network\"},{\"type\":\"ipc\"},{\"type\":\"uts\"},"
	"{\"type\":\"mount\"},{\"type\":\"cgroup\"}]}}";

static const char *const BUNDLE[] = { "rootfs",	    "rootfs/bin", "rootfs/proc",
				      "rootfs/tmp", "rootfs/dev", "rootfs/sys" };

static const char *in_bundle(const char *dir, const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static bool make_bundle(char *dir)
{
	auto_close int from = -1, to = -1;
	FILE *f;

	if (access("/usr/bin/crun", X_OK) < 0 || !mkdtemp(dir))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(BUNDLE); i++)
		if (mkdir(in_bundle(dir, BUNDLE[i]), 0755) < 0)
			fail(BUNDLE[i]);
	from = open(payload[0], O_RDONLY | O_CLOEXEC);
	to = open(in_bundle(dir, "rootfs/bin/busybox"), O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	if (from < 0 || to < 0)
		fail("busybox in crun's bundle");
	while (copy_file_range(from, NULL, to, NULL, 1 << 20, 0) > 0)
		;
	f = fopen(in_bundle(dir, "config.json"), "we");
	if (!f || fputs(CONFIG, f) < 0 || fclose(f) != 0)
		fail("config.json");
	return true;
}

static void end_bundle(const char *dir)
{
	unlink(in_bundle(dir, "config.json"));
	unlink(in_bundle(dir, "rootfs/bin/busybox"));
	for (size_t i = ARRAY_SIZE(BUNDLE); i > 0; i--)
		rmdir(in_bundle(dir, BUNDLE[i - 1]));
	rmdir(dir);
}

/* It does not take hybrid control groups: a mount namespace where there is v2 alone. */
static int only_v2(void)
{
	int old = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC), made;

	if (old < 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		fail("a mount namespace for crun");
	umount2("/sys/fs/cgroup", MNT_DETACH);
	if (mount("none", "/sys/fs/cgroup", "cgroup2", 0, NULL) < 0)
		fail("cgroup v2 for crun");
	made = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	if (made < 0 || setns(old, CLONE_NEWNS) < 0)
		fail("a mount namespace for crun");
	close(old);
	return made;
}

/* us; negative: it does not run here. */
static double crun(const char *dir, int mnt)
{
	static unsigned n;
	char id[64];
	char *const argv[] = {
		"/usr/bin/crun", "--cgroup-manager=disabled", "run", "-b", (char *)dir, id, NULL
	};
	uint64_t t;
	int status;
	pid_t pid;

	snprintf(id, sizeof(id), "warder-bench-%d-%u", (int)getpid(), n++);
	t = clock_ns(CLOCK_MONOTONIC);
	pid = fork();
	if (pid == 0) {
		if (setns(mnt, CLONE_NEWNS) == 0)
			execve(argv[0], argv, environ);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		return -1;
	return (double)(clock_ns(CLOCK_MONOTONIC) - t) / 1000;
}

int main(void)
{
	char dir[] = "/tmp/warder-bench-crun.XXXXXX";
	static double d[ROUNDS], e[ROUNDS];
	bool has_crun;
	int mnt = -1;
	char *const bwrap[] = { "/usr/bin/bwrap", "--unshare-all", "--ro-bind", "/", "/",
				payload[0],	  payload[1],	   NULL };
	static double a[ROUNDS], ready[ROUNDS], b[ROUNDS], c[ROUNDS];
	double ma, mb, mc;

	if (geteuid() != 0 || access(bwrap[0], X_OK) < 0 || access(payload[0], X_OK) < 0) {
		fprintf(stderr, "bench_launch: needs root, bwrap and /bin/busybox\n");
		return 77;
	}
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	has_crun = make_bundle(dir);
	if (has_crun)
		mnt = only_v2();
	for (int i = -3; i < ROUNDS; i++) { /* the first ones warm caches */
		int at = i < 0 ? 0 : i;

		a[at] = ours(&ready[at]);
		b[at] = spawn(bwrap);
		c[at] = spawn(payload);
		d[at] = bare();
		e[at] = has_crun ? crun(dir, mnt) : 0;
		has_crun &= e[at] >= 0;
	}
	if (mnt >= 0)
		end_bundle(dir);
	if (!has_crun)
		fprintf(stderr, "bench_launch: crun is not there, or does not run here\n");
	ma = median(a, ROUNDS);
	mb = median(b, ROUNDS);
	mc = median(c, ROUNDS);
	printf("launch: plan to nothing left\t%.0f\tus\t-\n", ma);
	printf("launch: plan to payload running\t%.0f\tus\t-\n", median(ready, ROUNDS));
	printf("launch: bwrap --unshare-all\t%.0f\tus\t-\n", mb);
	printf("launch: no sandbox at all\t%.0f\tus\t-\n", mc);
	printf("launch: sandbox / bwrap\t%.3f\tratio\t<= 1.0\n", ma / mb);
	printf("launch: sandbox / (bwrap less one exec)\t%.3f\tratio\t-\n", ma / (mb - mc));
	printf("launch: sandbox / clone3 with namespaces\t%.3f\tratio\t<= 1.5\n",
	       ma / median(d, ROUNDS));
	if (has_crun)
		printf("launch: crun / sandbox\t%.3f\tratio\t>= 2\n", median(e, ROUNDS) / ma);
	bench_pool();
	return 0;
}
