/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of capture/ share. */
#ifndef WARDER_CAPTURE_INTERNAL_H
#define WARDER_CAPTURE_INTERNAL_H

#include <bpf/libbpf.h>
#include "userspace/capture/capture.h"
#include "userspace/capture/hooks.h"
#include "userspace/capture/order.h"
#include "userspace/capture/ring.h"

struct enforce_state;
struct share;
struct warder; /* the generated skeleton */

#define CGROUP_PROGS_MAX 16
#define FAMILIES_MAX	 16

/* A registered sandbox and the cgroup programs on its leaf. */
struct watch {
	uint64_t cgid;
	int links[CGROUP_PROGS_MAX]; /* link descriptors */
	size_t links_n;
};

struct capture {
	struct warder *skel;
	struct ring rings[WIRE_RING_COUNT];
	struct order order;
	int epoll_fd;
	const struct counters *counters; /* shared with the kernel, read-only */
	size_t counters_bytes;
	struct sleeper *sleeper; /* shared with the kernel; a page of its own */
	const uint64_t *pressed; /* by place; shared with the kernel, read-only */
	bool deep;		 /* capture_sleep was called */
	size_t cpus;		 /* rows of counters->cpu in use */
	uint64_t made, missing_told;
	uint64_t missed_before, missed_counted,
		missed_told; /* runs left out: at the start, written, told */
	uint64_t drops_seen[DROP_ROWS], drops_last[DROP_ROWS];
	struct bpf_link *calls;	       /* of on_sys_exit: while a sandbox is watched */
	struct share *share;	       /* NULL: the programs are this process's alone */
	const struct counters *common; /* with share: of all sessions; else NULL */
	uint32_t id;		       /* of the sandbox that a process that joined may watch; 0 */
	struct watch *watches;
	size_t watches_n;
	struct hooks hooks;
	bool full;	     /* every family that can be */
	bool refused_unseen; /* escape calls that a seccomp filter refused; and sockets: */
	bool sockets_unseen;
	struct capture_family_state families[FAMILIES_MAX];
	size_t families_n;
	struct enforce_state *enforce;	    /* NULL until the first set */
	struct watchlist_tables *watchlist; /* while it is being loaded */
};

/* ---- runs that were left out (missed.c) ---- */

/* By all hooks since they were loaded. */
uint64_t missed_count(const struct capture *c);

/* ---- libbpf's messages (log.c) ---- */

/* Collect warnings instead of printing them, or print them too. */
void libbpf_log_begin(bool quiet);
void libbpf_log_end(void);
/* The line that says why: the verifier's last complaint, or libbpf's. "" when there is none. */
const char *libbpf_log_reason(void);
/* The program that libbpf_log_reason spoke of; "" when it was none. */
const char *libbpf_log_program(void);

/* ---- programs that not every kernel can have (choose.c) ---- */

struct ktypes;
void choose_programs(const struct ktypes *types, struct bpf_object *obj);

/* ---- watched names (watched.c) ---- */

int watched_fill(int map_fd, struct err *err);

/* ---- addresses of metadata services (metadata.c) ---- */

int metadata_fill(int map_fd, struct err *err);
/* Sets the bit of each first byte that one of them has. */
void metadata_first_bytes(uint32_t first[8]);

/* ---- one set of programs for many (share.c) ---- */

/* Between open and load. */
void share_prepare(struct warder *skel);
/* After load, in the process that loaded them. */
int share_init(struct capture *c, struct err *err);
void share_done(struct capture *c);
/* Rings and counters of this process for the sandbox `id`. */
int share_publish(struct capture *c, uint32_t id, struct err *err);
/* Hooks that others than sandboxes pay for: on_sys_exit, and those that prevent. One link each, whoever made it, that
 * ends with the last who has it. */
int share_attach(struct capture *c, bool prevents, struct err *err);
void share_detach(struct capture *c);
/* Numbers that no other process uses: of a set's row, and before the first keys. A session has SHARE_KEYS of them; rows
 * of its classes are numbered as its keys, from SHARE_CLASS_ROWS on. */
#define SHARE_KEYS	 (1u << 20)
#define SHARE_CLASS_ROWS 0x10000u
uint32_t share_row(const struct capture *c, uint32_t set);
uint32_t share_keys(const struct capture *c);

/* ---- rings and counters (capture.c) ---- */

int map_shared(struct capture *c, struct err *err);
void unmap_shared(struct capture *c);

/* ---- sandboxes (watch.c) ---- */

void watches_free(struct capture *c);
/* Id of a cgroup v2 directory. */
int cgroup_id(int fd, uint64_t *ret, struct err *err);

/* ---- enforcement (enforce.c) ---- */

/* Between open and load: which programs, and what they may do. */
void enforce_prepare(struct warder *skel, bool wanted);
/* A cgroup program that does nothing else. */
bool enforce_only(const struct warder *skel, const struct bpf_program *p);
void enforce_state_free(struct enforce_state *s);

#endif
