/* SPDX-License-Identifier: Apache-2.0 */
/* The person's terminal: raw for a while, and as it was whatever happens. One at a time in a process. */
#ifndef WARDER_BASE_TERM_H
#define WARDER_BASE_TERM_H

#include <stdbool.h>
#include <stdint.h>

/* Every byte typed comes at once and nothing is echoed or translated, as by cfmakeraw(3). `fd` must stay open.
 * Undone by term_restore, at exit, and when this process crashes (not by SIGKILL). -ENOTTY; -EBUSY: it is raw
 * already. */
int term_raw(int fd);
/* Raw once more, after somebody else has changed it (a shell, while we were stopped). */
void term_raw_again(void);
bool term_is_raw(void);
/* Says on restoring what else must be undone: written to `fd` before the modes are set back. A static string;
 * NULL = nothing. */
void term_on_restore(int fd, const char *bytes);
/* As it was before term_raw; what was typed and not read is dropped, since it may be the terminal's answer to a
 * hostile question, and the shell would take it for a command. Safe in a signal handler, and again. */
void term_restore(void);

/* 0 with both; -ENOTTY. Zero where the terminal does not know. */
int term_size(int fd, uint16_t *ret_rows, uint16_t *ret_cols);

/* Undoes what programs on a terminal leave when they are killed: open strings, alternate screen, mouse, bracketed
 * paste, hidden cursor, colours. The cursor stays where it is. */
#define TERM_RESET                                                                                \
	"\033\\\033[!p\033[?1047l\033[?1000l\033[?1002l\033[?1003l\033[?1006l\033[?1004l\033[?1l" \
	"\033>\033[?2004l\033[?25h\033[0m"

#endif
