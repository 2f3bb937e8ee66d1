/* SPDX-License-Identifier: Apache-2.0 */
/* libbpf talks to stderr; we want the one line that explains a failure. */
#include <stdarg.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include "userspace/capture/internal.h"

#define LOG_KEEP (64 * 1024) /* the end of a verifier log is what matters */

static char *text;
static size_t text_n;
static bool text_quiet;
static libbpf_print_fn_t old_print;
static char reason[256];
static char program[32];

static int on_print(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	va_list copy;
	int n;

	if (level == LIBBPF_DEBUG)
		return 0;
	va_copy(copy, ap);
	if (text) {
		if (text_n > LOG_KEEP / 2) {
			memmove(text, text + text_n / 2, text_n - text_n / 2);
			text_n -= text_n / 2;
		}
		n = vsnprintf(text + text_n, LOG_KEEP - text_n, fmt, copy);
		/* Noted at once: a long verifier log pushes it out. */
		if (n > 0)
			sscanf(text + text_n, "libbpf: prog '%31[^']", program);
		if (n > 0)
			text_n += (size_t)n < LOG_KEEP - text_n ? (size_t)n : LOG_KEEP - text_n - 1;
	}
	va_end(copy);
	return text_quiet ? 0 : vfprintf(stderr, fmt, ap);
}

void libbpf_log_begin(bool quiet)
{
	text = malloc(LOG_KEEP);
	text_n = 0;
	if (text)
		text[0] = '\0';
	text_quiet = quiet;
	program[0] = '\0';
	old_print = libbpf_set_print(on_print);
}

void libbpf_log_end(void)
{
	libbpf_set_print(old_print);
	free(text);
	text = NULL;
}

/* A line that says nothing by itself. */
static bool is_noise(const char *line)
{
	static const char *const noise[] = { "processed ",    "verification time", "stack depth",
					     "-- BEGIN PROG", "-- END PROG",	   "failed to load",
					     "insn_",	      "max_states" };
	size_t i;

	for (i = 0; i < sizeof(noise) / sizeof(noise[0]); i++)
		if (strstr(line, noise[i]))
			return true;
	return line[0] == '\0';
}

const char *libbpf_log_reason(void)
{
	char *line, *next, *last = NULL, *prog = NULL;
	int prog_n = 0;

	reason[0] = '\0';
	if (!text)
		return reason;
	for (line = text; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (strncmp(line, "-- END PROG", 11) == 0 && last)
			break;
		if (strncmp(line, "libbpf: prog '", 14) == 0) {
			prog = line + 14;
			prog_n = (int)strcspn(prog, "'");
		}
		if (!is_noise(line))
			last = line;
	}
	if (last && prog)
		snprintf(reason, sizeof(reason), "%.*s: %s", prog_n, prog, last);
	else if (last)
		snprintf(reason, sizeof(reason), "%s", last);
	return reason;
}

const char *libbpf_log_program(void)
{
	return program;
}
