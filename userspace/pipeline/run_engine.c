// SPDX-License-Identifier: Apache-2.0
/* Between the root part and its engine. */
#include "userspace/pipeline/run_priv.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/base/log.h"
#include "userspace/pipeline/enforcement.h"
#include "userspace/pipeline/run.h"
#include "userspace/pipeline/statement.h"
#include "userspace/pipeline/trail.h"

#define FAMILIES_MAX   32
#define USAGE_EVERY_NS (10 * NSEC_PER_SEC) /* where a metrics sink shows how full the maps are */

void run_add_degraded(struct run_result *res, const char *text)
{
	if (res->degraded_n == RUN_DEGRADED_MAX)
		return;
	snprintf(res->degraded_text[res->degraded_n], sizeof(res->degraded_text[0]), "%s", text);
	res->degraded[res->degraded_n] = res->degraded_text[res->degraded_n];
	res->degraded_n++;
}

void run_test_probes(struct run *run)
{
	struct err err = { 0 };

	if (run->parked) /* they have */
		return;
	if (capture_selftest(run->capture, false, NULL, 0, &err) < 0)
		log_warn("%s: this session counts as degraded", err_text(&err));
}

void run_collect_degraded(struct run *run)
{
	struct capture_family_state rows[FAMILIES_MAX];
	size_t n = capture_families(run->capture, rows, FAMILIES_MAX);
	const char *const *layers;
	char text[64];

	for (size_t i = 0; i < n; i++) {
		if (rows[i].ok)
			continue;
		snprintf(text, sizeof(text), "probe.%.50s", rows[i].name);
		run_add_degraded(run->result, text);
	}
	n = sandbox_plan_degraded(run->plan, &layers);
	for (size_t i = 0; i < n; i++)
		run_add_degraded(run->result, layers[i]);
}

static struct rule_session rule_session(const struct run *run)
{
	return (struct rule_session){ .backend = run->spec.backend,
				      .tier = run->capture ? capture_tier(run->capture) : NULL,
				      .tenant = run->spec.tenant,
				      .policy = sandbox_plan_hash(run->plan) };
}

int run_load_enforcement(struct run *run, struct err *err)
{
	const struct rule_session rs = rule_session(run);

	if (!run->opt->rules || !run->enforces)
		return 0;
	return enforcement_load(run->capture, run->opt->rules, &rs, err);
}

int run_watch_sandbox(struct run *run, struct err *err)
{
	struct sandbox_cfg cfg = { .id = run->id, .pressure = run->opt->pressure };
	int r;

	if (sandbox_plan_holds(run->plan))
		cfg.flags |= SANDBOX_F_HELD;
	if (run->opt->rules && !run->opt->dry_run_actions)
		cfg.kill_escape = ruleset_kernel_kill_escapes(run->opt->rules);
	cfg.enforce = run->enforces ? ENFORCEMENT_SET : 0;
	r = capture_watch(run->capture, sandbox_cgroup_fd(run->sandbox), &cfg, err);
	if (r == 0)
		run->watched = true;
	return r;
}

void run_look_at_maps(struct run *run)
{
	struct err err = { 0 };
	bool wanted = false;

	for (size_t i = 0; i < run->opt->sinks_n; i++)
		wanted |= !strcmp(run->opt->sinks[i].class->name, "metrics");
	if (!wanted)
		return;
	if (capture_usage(getpid(), &run->usage, &err) < 0)
		log_warn("%s: ignoring it, the metrics will not show it", err_text(&err));
	else
		run->next_usage = clock_ns(CLOCK_MONOTONIC) + USAGE_EVERY_NS;
}

void run_tell_usage(struct run *run, uint64_t now)
{
	if (!run->next_usage || now < run->next_usage)
		return;
	capture_usage_again(&run->usage);
	engine_send_usage(run->engine_fd, &run->usage);
	run->next_usage = now + USAGE_EVERY_NS;
}

