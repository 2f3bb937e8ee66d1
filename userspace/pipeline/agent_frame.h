/* SPDX-License-Identifier: Apache-2.0 */
/* What `warder run`, `exec` and their like say to the agent, and to the hub of a sandbox after it. One packet of a
 * SOCK_SEQPACKET socket each: a JSON object (RFC 8259), or bytes behind one letter:
 *	i	input of the command; empty: its end
 *	o e	its output and error output
 * The first packet is a request. Its answers end with one that has "exit" or "error". */
#ifndef WARDER_PIPELINE_AGENT_FRAME_H
#define WARDER_PIPELINE_AGENT_FRAME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "userspace/base/arena.h"
#include "userspace/base/buf.h"
#include "userspace/base/err.h"

#define AGENT_FRAME_MAX (64 * 1024) /* bytes of a packet */
#define AGENT_DATA_MAX	(16 * 1024) /* of input or output in one */
#define AGENT_WORDS_MAX 1024	    /* of a command, of its environment */

enum agent_op {
	AGENT_NONE,
	AGENT_RUN,    /* argv: as behind `warder run`; the client is its terminal */
	AGENT_CREATE, /* the same, detached */
	AGENT_EXEC,   /* argv: the command */
	AGENT_ATTACH,
	AGENT_PS,
	AGENT_LOGS,
	AGENT_EVENTS, /* its record, as lines of JSON */
	AGENT_KILL,
	AGENT_PAUSE,
	AGENT_RESUME,
	AGENT_RM,
	AGENT_SNAPSHOT,	   /* argv: its name; "processes": with what runs */
	AGENT_SNAPSHOTS,   /* rows of all of the tenant's */
	AGENT_SNAPSHOT_RM, /* argv: names */
	/* after the first packet */
	AGENT_SIGNAL,
	AGENT_RESIZE,
	AGENT_DETACH,
	AGENT_OPS
};

extern const char *const agent_op_names[AGENT_OPS];

#define AGENT_PROCESSES "processes"

struct agent_request {
	enum agent_op op;
	const char *sandbox; /* id, a part of it, or a name; NULL */
	const char *who;     /* by the agent: who asks */
	const char **argv;   /* NULL-terminated */
	size_t argc;
	const char **env; /* "K=V" */
	size_t env_n;
	const char *cwd;  /* exec: inside */
	const char *dir;  /* run: where the client is */
	const char *term; /* its terminal's type */
	bool tty, follow;
	bool hold;	       /* create: end it when the client has gone */
	const char *filter;    /* events: a rule condition */
	const char **metadata; /* create: "K=V", kept for who lists */
	size_t metadata_n;
	uint16_t rows, cols;
	int signal;
};

/* Strings are of the arena. -EBADMSG: it is none, err says why. Unknown members are refused: what is not understood
 * may have been a restriction. */
int agent_request_parse(struct agent_request *ret, struct arena *arena, struct str text,
			struct err *err);
/* The same as text. -EMSGSIZE. */
int agent_request_print(struct buf *out, const struct agent_request *r);

/* One packet, `fd` with it unless -1. -EAGAIN and the like as send(2). */
int agent_send(int sock, const void *p, size_t n, int fd, int flags);
/* At most AGENT_FRAME_MAX bytes; 0 = the other side has gone. *ret_fd: -1 if none came; ret_fd may be NULL. -EMSGSIZE:
 * it was longer. */
ssize_t agent_recv(int sock, void *p, int *ret_fd, int flags);

/* {"error":...,"code":...}; `error`, unless 0: an errno, its name is "errno". */
int agent_send_error(int sock, int code, const char *text);
int agent_send_errno(int sock, int code, int error, const char *text);

/* <run>/control.sock */
int agent_connect(int *ret_fd);
int agent_address(void *ret_sockaddr_un, char *path, size_t size);

#endif
