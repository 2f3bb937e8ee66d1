// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/base/log.h"
#include "userspace/base/term.h"
#include "userspace/cli/agent_park.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/named_workspace.h"
#include "userspace/cli/policy.h"
#include "userspace/cli/run_args.h"
#include "userspace/cli/run_print.h"
#include "userspace/cli/run_result.h"
#include "userspace/cli/run_rules.h"
#include "userspace/cli/run_secret.h"
#include "userspace/cli/run_sinks.h"
#include "userspace/cli/util.h"
#include "userspace/pipeline/redaction.h"
#include "userspace/pipeline/run.h"
#include "userspace/pipeline/store_guard.h"

static const char PURPOSE[] =
	"Run COMMAND in a hardened sandbox, watch it from the kernel, judge it by rules and keep a\n"
	"tamper-evident record.\n\n"
	"Exit code: the command's own; 128+n if it died by signal n; 124 timeout; 125 warder's own\n"
	"error; 126 cannot execute; 127 not found; 137 killed by a rule, an operator,\n"
	"the memory, output or event limit: the result tells which.";

/* ---- the command ---- */

static int dry_run(struct sandbox_spec *spec, bool json, struct err *err)
{
	AUTO(sandbox_plan) struct sandbox_plan *plan = NULL;

	spec->session = "dry-run"; /* a real one gets its id at the start */
	if (!spec->name)
		spec->name = spec->session;
	if (sandbox_plan_new(&plan, spec, err) < 0 || sandbox_plan_print(plan, json, stdout) < 0)
		return cli_fail(err);
	return cli_finish_output(0);
}

/* A run by an agent's keeper. */
struct run_keep {
	const char *session;
	int hub_fd;
	char *reason;			       /* 32 */
	const struct run_container *container; /* NULL */
};

/* The files that it begins with. */
struct run_from {
	struct snapshots_row row;
	int fd;	       /* -1: none */
	int processes; /* what ran then, and goes on; -1: nothing does */
	bool host_workspace;
};

static void run_from_done(struct run_from *f)
{
	if (f->fd >= 0)
		close(take_fd(f->fd));
	if (f->processes >= 0)
		close(take_fd(f->processes));
}

static int open_from(struct run_from *f, const struct run_args *a, bool named, bool has_command,
		     struct err *err)
{
	int r;

	f->host_workspace = a->workspace;
	if (!a->from)
		return 0;
	if (a->workspace || named)
		return err_set(err, EINVAL,
			       "option '--from' fills the private /workspace: not with "
			       "'--workspace'");
	r = snapshots_open(&f->row, &f->fd, a->tenant ? a->tenant : "default", a->from, err);
	if (r == 0 && f->row.processes && !has_command)
		r = snapshots_open_processes(&f->processes, &f->row, err);
	return r;
}

