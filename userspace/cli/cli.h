/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: one file a command (cmd_<name>.c), one row each in commands.c. */
#ifndef WARDER_CLI_CLI_H
#define WARDER_CLI_CLI_H

/* Exit codes of `warder run` beside the command's own (DESIGN: as env(1) and timeout(1)). */
#define EXIT_TIMEOUT	 124
#define EXIT_WARDER	 125 /* our own error, bad usage included */
#define EXIT_CANNOT_EXEC 126
#define EXIT_NOT_FOUND	 127
#define EXIT_KILLED	 137 /* by rule, OOM or limit */

struct command {
	const char *name;
	const char *summary; /* one line for `warder help` */
	int (*main)(int argc,
		    char **argv); /* argv[0] is the command's name; returns the exit code */
};

extern const struct command commands[];
extern const unsigned commands_n;

int cli_main(int argc, char **argv);

#endif
