// SPDX-License-Identifier: Apache-2.0
/* The table of commands: dispatcher and help read it. */
#include "userspace/cli/cli.h"

#include "userspace/cli/commands.h"

const struct command commands[] = {
	{ "run", "run a command in a watched sandbox", cmd_run },
	{ "agent", "the daemon that runs sandboxes for others", cmd_agent },
	{ "create", "make a sandbox that stays, by the agent", cmd_create },
	{ "exec", "run a command in a sandbox of the agent", cmd_exec },
	{ "mcp", "tools for an AI agent over stdio, in a sandbox of its own", cmd_mcp },
	{ "cp", "copy into or out of a sandbox of the agent", cmd_cp },
	{ "workspace", "workspaces that stay: list, rm", cmd_workspace },
	{ "snapshot", "keep the files of a sandbox of the agent; list, rm", cmd_snapshot },
	{ "restore", "make a sandbox that begins with a snapshot's files", cmd_restore },
	{ "attach", "join a sandbox's terminal; ^P ^Q leaves it", cmd_attach },
	{ "ps", "the sandboxes of the agent", cmd_ps },
	{ "logs", "what a sandbox's commands wrote", cmd_logs },
	{ "pause", "freeze a sandbox of the agent", cmd_pause },
	{ "resume", "let it go on", cmd_resume },
	{ "rm", "end a sandbox of the agent; its record stays", cmd_rm },
	{ "events", "print the events of a session", cmd_events },
	{ "replay", "show a session as a timeline, or judge it again", cmd_replay },
	{ "report", "write a session as one HTML page", cmd_report },
	{ "verify", "prove that a session's record is complete and unaltered", cmd_verify },
	{ "sessions", "list, search, keep and delete recorded sessions", cmd_sessions },
	{ "diff", "what one session did that another did not", cmd_diff },
	{ "review", "sign a verdict on a session into the host log", cmd_review },
	{ "evidence", "what a record proves, and which requirement asks for it", cmd_evidence },
	{ "export", "send a session's events to a sink, from where it left off", cmd_export },
	{ "image", "root file systems: import, list, show, verify, sign, rm", cmd_image },
	{ "oci", "an OCI runtime: sandboxes for podman --runtime and the like", cmd_oci },
	{ "keys", "the host's key that signs records", cmd_keys },
	{ "sink", "test a sink, list the configured ones", cmd_sink },
	{ "consume", "read events from Kafka: without duplicates, and checked", cmd_consume },
	{ "status", "sessions that run now, and how their sinks do", cmd_status },
	{ "approve", "answer yes to a rule that holds a sandbox", cmd_approve },
	{ "deny", "answer no: the sandbox is killed", cmd_deny },
	{ "freeze", "stop a running sandbox to look at it", cmd_freeze },
	{ "thaw", "let a frozen sandbox go on", cmd_thaw },
	{ "kill", "end a running sandbox", cmd_kill },
	{ "rules", "check and list rules", cmd_rules },
	{ "policy", "list, show and check policies for run", cmd_policy },
	{ "redact", "rules of secrets: check, try, import; originals of an escrow", cmd_redact },
	{ "doctor", "what this host gives, and what is missing", cmd_doctor },
	{ "selftest", "attack sandboxes of a policy, and say what held", cmd_selftest },
	{ "fields", "list the fields of events and rules", cmd_fields },
	{ "completion", "for bash and zsh; the manual pages", cmd_completion },
	{ "version", "print the version", cmd_version },
};

const unsigned commands_n = sizeof(commands) / sizeof(commands[0]);
