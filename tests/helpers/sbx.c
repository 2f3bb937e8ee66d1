// SPDX-License-Identifier: Apache-2.0
// ours: runtime
/* Runs one command in a sandbox without probes, rules or journal, and prints what happened as one
 * JSON line on descriptor 3 if it is open, else on stderr. For tests of runtime/ and by hand:
 *   sbx [--session S] [--memory N] [--pids N] [--cpus X] [--tmp N] [--disk N] [--timeout D]
 *       [--ro P[:T]] [--rw P[:T]] [--workspace P] [--cwd P] [--env K=V] [--net none|host]
 *       [--backend B] [--plan] [--json] [--sweep] [--features] [--warm] [--frozen] -- CMD... */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "runtime/sandbox.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/json.h"
#include "userspace/base/option.h"

struct opts {
	const char *session, *backend, *net, *workspace, *cwd, *name;
	uint64_t memory, pids, cpus, tmp, disk, timeout, fsize, nofile;
	struct option_list ro, rw, env;
	bool plan, json, sweep, features, warm, frozen;
};

#define O(name, type, member, help)                                     \
	{                                                               \
		name, 0, type, offsetof(struct opts, member), "X", help \
	}

static const struct option_def defs[] = {
	O("session", OPT_STR, session, "name of the cgroup"),
	O("backend", OPT_STR, backend, "backend"),
	O("net", OPT_STR, net, "none or host"),
	O("workspace", OPT_STR, workspace, "host directory"),
	O("cwd", OPT_STR, cwd, "directory inside"),
	O("name", OPT_STR, name, "host name"),
	O("memory", OPT_SIZE, memory, "limit"),
	O("pids", OPT_U64, pids, "limit"),
	O("cpus", OPT_FRACTION, cpus, "limit"),
	O("tmp", OPT_SIZE, tmp, "size"),
	O("disk", OPT_SIZE, disk, "size"),
	O("fsize", OPT_SIZE, fsize, "limit"),
	O("nofile", OPT_U64, nofile, "limit"),
	O("timeout", OPT_DURATION, timeout, "kill after"),
	O("ro", OPT_STRLIST, ro, "bind"),
	O("rw", OPT_STRLIST, rw, "bind"),
	O("env", OPT_STRLIST, env, "variable"),
	O("plan", OPT_FLAG, plan, "print the plan only"),
	O("json", OPT_FLAG, json, "the plan as JSON"),
	O("sweep", OPT_FLAG, sweep, "remove what dead warders left"),
	O("features", OPT_FLAG, features, "what the host gives"),
	O("frozen", OPT_FLAG, frozen,
	  "freeze it before its first instruction, look, and let it go on"),
	O("warm", OPT_FLAG, warm, "start another sandbox first: what is made ahead is used then"),
	{ 0 },
};

static int signal_fd;

static void catch_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void forward_signal(struct sandbox *s)
{
	struct signalfd_siginfo si;

	if (read(signal_fd, &si, sizeof(si)) == sizeof(si))
		sandbox_signal(s, (int)si.ssi_signo);
}

static void add_bind(struct sandbox_spec *spec, const char *arg, bool writable)
{
	char *copy = strdup(arg), *colon = copy ? strchr(copy, ':') : NULL;

	if (colon)
		*colon++ = 0;
	spec->binds[spec->binds_n++] = (struct sandbox_bind){ .source = copy,
							      .target = colon ? colon : copy,
							      .writable = writable };
}