int run_start_engine(struct run *run, struct err *err)
{
	const char *secrets[SANDBOX_SECRETS_MAX];
	const struct sandbox_spec *spec = &run->spec;
	struct run_result *res = run->result;
	struct clock_state clock;
	int r;
	struct engine_options eo = {
		.capture = run->capture,
		.rules = run->opt->rules,
		.bundle = res->bundle,
		.bundle_fd = run->bundle_fd,
		.cursor_dirfd = run->cursor_fd,
		.keys_dirfd = run->keys_fd,
		.status_dirfd = run->status_fd,
		.control_fd = run->control_fd,
		.egress_fd = run->egress_fds[0],
		.guest_fds = { gvisor_guest_listen_fd(run->guest),
			       gvisor_guest_news_fd(run->guest) },
		.guest_mirror = sandbox_plan_mirrors(run->plan),
		.guest_net = run->spec.net != SANDBOX_NET_NONE,
		.output_fd = -1,
		.output_limit = run->opt->output_limit,
		.no_workspace = run->opt->workspace == RUN_WORKSPACE_IGNORED,
		.owner = getuid(),
		.sinks = run->opt->sinks,
		.sinks_n = run->opt->sinks_n,
		.witness = run->opt->witness,
		.redactor = run->opt->redactor,
		.usage = run->next_usage ? &run->usage : NULL,
		.pressure = run->opt->pressure,
		.when_full = run->opt->when_full,
		.drain_ms = run->opt->drain_ms,
		.uid = run->uid,
		.gid = run->gid,
		.session =
			{
				.sandbox_id = run->id,
				.session = res->session,
				.name = run->name,
				.tenant = spec->tenant,
				.host = run->host,
				.tier = capture_tier(run->capture),
				.backend = spec->backend,
				.policy = sandbox_plan_hash(run->plan),
				.clock = &clock,
				.baseline = run->opt->baseline,
				.memory_limit = spec->limits.memory,
				.pids_limit = spec->limits.pids,
				.resolvers = run->resolvers,
				.resolvers_n = run->resolvers_n,
				.env_values = run->opt->env_values,
				.places = run->places,
				.places_n = run->places_n,
				.watch = run->opt->watch,
				.watch_n = run->opt->watch_n,
				.real_offset_ns = (int64_t)(clock_real_ns() - clock_boot_ns()),
				.target =
					{
						.kill_fd = sandbox_kill_fd(run->sandbox),
						.freeze_fd = sandbox_freeze_fd(run->sandbox),
						.events_fd = sandbox_events_fd(run->sandbox),
						.proc_fd = run->proc_fds[1],
					},
				.hold = run->opt->hold,
				.dry_run = run->opt->dry_run_actions,
			},
		.record =
			{
				.sandbox_id = run->id,
				.backend = spec->backend,
				.name = run->name,
				.tenant = spec->tenant,
				.policy = sandbox_plan_hash(run->plan),
				.image = sandbox_plan_image(run->plan),
				.host = run->host,
				.command = spec->argv,
				.degraded = res->degraded,
				.degraded_n = res->degraded_n,
				.secrets = secrets,
				.secrets_n = spec->secrets_n,
			},
	};

	for (size_t i = 0; i < spec->secrets_n; i++)
		secrets[i] = spec->secrets[i].name;

	if (!run->opt->output_unrecorded) {
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, run->output_fds) < 0)
			return err_set(err, errno, "recording output: %m");
		eo.output_fd = run->output_fds[1];
	}
	clock_state_read(&clock);
	memcpy(eo.host_key, run->host_key, sizeof(eo.host_key));
	r = engine_start(&run->engine, &run->engine_fd, &eo, err);
	if (run->guest)
		gvisor_guest_given(run->guest);
	if (run->output_fds[1] >= 0)
		close(take_fd(run->output_fds[1]));
	return r;
}

#define LATE_KILLS \
	"kills are decided in user space: this session began without a rule for the kernel's tables"

/* The kernel's part goes first: what cannot be kept is not promised. */
static int enforce_others(struct run *run, const struct ruleset *rules, bool *ret_late,
			  struct err *err)
{
	const struct rule_session rs = rule_session(run);
	bool wanted;
	int r;

	if (run->opt->dry_run_actions)
		return 0;
	r = enforcement_is_wanted(rules, &rs, &wanted, err);
	if (r < 0)
		return r;
	if (run->enforces)
		r = enforcement_load(run->capture, rules, &rs, err);
	else if (wanted) /* kills are left to user space, a deny would be a lie */
		r = enforcement_check(run->capture, rules, &rs, err);
	*ret_late = wanted && !run->enforces;
	if (r == 0)
		r = capture_set_kills(run->capture, sandbox_cgroup_fd(run->sandbox),
				      ruleset_kernel_kill_escapes(rules), err);
	return r;
}

void run_reload_rules(struct run *run)
{
	struct engine_rules msg = { 0 };
	struct reloader_result res;
	bool late = false;

	if (!reloader_run(&run->reloader, &res))
		return;
	snprintf(msg.why, sizeof(msg.why), "%s", res.why);
	if (res.rules && enforce_others(run, res.rules, &late, &res.err) < 0) {
		close(take_fd(res.texts_fd));
		res.rules = NULL;
	}
	if (res.rules && late) {
		snprintf(msg.why, sizeof(msg.why), "%s; %s", res.why, LATE_KILLS);
		log_warn("rules: %s", LATE_KILLS);
	}
	if (!res.rules)
		snprintf(msg.text, sizeof(msg.text), "%s", err_text(&res.err));
	msg.actions = run->opt->rule_files->actions;
	if (res.rules)
		sampler_switch(&run->sampler, ruleset_uses(res.rules, "usage."));
	engine_send_rules(run->engine_fd, res.texts_fd, &msg);
	if (res.texts_fd >= 0)
		close(res.texts_fd);
}