static int run_it(const struct run_keep *keep, const struct run_from *from,
		  const struct run_args *a, const struct sandbox_spec *spec,
		  const struct run_rules *rules, const struct redactor *redactor,
		  struct run_sinks *sinks, enum run_sign sign, uint32_t pressure,
		  uint32_t when_full, struct run_result_file *result)
{
	struct run_options opt = {
		.spec = spec,
		.sign = sign,
		.workspace = a->no_workspace_diff ? RUN_WORKSPACE_IGNORED
			     : a->keep_texts	  ? RUN_WORKSPACE_TEXTS
						  : RUN_WORKSPACE_TOLD,
		.pressure = pressure,
		.when_full = when_full,
		.urgent_bytes = a->urgent_ring,
		.bulk_bytes = a->bulk_ring,
		.rules = rules->set,
		.redactor = redactor,
		.rule_files = &rules->files,
		.rule_texts = { rules->texts.p, rules->texts.n },
		.dry_run_actions = a->dry_run_actions,
		.session_dir = a->session_dir,
		.sinks = sinks->v,
		.sinks_n = sinks->n,
		.witness = sinks->has_witness ? &sinks->witness : NULL,
		.output_max = a->max_output,
		.output_kill = a->kill_output,
		.output_unrecorded = a->record && !strcmp(a->record, "none"),
		.input_recorded = run_records_input(a),
		.output_limit = a->output_limit,
		.drain_ms = (int)MIN(a->export_wait / NSEC_PER_MSEC, (uint64_t)INT32_MAX),
		.env_values = a->env_values,
		.usage_period_ns = a->usage_period,
		.baseline = rules->baseline,
		.watch = a->watch.v,
		.watch_n = a->watch.n,
		.hold = run_hold_policy_of(a),
		.ttl_ns = a->ttl,
		.idle_ns = a->idle,
		.restore = from->fd >= 0 ? &from->row : NULL,
		.restore_fd = from->fd,
		.processes_fd = from->processes,
		.host_workspace = from->host_workspace,
		.parked = keep ? agent_park_take() : NULL,
		.session = keep ? keep->session : NULL,
		.hub_fd = keep ? keep->hub_fd : 0,
		.door = keep && keep->container ? keep->container->door : NULL,
		.stderr_fd = keep && keep->container ? keep->container->stderr_fd : 0,
	};
	struct run_result res;
	struct err err = { 0 };
	int r;

	r = run_session(&res, &opt, &err);
	redaction_of_text(err.text, sizeof(err.text));
	if (err.code)
		log_error("%s", err_text(&err));
	if (r < 0) {
		run_result_write(result, &res, "internal", EXIT_WARDER, err_text(&err));
		return EXIT_WARDER;
	}
	if (keep)
		snprintf(keep->reason, 32, "%s", res.reason);
	if (!a->quiet)
		run_print_closing(&res);
	run_print_troubles(&res);
	if (res.engine.journal_error) {
		log_error("the record could not be sealed: %s", strerror(res.engine.journal_error));
		run_result_write(result, &res, "internal", EXIT_WARDER, "record not sealed");
		return EXIT_WARDER;
	}
	r = run_result_write(result, &res, res.reason, res.exit_code,
			     err.code ? err_text(&err) : NULL);
	if (r < 0) {
		log_error("result file '%s': %s", a->result, strerror(-r));
		return EXIT_WARDER;
	}
	return res.exit_code;
}

/* The agent does it, with us as its terminal. */
static bool is_for_agent(const struct run_args *a)
{
	return !a->no_agent && !a->dry_run && !a->help && agent_is_there();
}

static int hand_over(const struct run_args *a, int argc, char **argv)
{
	auto_free const char **words = calloc((size_t)argc + 1, sizeof(*words));
	struct agent_request q = { .op = AGENT_RUN, .argv = words, .tty = a->tty };
	char dir[4096];

	if (!words)
		return EXIT_WARDER;
	for (int i = 1; i < argc; i++)
		words[q.argc++] = argv[i];
	q.dir = getcwd(dir, sizeof(dir));
	return agent_talk(&q, NULL);
}

static bool has_named_workspace(const struct run_args *a)
{
	return a->workspace && !strncmp(a->workspace, WORKSPACE_PREFIX, strlen(WORKSPACE_PREFIX));
}

