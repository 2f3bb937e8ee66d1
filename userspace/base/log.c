// SPDX-License-Identifier: Apache-2.0
#include "userspace/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "userspace/base/plain.h"

static enum log_level max_level = LOG_INFO;
static const char *log_prefix = "warder";
static void (*log_filter)(char *text, size_t size);
static const char *log_newline = "\n";

static const struct {
	const char *word;
	const char *colour;
} LEVELS[] = {
	[LOG_ERROR] = { "error: ", "\033[1;31m" },
	[LOG_WARN] = { "warning: ", "\033[1;33m" },
	[LOG_INFO] = { "", "" },
	[LOG_DEBUG] = { "debug: ", "\033[2m" },
};

void log_set_level(enum log_level level)
{
	max_level = level;
}

void log_set_prefix(const char *prefix)
{
	log_prefix = prefix;
}

void log_set_newline(const char *newline)
{
	log_newline = newline;
}

void log_set_filter(void (*fn)(char *text, size_t size))
{
	log_filter = fn;
}

void log_msg(enum log_level level, const char *fmt, ...)
{
	static int colour = -1;
	char line[2048];
	va_list ap;

	if (level > max_level)
		return;
	if (colour < 0)
		colour = isatty(STDERR_FILENO) && !getenv("NO_COLOR");
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (log_filter)
		log_filter(line, sizeof(line));
	/* Text can quote bytes from the sandbox or a server: keep them from driving the terminal. */
	plain_text(line, '?', "\n\t");
	if (colour && LEVELS[level].colour[0])
		fprintf(stderr, "%s: %s%s\033[0m%s%s", log_prefix, LEVELS[level].colour,
			LEVELS[level].word, line, log_newline);
	else
		fprintf(stderr, "%s: %s%s%s", log_prefix, LEVELS[level].word, line, log_newline);
}
