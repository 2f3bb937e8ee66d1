// SPDX-License-Identifier: Apache-2.0
/* create, exec, attach, ps, logs, pause, resume, rm: what is said to an agent about its sandboxes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporters/scan.h"
#include "userspace/base/auto.h"
#include "userspace/base/plain.h"
#include "userspace/cli/agent.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/util.h"

struct box_args {
	struct option_list env;
	const char *cwd;
	bool tty, follow, json, help;
};

#define AT(member) offsetof(struct box_args, member)

/* ---- create ---- */

int cmd_create(int argc, char **argv)
{
	auto_free const char **words = calloc((size_t)argc + 1, sizeof(*words));
	struct agent_request q = { .op = AGENT_CREATE, .argv = words };
	char dir[4096];

	if (!words)
		return EXIT_WARDER;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			cli_usage(
				"create [OPTIONS] [-- COMMAND [ARGUMENT...]]",
				"Have the agent make a sandbox that stays until its command ends, "
				"or without one until\nwarder rm, --ttl or --idle. Prints its id "
				"when it runs. Commands go in by warder exec.\nThe options are those "
				"of warder run.",
				run_options());
			return 0;
		}
		if (!strcmp(argv[i], "--"))
			break;
	}
	for (int i = 1; i < argc; i++)
		words[q.argc++] = argv[i];
	q.dir = getcwd(dir, sizeof(dir));
	return agent_talk(&q, NULL);
}

/* ---- exec ---- */

static const struct option_def EXEC_OPTIONS[] = {
	{ "tty", 't', OPT_FLAG, AT(tty), NULL, "with a terminal, joined with this one" },
	{ "env", 'e', OPT_STRLIST, AT(env), "K=V",
	  "environment variable, besides those of the sandbox; repeatable" },
	{ "cwd", 0, OPT_STR, AT(cwd), "DIR", "start in this directory" },
	{ "json", 0, OPT_FLAG, AT(json), NULL,
	  "its output as one JSON object a line (type stdout, stderr, error), then {\"type\":\"exit\"}" },
	{ "help", 'h', OPT_FLAG, AT(help), NULL, "this text" },
	{ 0 },
};

int cmd_exec(int argc, char **argv)
{
	struct agent_request q = { .op = AGENT_EXEC };
	struct box_args a = { 0 };
	struct err err = { 0 };
	char type[64];
	int rest;

	if (options_parse(EXEC_OPTIONS, &a, argc, argv, &rest, &err) < 0)
		return cli_bad_usage("exec", &err);
	if (a.help) {
		cli_usage(
			"exec [OPTIONS] SANDBOX [--] COMMAND [ARGUMENT...]",
			"Run one more command in a sandbox of the agent: as its payload, under the same\n"
			"limits, in the same record. SANDBOX: its name, its id or four characters of that.\n"
			"Exit code: the command's own, as with run. ^P ^Q leaves a terminal; the command goes on.",
			EXEC_OPTIONS);
		return 0;
	}
	if (rest < argc)
		q.sandbox = argv[rest++];
	if (rest < argc && !strcmp(argv[rest], "--"))
		rest++;
	if (!q.sandbox || rest == argc) {
		err_set(&err, EINVAL, q.sandbox ? "no command given" : "which sandbox?");
		return cli_bad_usage("exec", &err);
	}
	q.argv = (const char **)argv + rest;
	q.argc = (size_t)(argc - rest);
	if (a.tty && a.env.n < OPTION_LIST_MAX) { /* in front: one that is given wins */
		memmove(a.env.v + 1, a.env.v, a.env.n++ * sizeof(a.env.v[0]));
		snprintf(type, sizeof(type), "TERM=%s", getenv("TERM") ? getenv("TERM") : "xterm");
		a.env.v[0] = type;
	}
	q.env = a.env.v;
	q.env_n = a.env.n;
	q.cwd = a.cwd;
	q.tty = a.tty;
	if (a.json && a.tty) {
		err_set(&err, EINVAL, "option '--json': not with '--tty'");
		return cli_bad_usage("exec", &err);
	}
	return a.json ? agent_talk_json(&q, NULL, true) : agent_talk(&q, NULL);
}

/* ---- those that take a sandbox and little else ---- */

static const struct option_def ONE_OPTIONS[] = {
	{ "help", 'h', OPT_FLAG, AT(help), NULL, "this text" },
	{ 0 },
};

static const struct option_def ORDER_OPTIONS[] = {
	{ "json", 0, OPT_FLAG, AT(json), NULL,
	  "one JSON object a sandbox: what was done, or why not" },
	{ "help", 'h', OPT_FLAG, AT(help), NULL, "this text" },
	{ 0 },
};

static const struct option_def LOGS_OPTIONS[] = {
	{ "follow", 'f', OPT_FLAG, AT(follow), NULL, "wait for more until it ends" },
	{ "json", 0, OPT_FLAG, AT(json), NULL,
	  "as one JSON object a line (type stdout, stderr, error), then {\"type\":\"exit\"}" },
	{ "help", 'h', OPT_FLAG, AT(help), NULL, "this text" },
	{ 0 },
};

