/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox's terminal, launcher's side: the pty is made by init in the sandbox's own devpts, and its master
 * comes over init's socket. */
#ifndef WARDER_RUNTIME_TTY_H
#define WARDER_RUNTIME_TTY_H

/* 0: it is the master of a pty, and does not block now. -ENOTTY: anything else. */
int tty_check(int fd);

#endif
