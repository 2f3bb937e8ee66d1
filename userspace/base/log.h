/* SPDX-License-Identifier: Apache-2.0 */
/* Messages for the operator on stderr. Only cli, pipeline and main log; what lies below returns
 * errors. Colour only on a terminal (and never with NO_COLOR set). */
#ifndef WARDER_BASE_LOG_H
#define WARDER_BASE_LOG_H

#include <stddef.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_set_level(enum log_level level);
void log_set_prefix(const char *prefix); /* a static string; default "warder" */
/* What ends a line: "\r\n" while the terminal is raw. A static string. */
void log_set_newline(const char *newline);
/* Called with each message before it is written; may shorten it, or use up to `size` bytes. */
void log_set_filter(void (*fn)(char *text, size_t size));
void log_msg(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_msg(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_msg(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_msg(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_msg(LOG_DEBUG, __VA_ARGS__)

#endif
