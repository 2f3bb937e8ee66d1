// SPDX-License-Identifier: Apache-2.0
/* A sandbox under gVisor from plan to nothing left, its guest's events taken, against a plain `runsc run` of the same
 * program on the same platform, in turns. Ours is started in-process, as the agent does. And a guest that opens files all
 * the time, beyond what the start of each costs. */
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/gvisor/gvisor.h"
#include "runtime/gvisor/guest.h"
#include "runtime/gvisor/sink.h"
#include "runtime/sandbox.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"

#define ROUNDS	25
#define GATE_MS 20000
#define LOOPS	5 /* of which the median counts */
#define LOOP	"i=0; while [ $i -lt 1000 ]; do : </bin/busybox; i=$((i+1)); done"

extern char **environ;

static char *const payload[] = { "/bin/busybox", "true", NULL };
static char *const opens[] = { "/bin/busybox", "sh", "-c", LOOP, NULL };
static int null_fd;
static char dir[] = "/tmp/warder-bench-XXXXXX";

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
	fprintf(stderr, "bench_gvisor: %s\n", what);
	exit(1);
}

static double since_ms(uint64_t t)
{
	return (double)(clock_ns(CLOCK_MONOTONIC) - t) / 1e6;
}

/* ---- runsc alone ---- */

static void make_config(const char *sub, const char *args)
{
	char path[160], text[1024];
	int fd, n;

	snprintf(path, sizeof(path), "%s/%s", dir, sub);
	if (mkdir(path, 0700) < 0)
		fail(path);
	n = snprintf(
		text, sizeof(text),
		"{\"ociVersion\":\"1.0.0\",\"process\":{\"user\":{\"uid\":1000,\"gid\":1000},"
		"\"args\":[\"/bin/busybox\",%s],\"env\":[\"PATH=/bin\"],\"cwd\":\"/\"},"
		"\"root\":{\"path\":\"%s/root\",\"readonly\":true},"
		"\"linux\":{\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"ipc\"},{\"type\":\"uts\"},"
		"{\"type\":\"mount\"},{\"type\":\"network\"}]}}",
		args, dir);
	snprintf(path, sizeof(path), "%s/%s/config.json", dir, sub);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || fd_write_all(fd, text, (size_t)n) < 0)
		fail(path);
	close(fd);
}

static void make_bundles(void)
{
	char command[512];

	if (!mkdtemp(dir))
		fail(dir);
	snprintf(
		command, sizeof(command),
		"mkdir -p %s/state %s/root/bin %s/root/proc %s/root/dev %s/root/tmp && cp /bin/busybox %s/root/bin/",
		dir, dir, dir, dir, dir, dir);
	if (system(command) != 0)
		fail(command);
	make_config("true", "\"true\"");
	make_config("opens", "\"sh\",\"-c\",\"" LOOP "\"");
}

static double plain(const struct gvisor_runsc *r, const char *sub)
{
	static unsigned n;
	char root[128], platform[64], bundle[128], id[32];
	char *argv[16] = { (char *)r->path, root, platform, "--network=none", "--ignore-cgroups" };
	posix_spawn_file_actions_t fa;
	uint64_t t = clock_ns(CLOCK_MONOTONIC);
	int status, k = 5;
	pid_t pid;

	snprintf(root, sizeof(root), "--root=%s/state", dir);
	snprintf(platform, sizeof(platform), "--platform=%s", gvisor_platform(r, NULL));
	snprintf(bundle, sizeof(bundle), "--bundle=%s/%s", dir, sub);
	snprintf(id, sizeof(id), "plain%u", n++);
	if (r->has_overlay2)
		argv[k++] = "--overlay2=none";
	if (r->has_directfs)
		argv[k++] = "--directfs=false";
	argv[k++] = "run";
	argv[k++] = bundle;
	argv[k++] = id;
	posix_spawn_file_actions_init(&fa);
	for (int fd = 0; fd < 3; fd++)
		posix_spawn_file_actions_adddup2(&fa, null_fd, fd);
	if (posix_spawn(&pid, r->path, &fa, NULL, argv, environ) != 0 ||
	    waitpid(pid, &status, 0) != pid || status != 0)
		fail("runsc run");
	posix_spawn_file_actions_destroy(&fa);
	return since_ms(t);
}

/* ---- ours ---- */

struct ours {
	struct sandbox *s;
	struct gvisor_guest *guest;
	struct gvisor_sink *sink;
};

