// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "userspace/base/clock.h"
#include "userspace/base/json.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/named_workspace.h"
#include "userspace/cli/util.h"

struct workspace_args {
	const char *tenant;
	bool json, help;
};

static const struct option_def OPTIONS[] = {
	{ "tenant", 0, OPT_STR, offsetof(struct workspace_args, tenant), "NAME",
	  "rm: whose (default: default)" },
	{ "json", 0, OPT_FLAG, offsetof(struct workspace_args, json), NULL,
	  "list: one JSON object a line" },
	{ "help", 'h', OPT_FLAG, offsetof(struct workspace_args, help), NULL, "this text" },
	{ 0 },
};

static int print(void *arg, const struct named_workspace *w)
{
	auto_buf struct buf out = { 0 };
	char when[RFC3339_NS_LEN + 1];
	struct json j;

	rfc3339_ns(when, w->changed_s * NSEC_PER_SEC);
	if (!*(const bool *)arg) {
		printf("%-24s  %-16s  %-7s  %.19s\n", w->name, w->tenant,
		       w->in_use ? "in use" : "free", when);
		return 0;
	}
	json_init(&j, &out);
	json_object_begin(&j);
	json_key(&j, "workspace");
	json_strz(&j, w->name);
	json_key(&j, "tenant");
	json_strz(&j, w->tenant);
	json_key(&j, "in_use");
	json_bool(&j, w->in_use);
	json_key(&j, "changed");
	json_strz(&j, when);
	json_object_end(&j);
	printf("%.*s\n", (int)out.n, out.p);
	return 0;
}

int cmd_workspace(int argc, char **argv)
{
	struct workspace_args args = { 0 };
	struct err err = { 0 };
	int n;

	if (options_parse_mixed(OPTIONS, &args, argc, argv, &n, &err) < 0)
		return cli_bad_usage("workspace", &err);
	if (args.help) {
		cli_usage(
			"workspace list | rm NAME...",
			"Workspaces that outlive their sandboxes: `run --workspace name:NAME` makes one, for\n"
			"its tenant, and has it alone while it runs. rm deletes one that is not in use, for good.",
			OPTIONS);
		return 0;
	}
	if (n == 1 && !strcmp(argv[1], "list"))
		return named_workspace_each(print, &args.json, &err) < 0 ? cli_fail(&err)
									 : cli_finish_output(0);
	if (n < 2 || strcmp(argv[1], "rm") != 0) {
		err_set(&err, EINVAL, "expected list or rm NAME...");
		return cli_bad_usage("workspace", &err);
	}
	for (int i = 2; i <= n; i++)
		if (named_workspace_remove(args.tenant ? args.tenant : "default", argv[i], &err) <
		    0)
			return cli_fail(&err);
	return cli_finish_output(0);
}
