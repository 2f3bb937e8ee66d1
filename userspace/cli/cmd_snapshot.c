// SPDX-License-Identifier: Apache-2.0
/* snapshot, restore: the files of a sandbox, kept under a name, and a sandbox that begins with them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/cli/agent.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/util.h"
#include "userspace/pipeline/snapshots.h"

struct snapshot_args {
	const char *tenant;
	bool json, help, processes;
};

static const struct option_def OPTIONS[] = {
	{ "tenant", 0, OPT_STR, offsetof(struct snapshot_args, tenant), "NAME",
	  "list, rm, for root: whose (list: default all; rm: default)" },
	{ "processes", 0, OPT_FLAG, offsetof(struct snapshot_args, processes), NULL,
	  "gVisor: with what runs, which warder restore without a COMMAND goes on with" },
	{ "json", 0, OPT_FLAG, offsetof(struct snapshot_args, json), NULL,
	  "one JSON object a snapshot" },
	{ "help", 'h', OPT_FLAG, offsetof(struct snapshot_args, help), NULL, "this text" },
	{ 0 },
};

static const char PURPOSE[] =
	"Keep what is in /workspace, /tmp and /var/tmp of a sandbox of the agent under NAME, for its\n"
	"tenant: files with their holes, directories, links and FIFOs, with permissions and times.\n"
	"No processes, unless they are asked for: what comes back begins anew, among these files.\n"
	"Not /run with its secrets, /dev/shm, sockets, setuid bits and extended attributes, nor a\n"
	"--workspace or --rw directory of the host. The sandbox stands still meanwhile. At most 4G;\n"
	"more, or a full disk, is an error, and then there is no snapshot. It lies in\n"
	"<state>/snapshots/TENANT/NAME/files.tar.zst, root's alone, with its SHA-256, which is in\n"
	"the record of both sessions and is checked by warder restore.\n\n"
	"With --processes also their memory, with all that is in it, in processes.img. That needs\n"
	"gVisor of 2024 or newer, --net none, a sandbox that began with a command and that no other\n"
	"came into by exec, and no terminal. They go on, here and after warder restore, as after a\n"
	"SIGSTOP and a SIGCONT; files that they had open must be among those that are kept.";

static void print_text(const struct snapshots_row *row)
{
	char when[RFC3339_NS_LEN + 1];

	rfc3339_ns(when, row->created_ns);
	printf("%-24s  %-16s  %.19s  %8llu files  %10llu bytes  of %s%s\n", row->name, row->tenant,
	       when, (unsigned long long)row->files, (unsigned long long)row->bytes, row->sandbox,
	       row->processes ? ", with its processes" : "");
}

static int print(void *arg, const struct snapshots_row *row)
{
	auto_buf struct buf out = { 0 };
	struct json j;

	if (!*(const bool *)arg) {
		print_text(row);
		return 0;
	}
	json_init(&j, &out);
	snapshots_json(&j, row);
	cli_print_line(&out);
	return out.failed ? -ENOMEM : 0;
}

static void print_line(struct str row)
{
	char name[64], tenant[64], sandbox[64], created[40], files[24], bytes[24];

	printf("%-24s  %-16s  %.19s  %8s files  %10s bytes  of %s\n",
	       cli_member(row, "snapshot", name, sizeof(name)),
	       cli_member(row, "tenant", tenant, sizeof(tenant)),
	       cli_member(row, "created", created, sizeof(created)),
	       cli_member(row, "files", files, sizeof(files)),
	       cli_member(row, "bytes", bytes, sizeof(bytes)),
	       cli_member(row, "sandbox", sandbox, sizeof(sandbox)));
}

/* Root looks at the directory itself: no agent is needed. */
static int list(const struct snapshot_args *a, struct err *err)
{
	const struct agent_request q = { .op = AGENT_SNAPSHOTS };
	bool json = a->json;

	if (geteuid() != 0)
		return agent_talk(&q, a->json ? NULL : print_line);
	return snapshots_each(a->tenant, print, &json, err) < 0 ? cli_fail(err)
								: cli_finish_output(0);
}

static int rm(const struct snapshot_args *a, int n, char **names, struct err *err)
{
	const struct agent_request q = { .op = AGENT_SNAPSHOT_RM,
					 .argv = (const char **)names,
					 .argc = (size_t)n };

	if (geteuid() != 0)
		return agent_talk(&q, NULL);
	for (int i = 0; i < n; i++)
		if (snapshots_remove(a->tenant ? a->tenant : "default", names[i], err) < 0)
			return cli_fail(err);
	return cli_finish_output(0);
}

int cmd_snapshot(int argc, char **argv)
{
	struct agent_request q = { .op = AGENT_SNAPSHOT };
	struct snapshot_args a = { 0 };
	struct err err = { 0 };
	int n;

	if (options_parse_mixed(OPTIONS, &a, argc, argv, &n, &err) < 0)
		return cli_bad_usage("snapshot", &err);
	if (a.help) {
		cli_usage("snapshot SANDBOX NAME | list | rm NAME...", PURPOSE, OPTIONS);
		return 0;
	}
	if (n == 1 && !strcmp(argv[1], "list"))
		return list(&a, &err);
	if (n >= 2 && !strcmp(argv[1], "rm"))
		return rm(&a, n - 1, argv + 2, &err);
	if (n != 2) {
		err_set(&err, EINVAL, "expected SANDBOX NAME, list or rm NAME...");
		return cli_bad_usage("snapshot", &err);
	}
	q.sandbox = argv[1];
	q.argv = (const char *[]){ argv[2], a.processes ? AGENT_PROCESSES : NULL, NULL };
	q.argc = a.processes ? 2 : 1;
	return agent_talk(&q, a.json ? NULL : print_line);
}

static const struct option_def RESTORE_OPTIONS[] = {
	{ "help", 'h', OPT_FLAG, 0, NULL, "this text" },
	{ 0 },
};

int cmd_restore(int argc, char **argv)
{
	auto_free char **words = calloc((size_t)argc + 3, sizeof(*words));
	static char create[] = "create", from[] = "--from";
	struct err err = { 0 };
	int n = 0;

	if (!words)
		return EXIT_WARDER;
	if (argc < 2) {
		err_set(&err, EINVAL, "which snapshot?");
		return cli_bad_usage("restore", &err);
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		cli_usage(
			"restore SNAPSHOT [OPTIONS] [-- COMMAND [ARGUMENT...]]",
			"Have the agent make a sandbox that begins with the files of a snapshot: warder "
			"create --from.\nPrints its id. The options are those of warder run; it is a new "
			"sandbox with a record of its own,\nand under them, not under those that the "
			"snapshot was taken under.\nOf a snapshot --processes they go on when no COMMAND is "
			"given: only under the same runsc, platform\nand policy, so with the same options. "
			"They stand still until the guest's view is there and who they\nare is in the record.",
			RESTORE_OPTIONS);
		return 0;
	}
	words[n++] = create;
	words[n++] = from;
	for (int i = 1; i < argc; i++)
		words[n++] = argv[i];
	return cmd_create(n, words);
}