/* {"type":"done"}: with the sandbox's id or what was said of it. */
static void print_done(struct str row)
{
	printf("{\"type\":\"done\",\"message\":%.*s}\n", (int)row.n, row.p);
}

static void print_word(struct str row)
{
	if (row.n >= 2 && row.p[0] == '"')
		row = (struct str){ row.p + 1, row.n - 2 };
	printf("%.*s\n", (int)row.n, row.p);
}

static int one(enum agent_op op, const char *purpose, const struct option_def *defs, int argc,
	       char **argv)
{
	const char *name = agent_op_names[op];
	struct agent_request q = { .op = op };
	struct box_args a = { 0 };
	struct err err = { 0 };
	char usage[64];
	int n, code = 0;

	if (options_parse_mixed(defs, &a, argc, argv, &n, &err) < 0)
		return cli_bad_usage(name, &err);
	if (a.help) {
		snprintf(usage, sizeof(usage), "%s [OPTIONS] SANDBOX%s", name,
			 op == AGENT_RM ? "..." : "");
		cli_usage(usage, purpose, defs);
		return 0;
	}
	if (n == 0 || (n > 1 && op != AGENT_RM)) {
		err_set(&err, EINVAL, n ? "one sandbox at a time" : "which sandbox?");
		return cli_bad_usage(name, &err);
	}
	q.follow = a.follow;
	for (int i = 1; i <= n; i++) {
		int c;

		q.sandbox = argv[i];
		c = a.json ? agent_talk_json(&q, print_done, op == AGENT_LOGS)
			   : agent_talk(&q, print_word);
		code = c ? c : code;
	}
	return code;
}

int cmd_attach(int argc, char **argv)
{
	return one(
		AGENT_ATTACH,
		"Join what a sandbox began with: what it writes comes here, what is typed goes there.\n"
		"^P ^Q leaves it, and it goes on; so does closing the terminal. More than one may join.\n"
		"SANDBOX: its name, its id or four characters of that.",
		ONE_OPTIONS, argc, argv);
}

int cmd_logs(int argc, char **argv)
{
	return one(
		AGENT_LOGS,
		"What a sandbox's commands wrote to stdout, stderr and terminals, as recorded: without\n"
		"secrets, at most --output-limit. Of one that has ended: its id, for root.",
		LOGS_OPTIONS, argc, argv);
}

int cmd_pause(int argc, char **argv)
{
	return one(AGENT_PAUSE, "Freeze a sandbox of the agent, as warder freeze does.",
		   ORDER_OPTIONS, argc, argv);
}

int cmd_resume(int argc, char **argv)
{
	return one(AGENT_RESUME, "Let a frozen sandbox of the agent go on.", ORDER_OPTIONS, argc,
		   argv);
}

int cmd_rm(int argc, char **argv)
{
	return one(AGENT_RM,
		   "End sandboxes of the agent and wait until they are gone. Their records stay.",
		   ORDER_OPTIONS, argc, argv);
}

/* ---- ps ---- */

static const struct option_def PS_OPTIONS[] = {
	{ "json", 0, OPT_FLAG, AT(json), NULL, "one JSON object a line" },
	{ "help", 'h', OPT_FLAG, AT(help), NULL, "this text" },
	{ 0 },
};

static const char *member(struct str object, const char *key, char *ret, size_t size)
{
	return strcmp(cli_member(object, key, ret, size), "null") ? ret : "-";
}

static void print_row(struct str row)
{
	char session[32], name[40], tenant[24], state[12], created[40], command[80] = "-";
	struct str run = { 0 };

	if (scan_find(row, "run", &run))
		member(run, "command", command, sizeof(command));
	printf("%-26s  %-16.16s  %-12.12s  %-8s  %.19s  %.60s\n",
	       member(row, "session", session, sizeof(session)),
	       member(row, "name", name, sizeof(name)),
	       member(row, "tenant", tenant, sizeof(tenant)),
	       member(row, "state", state, sizeof(state)),
	       member(row, "created", created, sizeof(created)), command);
}

int cmd_ps(int argc, char **argv)
{
	struct agent_request q = { .op = AGENT_PS };
	struct box_args a = { 0 };
	struct err err = { 0 };
	int n;

	if (options_parse_mixed(PS_OPTIONS, &a, argc, argv, &n, &err) < 0)
		return cli_bad_usage("ps", &err);
	if (a.help) {
		cli_usage(
			"ps [OPTIONS]",
			"The sandboxes of the agent: id, name, tenant, state (starting, running, frozen,\n"
			"held by a question), since when, what they began with.",
			PS_OPTIONS);
		return 0;
	}
	if (n) {
		err_set(&err, EINVAL, "it takes no arguments");
		return cli_bad_usage("ps", &err);
	}
	return agent_talk(&q, a.json ? NULL : print_row);
}
