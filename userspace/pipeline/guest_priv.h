/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files that make a guest's records. */
#ifndef WARDER_PIPELINE_GUEST_PRIV_H
#define WARDER_PIPELINE_GUEST_PRIV_H

#include "bpf/abi/wire.h"
#include "userspace/base/arena.h"
#include "userspace/base/auto.h"
#include "userspace/base/buf.h"
#include "userspace/enrich/lru.h"
#include "userspace/pipeline/guest.h"

struct guest_process {
	struct lru_node node; /* a = pid */
	int32_t pid, ppid;
	uint32_t fds;	    /* in the table of descriptors */
	uint8_t stdin_type; /* enum wire_stdin, as far as it was told; UINT8_MAX = it was not */
	uint32_t misses;    /* programs looked for in vain, in a row */
	uint64_t exec_at;   /* a program was started, and nothing has described it; 0 = no */
	struct seccheck_msg exec; /* who did it; no strings */
	char comm[16];
	char *miss; /* the last of those programs */
};

struct guest_fd {
	struct lru_node node; /* a = pid, b = descriptor */
	int32_t pid;
	int32_t fd;
	uint64_t id; /* wire_file.id; 0 = a socket */
	uint64_t bytes, first_ts, last_ts;
	uint32_t writes;
	uint16_t family;
	uint8_t type, proto;
	uint16_t port, peer_port;
	uint8_t addr[16]; /* that it was bound to */
	uint8_t peer[16]; /* that it was connected to */
};

struct guest_limit_seen {
	uint64_t told; /* CLOCK_BOOTTIME; 0 = never */
	uint32_t n;    /* since then */
};

struct guest {
	struct guest_options opt;
	struct guest_stats stats;
	struct lru processes, fds;
	uint8_t key[16];
	uint64_t next_id;
	uint32_t drops; /* the sentry's count */
	struct guest_limit_seen limits[WIRE_LIMIT_EVENTS + 1];
	uint64_t now; /* CLOCK_BOOTTIME of this packet's arrival */
	int64_t offset;
	uint64_t due;
	struct guest_process *process; /* whose message it is; NULL = not known */
	struct arena arena;	       /* of one packet */
	struct buf rec;
	struct guest_mirror *mirror;
};

/* ---- guest.c ---- */

struct guest_process *guest_process(struct guest *g, int32_t pid, bool make);
/* The message's time as CLOCK_BOOTTIME. */
uint64_t guest_time(const struct guest *g, const struct seccheck_msg *m);
/* A time of the sentry's clock, as one of a process's start. */
uint64_t guest_start_of(const struct guest *g, int64_t real_ns);
/* Everything of the header but nr and ret. */
struct wire_hdr guest_header(const struct guest *g, const struct seccheck_msg *m,
			     enum wire_kind kind);
/* The call's number and its result, as hdr.nr and hdr.ret. */
void guest_call_header(struct wire_hdr *h, const struct seccheck_msg *m);
/* A record begins with `size` bytes of room for its fixed part. */
void guest_begin(struct guest *g, size_t size);
struct wire_str guest_tail(struct guest *g, struct str s, size_t max);
/* `rec` is the fixed part, its header first. */
void guest_send(struct guest *g, void *rec, size_t size);
/* Where a name that a call was given lies; base is empty when it is absolute. */
struct str guest_base(const struct seccheck_msg *m, struct str path);

/* An act on a file that succeeded, or that somebody is refused. */
static inline bool guest_is_told(int64_t error)
{
	return error == 0 || error == EPERM || error == EACCES || error == EROFS;
}

/* A process's name, cut as the kernel does. */
static inline void guest_name(char ret[16], struct str name)
{
	memset(ret, 0, 16);
	memcpy(ret, name.p ? name.p : "", MIN(name.n, (size_t)15));
}

/* What a copy of a descriptor has of the first one. */
static inline void guest_fd_copy(struct guest_fd *to, const struct guest_fd *from)
{
	to->id = from->id;
	to->family = from->family;
	to->type = from->type;
	to->proto = from->proto;
	to->port = from->port;
	to->peer_port = from->peer_port;
	memcpy(to->addr, from->addr, sizeof(to->addr));
	memcpy(to->peer, from->peer, sizeof(to->peer));
}

/* ---- guest_exec.c ---- */

void guest_start(struct guest *g, const struct seccheck_msg *m);
void guest_exec(struct guest *g, const struct seccheck_msg *m);
void guest_exec_call(struct guest *g, const struct seccheck_msg *m);
void guest_exec_begins(struct guest *g, const struct seccheck_msg *m);
/* Any other message of a process: what it did before is over. */
void guest_exec_over(struct guest *g, struct guest_process *p);

/* ---- guest_file.c ---- */

struct guest_fd *guest_fd(struct guest *g, int32_t pid, int64_t fd, bool make);
void guest_fd_drop(void *ctx, struct lru_node *node);
void guest_fds_close(struct guest *g, int32_t pid);
void guest_open(struct guest *g, const struct seccheck_msg *m);
void guest_write(struct guest *g, const struct seccheck_msg *m, int64_t fd, struct str path,
		 uint64_t bytes);
void guest_dup(struct guest *g, const struct seccheck_msg *m);
void guest_escape(struct guest *g, const struct seccheck_msg *m, enum wire_escape_type type,
		  struct str detail, const uint64_t args[6]);

/* ---- guest_net.c ---- */

void guest_socket(struct guest *g, const struct seccheck_msg *m);
void guest_addressed(struct guest *g, const struct seccheck_msg *m, enum wire_kind kind);
void guest_listen(struct guest *g, const struct seccheck_msg *m);

/* ---- guest_limit.c ---- */

/* Of any message: did a limit of the guest refuse the call? */
void guest_limit(struct guest *g, const struct seccheck_msg *m);

/* ---- guest_call.c ---- */

void guest_raw(struct guest *g, const struct seccheck_msg *m);

#endif
