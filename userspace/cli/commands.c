// SPDX-License-Identifier: Apache-2.0
/* The table of commands: dispatcher and help read it. */
#include "userspace/cli/cli.h"

#include "userspace/cli/commands.h"

const struct command commands[] = {
	{ "version", "print the version", cmd_version },
};

const unsigned commands_n = sizeof(commands) / sizeof(commands[0]);
