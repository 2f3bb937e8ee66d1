/* SPDX-License-Identifier: Apache-2.0 */
/* What every process 1 of ours begins with and does alike: init, and the keeper of gVisor. */
#ifndef WARDER_RUNTIME_INIT_PROCESS1_H
#define WARDER_RUNTIME_INIT_PROCESS1_H

#include "runtime/init/frame.h"
#include "runtime/init/sys.h"

/* Each program's own; the stack is set up, and that is all. */
void process1_main(void) __attribute__((noreturn));

/* Undumpable, a session of its own, SIGCHLD only by the descriptor that it returns. -errno. */
long process1_begin(void);
/* Memory of our own, of a file's content or of zeros; NULL when there is none. */
char *process1_map(size_t n, int flags, int fd);
/* What the payload holds must not be held here, too: its pipes would never end. */
void process1_let_go_of_stdio(void);
/* A frame of the launcher's with its descriptors, `flags` of recvmsg(2). Bytes or -errno. */
long process1_receive(struct init_frame *f, struct cmsg_fds *fds, int flags);
/* A frame to the launcher, with a descriptor where it is not -1. Bytes or -errno. */
long process1_send(const struct init_frame *f, int fd);
/* The same to any socket. */
long process1_send_to(int sock, const void *p, size_t n, int fd);

#endif