/* Text from a process that may have been taken over: one line, nothing for the terminal. */
static void say_stopped(struct run *run, struct engine_msg *msg)
{
	msg->text[sizeof(msg->text) - 1] = 0;
	for (char *p = msg->text; *p; p++)
		if ((unsigned char)*p < 32 || *p == 127)
			*p = '?';
	run->stopped = msg->text[0];
	run->snapshot.let_go |= !run->stopped;
	run->start_end = clock_ns(CLOCK_MONOTONIC) + SANDBOX_START_MS * NSEC_PER_MSEC;
	if (run->console)
		console_frozen(run->console, run->stopped);
	if (run->stopped)
		log_warn("the sandbox is stopped: %s", msg->text);
	else
		log_info("the sandbox goes on");
}

void run_start_sampler(struct run *run)
{
	uint64_t period = run->opt->usage_period_ns;

	run->sampler = (struct sampler){
		.sandbox = run->sandbox,
		.capture = run->capture,
		.sandbox_id = run->id,
		.period_ns = period ? MAX(period, USAGE_PERIOD_MIN_NS) : USAGE_PERIOD_DEFAULT_NS,
	};
	if (run->opt->rules && ruleset_uses(run->opt->rules, "usage."))
		sampler_switch(&run->sampler, true);
}

void run_tell_sample(struct run *run)
{
	struct wire_usage rec;

	if (!sampler_take(&run->sampler, &rec))
		return;
	record_usage(&rec, run->id);
	engine_send_record(run->engine_fd, &rec, sizeof(rec));
}

static void resume(struct run *run, struct engine_msg *msg)
{
	(void)msg;
	capture_resume(run->capture);
}

static void reload(struct run *run, struct engine_msg *msg)
{
	(void)msg;
	reloader_ask(&run->reloader, "operator");
}

static void compare(struct run *run, struct engine_msg *msg)
{
	(void)msg;
	run_compare_workspace(run, WIRE_SCAN_DEMAND);
}

static void rules_done(struct run *run, struct engine_msg *msg)
{
	reloader_answered(&run->reloader);
	msg->rules.text[sizeof(msg->rules.text) - 1] = 0;
	if (msg->rules.ok)
		log_info("%s", msg->rules.text);
	else
		log_warn("%s", msg->rules.text);
}

/* All that the root part does for an engine while the sandbox runs, and it is of this sandbox alone; a single process
 * of it is ended by run_hear_kills. */
static void (*const requests[])(struct run *, struct engine_msg *) = {
	[ENGINE_RESUME] = resume,	  [ENGINE_RELOAD] = reload,
	[ENGINE_WORKSPACE] = compare,	  [ENGINE_STOPPED] = say_stopped,
	[ENGINE_RULES_DONE] = rules_done,
};

/* Our own engine does not send that. What it says of its sandbox is not believed any more. */
static void distrust(struct run *run, const char *what)
{
	log_error("%s: the engine may have been taken over, and is killed with its sandbox", what);
	kill(run->engine, SIGKILL);
}

void run_hear_engine(struct run *run)
{
	struct engine_msg msg;
	char what[64];
	int r;

	while ((r = engine_next(run->engine_fd, &msg)) > 0) {
		if (msg.type < ARRAY_SIZE(requests) && requests[msg.type]) {
			requests[msg.type](run, &msg);
			continue;
		}
		snprintf(what, sizeof(what), "the engine asks for what nobody may (%u)", msg.type);
		distrust(run, what);
		return;
	}
	if (r < 0)
		distrust(run, "the engine sent what is no message");
}

void run_hear_kills(struct run *run)
{
	struct action_proc a;
	ssize_t n;

	while ((n = recv(run->proc_fds[0], &a, sizeof(a), MSG_DONTWAIT | MSG_TRUNC)) > 0) {
		if (n != (ssize_t)sizeof(a)) {
			distrust(run, "the engine sent what names no process");
			return;
		}
		a.result = capture_kill_process(run->capture, run->id, a.tgid, a.start);
		(void)!send(run->proc_fds[0], &a, sizeof(a), MSG_NOSIGNAL);
	}
}

void run_tell_host_log(const struct run *run, const char *reason)
{
	const struct run_result *res = run->result;
	struct err err = { 0 };
	int r;

	if (run->opt->unlogged)
		return;
	r = reason ? trail_add_session(run->bundle_fd, res->session, res->bundle, reason, &err)
		   : trail_add_start(res->session, res->bundle, &err);
	if (r < 0 &&
	    (r != -ENOENT || !run->opt->session_dir)) /* no state directory, none asked for */
		log_warn("the session could not be written to the host log: %s", err_text(&err));
}