static void spec_fill(struct sandbox_spec *spec, const struct opts *o, char **argv)
{
	static char session[64];

	sandbox_spec_defaults(spec);
	snprintf(session, sizeof(session), "sbx-%d-%llx", (int)getpid(),
		 (unsigned long long)clock_ns(CLOCK_MONOTONIC));
	spec->session = o->session ? o->session : session;
	if (o->backend)
		spec->backend = o->backend;
	spec->name = o->name;
	spec->workspace = o->workspace;
	spec->cwd = o->cwd;
	spec->argv = argv;
	if (o->net && !strcmp(o->net, "host"))
		spec->net = SANDBOX_NET_HOST;
	if (o->memory)
		spec->limits.memory = o->memory;
	if (o->pids)
		spec->limits.pids = o->pids;
	if (o->tmp)
		spec->limits.tmp_bytes = o->tmp;
	if (o->disk)
		spec->limits.disk = o->disk;
	if (o->nofile)
		spec->limits.nofile = o->nofile;
	spec->limits.cpu_milli = o->cpus;
	spec->limits.timeout_ns = o->timeout;
	spec->limits.fsize = o->fsize;
	for (size_t i = 0; i < o->ro.n; i++)
		add_bind(spec, o->ro.v[i], false);
	for (size_t i = 0; i < o->rw.n; i++)
		add_bind(spec, o->rw.v[i], true);
	for (size_t i = 0; i < o->env.n; i++)
		spec->env[spec->env_n++] = o->env.v[i];
}

/* The loop of a launcher: deadline, signals, init. Returns the reason. */
static const char *follow(struct sandbox *s, const struct opts *o)
{
	uint64_t end = o->timeout ? clock_ns(CLOCK_MONOTONIC) + o->timeout : 0;

	for (;;) {
		struct pollfd pfd[] = { { .fd = sandbox_fd(s), .events = POLLIN },
					{ .fd = signal_fd, .events = POLLIN } };
		uint64_t now = clock_ns(CLOCK_MONOTONIC);
		int wait = -1, r;

		if (end && now >= end) {
			sandbox_kill(s, 5000);
			return "timeout";
		}
		if (end)
			wait = (int)((end - now) / NSEC_PER_MSEC) + 1;
		if (poll(pfd, 2, wait) <= 0)
			continue;
		if (pfd[1].revents)
			forward_signal(s);
		if (!pfd[0].revents)
			continue;
		r = sandbox_dispatch(s);
		if (r < 0)
			return "killed";
		if (r == SANDBOX_EXITED)
			return "exit";
	}
}

/* One that does nothing, so that the next is not the process's first. */
static int warm_up(void)
{
	static char *argv[] = { "true", NULL };
	struct sandbox_plan *plan = NULL;
	struct sandbox *s = NULL;
	struct sandbox_spec spec;
	struct opts none = { 0 };
	struct err err = { 0 };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), r;

	spec_fill(&spec, &none, argv);
	r = sandbox_plan_new(&plan, &spec, &err);
	if (r == 0)
		r = sandbox_create(&s, plan, &err);
	if (r == 0)
		r = sandbox_start(s, (int[]){ null, null, null }, &err);
	if (r == 0 && strcmp(follow(s, &none), "exit") != 0)
		r = -EIO;
	if (r < 0)
		fprintf(stderr, "sbx: warm-up: %s\n", err_text(&err));
	sandbox_free(s);
	sandbox_plan_free(plan);
	close(null);
	return r;
}

/* One that stands still from its first instruction: the start is told when it goes on, and keeps nobody until then. */
static int start_frozen(struct sandbox *s, struct err *err)
{
	int fd = sandbox_freeze_fd(s), r;

	if (pwrite(fd, "1", 1, 0) != 1)
		return err_set(err, errno, "cgroup.freeze: %m");
	r = sandbox_begin(s, (int[]){ 0, 1, 2 }, err);
	for (int i = 0; r == 0 && i < 3; i++)
		if ((r = sandbox_follow(s, 10, err)) == SANDBOX_STARTING)
			r = 0;
		else if (r >= 0)
			r = err_set(err, EPROTO, "started although frozen");
	if (r < 0)
		return r;
	if (sandbox_dispatch(s) != -ESRCH)
		return err_set(err, EPROTO, "one that only starts was dispatched");
	if (pwrite(fd, "0", 1, 0) != 1)
		return err_set(err, errno, "cgroup.freeze: %m");
	r = sandbox_follow(s, 60000, err);
	return r == SANDBOX_STARTING ? err_set(err, ETIMEDOUT, "thawed, and does not start") : r;
}

