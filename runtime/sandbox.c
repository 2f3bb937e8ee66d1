// SPDX-License-Identifier: Apache-2.0
/* The life of a sandbox, whatever runs in it. */
#include "runtime/sandbox_priv.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/backend.h"
#include "userspace/base/auto.h"

DEFINE_AUTO(sandbox, sandbox_free)

#define FREE_KILL_MS 5000
#define LEADER_MS    50

int sandbox_create(struct sandbox **ret, const struct sandbox_plan *plan, struct err *err)
{
	AUTO(sandbox) struct sandbox *s = NULL;
	struct sandbox_limits limits = plan->limits;
	int r;

	if (geteuid() != 0)
		return err_set(err, EPERM, "a sandbox can only be made by root: %m");
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(err, ENOMEM, "sandbox: %m");
	s->plan = plan;
	for (int i = 0; i < EGRESS_WALLS; i++)
		s->walls[i] = -1;
	s->control = s->pidfd = s->workspace = s->tty = s->listener = s->processes = -1;
	dirs_init(s);
	secrets_init(&s->secrets);
	if (plan->backend->limits)
		limits = plan->backend->limits(&plan->limits);
	r = cgroup_create(&s->cgroup, &plan->host, plan->session, &limits, err);
	if (r < 0)
		return r;
	if (plan->egress) {
		r = egress_wall(s->cgroup.leaf, plan->egress, s->walls, err);
		if (r < 0)
			return r;
	}
	/* The kernel numbers cgroups in a circle and skips live ones, so this id is nobody else's
	 * for as long as the leaf exists, and needs no book-keeping. */
	s->host_id = PLAN_HOST_IDS + (uint32_t)(s->cgroup.id & PLAN_HOST_MASK);
	if (plan->backend->prepare)
		plan->backend->prepare(s);
	*ret = take_ptr(s);
	return 0;
}

void sandbox_set_egress(struct sandbox *s, struct egress *e)
{
	s->egress = e;
}

void sandbox_set_guest(struct sandbox *s, const struct sandbox_guest *g)
{
	s->guest = g;
}

void sandbox_set_processes(struct sandbox *s, int fd)
{
	s->processes = fd;
}

int sandbox_plan_keeps(const struct sandbox_plan *p, struct sandbox_runtime *ret, struct err *err)
{
	if (!p->backend->keeps)
		return err_set(err, EOPNOTSUPP, "backend %s keeps no processes: gvisor does",
			       p->backend->name);
	return p->backend->keeps(p, ret, err);
}

int sandbox_checkpoint(struct sandbox *s, int fd, struct err *err)
{
	struct sandbox_runtime unused;
	int r = sandbox_plan_keeps(s->plan, &unused, err);

	if (r < 0)
		return r;
	if (s->stage != STAGE_RUNNING)
		return err_set(err, ESRCH, "sandbox '%s' does not run", s->plan->session);
	if (s->checkpoint.asked)
		return err_set(err, EBUSY, "its processes are being written already");
	r = s->plan->backend->checkpoint(s, fd, err);
	s->checkpoint.asked = r == 0;
	s->checkpoint.done = false;
	return r;
}

int sandbox_checkpoint_end(struct sandbox *s, struct err *err)
{
	if (!s->checkpoint.done)
		return -EINPROGRESS;
	s->checkpoint.asked = s->checkpoint.done = false;
	if (!s->checkpoint.code)
		return 0;
	return err_set(err, s->checkpoint.code, "its processes: %s", s->checkpoint.text);
}

int sandbox_go_on(struct sandbox *s)
{
	return s->stage == STAGE_RUNNING && s->plan->backend->go_on ? s->plan->backend->go_on(s)
								    : -ESRCH;
}

int sandbox_cgroup_fd(const struct sandbox *s)
{
	return s->cgroup.leaf;
}

void sandbox_notify(struct sandbox *s, bool calls, bool sockets)
{
	s->notify = s->plan->notify;
	if (calls && s->notify != SECCOMP_NOTIFY_NONE)
		s->notify = sockets ? SECCOMP_NOTIFY_ALL : SECCOMP_NOTIFY_CALLS;
}

int sandbox_take_notify(struct sandbox *s)
{
	return take_fd(s->listener);
}

int sandbox_notify_refused(struct sandbox *s)
{
	int e = s->listener_error;

	s->listener_error = 0;
	return e;
}

uint64_t sandbox_cgroup_id(const struct sandbox *s)
{
	return s->cgroup.id;
}

int sandbox_kill_fd(const struct sandbox *s)
{
	return s->cgroup.kill;
}

int sandbox_freeze_fd(const struct sandbox *s)
{
	return s->cgroup.freeze;
}

int sandbox_events_fd(const struct sandbox *s)
{
	return s->cgroup.events;
}

int sandbox_workspace_fd(const struct sandbox *s)
{
	return s->workspace;
}

int sandbox_tty_fd(const struct sandbox *s)
{
	return s->tty;
}

int sandbox_fd(const struct sandbox *s)
{
	return s->control;
}

static int start_failed(struct sandbox *s, int r)
{
	cgroup_kill(&s->cgroup, s->pidfd, FREE_KILL_MS);
	s->plan->backend->done(s);
	secrets_done(&s->secrets);
	s->stage = STAGE_DEAD;
	return r;
}

int sandbox_begin(struct sandbox *s, const int stdio[3], struct err *err)
{
	int r;

	if (s->stage != STAGE_CREATED)
		return err_set(err, EALREADY, "sandbox '%s' was started before", s->plan->session);
	r = secrets_make(&s->secrets, s->plan, s->host_id, err);
	if (r == 0)
		r = s->plan->backend->begin(s, stdio, err);
	if (r < 0)
		return start_failed(s, r);
	s->stage = STAGE_STARTING;
	return 0;
}

