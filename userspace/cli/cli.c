// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/log.h"
#include "userspace/base/option.h"

static void print_help(FILE *out)
{
	fputs("Usage: warder COMMAND [OPTIONS] [ARGUMENTS]\n\n"
	      "Run untrusted code in a sandbox, watch it from the kernel, stop it when it\n"
	      "misbehaves, and keep evidence that stands up.\n\nCommands:\n",
	      out);
	for (unsigned i = 0; i < commands_n; i++)
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
	fputs("\n`warder help COMMAND` tells more about one command.\n", out);
}

static int unknown_command(const char *word)
{
	const char *names[64], *near;
	size_t n = 0;

	for (unsigned i = 0; i < commands_n && n < ARRAY_SIZE(names); i++)
		names[n++] = commands[i].name;
	near = closest_name(word, names, n);
	if (near)
		log_error("unknown command '%s': did you mean '%s'?", word, near);
	else
		log_error("unknown command '%s': `warder help` lists them", word);
	return EXIT_WARDER;
}

static const struct command *find_command(const char *word)
{
	for (unsigned i = 0; i < commands_n; i++)
		if (!strcmp(commands[i].name, word))
			return &commands[i];
	return NULL;
}

/* `warder help run` is `warder run --help`. */
static int help_of(char *word)
{
	char option[] = "--help", *argv[] = { word, option, NULL };
	const struct command *c = find_command(word);

	return c ? c->main(2, argv) : unknown_command(word);
}

/* Whom the program's own name says it all to: tools that want one path, and no words before theirs. */
static const struct {
	const char *program, *command;
} names[] = { { "warder-oci", "oci" } };

int cli_main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : NULL, *own = argc ? strrchr(argv[0], '/') : NULL;
	const struct command *c;

	own = own ? own + 1 : argc ? argv[0] : "";
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(own, names[i].program))
			return find_command(names[i].command)->main(argc, argv);

	if (!word) {
		print_help(stderr);
		return EXIT_WARDER;
	}
	if (!strcmp(word, "help") && argc > 2)
		return help_of(argv[2]);
	if (!strcmp(word, "help") || !strcmp(word, "--help") || !strcmp(word, "-h")) {
		print_help(stdout);
		return 0;
	}
	if (!strcmp(word, "--version"))
		word = "version";
	c = find_command(word);
	return c ? c->main(argc - 1, argv + 1) : unknown_command(word);
}