static void number(struct json *j, const char *key, uint64_t v)
{
	json_key(j, key);
	json_u64(j, v);
}

static void report(int fd, const struct sandbox_plan *p, const char *reason, int error,
		   const char *text, const struct sandbox_result *res)
{
	const char *const *degraded;
	size_t n = p ? sandbox_plan_degraded(p, &degraded) : 0;
	auto_buf struct buf out = { 0 };
	struct json j;

	buf_init(&out, 0);
	json_init(&j, &out);
	json_object_begin(&j);
	json_key(&j, "reason");
	json_strz(&j, reason);
	json_key(&j, "error");
	json_i64(&j, error);
	json_key(&j, "text");
	json_strz(&j, text);
	number(&j, "exit_code", (uint64_t)res->exit_code);
	json_key(&j, "died");
	json_bool(&j, res->died);
	number(&j, "death_code", (uint64_t)res->death_code);
	number(&j, "death_signal", (uint64_t)res->death_signal);
	number(&j, "signal", (uint64_t)res->signal);
	number(&j, "cpu_usec", res->cpu_usec);
	number(&j, "mem_peak", res->mem_peak);
	number(&j, "pids_peak", res->pids_peak);
	number(&j, "oom_kills", res->oom_kills);
	number(&j, "pids_denied", res->pids_denied);
	json_key(&j, "degraded");
	json_array_begin(&j);
	for (size_t i = 0; i < n; i++)
		json_strz(&j, degraded[i]);
	json_array_end(&j);
	json_object_end(&j);
	buf_addc(&out, '\n');
	(void)!write(fd, out.p, out.n);
}

static int print_features(void)
{
	struct sandbox_feature rows[32];
	size_t n = sandbox_features(rows, 32);

	for (size_t i = 0; i < n; i++)
		printf("%-4s %-20s %s: %s\n",
		       rows[i].ok	  ? "ok"
		       : rows[i].required ? "FAIL"
					  : "no",
		       rows[i].name, rows[i].what, rows[i].detail);
	return 0;
}

int main(int argc, char **argv)
{
	int out = fcntl(3, F_GETFD) >= 0 ? 3 : 2, rest, r, code = 125;
	struct sandbox_plan *plan = NULL;
	struct sandbox_result res = { 0 };
	struct sandbox *s = NULL;
	struct sandbox_spec spec;
	const char *reason = "internal";
	struct opts o = { 0 };
	struct err err = { 0 };

	/* Or a file of ours gets one of these numbers, and the payload gets it. */
	while ((r = open("/dev/null", O_RDWR)) >= 0 && r < 3)
		out = 2;
	close(r);
	if (options_parse(defs, &o, argc, argv, &rest, &err) < 0) {
		fprintf(stderr, "sbx: %s\n", err_text(&err));
		return 125;
	}
	if (o.features)
		return print_features();
	if (o.sweep) {
		r = sandbox_sweep(&err);
		printf("%d %s\n", r, r < 0 ? err_text(&err) : "");
		return r < 0;
	}
	if (out == 3)
		fcntl(3, F_SETFD, FD_CLOEXEC);
	spec_fill(&spec, &o, argv + rest);
	r = sandbox_plan_new(&plan, &spec, &err);
	if (r == 0 && o.plan)
		return sandbox_plan_print(plan, o.json, stdout) < 0;
	catch_signals();
	if (o.warm && warm_up() < 0)
		return 125;
	if (r == 0)
		r = sandbox_create(&s, plan, &err);
	if (r == 0) {
		r = o.frozen ? start_frozen(s, &err) : sandbox_start(s, (int[]){ 0, 1, 2 }, &err);
		code = r == -ENOENT ? 127 : r == -EACCES || r == -ENOEXEC ? 126 : 125;
	}
	if (r == 0) {
		reason = follow(s, &o);
		sandbox_result(s, &res);
	}
	report(out, plan, reason, -r, r < 0 ? err_text(&err) : "", &res);
	sandbox_free(s);
	sandbox_plan_free(plan);
	return r < 0 ? code : res.exit_code;
}
