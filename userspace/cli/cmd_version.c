// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "userspace/base/version.h"
#include "userspace/cli/commands.h"

int cmd_version(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	puts("warder " WARDER_VERSION);
	return fflush(stdout) ? 1 : 0;
}
