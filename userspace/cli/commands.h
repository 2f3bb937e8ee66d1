/* SPDX-License-Identifier: Apache-2.0 */
/* Entry points of the commands, one per cmd_<name>.c. */
#ifndef WARDER_CLI_COMMANDS_H
#define WARDER_CLI_COMMANDS_H

int cmd_version(int argc, char **argv);

#endif
