/* SPDX-License-Identifier: Apache-2.0 */
/* What `warder run` is told: its options, and what they make. */
#ifndef WARDER_CLI_RUN_ARGS_H
#define WARDER_CLI_RUN_ARGS_H

#include "runtime/sandbox.h"
#include "userspace/base/auto.h"
#include "userspace/base/option.h"
#include "userspace/cli/run_net.h"
#include "userspace/cli/run_redact.h"
#include "userspace/cli/run_root.h"
#include "userspace/pipeline/hold.h"
#include "userspace/pipeline/run.h"

DEFINE_AUTO(sandbox_plan, sandbox_plan_free)

struct flat_file;

struct run_args {
	const char *backend, *platform, *policy, *session_dir, *name, *tenant, *result, *workspace,
		*cwd;
	const char *kafka, *sign, *witness, *env_values;
	struct option_list secrets;
	struct option_list rules, ro, rw, env, exports, watch_env, watch;
	struct redact_args redact;
	struct net_args network;
	struct root_args root;
	const char *on_pressure, *when_full;
	uint64_t urgent_ring, bulk_ring;
	uint64_t timeout, memory, pids, cpus, disk, tmp, nofile, fsize, export_wait, max_output;
	uint64_t hold_timeout, freeze_timeout;
	const char *hold_default;
	bool dry_run_actions, no_workspace_diff, keep_texts;
	uint64_t usage_period;
	const char *baseline;
	const char *from;
	const char *record;
	uint64_t output_limit;
	uint64_t ttl, idle;
	bool no_agent;
	bool no_default_rules, dry_run, json, quiet, help, kill_output, tty;
};

/* ---- run_args.c ---- */

/* What stands where no option is given. */
void run_args_defaults(struct run_args *a);

/* Below these a 0 would switch off what every sandbox must have. */
int run_check_given(const struct run_args *a, struct err *err);

/* Is what is typed to be kept in the record? */
bool run_records_input(const struct run_args *a);

/* The policy named among the options first, then the options over it. `ret_rest` counts what is left at the end of
 * `argv`: the command. */
int run_read_args(struct run_args *a, struct flat_file *policy, int argc, char **argv, int *rest,
		  struct err *err);

/* ---- run_check.c ---- */

/* Paths to be told of when they are read: absolute ones, or a pattern's beginning. */
int run_check_watches(const struct option_list *paths, struct err *err);

/* --sign: auto (NULL too), always or never. */
int run_parse_sign(const char *text, enum run_sign *ret, struct err *err);

/* --when-full: continue, pause or kill, as FULL_*; NULL leaves *ret. */
int run_parse_full(const char *text, uint32_t *ret, struct err *err);

/* What happens when events come faster than they can be taken ... */
int run_parse_pressure(const char *text, uint32_t *ret, struct err *err);

/* ... and how much can wait. */
int run_check_rings(const struct run_args *a, struct err *err);

/* How long an approval is waited for, and what follows when none comes. */
struct hold_policy run_hold_policy_of(const struct run_args *a);

/* One value of the option named so, by the table of checks; 0 where none is there. */
int run_check_value(const char *option, const char *value, struct err *err);

/* All values that were given, by the same table. */
int run_check_values(const struct run_args *a, struct err *err);

/* ---- run_spec.c ---- */

/* Our own records, keys and sockets are nothing that a payload may write to, whoever asks for it. */
int run_check_writable(const struct sandbox_spec *spec, struct err *err);

/* What the sandbox is to be. Its strings are those of `a`, which outlives it. */
int run_make_spec(struct sandbox_spec *spec, const struct run_args *a, char **command,
		  struct err *err);

/* Names of the environment whose values are told, commas between them, as a C string; nothing where there is none. */
int run_join_watch_env(struct buf *out, const struct option_list *names);

#endif
