/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox's terminal, launcher's side: the pty is made by init in the sandbox's own devpts, and its master
 * comes over init's socket. */
#ifndef WARDER_RUNTIME_TTY_H
#define WARDER_RUNTIME_TTY_H

#include <sys/types.h>

/* One packet, as recv with MSG_TRUNC. *ret_fd: the first descriptor that came with it, close-on-exec, or -1; others
 * are closed. */
ssize_t tty_recv(int sock, void *p, size_t n, int flags, int *ret_fd);
/* 0: it is the master of a pty, and does not block now. -ENOTTY: anything else. */
int tty_check(int fd);

#endif
