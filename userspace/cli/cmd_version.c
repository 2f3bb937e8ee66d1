// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>

#include "userspace/base/version.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/util.h"

struct version_args {
	bool help;
};

static const struct option_def OPTIONS[] = {
	{ "help", 'h', OPT_FLAG, offsetof(struct version_args, help), NULL, "this text" },
	{ 0 },
};

int cmd_version(int argc, char **argv)
{
	struct version_args args = { 0 };
	struct err err = { 0 };
	int n;

	if (options_parse_mixed(OPTIONS, &args, argc, argv, &n, &err) < 0)
		return cli_bad_usage("version", &err);
	if (args.help) {
		cli_usage("version", "Print the version.", OPTIONS);
		return 0;
	}
	if (n) {
		err_set(&err, EINVAL, "unexpected argument '%s'", argv[1]);
		return cli_bad_usage("version", &err);
	}
	puts("warder " WARDER_VERSION);
	return cli_finish_output(0);
}
