/* SPDX-License-Identifier: Apache-2.0 */
/* Help of a command, out of its table of options: for a terminal, as a manual page, as a shell's completion. */
#ifndef WARDER_CLI_HELP_H
#define WARDER_CLI_HELP_H

#include <stdio.h>

#include "userspace/base/option.h"
#include "userspace/cli/cli.h"

/* One command's help: what cli_usage was called with. */
struct help_page {
	const struct command *command;
	const char *usage, *purpose;
	const struct option_def *options;
};

typedef void (*help_fn)(void *arg, const struct help_page *page);

/* Calls `fn` with the help of `command`, or of each when it is NULL, in the table's order. */
void help_each(const struct command *command, help_fn fn, void *arg);
/* The action words of a usage ("keys [OPTIONS] init|show": init, show), each with a blank behind it. */
void help_actions(const struct help_page *page, FILE *out);

/* man(7). `page` NULL: warder(1), with the table of commands. */
void help_man(FILE *out, const struct help_page *page);
/* A completion script. */
void help_bash(FILE *out);
void help_zsh(FILE *out);

#endif
