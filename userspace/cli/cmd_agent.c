// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/sandbox.h"
#include "userspace/api/upstream.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/base/log.h"
#include "userspace/base/service.h"
#include "userspace/cli/agent_park.h"
#include "userspace/cli/agent_door.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/util.h"
#include "userspace/pipeline/run_status.h"

#define WORKERS_MAX 256
#define BACKLOG	    64
#define SWEEP_MS    10000
#define DOOR_MS	    200 /* until a new front may be started */

struct agent_args {
	bool check, no_api, help;
};

static const struct option_def OPTIONS[] = {
	{ "check", 0, OPT_FLAG, offsetof(struct agent_args, check), NULL,
	  "only look whether agent.yaml is good" },
	{ "no-api", 0, OPT_FLAG, offsetof(struct agent_args, no_api), NULL,
	  "do not serve the HTTP API at <run>/api.sock" },
	{ "help", 'h', OPT_FLAG, offsetof(struct agent_args, help), NULL, "this text" },
	{ 0 },
};

static const char PURPOSE[] =
	"Serve `warder run`, create, exec, attach, ps, logs, pause, resume, kill and rm on\n"
	"<run>/control.sock (/run/warder; WARDER_RUN). Root may use it, and the groups of\n"
	"<config>/agent.yaml, for their tenants and within their quotas:\n\n"
	"  groups: [warder]              who may, besides root\n"
	"  policies: [default, strict]   that they may name (default: all that are installed)\n"
	"  queue: 32                     so many of a tenant may wait for room,\n"
	"  queue_wait: 30s               so long\n"
	"  parked: 2                     so many keepers wait for a sandbox, for a quick start\n"
	"                                (default: 0, at most 16; SIGHUP reads it)\n"
	"  quota: { sandboxes: 64 }      of a tenant that is not listed; 0 = no limit\n"
	"  tenants:\n"
	"    ci: { groups: [ci], sandboxes: 8, memory: 4G, cpu: 4, disk: 8G }\n\n"
	"HTTP and JSON for the same people: <run>/api.sock, by an unprivileged process; what there\n"
	"is to ask: curl --unix-socket /run/warder/api.sock http://warder/openapi.json\n\n"
	"Each sandbox has a process of its own. It lives when the agent ends, is killed or is\n"
	"started anew, which finds all of them again; sandboxes of processes that died are swept.\n"
	"Stop it with SIGTERM: what runs goes on.";

struct agent {
	int listen, signals, lock;
	struct service service;
	int workers;
	pid_t worker[WORKERS_MAX];
	pid_t sweeper;
	struct agent_door door;
	bool again; /* sweep once more */
	struct agent_park park;
	uint64_t parked; /* so many are wanted */
	bool stop;
};

/* ---- the socket ---- */

static int one_only(struct agent *a, struct err *err)
{
	char path[4096];

	if ((size_t)snprintf(path, sizeof(path), "%s/agent.lock", run_dir()) >= sizeof(path))
		return err_set(err, ENAMETOOLONG, "run directory: path too long");
	a->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (a->lock < 0)
		return err_set(err, errno, "'%s': %m", path);
	if (flock(a->lock, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, errno, "an agent runs already (%s)", path);
	return 0;
}

static int listen_at(struct agent *a, struct err *err)
{
	auto_close int fd = -1;
	struct sockaddr_un at;
	char path[4096];
	int r = dir_make_all(run_dir(), 0711);

	if (r < 0)
		return err_set(err, r, "run directory '%s': %m", run_dir());
	r = one_only(a, err);
	if (r < 0)
		return r;
	r = agent_address(&at, path, sizeof(path));
	if (r < 0)
		return err_set(err, r, "control socket '%s': %m", path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	unlink(path); /* ours alone: we hold the lock */
	/* Who may is asked of the kernel, with each connection. */
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || chmod(path, 0666) < 0 ||
	    listen(fd, BACKLOG) < 0)
		return err_set(err, errno, "control socket '%s': %m", path);
	a->listen = take_fd(fd);
	return 0;
}

/* ---- processes ---- */

static void in_child(struct agent *a)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	close(a->listen);
	close(a->signals);
	service_done(&a->service);
	door_close(&a->door);
	agent_park_drain(&a->park); /* our copy: it is the agent's */
	close(a->lock);		    /* a copy would keep the lock beyond the agent's end */
	prctl(PR_SET_CHILD_SUBREAPER, 0);
}