static int run_main(const struct run_keep *keep, int argc, char **argv)
{
	char workspace[4096] = "";
	__attribute__((cleanup(run_root_done))) struct run_root root = RUN_ROOT_INIT;
	__attribute__((cleanup(run_rules_done))) struct run_rules rules = { 0 };
	__attribute__((cleanup(run_sinks_done))) struct run_sinks sinks = { 0 };
	__attribute__((cleanup(secrets_forget))) struct run_secrets secrets = { 0 };
	__attribute__((cleanup(flat_done))) struct flat_file policy = { 0 };
	auto_buf struct buf env_values = { 0 };
	struct run_args a;
	struct sandbox_spec spec;
	__attribute__((cleanup(run_result_done))) struct run_result_file result =
		RUN_RESULT_FILE_INIT;
	struct err err = { 0 };
	__attribute__((cleanup(run_from_done))) struct run_from from = { .fd = -1,
									 .processes = -1 };
	enum run_sign sign = RUN_SIGN_IF_KEY;
	uint32_t pressure = PRESSURE_DROP, when_full = FULL_CONTINUE;
	AUTO(redactor) struct redactor *redactor = NULL;
	bool limited = true; /* a directory that the operator names is theirs to limit */
	int rest, code;

	if (run_read_args(&a, &policy, argc, argv, &rest, &err) < 0)
		return cli_bad_usage("run", &err);
	if (a.help) {
		cli_usage("run [OPTIONS] -- COMMAND [ARGUMENT...]", PURPOSE, run_options());
		return 0;
	}
	if (rest == argc && !keep &&
	    (is_for_agent(&a) || !a.root.root || !image_is_reference(a.root.root))) {
		err_set(&err, EINVAL, "no command given%s",
			a.root.root ? " (an image's own is for --no-agent)" : "");
		return cli_bad_usage("run", &err);
	}
	if (!keep && is_for_agent(&a))
		return hand_over(&a, argc, argv);
	if (has_named_workspace(&a) && (!a.dry_run || keep)) {
		if (named_workspace_take(workspace, &limited, a.tenant ? a.tenant : "default",
					 a.workspace + strlen(WORKSPACE_PREFIX), a.disk, &err) < 0)
			return cli_fail(&err);
		a.workspace = NULL; /* it is ours, and below our state: make_spec would refuse it */
	}
	if (run_make_spec(&spec, &a, argv + rest, &err) < 0 ||
	    run_sinks_make(&sinks, a.kafka, &a.exports, &err) < 0 ||
	    run_parse_sign(a.sign, &sign, &err) < 0 ||
	    run_parse_pressure(a.on_pressure, &pressure, &err) < 0 ||
	    run_check_rings(&a, &err) < 0 || run_parse_full(a.when_full, &when_full, &err) < 0 ||
	    run_check_watches(&a.watch, &err) < 0 ||
	    run_join_watch_env(&env_values, &a.watch_env) < 0)
		return cli_bad_usage("run", &err);
	if (secrets_no_core(&err) < 0 || secrets_read(&secrets, &spec, &a.secrets, &err) < 0 ||
	    net_read_routes(&spec, &err) < 0)
		return cli_fail(&err);
	if (run_root_open(&root, &spec, &a.root, !keep, &err) < 0)
		return cli_fail(&err);
	if (keep && keep->container &&
	    (keep->container->amend(keep->container->arg, &spec, &err) < 0 ||
	     run_check_writable(&spec, &err) < 0))
		return cli_fail(&err);
	if (*workspace)
		spec.workspace = workspace;
	spec.workspace_unlimited = !limited;
	if (spec.secrets_n && a.watch.n < WATCHLIST_MAX && a.watch.n < OPTION_LIST_MAX)
		a.watch.v[a.watch.n++] = SECRET_DIR "/"; /* who read one, and when */
	if (a.witness && run_sinks_witness(&sinks, a.witness, &sign, &err) < 0)
		return cli_bad_usage("run", &err);
	if (a.result && !a.dry_run && geteuid() == 0 &&
	    run_result_open(&result, a.result, &spec, &err) < 0)
		return cli_fail(&err);
	if (run_rules_load(&rules, &a.rules, !a.no_default_rules, a.baseline) < 0)
		return EXIT_WARDER;
	if (a.dry_run)
		return dry_run(&spec, a.json, &err);
	if (geteuid() != 0) {
		err_set(&err, EPERM,
			"running a sandbox needs root: it loads BPF programs and "
			"creates cgroups (try sudo)");
		return cli_fail(&err);
	}
	if (spec.tty && term_size(STDIN_FILENO, &spec.tty_rows, &spec.tty_cols) < 0) {
		err_set(&err, ENOTTY, "option '--tty': the input device is not a terminal (TTY)");
		return cli_fail(&err);
	}
	a.env_values = env_values.p;
	if (run_redactor(&redactor, &a.redact, &spec,
			 a.session_dir ? REDACT_KEY_KNOWN : REDACT_KEY_HOST, &err) < 0)
		return cli_fail(&err);
	if (redaction_of_log(redactor) < 0)
		return EXIT_WARDER;
	run_sinks_warn(&sinks);
	if (open_from(&from, &a, *workspace, spec.argv[0], &err) < 0)
		return cli_fail(&err);
	code = run_it(keep, &from, &a, &spec, &rules, redactor, &sinks, sign, pressure, when_full,
		      &result);
	redaction_of_log(NULL);
	net_forget_routes(&spec);
	named_workspace_release();
	return code;
}

int cmd_run(int argc, char **argv)
{
	return run_main(NULL, argc, argv);
}

int run_kept(int argc, char **argv, const char *session, int hub_fd, char ret_reason[32])
{
	return run_contained(argc, argv, session, hub_fd, ret_reason, NULL);
}

int run_contained(int argc, char **argv, const char *session, int hub_fd, char ret_reason[32],
		  const struct run_container *c)
{
	const struct run_keep keep = { session, hub_fd, ret_reason, c };

	return run_main(&keep, argc, argv);
}
