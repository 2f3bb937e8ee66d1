// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>

#include "userspace/base/version.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/util.h"
#include "userspace/redact/redact.h"

struct version_args {
	bool json, help;
};

static const struct option_def OPTIONS[] = {
	{ "json", 0, OPT_FLAG, offsetof(struct version_args, json), NULL, "one JSON object" },
	{ "help", 'h', OPT_FLAG, offsetof(struct version_args, help), NULL, "this text" },
	{ 0 },
};

int cmd_version(int argc, char **argv)
{
	struct version_args args = { 0 };
	struct err err = { 0 };
	const char *what;
	bool fast;
	int n;

	if (options_parse_mixed(OPTIONS, &args, argc, argv, &n, &err) < 0)
		return cli_bad_usage("version", &err);
	if (args.help) {
		cli_usage("version",
			  "Print the version, and what looks for secrets in long output.", OPTIONS);
		return 0;
	}
	if (n) {
		err_set(&err, EINVAL, "unexpected argument '%s'", argv[1]);
		return cli_bad_usage("version", &err);
	}
	fast = redact_has_hyperscan(&what);
	if (args.json) {
		printf("{\"version\":\"%s\",\"redaction\":\"%s\"}\n", WARDER_VERSION,
		       fast ? "hyperscan" : "own");
		return cli_finish_output(0);
	}
	puts("warder " WARDER_VERSION);
	printf("redaction of long output: %s%s\n", fast ? "" : "own pass: ", what);
	return cli_finish_output(0);
}
