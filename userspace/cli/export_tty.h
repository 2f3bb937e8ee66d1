/* SPDX-License-Identifier: Apache-2.0 */
/* `warder export --format cast|cast3|text`: what a session's terminal or output showed. Escape sequences that
 * could harm the terminal of whoever plays it are left out (userspace/replay/neutral.h). */
#ifndef WARDER_CLI_EXPORT_TTY_H
#define WARDER_CLI_EXPORT_TTY_H

#include <stdbool.h>
#include <stdio.h>
#include "userspace/base/err.h"

bool export_tty_is_format(const char *format);
/* 0 or -errno; what the disk or the reader of `out` did not take is for the caller to see. asciicast v2 and v3
 * are as https://docs.asciinema.org/manual/asciicast/ specifies them. */
int export_tty(const char *format, int bundle, FILE *out, struct err *err);

#endif
