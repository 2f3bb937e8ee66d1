// SPDX-License-Identifier: Apache-2.0
// ours: runtime
/* N sandboxes with a way out, all alive at once, each of which asks for its name; then all are ended. Exit 0 when
 * nothing of them is left in this process: no child, no descriptor more than before. Prints the median of what a
 * start costs without and with the way out, in us. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/egress/egress.h"
#include "runtime/sandbox.h"
#include "userspace/base/clock.h"

#define SANDBOXES 1000
#define NOBODY	  0x6ffffff0u

struct one {
	struct sandbox_plan *plan;
	struct sandbox *s;
	struct egress *e;
};

static int null_fd;

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "egress_many: %s: %s\n", what, why);
	exit(1);
}

static int drop(uid_t uid, gid_t gid, struct err *err)
{
	if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return err_set(err, errno, "dropping: %m");
	return 0;
}

/* us until the payload runs. */
static double start(struct one *o, bool out, char *const *argv)
{
	static unsigned n;
	struct egress_options opt = { .uid = NOBODY, .gid = NOBODY, .drop = drop, .events = -1 };
	struct sandbox_spec spec;
	struct err err = { 0 };
	char session[64];
	uint64_t t = clock_ns(CLOCK_MONOTONIC);
	int r;

	sandbox_spec_defaults(&spec);
	snprintf(session, sizeof(session), "egress-%d-%u", (int)getpid(), n++);
	spec.session = session;
	spec.argv = argv;
	if (out) {
		spec.net = SANDBOX_NET_ALLOW;
		spec.net_allow[spec.net_allow_n++] = "good.example";
	}
	r = sandbox_plan_new(&o->plan, &spec, &err);
	opt.policy = r == 0 ? sandbox_plan_egress(o->plan) : NULL;
	if (r == 0 && out)
		r = egress_start(&o->e, &opt, &err);
	if (r == 0)
		r = sandbox_create(&o->s, o->plan, &err);
	if (r == 0) {
		sandbox_set_egress(o->s, o->e);
		r = sandbox_start(o->s, (int[]){ null_fd, null_fd, null_fd }, &err);
	}
	if (r < 0)
		fail("start", err_text(&err));
	return (double)(clock_ns(CLOCK_MONOTONIC) - t) / 1000;
}

static void end(struct one *o)
{
	sandbox_free(o->s);
	egress_free(o->e);
	sandbox_plan_free(o->plan);
}

static size_t count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

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

static int exit_code(struct one *o)
{
	struct sandbox_result res;
	struct pollfd pfd = { .fd = sandbox_fd(o->s), .events = POLLIN };
	int r;

	do {
		poll(&pfd, 1, -1);
		r = sandbox_dispatch(o->s);
	} while (r == SANDBOX_RUNNING);
	sandbox_result(o->s, &res);
	return res.exit_code;
}

int main(int argc, char **argv)
{
	char *const ask[] = { "/bin/sh", "-c",
			      "getent ahostsv4 good.example && ! getent ahostsv4 no.example",
			      NULL };
	char *const wait_for_end[] = { "/bin/sleep", "600", NULL };
	static struct one v[SANDBOXES];
	static double with[SANDBOXES], without[SANDBOXES];
	size_t n = argc > 1 ? (size_t)atoi(argv[1]) : 10, before;
	const struct rlimit files = { 32 * SANDBOXES, 32 * SANDBOXES };
	struct one o = { 0 };

	if (n == 0 || n > SANDBOXES)
		fail("number", "1 to 1000");
	setrlimit(RLIMIT_NOFILE, &files);
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int i = 0; i < 3; i++) { /* what is made ahead exists then */
		memset(&o, 0, sizeof(o));
		start(&o, true, ask);
		if (exit_code(&o) != 0)
			fail("names", "not answered as they should be");
		end(&o);
	}
	before = count_fds();
	for (size_t i = 0; i < n; i++) {
		memset(&o, 0, sizeof(o));
		without[i] = start(&o, false, wait_for_end);
		end(&o);
		with[i] = start(&v[i], true, wait_for_end);
	}
	for (size_t i = 0; i < n; i++)
		end(&v[i]);
	if (count_fds() > before)
		fail("descriptors", "some are left");
	if (waitpid(-1, NULL, WNOHANG) >= 0 || errno != ECHILD)
		fail("children", "some are left");
	printf("%.0f %.0f\n", median(without, n), median(with, n));
	return 0;
}
