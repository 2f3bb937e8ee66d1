// SPDX-License-Identifier: Apache-2.0
/* A sandbox from plan to nothing left, against bubblewrap with all its namespaces, in turns. The
 * payload is one static program that does nothing. Ours is started in-process, as the agent does;
 * bubblewrap is a command and pays for its own exec, which the last row takes out again. */
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/sandbox.h"
#include "userspace/base/clock.h"

#define ROUNDS 100

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

int main(void)
{
	char *const bwrap[] = { "/usr/bin/bwrap", "--unshare-all", "--ro-bind", "/", "/",
				payload[0],	  payload[1],	   NULL };
	static double a[ROUNDS], ready[ROUNDS], b[ROUNDS], c[ROUNDS];
	double ma, mb, mc;

	if (geteuid() != 0 || access(bwrap[0], X_OK) < 0 || access(payload[0], X_OK) < 0) {
		fprintf(stderr, "bench_launch: needs root, bwrap and /bin/busybox\n");
		return 77;
	}
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int i = -3; i < ROUNDS; i++) { /* the first ones warm caches */
		int at = i < 0 ? 0 : i;

		a[at] = ours(&ready[at]);
		b[at] = spawn(bwrap);
		c[at] = spawn(payload);
	}
	ma = median(a, ROUNDS);
	mb = median(b, ROUNDS);
	mc = median(c, ROUNDS);
	printf("launch: plan to nothing left\t%.0f\tus\t-\n", ma);
	printf("launch: plan to payload running\t%.0f\tus\t-\n", median(ready, ROUNDS));
	printf("launch: bwrap --unshare-all\t%.0f\tus\t-\n", mb);
	printf("launch: no sandbox at all\t%.0f\tus\t-\n", mc);
	printf("launch: sandbox / bwrap\t%.3f\tratio\t<= 1.0\n", ma / mb);
	printf("launch: sandbox / (bwrap less one exec)\t%.3f\tratio\t-\n", ma / (mb - mc));
	return 0;
}
