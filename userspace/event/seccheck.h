/* SPDX-License-Identifier: Apache-2.0 */
/* A packet of gVisor's seccheck "remote" sink (pkg/sentry/seccheck/sinks/remote/wire and points, the .proto files of gVisor,
 * the same from 2022 to 2024). The sentry that sends it may be in the hands of what it guards: nothing is believed
 * but lengths that fit, nothing is copied or allocated, and the work is linear in the packet. */
#ifndef WARDER_EVENT_SECCHECK_H
#define WARDER_EVENT_SECCHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "userspace/base/str.h"

#define SECCHECK_PACKET_MAX (256u << 10) /* the sender's socket buffer is smaller: 212,992 */
#define SECCHECK_VERSION    1		 /* of the handshake */

/* Type of the packet (wire.go: MessageType). Later ones are skipped. */
enum seccheck_type {
	SECCHECK_START = 1,
	SECCHECK_CLONE = 2, /* a task was made */
	SECCHECK_EXEC = 3,  /* a program runs */
	SECCHECK_EXIT_NOTIFY = 4,
	SECCHECK_TASK_EXIT = 5,
	SECCHECK_RAW = 6, /* a call by its number only */
	SECCHECK_OPEN = 7,
	SECCHECK_CLOSE = 8,
	SECCHECK_READ = 9,
	SECCHECK_CONNECT = 10,
	SECCHECK_EXECVE = 11, /* the call, also one that failed */
	SECCHECK_SOCKET = 12,
	SECCHECK_CHDIR = 13,
	SECCHECK_SETID = 14,
	SECCHECK_SETRESID = 15,
	SECCHECK_DUP = 19,
	SECCHECK_CHROOT = 21,
	SECCHECK_CLONE_CALL = 23,
	SECCHECK_BIND = 24,
	SECCHECK_ACCEPT = 25,
	SECCHECK_FORK_CALL = 29,
	SECCHECK_WRITE = 34,
};

/* A repeated string: read it with seccheck_list_next. */
struct seccheck_list {
	uint32_t field;
	size_t n;     /* strings */
	size_t bytes; /* of all of them */
};

struct seccheck_context {
	int64_t time_ns; /* CLOCK_REALTIME; 0 = not told */
	int32_t tid, tgid;
	int64_t task_start_ns, group_start_ns;
	struct str container_id; /* what the sentry claims: never believe it */
	struct str cwd, process_name;
	bool has_credentials;
	uint32_t ruid, euid, suid, rgid, egid, sgid;
};

/* Members that the packet does not have are 0 and empty: proto3 does not tell the two apart. */
struct seccheck_msg {
	uint16_t type;	  /* enum seccheck_type or a later one */
	uint32_t dropped; /* packets lost before this one, since the start; wraps */
	struct str body;
	struct seccheck_context c;
	bool has_exit;	       /* a call that returned */
	int64_t result, error; /* error: errno */
	uint64_t sysno;
	uint64_t args[6]; /* RAW */
	/* START, EXEC, EXECVE */
	struct seccheck_list argv, env;
	struct str id,
		path; /* path: of OPEN, CHDIR, CHROOT, EXECVE as the caller gave it; of EXEC the program's */
	uint32_t mode;	   /* EXEC, OPEN */
	uint32_t uid, gid; /* EXEC: the program's owner */
	bool terminal;	   /* START */
	/* CLONE */
	int32_t new_tid, new_tgid;
	int64_t new_start_ns;
	uint64_t flags;	     /* CLONE, OPEN, READ, WRITE, ACCEPT, EXECVE */
	int32_t exit_status; /* TASK_EXIT: as wait(2) gives it */
	/* calls on descriptors */
	int64_t fd;
	struct str fd_path; /* what the descriptor was, of OPEN and EXECVE the directory */
	uint64_t count;
	bool has_offset;
	int64_t offset;
	struct str address; /* CONNECT, BIND, ACCEPT: the guest's sockaddr, unchecked */
	int32_t domain, socktype, protocol; /* SOCKET */
	int64_t new_fd;			    /* DUP */
	uint32_t ids[3];		    /* SETID: the first; SETRESID: real, effective, saved */
};

enum seccheck_bad {
	SECCHECK_OK,
	SECCHECK_SHORT,	 /* no whole header, or its size does not fit */
	SECCHECK_VARINT, /* a number that does not end or is beyond 64 bits */
	SECCHECK_LENGTH, /* longer than what it lies in */
	SECCHECK_WIRE,	 /* a wire type that there is not, or not this field's */
	SECCHECK_FIELD,	 /* field number 0 or beyond 2^29 */
	SECCHECK_BAD_COUNT,
};

/* Strings point into `packet`. What is wrong, or SECCHECK_OK; of a type that is not known only type, dropped and
 * body are set. Unknown fields are skipped. */
enum seccheck_bad seccheck_parse(struct str packet, struct seccheck_msg *ret);
/* Text for messages. */
const char *seccheck_bad_text(enum seccheck_bad bad);
/* The next string. *at: 0 to begin with. false: that was the last one. */
bool seccheck_list_next(const struct seccheck_msg *m, const struct seccheck_list *l, size_t *at,
			struct str *ret);
/* The client's first packet: does it speak our version? */
bool seccheck_handshake(struct str packet);

#endif
