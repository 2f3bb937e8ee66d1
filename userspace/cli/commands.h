/* SPDX-License-Identifier: Apache-2.0 */
/* Entry points of the commands, one per cmd_<name>.c. */
#ifndef WARDER_CLI_COMMANDS_H
#define WARDER_CLI_COMMANDS_H

int cmd_agent(int argc, char **argv);
int cmd_approve(int argc, char **argv);
int cmd_attach(int argc, char **argv);
int cmd_completion(int argc, char **argv);
int cmd_consume(int argc, char **argv);
int cmd_cp(int argc, char **argv);
int cmd_create(int argc, char **argv);
int cmd_deny(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_selftest(int argc, char **argv);
int cmd_events(int argc, char **argv);
int cmd_evidence(int argc, char **argv);
int cmd_exec(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_image(int argc, char **argv);
int cmd_keys(int argc, char **argv);
int cmd_fields(int argc, char **argv);
int cmd_freeze(int argc, char **argv);
int cmd_kill(int argc, char **argv);
int cmd_mcp(int argc, char **argv);
int cmd_oci(int argc, char **argv);
int cmd_policy(int argc, char **argv);
int cmd_logs(int argc, char **argv);
int cmd_pause(int argc, char **argv);
int cmd_ps(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_redact(int argc, char **argv);
int cmd_resume(int argc, char **argv);
int cmd_rm(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_review(int argc, char **argv);
int cmd_rules(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_sessions(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_sink(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_thaw(int argc, char **argv);
int cmd_version(int argc, char **argv);
int cmd_workspace(int argc, char **argv);
int cmd_snapshot(int argc, char **argv);
int cmd_restore(int argc, char **argv);

/* Can `warder run` work with this policy (a name or file)? As strict as at a run; starts nothing. */
struct err;
int run_check_policy(const char *policy, struct err *err);
/* The options of `warder run`, for help. */
struct option_def;
const struct option_def *run_options(void);
/* kill, freeze, thaw, of whatever session `word` names; *ret_text (256): how it went.
 * `who` asks, as the record shall have it; NULL = we do. */
int order_give(const char *order, const char *session, const char *who, char *ret_text,
	       struct err *err);
/* `warder rules reload SESSION`: its exit code. */
int order_reload(const char *session);
/* Have a running session compare its workspace. 0: it will; -ENOENT, -ESRCH: it does not run. */
int order_workspace(const char *session, struct err *err);

#endif