static void begin(struct ours *o, const struct sandbox_plan *plan, const char *session,
		  bool watched)
{
	struct gvisor_sink_options opt = { 0 };
	char path[160];
	struct err err = { 0 };

	if (sandbox_create(&o->s, plan, &err) < 0)
		fail(err_text(&err));
	if (watched) {
		snprintf(path, sizeof(path), "%s/%s", dir, session);
		if (gvisor_guest_new(&o->guest, path, GATE_MS, &err) < 0)
			fail(err_text(&err));
		opt.listen_fd = fcntl(gvisor_guest_listen_fd(o->guest), F_DUPFD_CLOEXEC, 3);
		opt.news_fd = fcntl(gvisor_guest_news_fd(o->guest), F_DUPFD_CLOEXEC, 3);
		gvisor_guest_given(o->guest);
		if (gvisor_sink_start(&o->sink, &opt, &err) < 0)
			fail(err_text(&err));
		sandbox_set_guest(o->s, gvisor_guest_view(o->guest));
	}
	if (sandbox_start(o->s, (int[]){ null_fd, null_fd, null_fd }, &err) < 0)
		fail(err_text(&err));
}

static void end(struct ours *o)
{
	struct gvisor_packet p;

	for (;;) {
		struct pollfd fds[] = { { .fd = sandbox_fd(o->s), .events = POLLIN },
					{ .fd = gvisor_sink_fd(o->sink), .events = POLLIN } };
		struct sandbox_result res;
		int r;

		poll(fds, 2, -1);
		while (o->sink && gvisor_sink_next(o->sink, &p))
			;
		if (!fds[0].revents)
			continue;
		r = sandbox_dispatch(o->s);
		if (r < 0)
			fail("the keeper ended without a word");
		if (r != SANDBOX_EXITED)
			continue;
		sandbox_result(o->s, &res);
		if (res.exit_code != 0 || res.died) {
			fprintf(stderr, "watched %d: exit code %d, sentry %d signal %d\n",
				!!o->sink, res.exit_code, res.death_code, res.death_signal);
			fail("payload failed");
		}
		break;
	}
	sandbox_free(o->s);
	gvisor_sink_free(o->sink);
	gvisor_guest_free(o->guest);
}

static double ours(char *const *argv, bool watched, double *ret_ready)
{
	static unsigned n;
	char session[64];
	struct sandbox_plan *plan = NULL;
	struct sandbox_spec spec;
	struct ours o = { 0 };
	struct err err = { 0 };
	uint64_t t = clock_ns(CLOCK_MONOTONIC);

	sandbox_spec_defaults(&spec);
	snprintf(session, sizeof(session), "bench-%d-%u", (int)getpid(), n++);
	spec.session = session;
	spec.backend = "gvisor";
	spec.argv = argv;
	if (sandbox_plan_new(&plan, &spec, &err) < 0)
		fail(err_text(&err));
	begin(&o, plan, session, watched);
	*ret_ready = since_ms(t);
	end(&o);
	sandbox_plan_free(plan);
	return since_ms(t);
}

/* How much longer the loop takes under us, without what a sandbox costs that does nothing. */
static double opens_ratio(const struct gvisor_runsc *runsc)
{
	static double a[LOOPS], b[LOOPS], c[LOOPS], d[LOOPS];
	double unused;

	for (int i = 0; i < LOOPS; i++) {
		a[i] = ours(opens, true, &unused);
		b[i] = ours(payload, true, &unused);
		c[i] = plain(runsc, "opens");
		d[i] = plain(runsc, "true");
	}
	return (median(a, LOOPS) - median(b, LOOPS)) / (median(c, LOOPS) - median(d, LOOPS));
}

int main(void)
{
	static double a[ROUNDS], ready[ROUNDS], b[ROUNDS], c[ROUNDS], unused[ROUNDS], more[ROUNDS];
	const struct gvisor_runsc *runsc;
	struct err err = { 0 };
	char command[128];
	double ratio;

	if (geteuid() != 0 || access(payload[0], X_OK) < 0 || gvisor_runsc_get(&runsc, &err) < 0) {
		fprintf(stderr, "bench_gvisor: needs root, runsc and /bin/busybox\n");
		return 77;
	}
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	make_bundles();
	for (int i = -2; i < ROUNDS; i++) { /* the first ones warm caches */
		int at = i < 0 ? 0 : i;

		a[at] = ours(payload, true, &ready[at]);
		b[at] = plain(runsc, "true");
		c[at] = ours(payload, false, &unused[at]);
		more[at] = a[at] - b[at];
	}
	ratio = opens_ratio(runsc);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	if (system(command) != 0)
		fail(command);
	printf("gvisor: plan to nothing left\t%.0f\tms\t-\n", median(a, ROUNDS));
	printf("gvisor: plan to payload running\t%.0f\tms\t-\n", median(ready, ROUNDS));
	printf("gvisor: the same without the guest's events\t%.0f\tms\t-\n", median(c, ROUNDS));
	printf("gvisor: runsc run\t%.0f\tms\t-\n", median(b, ROUNDS));
	printf("gvisor: more than runsc run, median of pairs\t%.1f\tms\t<= 15\n",
	       median(more, ROUNDS));
	printf("gvisor: a loop of opens in the guest, beside runsc run\t%.2f\tratio\t<= 1.30\n",
	       ratio);
	return 0;
}
