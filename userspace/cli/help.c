// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/help.h"

#include <string.h>

#include "userspace/cli/util.h"

/* Where cli_usage's words go; NULL: to the terminal. */
static struct {
	help_fn fn;
	void *arg;
	const struct command *command;
} sink;

void cli_usage(const char *usage, const char *purpose, const struct option_def *defs)
{
	const struct help_page page = { sink.command, usage, purpose, defs };

	if (sink.fn) {
		sink.fn(sink.arg, &page);
		return;
	}
	printf("Usage: warder %s\n\n%s\n\nOptions:\n", usage, purpose);
	options_help(defs, stdout);
}

static void one(const struct command *c)
{
	char name[32], option[] = "--help", *argv[] = { name, option, NULL };

	snprintf(name, sizeof(name), "%s", c->name);
	sink.command = c;
	c->main(2, argv);
}

void help_each(const struct command *command, help_fn fn, void *arg)
{
	sink.fn = fn;
	sink.arg = arg;
	if (command)
		one(command);
	for (unsigned i = 0; !command && i < commands_n; i++)
		one(&commands[i]);
	sink.fn = NULL;
}

/* "init|show|public", "[list|search]", "list": words to be typed as they stand. */
static bool is_actions(const char *word, size_t n)
{
	return n && strspn(word, "abcdefghijklmnopqrstuvwxyz-|[]") >= n && word[0] != '-' &&
	       word[0] != '|';
}

void help_actions(const struct help_page *page, FILE *out)
{
	const char *p = page->usage + strlen(page->command->name);
	bool may = true; /* it can stand behind the command's name and options, and behind a "|" */

	while (*(p += strspn(p, " \n"))) {
		size_t n = strcspn(p, " \n");
		bool again = n == strlen(page->command->name) &&
			     !strncmp(p, page->command->name, n); /* "warder sink list" */

		if (may && is_actions(p, n) && !again && strncmp(p, "warder ", 7)) {
			for (size_t i = 0; i < n; i++)
				if (!strchr("[]", p[i]))
					fputc(p[i] == '|' ? ' ' : p[i], out);
			fputc(' ', out);
		}
		may = again || (n == 1 && *p == '|') || !strncmp(p, "[OPTIONS]", n) ||
		      !strncmp(p, "warder", n);
		p += n;
	}
}
