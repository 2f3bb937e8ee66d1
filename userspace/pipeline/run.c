// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/run.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/base/log.h"
#include "userspace/base/term.h"
#include "userspace/pipeline/run_priv.h"
#include "userspace/pipeline/run_status.h"

#define SANDBOX_ID	  1 /* where this process is alone in the probes' maps */
#define LOOK_EVERY_NS	  (100 * NSEC_PER_MSEC) /* at limits that are hit all the time */
#define OTHER_FDS	  12			/* polled besides those of the limits */
#define STATE_DIR_DEFAULT "/var/lib/warder"

/* Signals that a person or a supervisor sends to stop, resize or poke the payload. */
static const int FORWARDED[] = { SIGINT,  SIGTERM, SIGHUP,   SIGQUIT,
				 SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT };

const char *state_dir(void)
{
	const char *dir = getenv("WARDER_STATE");

	return dir && *dir ? dir : STATE_DIR_DEFAULT;
}

int run_block_signals(struct run *run, struct err *err)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(FORWARDED); i++)
		sigaddset(&set, FORWARDED[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	run->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return run->signal_fd < 0 ? err_set(err, errno, "signalfd: %m") : 0;
}

bool run_has_first(const struct run *run)
{
	return run->spec.argv[0] || run->opt->processes_fd > 0;
}

bool run_ends_stopped(const struct run *run, uint32_t sig)
{
	return (run->stopped || !run_has_first(run)) &&
	       (sig == SIGINT || sig == SIGTERM || sig == SIGQUIT || sig == SIGHUP);
}

/* True: it was ended. */
static bool forward_signals(struct run *run)
{
	struct signalfd_siginfo si;

	while (read(run->signal_fd, &si, sizeof(si)) == sizeof(si)) {
		/* Somebody's SIGHUP is a request to load rule files again; one from the kernel says that the
		 * terminal is gone, which is the payload's business. */
		if (si.ssi_signo == SIGHUP && si.ssi_code != SI_KERNEL &&
		    reloader_ask(&run->reloader, "SIGHUP"))
			continue;
		if (run->console && si.ssi_signo == SIGWINCH) {
			console_resize(run->console);
			continue;
		}
		if (run->console && si.ssi_signo == SIGCONT)
			term_raw_again();
		if (run_ends_stopped(run, si.ssi_signo)) {
			sandbox_kill(run->sandbox, KILL_TIMEOUT_MS);
			return true;
		}
		sandbox_signal(run->sandbox, (int)si.ssi_signo);
	}
	return false;
}

/* By somebody at the other end of the hub. */
static void signal_first(void *arg, int sig)
{
	struct run *run = arg;

	if (run_ends_stopped(run, (uint32_t)sig))
		run->execs.gone = true;
	else
		sandbox_signal(run->sandbox, sig);
}

/* -ENOENT and the like of the command itself, in words and as the shell's exit code. */
static int start_failed(struct run *run, int r, struct err *err)
{
	struct run_facts *facts = &run->result->facts;

	switch (r) {
	case -ENOENT:
		facts->exit_code = 127;
		if (run->spec.cwd)
			return err_set(err, ENOENT,
				       "command '%s' or directory '%s' not found in the sandbox",
				       run->spec.argv[0], run->spec.cwd);
		return err_set(err, ENOENT, "command '%s' not found in the sandbox",
			       run->spec.argv[0]);
	case -EACCES:
	case -ENOEXEC:
		facts->exit_code = 126;
		return err_set(err, r, "command '%s' cannot be executed: %m", run->spec.argv[0]);
	default:
		facts->internal = true;
		return err_wrap(err, r, "starting the sandbox");
	}
}

static void end_egress(struct run *run)
{
	egress_free(take_ptr(run->egress));
}

/* Who answers for what the filter refuses is the engine alone: when it ends, nobody is left who could answer. */
static void pass_listener(struct run *run)
{
	auto_close int listener = sandbox_take_notify(run->sandbox);
	int e = sandbox_notify_refused(run->sandbox);
	char why[128] = "";

	if (e) {
		snprintf(why, sizeof(why),
			 "seccomp.notify: %s: attempts that no probe sees are refused and not told",
			 e == EBUSY ? "under another listener already" : strerror(e));
		log_warn("%s", why);
		run_add_degraded(run->result, "seccomp.notify");
	}
	if (listener >= 0 || e)
		engine_send_notify(run->engine_fd, listener, why);
}

/* Something was said from inside. True when nothing more is to be waited for. */
static bool hear_sandbox(struct run *run, int *ret_start, struct err *err)
{
	int r;

	if (run->starting) {
		r = sandbox_follow(run->sandbox, 0, err);
		pass_listener(run);
		if (r == SANDBOX_STARTING)
			return false;
		run->starting = r < 0;
		if (r == SANDBOX_RUNNING)
			r = run_connect_output(run, err);
		if (r < 0) {
			*ret_start = start_failed(run, r, err);
			return true;
		}
		execs_started(&run->execs);
		run_tell_host_log(run, NULL);
	}
	r = sandbox_dispatch(run->sandbox);
	run_hear_checkpoint(run);
	return r != SANDBOX_RUNNING;
}

/* GVisor says nothing when it could not set up what it is to tell, and runs on: who tells nothing is not let run.
 * -errno when it must not go on. */
static int look_at_guest(struct run *run, uint64_t now, int *fd, struct err *err)
{
	bool closed = false;
	int r;

	if (!run->guest || *fd < 0)
		return 0;
	if (gvisor_guest_has_started(run->guest, &closed) && !run->armed) {
		run->armed = true;
		r = capture_arm(run->capture, sandbox_cgroup_fd(run->sandbox), err);
		if (r < 0)
			return r;
	}
	if (run->armed || run->stopped) {
		run->guest_end = 0;
		if (!run->stopped || closed)
			*fd = -1;
		return 0;
	}
	if (run->starting)
		return 0;
	if (!run->guest_end)
		run->guest_end = now + GVISOR_FIRST_MS * NSEC_PER_MSEC;
	if (closed || now >= run->guest_end)
		return err_set(err, ETIMEDOUT, "gVisor tells nothing of its guest");
	return 0;
}

static void tell_begun(struct run *run, int r, const struct err *why)
{
	const struct run_door *door = run->opt->door;

	if (door && !run->told_begun)
		door->began(door->arg, r, why);
	run->told_begun = true;
}

/* Until the payload has ended, the time is over, or the engine has died: it is the one that can stop
 * a misbehaving sandbox, so without it nothing may go on. The payload is judged from its first act on, before init
 * says that it runs: that is one more thing to wait for, and none to wait for alone. A start that failed: -errno. */
static int wait_for_end(struct run *run, struct err *err)
{
	uint64_t limit = run->spec.limits.timeout_ns, end = 0, look = 0;
	struct pollfd fds[OTHER_FDS + LIMITS_FDS] = {
		{ .fd = sandbox_fd(run->sandbox), .events = POLLIN },
		{ .fd = run->signal_fd, .events = POLLIN },
		{ .fd = run->engine_fd, .events = POLLIN },
		{ .fd = run->relay ? relay_fd(run->relay) : -1, .events = POLLIN },
		{ .fd = run->reloader.inotify_fd, .events = POLLIN },
		{ .fd = run->proc_fds[0], .events = POLLIN },
		{ .fd = -1, .events = POLLIN },
		{ .fd = -1, .events = POLLIN },
		{ .fd = -1, .events = POLLIN },
		{ .fd = -1, .events = POLLIN },
		{ .fd = gvisor_guest_fd(run->guest), .events = POLLIN },
		{ .fd = run->opt->door ? run->opt->door->fd : -1, .events = POLLIN },
	};
	int start = 0;

	for (;;) {
		uint64_t now = clock_ns(CLOCK_MONOTONIC);
		bool changed = false;

		start = run_connect_output(run, err);
		if (start < 0)
			return start_failed(run, start, err);
		if (run_has_begun(run))
			tell_begun(run, 0, NULL);
		if (run_look_at_life(run, now))
			return 0;
		if (run_has_begun(run))
			run->next_secret = sandbox_expire_secrets(run->sandbox, now,
								  run_tell_secret_gone, run);
		if (!run_has_begun(run) && now >= run->start_end)
			return start_failed(run, err_set(err, ETIMEDOUT, "sandbox set-up: %m"),
					    err);
		if (limit && !end && run_has_begun(run))
			end = now + limit;
		if (end && now >= end) {
			run_hit_timeout(run);
			return 0;
		}
		start = look_at_guest(run, now, &fds[10].fd, err);
		if (start < 0)
			return start_failed(run, start, err);
		fds[1].fd = run_has_begun(run) ? run->signal_fd
					       : -1; /* there is nobody yet to take one */
		fds[7].fd = run->console ? console_fd(run->console) : -1;
		fds[8].fd = run->execs.hub;
		fds[9].fd = snapshot_job_fd(&run->snapshot);
		/* While they wait to be looked at again, they must not wake us. */
		limits_poll(&run->limits, fds + OTHER_FDS);
		fds[6].fd = workspace_job_fd(&run->workspace);
		for (int i = 0; now < look && i < LIMITS_FDS; i++)
			fds[OTHER_FDS + i].fd = -1;
		if (poll(fds, ARRAY_SIZE(fds), run_wait_timeout(run, end, now, look)) < 0 &&
		    errno != EINTR)
			return 0;
		for (int i = 0; i < LIMITS_FDS; i++)
			changed |= fds[OTHER_FDS + i].revents != 0;
		if (changed || limits_timeout(&run->limits) == 0) {
			capture_count_missed(run->capture);
			limits_look(&run->limits, run_tell_limit, run);
			look = clock_ns(CLOCK_MONOTONIC) + LOOK_EVERY_NS;
		}
		run_tell_usage(run, clock_ns(CLOCK_MONOTONIC));
		if (fds[3].revents && run_hit_output(run))
			return 0;
		if (fds[1].revents && forward_signals(run))
			return 0;
		if (fds[7].revents && run_hear_console(run))
			return 0;
		if (fds[0].revents && hear_sandbox(run, &start, err))
			return start;
		if (fds[11].revents)
			run->opt->door->hear(run->opt->door->arg, signal_first, run);
		if (fds[8].revents)
			execs_hear(&run->execs, signal_first, run);
		if (fds[9].revents && snapshot_job_fd(&run->snapshot) >= 0)
			run_end_snapshot(run);
		if (fds[4].revents)
			reloader_look(&run->reloader);
		run_reload_rules(run);
		if (fds[5].revents)
			run_hear_kills(run);
		run_tell_sample(run);
		if (workspace_job_fd(&run->workspace) >= 0 &&
		    (fds[6].revents || workspace_job_timeout(&run->workspace) == 0))
			run_end_workspace(run);
		if (fds[2].revents)
			run_hear_engine(run);
		if (fds[2].revents & (POLLHUP | POLLERR)) {
			run->result->facts.internal = true;
			return 0;
		}
	}
}

#define GUEST_END_MS 20000

/* A guest that is over before look_at_guest has lost its patience has not run unseen either. */
static int check_told(struct run *run, struct err *err)
{
	int r;

	if (!run->guest || run->stopped)
		return 0;
	r = gvisor_guest_wait_started(run->guest, GUEST_END_MS, err);
	if (r < 0)
		err_wrap(err, r, "gVisor told nothing of its guest");
	return r < 0 ? start_failed(run, r, err) : 0;
}

/* The sentry ends with its guest, and at times before it has answered who waits for that. It says so by its exit code, as
 * `runsc run` has it; but it ends with the same codes when it panics, so the guest's own end must have been told, too. */
static void take_guest_end(struct run *run, struct sandbox_result *sr)
{
	int status, code, sig;

	if (sr->death_signal || !run->guest ||
	    !gvisor_guest_has_ended(run->guest, GUEST_END_MS, &status))
		return;
	sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	code = sig ? 128 + sig : WEXITSTATUS(status);
	if (code != sr->death_code)
		return;
	sr->died = false;
	sr->exit_code = code;
	sr->signal = sig;
}

/* The sentry made a call that its own filter forbids: gVisor's code does not. */
static void tell_forbidden(struct run *run)
{
	struct wire_escape rec;

	record_escape(&rec, run->id, WIRE_ESCAPE_SECCOMP);
	engine_send_record(run->engine_fd, &rec, sizeof(rec));
}

static void tell_began(void *arg, uint32_t pid, const char *words, size_t n)
{
	struct run *run = arg;
	auto_buf struct buf rec = { 0 };

	buf_init(&rec, UINT16_MAX);
	if (record_exec(&rec, run->id, pid, words, n) == 0)
		engine_send_record(run->engine_fd, rec.p, rec.n);
}

static int launch_and_wait(struct run *run, struct err *err)
{
	struct run_facts *facts = &run->result->facts;
	struct sandbox_result sr = { 0 };
	int stdio[3], start, r;

	r = run_open_output(run, stdio, err);
	if (r < 0) {
		facts->internal = true;
		if (run->output_fds[0] >= 0) /* the recorder waits for its end */
			close(take_fd(run->output_fds[0]));
		return r;
	}
	run->result->started_ns = clock_real_ns();
	limits_init(&run->limits, run->sandbox, &run->spec.limits);
	run_start_sampler(run);
	execs_begin(&run->execs, run->sandbox, run->plan, run->output_fds[0]);
	run->begun = clock_ns(CLOCK_MONOTONIC);
	start = sandbox_begin(run->sandbox, stdio, err);
	run->starting = true;
	run->start_end = clock_ns(CLOCK_MONOTONIC) + SANDBOX_START_MS * NSEC_PER_MSEC;
	if (start == 0)
		start = wait_for_end(run, err);
	else
		start_failed(run, start, err);
	snapshot_job_drop(&run->snapshot);
	if (run->output_fds[0] >= 0) /* nothing came out */
		close(take_fd(run->output_fds[0]));
	/* No producer may be left when the engine drains for the last time. */
	r = sandbox_kill(run->sandbox, KILL_TIMEOUT_MS);
	end_egress(run);
	if (r < 0)
		log_warn("sandbox not empty after %d s: %s", KILL_TIMEOUT_MS / 1000, strerror(-r));
	r = capture_kill_left(run->capture, sandbox_cgroup_fd(run->sandbox));
	if (r > 0)
		log_warn("killed what had left the sandbox's control group");
	capture_count_missed(run->capture);
	run->result->ended_ns = clock_real_ns();
	sandbox_result(run->sandbox, &sr);
	/* Of one that did not start there is no guest to wait for. */
	if (start == 0 && sr.died)
		take_guest_end(run, &sr);
	else if (start == 0)
		start = check_told(run, err);
	if (start == 0) {
		facts->exit_code = sr.exit_code;
		facts->signal = sr.signal;
	}
	facts->died = sr.died;
	facts->death_code = sr.death_code;
	facts->death_signal = sr.death_signal;
	if (sr.died && (sr.death_signal == SIGSYS || sr.death_code == 128 + SIGSYS))
		tell_forbidden(run);
	facts->cpu_usec = sr.cpu_usec;
	facts->mem_peak = sr.mem_peak;
	facts->pids_peak = sr.pids_peak;
	facts->oom_kills = sr.oom_kills;
	facts->pids_denied = sr.pids_denied;
	limits_look(&run->limits, run_tell_limit, run);
	limits_done(&run->limits);
	execs_stop(&run->execs);
	run_take_output(run);
	if (start == 0)
		run_compare_workspace(run, WIRE_SCAN_STOP);
	return start;
}

/* 0: the payload may begin. Else all that was made for it goes again. */
static int pass_door(struct run *run)
{
	const struct run_door *door = run->opt->door;
	int r = door ? door->gate(door->arg, run->engine_fd, run->signal_fd) : 0;

	if (r == 0)
		return 0;
	run->told_begun = true;
	run->result->started_ns = run->result->ended_ns = clock_real_ns();
	run->result->facts.hung_up = true;
	run->result->facts.signal = SIGKILL;
	run->result->facts.exit_code = 128 + SIGKILL;
	if (run->output_fds[0] >= 0) /* the recorder waits for its end */
		close(take_fd(run->output_fds[0]));
	end_egress(run);
	return r;
}

static void cleanup(struct run *run)
{
	if (run->watched)
		capture_unwatch(run->capture, sandbox_cgroup_fd(run->sandbox));
	workspace_job_done(&run->workspace);
	console_free(run->console, false);
	relay_free(run->relay);
	reloader_done(&run->reloader);
	sandbox_free(run->sandbox);
	gvisor_guest_free(run->guest);
	capture_close(run->capture);
	sandbox_plan_free(run->plan);
	if (run->engine_fd >= 0)
		close(run->engine_fd);
	if (run->bundle_fd >= 0)
		close(run->bundle_fd);
	if (run->cursor_fd >= 0)
		close(run->cursor_fd);
	if (run->keys_fd >= 0)
		close(run->keys_fd);
	if (run->signal_fd >= 0)
		close(run->signal_fd);
	if (run->control_fd >= 0)
		close(run->control_fd);
	if (run->null_fd >= 0)
		close(run->null_fd);
	end_egress(run);
	for (int i = 0; i < 2; i++)
		if (run->egress_fds[i] >= 0)
			close(run->egress_fds[i]);
	for (int i = 0; i < 2; i++) {
		if (run->proc_fds[i] >= 0)
			close(run->proc_fds[i]);
		if (run->output_fds[i] >= 0)
			close(run->output_fds[i]);
	}
	run_status_remove(run->status_fd, run->result->session);
	if (run->status_fd >= 0)
		close(run->status_fd);
}

int run_session(struct run_result *ret, const struct run_options *opt, struct err *err)
{
	struct run run = {
		.opt = opt,
		.result = ret,
		.spec = *opt->spec,
		.id = SANDBOX_ID,
		.bundle_fd = -1,
		.cursor_fd = -1,
		.keys_fd = -1,
		.status_fd = -1,
		.signal_fd = -1,
		.engine_fd = -1,
		.control_fd = -1,
		.null_fd = -1,
		.proc_fds = { -1, -1 },
		.egress_fds = { -1, -1 },
		.output_fds = { -1, -1 },
	};
	struct err engine_err = { 0 };
	int r, start = 0;

	memset(ret, 0, sizeof(*ret));
	ret->facts.stdout_bytes = ret->facts.stderr_bytes = WIRE_UNKNOWN;
	run_init_names(&run);
	execs_init(&run.execs, opt->hub_fd > 0 ? opt->hub_fd : -1, opt->output_max);
	run.execs.snapshot = run_want_snapshot;
	run.execs.began = tell_began;
	run.execs.arg = &run;
	run.spec.serve = opt->hub_fd > 0;
	reloader_init(&run.reloader, opt->rule_files, opt->rule_texts, opt->spec);
	r = run_prepare(&run, err);
	if (r < 0) {
		if (run.bundle_fd >= 0 && !opt->session_dir)
			rmdir(ret->bundle); /* only goes when nothing was written */
		cleanup(&run);
		return r;
	}
	start = pass_door(&run);
	if (start == 0)
		start = launch_and_wait(&run, err);
	r = engine_finish(run.engine_fd, run.engine, &ret->facts, &ret->engine, &engine_err);
	if (r < 0)
		err_set(err, r, "%s", err_text(&engine_err));
	if (r == 0) {
		ret->reason = outcome_reason(ret->engine.reason);
		ret->exit_code = ret->engine.exit_code;
		/* A rule may kill so early that init could not say that the payload runs. */
		if (start < 0 && !strcmp(ret->reason, "internal"))
			r = start;
		else if (start < 0 && ret->facts.internal)
			*err = (struct err){ 0 };
	}
	/* One that a rule killed so early did begin. */
	tell_begun(&run,
		   start < 0 && (r < 0 || !strcmp(ret->reason, "exit") ||
				 !strcmp(ret->reason, "internal"))
			   ? start
			   : r,
		   err);
	run_tell_host_log(&run, ret->reason ? ret->reason : "internal");
	cleanup(&run);
	return r;
}