int sandbox_follow(struct sandbox *s, int timeout_ms, struct err *err)
{
	int r;

	if (s->stage != STAGE_STARTING)
		return err_set(err, EALREADY, "sandbox '%s' is not starting", s->plan->session);
	r = s->plan->backend->follow(s, timeout_ms, err);
	if (r < 0)
		return start_failed(s, r);
	if (r == SANDBOX_RUNNING)
		s->stage = STAGE_RUNNING;
	return r;
}

int sandbox_start(struct sandbox *s, const int stdio[3], struct err *err)
{
	int r = sandbox_begin(s, stdio, err);

	if (r == 0)
		r = sandbox_follow(s, SANDBOX_START_MS, err);
	if (r != SANDBOX_STARTING)
		return r;
	return start_failed(s, err_set(err, ETIMEDOUT, "sandbox set-up: %m"));
}

int sandbox_dispatch(struct sandbox *s)
{
	int r;

	if (s->stage == STAGE_EXITED)
		return SANDBOX_EXITED;
	if (s->stage != STAGE_RUNNING)
		return -ESRCH;
	r = s->plan->backend->dispatch(s);
	if (r == SANDBOX_EXITED)
		s->stage = STAGE_EXITED;
	return r;
}

int sandbox_exec(struct sandbox *s, const struct sandbox_exec *x, struct err *err)
{
	if (!s->plan->serve || !s->plan->backend->exec)
		return err_set(err, EOPNOTSUPP, "sandbox '%s' was not made to run further commands",
			       s->plan->session);
	if (s->stage != STAGE_RUNNING)
		return err_set(err, ESRCH, "sandbox '%s' does not run", s->plan->session);
	return s->plan->backend->exec(s, x, err);
}

int sandbox_exec_signal(struct sandbox *s, uint32_t id, int sig)
{
	if (sig <= 0 || sig >= NSIG || !id)
		return -EINVAL;
	return s->stage == STAGE_RUNNING && s->plan->backend->exec_signal
		       ? s->plan->backend->exec_signal(s, id, sig)
		       : -ESRCH;
}

void sandbox_on_exec(struct sandbox *s, sandbox_exec_fn fn, void *arg)
{
	s->on_exec = fn;
	s->on_exec_arg = arg;
}

uint64_t sandbox_expire_secrets(struct sandbox *s, uint64_t now, sandbox_secret_fn *tell, void *arg)
{
	return secrets_expire(&s->secrets, now, tell, arg);
}

int sandbox_signal(struct sandbox *s, int sig)
{
	if (sig <= 0 || sig >= NSIG)
		return -EINVAL;
	return s->stage == STAGE_RUNNING ? s->plan->backend->signal(s, sig) : -ESRCH;
}

int sandbox_kill(struct sandbox *s, int timeout_ms)
{
	/* What the payload said of its end before the kill still counts. */
	if (s->stage == STAGE_RUNNING && s->plan->backend->dispatch(s) == SANDBOX_EXITED)
		s->stage = STAGE_EXITED;
	return cgroup_kill(&s->cgroup, s->pidfd, timeout_ms);
}

void sandbox_result(struct sandbox *s, struct sandbox_result *ret)
{
	struct cgroup_usage u;

	cgroup_usage(&s->cgroup, &u);
	*ret = (struct sandbox_result){
		.exit_code = s->ended ? s->exit_code : 128 + SIGKILL,
		.signal = s->ended ? s->exit_signal : SIGKILL,
		.died = s->died,
		.death_code = s->death_code,
		.death_signal = s->death_signal,
		.cpu_usec = u.cpu_usec,
		.mem_peak = u.mem_peak,
		.mem_now = u.mem_now,
		.pids_now = u.pids_now,
		.pids_peak = u.pids_peak,
		.oom_kills = u.oom_kills,
		.pids_denied = u.pids_denied,
		.cpu_throttled = u.cpu_throttled,
		.cpu_throttled_usec = u.cpu_throttled_usec,
	};
}

void sandbox_hit_fds(const struct sandbox *s, int ret_fds[2])
{
	cgroup_hit_fds(&s->cgroup, ret_fds);
}

/* Init said that nobody else is left and is on its way out: it is quicker than a kill. */
static void wait_leader(struct sandbox *s)
{
	struct pollfd pfd = { .fd = s->pidfd, .events = POLLIN };

	if (s->alone && s->pidfd >= 0)
		poll(&pfd, 1, LEADER_MS);
}

void sandbox_free(struct sandbox *s)
{
	if (!s)
		return;
	wait_leader(s);
	cgroup_kill(&s->cgroup, s->pidfd, FREE_KILL_MS);
	if (s->stage != STAGE_CREATED && s->stage != STAGE_DEAD)
		s->plan->backend->done(s);
	secrets_done(&s->secrets);
	if (s->workspace >= 0) /* its memory is the control group's */
		close(s->workspace);
	if (s->tty >= 0)
		close(s->tty);
	if (s->listener >= 0)
		close(s->listener);
	dirs_done(s);
	cgroup_remove(&s->cgroup);
	for (int i = 0; i < EGRESS_WALLS; i++)
		if (s->walls[i] >= 0)
			close(s->walls[i]);
	free(s);
}

int sandbox_sweep(struct err *err)
{
	struct host host;

	host_probe(&host);
	return cgroup_sweep(&host, err);
}
