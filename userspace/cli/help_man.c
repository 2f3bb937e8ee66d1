// SPDX-License-Identifier: Apache-2.0
/* Manual pages, as man(7) macros. */
#include <ctype.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/cli/help.h"
#include "userspace/cli/util.h"

/* Text as it stands: what troff would take for a request, an escape or a hyphen is none. */
static void put(FILE *out, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const bool starts = i == 0 || p[i - 1] == '\n';

		if (starts && (p[i] == '.' || p[i] == '\''))
			fputs("\\&", out);
		if (p[i] == '\\')
			fputs("\\e", out);
		else if (p[i] == '-')
			fputs("\\-", out);
		else
			fputc(p[i], out);
	}
}

static void putz(FILE *out, const char *text)
{
	put(out, text, strlen(text));
}

/* Paragraphs are filled; lines that begin with a blank are lists, and stay lines. */
static void put_purpose(FILE *out, const char *p)
{
	bool in_list = false;

	for (size_t n; *p; p += n + (p[n] == '\n')) {
		n = strcspn(p, "\n");
		if (!n) {
			fputs(in_list ? ".fi\n.PP\n" : ".PP\n", out);
			in_list = false;
			continue;
		}
		if ((*p == ' ') != in_list) {
			fputs(in_list ? ".fi\n" : ".nf\n", out);
			in_list = !in_list;
		}
		put(out, p, n);
		fputc('\n', out);
	}
	if (in_list)
		fputs(".fi\n", out);
}

static void put_upper(FILE *out, const char *text)
{
	for (; *text; text++)
		fputc(toupper((unsigned char)*text), out);
}

static void head(FILE *out, const char *name, const char *summary)
{
	fputs(".TH WARDER", out);
	if (name) {
		fputs("\\-", out);
		put_upper(out, name);
	}
	fprintf(out, " 1 \"\" \"warder\" \"warder\"\n.SH NAME\nwarder%s%s \\- ", name ? "\\-" : "",
		name ? name : "");
	putz(out, summary);
	fputs("\n.SH SYNOPSIS\n", out);
}

static void put_option(FILE *out, const struct option_def *d)
{
	fputs(".TP\n", out);
	if (d->letter)
		fprintf(out, "\\fB\\-%c\\fR, ", d->letter);
	fputs("\\fB\\-\\-", out);
	putz(out, d->name);
	fputs("\\fR", out);
	if (d->arg) {
		fputs(" \\fI", out);
		putz(out, d->arg);
		fputs("\\fR", out);
	}
	fputc('\n', out);
	putz(out, d->help);
	fputc('\n', out);
}

/* "sink test NAME\n       warder sink list": a line each, from its start. */
static void put_usage(FILE *out, const char *p)
{
	for (bool first = true; *p; first = false) {
		size_t n = strcspn(p, "\n");

		if (first)
			fputs("warder ", out);
		put(out, p, n);
		fputc('\n', out);
		p += n;
		p += strspn(p, "\n ");
	}
}

static void put_page(FILE *out, const struct help_page *page)
{
	head(out, page->command->name, page->command->summary);
	fputs(".nf\n", out);
	put_usage(out, page->usage);
	fputs(".fi\n.SH DESCRIPTION\n", out);
	put_purpose(out, page->purpose);
	fputs(".SH OPTIONS\n", out);
	for (const struct option_def *d = page->options; d->name; d++)
		put_option(out, d);
	fputs(".SH SEE ALSO\n.BR warder (1)\n", out);
}

static void put_environment(FILE *out)
{
	static const char *const rows[][2] = {
		{ "WARDER_STATE",
		  "records, keys, the catalogue, images (default: /var/lib/warder)" },
		{ "WARDER_RUN", "what lives as long as a session (default: /run/warder)" },
		{ "WARDER_CONFIG",
		  "the host's own policies/, agent.yaml, sinks.yaml (default: /etc/warder)" },
		{ "NO_COLOR", "no colours, on a terminal neither" },
	};

	fputs(".SH ENVIRONMENT\n", out);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		fprintf(out, ".TP\n.B %s\n%s\n", rows[i][0], rows[i][1]);
}

static void put_overview(FILE *out)
{
	head(out, NULL, "run untrusted code in a watched sandbox, with evidence");
	fputs(".B warder\n.I COMMAND\n[OPTIONS] [ARGUMENTS]\n.SH DESCRIPTION\n"
	      "Runs untrusted or AI\\-generated code in a sandbox, watches it from the kernel with eBPF, "
	      "stops it when a rule says so, and keeps a record that can be checked afterwards.\n"
	      ".SH COMMANDS\n",
	      out);
	for (unsigned i = 0; i < commands_n; i++) {
		fprintf(out, ".TP\n.BR warder\\-%s (1)\n", commands[i].name);
		putz(out, commands[i].summary);
		fputc('\n', out);
	}
	fprintf(out,
		".SH EXIT STATUS\nOf \\fBrun\\fR the command's own; 128+n when it died by signal n; %d "
		"timeout; %d warder's own error; %d cannot execute; %d not found; %d killed by a rule, an "
		"operator or a limit. Other commands say theirs.\n",
		EXIT_TIMEOUT, EXIT_WARDER, EXIT_CANNOT_EXEC, EXIT_NOT_FOUND, EXIT_KILLED);
	put_environment(out);
}

void help_man(FILE *out, const struct help_page *page)
{
	if (page)
		put_page(out, page);
	else
		put_overview(out);
}
