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
	  "whose (list: default all; rm: default)" },
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
		printf("%-24s  %-16s  %-7s  %.19s  %6llu MiB of ", w->name, w->tenant,
		       w->in_use ? "in use" : "free", when, (unsigned long long)(w->used >> 20));
		if (w->size)
			printf("%llu MiB\n", (unsigned long long)(w->size >> 20));
		else
			puts("the host's");
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
	json_key(&j, "size");
	if (w->size)
		json_u64(&j, w->size);
	else
		json_null(&j);
	json_key(&j, "used");
	json_u64(&j, w->used);
	json_object_end(&j);
	cli_print_line(&out);
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
			"its tenant, and has it alone while it runs. It holds as much as the first one's --disk\n"
			"said, and grows when a later one says more: an ext4 file system in\n"
			"<state>/workspaces/TENANT/.disk.NAME, mounted for its sandbox only. rm deletes one that\n"
			"is not in use, for good.",
			OPTIONS);
		return 0;
	}
	if (n == 1 && !strcmp(argv[1], "list"))
		return named_workspace_each(args.tenant, print, &args.json, &err) < 0
			       ? cli_fail(&err)
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