static void sweep(struct agent *a)
{
	pid_t pid;

	if (a->sweeper) {
		a->again = true;
		return;
	}
	a->again = false;
	pid = fork();
	if (pid != 0) {
		a->sweeper = pid > 0 ? pid : 0;
		return;
	}
	in_child(a);
	sandbox_sweep(NULL);
	run_status_sweep();
	registry_sweep();
	_exit(0);
}

/* `peer`: who asks, by the kernel; it may be the client itself. */
static void take_client(struct agent *a, int fd, int peer)
{
	pid_t pid;

	if (a->workers == WORKERS_MAX) {
		agent_send_error(fd, EXIT_WARDER, "the agent is busy: too many requests at once");
		return;
	}
	pid = fork();
	if (pid == 0) {
		in_child(a);
		_exit(agent_work(fd, peer));
	}
	if (pid > 0)
		a->worker[a->workers++] = pid;
	else
		agent_send_error(fd, EXIT_WARDER, "the agent cannot fork");
}

static void take_from_socket(struct agent *a)
{
	auto_close int fd = accept4(a->listen, NULL, NULL, SOCK_CLOEXEC);

	if (fd >= 0)
		take_client(a, fd, fd);
}

static void take_from_front(struct agent *a)
{
	for (int i = 0; i < BACKLOG; i++) {
		auto_close int fd = -1, peer = -1;
		int r = upstream_take(a->door.channel, &fd, &peer);

		if (r == -EPROTO) { /* ours does not send that: another one takes its place */
			log_error(
				"api: what it sent is no question: it may have been taken over, and is killed");
			kill(a->door.pid, SIGKILL);
		}
		if (r <= 0)
			return; /* when it has gone, its end is heard of as a child's */
		take_client(a, fd, peer);
	}
}

static void child_of_door(void *arg)
{
	in_child(arg);
}

static bool forget_worker(struct agent *a, pid_t pid)
{
	for (int i = 0; i < a->workers; i++)
		if (a->worker[i] == pid) {
			a->worker[i] = a->worker[--a->workers];
			return true;
		}
	return false;
}

/* Keepers become our children when their workers end, or the nursery does: what one left is swept at once. */
static void reap(struct agent *a)
{
	bool keeper = false;
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
		if (pid == a->sweeper)
			a->sweeper = 0;
		else if (!door_forget(&a->door, pid) && !forget_worker(a, pid) &&
			 !agent_park_forget(&a->park, pid))
			keeper = true;
	}
	if (keeper || (a->again && !a->sweeper))
		sweep(a);
}

/* How many; and all made anew. */
static void read_parked(struct agent *a)
{
	static struct agent_config config;
	struct err err = { 0 };

	if (agent_config_load(&config, &err) < 0) {
		log_warn("%s: ignoring it", err_text(&err));
		return;
	}
	agent_park_drain(&a->park);
	a->parked = config.parked;
	agent_park_start(&a->park, a->parked);
}

static void hear_signals(struct agent *a)
{
	struct signalfd_siginfo si;

	while (read(a->signals, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo == SIGCHLD)
			reap(a);
		else if (si.ssi_signo == SIGHUP) /* all else of the file is read for each request */
			read_parked(a);
		else
			a->stop = true;
	}
}

