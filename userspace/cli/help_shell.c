// SPDX-License-Identifier: Apache-2.0
/* Completion for shells. Values of options that name a file are files; of --policy, the policies there are. */
#include <string.h>

#include "userspace/cli/help.h"
#include "userspace/cli/util.h"

static bool is_path(const struct option_def *d)
{
	return d->arg &&
	       (strstr(d->arg, "FILE") || strstr(d->arg, "PATH") || strstr(d->arg, "DIR"));
}

/* ---- bash ---- */

static void put_options(FILE *out, const struct help_page *page,
			bool (*is)(const struct option_def *))
{
	for (const struct option_def *d = page->options; d->name; d++)
		if (is(d))
			fprintf(out, "--%s ", d->name);
}

static bool is_any(const struct option_def *d)
{
	(void)d;
	return true;
}

static bool is_other_value(const struct option_def *d)
{
	return d->arg && !is_path(d);
}

static void bash_case(void *arg, const struct help_page *page)
{
	FILE *out = arg;

	fprintf(out, "\t%s) actions='", page->command->name);
	help_actions(page, out);
	fputs("' options='", out);
	put_options(out, page, is_any);
	fputs("' valued='", out);
	put_options(out, page, is_other_value);
	fputs("' ;;\n", out);
}

void help_bash(FILE *out)
{
	fputs("# bash completion for warder; `warder completion bash` made it.\n"
	      "_warder() {\n"
	      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
	      "\tlocal actions= options= valued= words= i\n"
	      "\tCOMPREPLY=()\n"
	      "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n"
	      "\t\twords='help ",
	      out);
	for (unsigned i = 0; i < commands_n; i++)
		fprintf(out, "%s ", commands[i].name);
	fputs("'\n\t\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n\t\treturn\n\tfi\n"
	      "\tcase ${COMP_WORDS[1]} in\n\thelp) actions='",
	      out);
	for (unsigned i = 0; i < commands_n; i++)
		fprintf(out, "%s ", commands[i].name);
	fputs("' ;;\n", out);
	help_each(NULL, bash_case, out);
	fputs("\tesac\n"
	      "\t# Behind -- is the command that is run, with files of its own.\n"
	      "\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
	      "\t\tif [ \"${COMP_WORDS[i]}\" = -- ]; then\n"
	      "\t\t\tmapfile -t COMPREPLY < <(compgen -c -f -- \"$cur\")\n\t\t\treturn\n\t\tfi\n"
	      "\tdone\n"
	      "\tif [ \"$prev\" = --policy ]; then\n"
	      "\t\twords=$(warder policy list 2>/dev/null | cut -d' ' -f1)\n"
	      "\t\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -f -- \"$cur\")\n"
	      "\telif [[ $cur == -* ]]; then\n"
	      "\t\tmapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
	      "\telif [[ \" $valued\" == *\" $prev \"* ]]; then\n"
	      "\t\t:\n"
	      "\telif [ \"$COMP_CWORD\" -eq 2 ] && [ -n \"$actions\" ]; then\n"
	      "\t\tmapfile -t COMPREPLY < <(compgen -W \"$actions\" -- \"$cur\")\n"
	      "\telse\n"
	      "\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
	      "\tfi\n"
	      "}\n"
	      "complete -o filenames -F _warder warder\n",
	      out);
}

/* ---- zsh ---- */

/* Inside '...' and [...] of _arguments. */
static void zsh_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", out);
		else if (strchr("[]:\\", *text))
			fprintf(out, "\\%c", *text);
		else
			fputc(*text == '\n' ? ' ' : *text, out);
	}
}

static void zsh_case(void *arg, const struct help_page *page)
{
	FILE *out = arg;

	fprintf(out, "\t%s)\n\t\t_arguments -s ", page->command->name);
	for (const struct option_def *d = page->options; d->name; d++) {
		fprintf(out, "\\\n\t\t\t'%s--%s[", d->type == OPT_STRLIST ? "*" : "", d->name);
		zsh_text(out, d->help);
		fputs("]", out);
		if (d->arg) {
			fputs(":", out);
			zsh_text(out, d->arg);
			fprintf(out, ":%s",
				!strcmp(d->name, "policy") ? "_warder_policies"
				: is_path(d)		   ? "_files"
							   : " ");
		}
		fputs("' ", out);
	}
	fputs("\\\n\t\t\t'1:what:(", out);
	help_actions(page, out);
	fputs(")' '*:file:_files' ;;\n", out);
}

void help_zsh(FILE *out)
{
	fputs("#compdef warder\n# zsh completion for warder; `warder completion zsh` made it.\n"
	      "_warder_policies() {\n"
	      "\tlocal -a names\n"
	      "\tnames=(${(f)\"$(warder policy list 2>/dev/null | cut -d' ' -f1)\"})\n"
	      "\tcompadd -a names\n\t_files\n}\n"
	      "_warder() {\n\tlocal -a commands\n\tcommands=(\n",
	      out);
	for (unsigned i = 0; i < commands_n; i++) {
		fprintf(out, "\t\t'%s:", commands[i].name);
		zsh_text(out, commands[i].summary);
		fputs("'\n", out);
	}
	fputs("\t)\n\tif (( CURRENT == 2 )); then\n\t\t_describe command commands\n\t\treturn\n\tfi\n"
	      "\tshift words\n\t(( CURRENT-- ))\n\tcase $words[1] in\n\thelp) _describe command "
	      "commands ;;\n",
	      out);
	help_each(NULL, zsh_case, out);
	fputs("\tesac\n}\n_warder \"$@\"\n", out);
}
