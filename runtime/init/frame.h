/* SPDX-License-Identifier: Apache-2.0 */
/* What the sandbox's pid 1 and the launcher say to each other over one SOCK_SEQPACKET pair, and the
 * block that init finds in INIT_CONFIG_FD. One frame a packet, always of the full size: whoever
 * receives another size drops the packet. The launcher treats every frame as hostile. */
#ifndef WARDER_RUNTIME_INIT_FRAME_H
#define WARDER_RUNTIME_INIT_FRAME_H

#include <stdint.h>

#define INIT_CONTROL_FD 3
#define INIT_CONFIG_FD	4

#define INIT_FRAME_MAGIC 0x57524446u /* "FDRW" */
#define INIT_TEXT_MAX	 208
#define INIT_EXEC_FDS	 4  /* its struct init_config, its stdin, stdout, stderr */
#define INIT_EXECS_MAX	 64 /* such commands at once */

enum init_frame_type {
	/* from the set-up task, before init runs */
	FRAME_FAILED = 1, /* code = errno, step and text say where */
	FRAME_USERNS,	  /* the user namespace exists: write its maps */
	/* from init */
	FRAME_STARTED,	   /* the payload's exec succeeded */
	FRAME_EXEC_FAILED, /* code = errno of execve; text = what was tried last */
	FRAME_EXIT,	   /* code = exit code, signal = that ended it; alone: nothing else lives */
	FRAME_TTY,	   /* with a descriptor: the master of the payload's terminal */
	/* With a descriptor: the listener of the payload's filter. Without: code = errno, the kernel gives none and the
	 * filter answers itself. */
	FRAME_LISTENER,
	/* from the keeper of gVisor, besides those of init */
	FRAME_MADE, /* with a descriptor, the sentry's trace sessions: all is there, FRAME_GO is waited for */
	FRAME_DIED, /* code, signal = how the sentry ended; it did not say how the payload did */
	FRAME_PROCESSES, /* with a descriptor: what goes on once it may, as the sentry tells it */
	FRAME_CHECKPOINTED, /* code = 0 or errno, text: FRAME_CHECKPOINT is done, the payload stands still */
	/* to the set-up task and to init */
	FRAME_MAPPED = 64,
	FRAME_SIGNAL, /* signal = send it to the process group of the payload, or of `id` */
	FRAME_EXEC,   /* with INIT_EXEC_FDS descriptors: one more command, `id` */
	FRAME_GO, /* to the keeper: the payload may run; with a descriptor: of these processes */
	FRAME_CHECKPOINT, /* to the keeper, with a descriptor: stop all processes and write them there */
	FRAME_CONTINUE, /* to the keeper: they go on */
};

struct init_frame {
	uint32_t magic;
	uint32_t type;
	int32_t code;
	int32_t signal;
	uint32_t alone;
	uint32_t id; /* about this FRAME_EXEC; 0 = about the payload */
	char step[24];
	char text[INIT_TEXT_MAX];
};

_Static_assert(sizeof(struct init_frame) == 256, "init_frame size");

/* For the listener. A call that has been handed out waits on, whatever signal comes but one that kills: else the kernel
 * makes it again after the signal's handler, and at times with its answer given already (seccomp(2), Linux 5.19). */
#define SECCOMP_LISTENER_FLAGS \
	(SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)

/* What becomes of the filter's listener. */
enum init_notify {
	INIT_NOTIFY_NONE, /* it asks for none */
	INIT_NOTIFY_SEND, /* who installs it sends it: the filter allows that */
	INIT_NOTIFY_HELPER, /* somebody without the filter does: who knows what the operator's profile allows */
};

#define INIT_CONFIG_MAGIC 0x57434647u
#define INIT_CONFIG_MAX	  (4u << 20) /* argv and environment of the payload, with their filter */

/* Offsets are from the start of the block. Strings: argc + envc of them, NUL-terminated, one after
 * the other. The filter is an array of struct sock_filter. */
struct init_config {
	uint32_t magic;
	uint32_t size;
	uint32_t argc;
	uint32_t envc;
	uint32_t strings_off;
	uint32_t cwd_off;
	uint32_t filter_off;
	uint32_t filter_n; /* instructions; 0 = none */
	uint16_t tty;	   /* 1: the payload gets a terminal, of this size: */
	uint16_t tty_rows, tty_cols;
	uint16_t serve;	 /* 1: FRAME_EXEC is taken; then there may be no payload: argc 0 */
	uint16_t notify; /* enum init_notify */
	uint16_t pad[3];
};

#endif