static int catch_signals(struct agent *a, struct err *err)
{
	static const int sigs[] = { SIGCHLD, SIGTERM, SIGINT, SIGHUP };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(sigs); i++)
		sigaddset(&set, sigs[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	a->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (a->signals < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return err_set(err, errno, "signals: %m");
	return 0;
}

static void serve(struct agent *a)
{
	uint64_t next = 0;

	while (!a->stop) {
		struct pollfd fds[] = {
			{ .fd = a->listen, .events = POLLIN },
			{ .fd = a->signals, .events = POLLIN },
			{ .fd = a->door.channel, .events = POLLIN },
			{ .fd = a->park.fd, .events = POLLIN },
		};
		uint64_t now = clock_ns(CLOCK_MONOTONIC), alive = service_alive(&a->service, now);
		int wait;

		if (now >= next) {
			sweep(a);
			agent_park_start(&a->park, a->parked);
			next = now + SWEEP_MS * NSEC_PER_MSEC;
		}
		door_start(&a->door, child_of_door, a);
		fds[2].fd = a->door.pid ? a->door.channel : -1;
		wait = a->door.listen < 0 || a->door.pid ? (int)((next - now) / NSEC_PER_MSEC) + 1
							 : DOOR_MS;
		wait = clock_sooner(wait, now, alive);
		if (poll(fds, ARRAY_SIZE(fds), wait) < 0 && errno != EINTR)
			break;
		/* Its questions first: who has just gone may have left one. */
		if (fds[2].revents)
			take_from_front(a);
		if (fds[3].revents && agent_park_hear(&a->park))
			sweep(a);
		if (fds[1].revents)
			hear_signals(a);
		if (fds[0].revents)
			take_from_socket(a);
	}
}

static int found(void)
{
	auto_free struct registry_entry *v = calloc(REGISTRY_MAX, sizeof(*v));

	return v ? registry_list(v, REGISTRY_MAX, NULL) : 0;
}

static int run_agent(bool api, struct err *err)
{
	struct agent a = {
		.listen = -1,
		.signals = -1,
		.lock = -1,
		.door = { .listen = -1, .channel = -1 },
		.park = { .fd = -1 },
	};
	int r, n;

	service_init(&a.service);
	r = listen_at(&a, err);
	if (r == 0)
		r = catch_signals(&a, err);
	if (r == 0 && api)
		r = door_listen(&a.door, err);
	if (r == 0) {
		n = found();
		if (n > 0)
			log_info("found %d sandbox%s of an agent before", n, n == 1 ? "" : "es");
		read_parked(&a);
		log_info("agent is ready at %s/control.sock", run_dir());
		service_tell(&a.service, "READY=1");
		serve(&a);
		service_tell(&a.service, "STOPPING=1");
	}
	agent_park_drain(&a.park);
	door_close(&a.door);
	if (a.listen >= 0)
		close(a.listen);
	if (a.signals >= 0)
		close(a.signals);
	if (a.lock >= 0)
		close(a.lock);
	service_done(&a.service);
	return r;
}

int cmd_agent(int argc, char **argv)
{
	struct agent_args args = { 0 };
	static struct agent_config config;
	struct err err = { 0 };
	int n;

	if (argc > 1 && !strcmp(argv[1], "keep"))
		return agent_keeper(argc, argv);
	if (argc > 1 && !strcmp(argv[1], "park"))
		return agent_nursery(argc, argv);
	if (options_parse_mixed(OPTIONS, &args, argc, argv, &n, &err) < 0)
		return cli_bad_usage("agent", &err);
	if (args.help) {
		cli_usage("agent [OPTIONS]", PURPOSE, OPTIONS);
		return 0;
	}
	if (n) {
		err_set(&err, EINVAL, "it takes no arguments");
		return cli_bad_usage("agent", &err);
	}
	if (agent_config_load(&config, &err) < 0)
		return cli_fail(&err);
	if (args.check)
		return cli_finish_output(0);
	if (geteuid() != 0) {
		err_set(&err, EPERM, "the agent needs root (try sudo)");
		return cli_fail(&err);
	}
	return run_agent(!args.no_api, &err) < 0 ? cli_fail(&err) : 0;
}
