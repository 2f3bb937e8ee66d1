/* SPDX-License-Identifier: Apache-2.0 */
/* Where records come from: the kernel's rings, a recorded file, the launcher's socket. All end in
 * the same callback. Only capture/ includes generated skeletons. */
#ifndef WARDER_CAPTURE_CAPTURE_H
#define WARDER_CAPTURE_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "bpf/abi/maps.h"
#include "bpf/abi/wire.h"
#include "userspace/base/buf.h"
#include "userspace/base/err.h"
#include "userspace/capture/watchlist.h"

/* ---- what this kernel gives ---- */

struct capture_feature {
	const char *name; /* "btf", "ringbuf", "tp_btf", "fmod_ret", "cgroup_connect4", ... */
	const char *what; /* one line for a person */
	bool ok;
	bool required;	  /* Warder cannot watch without it */
	char detail[160]; /* why not, and how to get it; or what was found */
};

struct capture_family_state {
	const char *name; /* probe family: process file net dns oom escape lineage */
	char hook[256];	  /* what serves it on this host */
	const char *tier; /* "full", "portable"; "common": the same in both */
	bool ok;
	char detail
		[160]; /* why it is not there, or not of the full tier; or what the self-test missed */
};

enum capture_seen {
	CAPTURE_SEEN,
	CAPTURE_UNSEEN,	 /* done, and no event came: the family is not ok */
	CAPTURE_UNTRIED, /* this host has no such thing, or it was not asked for */
};

/* One thing that was done in a scratch sandbox. */
struct capture_test {
	const char *family; /* name of a struct capture_family_state */
	const char *what;   /* "a connect over IPv6" */
	enum capture_seen seen;
	char why[96];
};

#define CAPTURE_TESTS_MAX 64

/* Asks the kernel by load + attach, not by version. Fills up to `max` rows, returns the number. Needs
 * root for true answers; without it the rows say so. */
size_t capture_features(struct capture_feature *rows, size_t max);

/* ---- the kernel's rings ---- */

struct capture;

struct capture_options {
	size_t urgent_bytes; /* power of two; 0 = 4 MiB */
	size_t bulk_bytes;   /* power of two; 0 = 8 MiB */
	bool enforce;	     /* capture_enforce_load will be called: more programs are loaded */
	const struct watch_entry *watch; /* files whose reading is told, of all sandboxes */
	size_t watch_n;			 /* at most WATCHLIST_MAX */
	bool gvisor; /* sandboxes are SANDBOX_F_HELD: what gVisor's own processes do is looked at */
	bool gvisor_net;    /* with sockets of the host */
	bool gvisor_mirror; /* on a platform where the guest's calls show in its stubs' */
	bool quiet_libbpf;  /* keep libbpf's own messages out of stderr */
	bool shared;	    /* for capture_join: the sizes of rings are those of each session */
};

/* Load and attach everything. Needs root; errors name what is missing and how to get it. Call
 * before fork: the rings are mapped shared and can be drained by an unprivileged child. */
int capture_open(struct capture **ret, const struct capture_options *opt, struct err *err);
void capture_close(struct capture *c);

/* ---- one set of programs, many sessions ----
 * Who loaded them with `shared` forks, and each child joins: it gets rings, counters and guards of its own, and
 * watches one sandbox. Programs, tables of what is under way and hooks are the same for all: a call on the host
 * is looked at once, however many sandboxes there are. They end with the last process that has them. */

#define CAPTURE_SESSIONS_MAX 2047

/* The id of who is the turn-th at a place, 1 to CAPTURE_SESSIONS_MAX. What a former one's tasks do and what is remembered
 * of it bears another id, which comes again after a million turns. */
static inline uint32_t capture_session_id(uint32_t place, uint32_t turn)
{
	return turn * SANDBOXES_MAX + place;
}

/* In the child. `id`: a capture_session_id, and nobody else is at that place now. Takes some 10 ms for each of four tables.
 * `alive_fd`: taken over; closed with the capture, and who reads without it has to keep it: when the last has closed it
 * the id may be given to capture_forget. */
int capture_join(struct capture *c, uint32_t id, int alive_fd, struct err *err);
/* That one; -1: there is none. */
int capture_alive_fd(const struct capture *c);
/* The id that capture_watch has to be given; 0: any. */
uint32_t capture_id(const struct capture *c);
/* In whoever loaded them: give back the rings of the self-test; nothing can be read any more. */
void capture_leave(struct capture *c);
/* What is left of sessions whose processes have ended, however: their entries go out of all tables. */
void capture_forget(struct capture *c, const uint32_t *ids, size_t n);

/* Root only. Register a sandbox before its first instruction: entry in `sandboxes` and the cgroup
 * programs on its leaf. `cgroup_fd` is an open directory of the v2 hierarchy. */
int capture_watch(struct capture *c, int cgroup_fd, const struct sandbox_cfg *cfg, struct err *err);
int capture_unwatch(struct capture *c, int cgroup_fd);
/* Root only. Other escape types are killed for, from now on (sandbox_cfg.kill_escape). */
int capture_set_kills(struct capture *c, int cgroup_fd, uint64_t kill_escape, struct err *err);

/* Root only. The guest of a SANDBOX_F_HELD runs: from now on its gVisor is held to what it does then. */
int capture_arm(struct capture *c, int cgroup_fd, struct err *err);

/* Root only, after the sandbox's own kill: SIGKILL to its tasks that left the cgroup. Costs nothing when none
 * did. Returns how many signals were sent. */
int capture_kill_left(struct capture *c, int cgroup_fd);

/* Root only: SIGKILL to one process, given by number and start (CLOCK_BOOTTIME ns). -EXDEV: it is none of the
 * payload of this sandbox (our init, ourselves, anything outside), -ESRCH: it has ended. */
int capture_kill_process(struct capture *c, uint32_t sandbox, uint32_t tgid, uint64_t start);

/* Families with their hook, for doctor and `degraded`. */
size_t capture_families(const struct capture *c, struct capture_family_state *rows, size_t max);
const char *capture_tier(const struct capture *c); /* "full" or "portable" */
/* Do they see escape calls, and sockets, that a seccomp filter refused? After capture_selftest: as it found. */
bool capture_sees_refused(const struct capture *c);
bool capture_sees_refused_sockets(const struct capture *c);

/* Root only, before any sandbox is watched and while no other thread runs: a scratch sandbox does one of
 * everything, and what does not come out of the rings decoded makes its family not ok. All of that the
 * probes did before is drained. Without `all` only what takes milliseconds and is not heard of elsewhere;
 * with it also mounts, leaving the cgroup, and running out of memory, which the kernel logs.
 * Fills up to `max` rows (may be none), returns their number. On an error no family is ok. */
int capture_selftest(struct capture *c, bool all, struct capture_test *rows, size_t max,
		     struct err *err);

/* Readable when a record was woken for; poll with a timeout of CAPTURE_TICK_MS besides, since bulk
 * records do not wake. */
#define CAPTURE_TICK_MS 2
int capture_fd(const struct capture *c);

/* Asleep: from the end of the next drain on, any record makes capture_fd readable, so no timeout is needed
 * when that drain held nothing back. Say it, drain, poll; say false when looking by timeout again. */
void capture_sleep(struct capture *c, bool asleep);

typedef int (*capture_fn)(void *arg, const void *rec, size_t len);

/* Drain both rings, hand out records in order of time: while a CPU is putting one into its ring, younger
 * ones are kept for the next call. `flush`: hand out everything (no producer is left).
 * Returns the number handed out, or the first negative result of `fn`. Sets *ret_held to the number
 * kept back (call again within 1 ms when not 0). */
int capture_drain(struct capture *c, bool flush, capture_fn fn, void *arg, size_t *ret_held);

struct capture_gap {
	uint32_t sandbox; /* 0 = not known */
	uint16_t kind;	  /* enum wire_kind; 0 = any */
	uint64_t count;
	uint64_t first_ts, last_ts; /* CLOCK_BOOTTIME ns */
	bool rate;		    /* cut to the sandbox's rate; else there was no room */
	bool missed; /* hooks that the kernel did not run: of whom, and whether it would have been told, is
		      * not known */
	bool guest; /* messages of a gVisor sentry that it could not send, or that could not be read */
};

/* New losses since the last call. Needs no privilege (counters are mapped). */
size_t capture_gaps(struct capture *c, struct capture_gap *rows, size_t max);

/* Root only: look for runs of hooks that the kernel left out. The next capture_gaps tells them, in whatever
 * process. */
void capture_count_missed(struct capture *c);

/* How often a producer of this sandbox was stopped or killed for a full ring. Needs no privilege. */
uint32_t capture_pressed(const struct capture *c, uint32_t sandbox);
/* Root only: let those that were stopped go on. Returns the number. */
int capture_resume(struct capture *c);

/* Root only. Count the bytes of all packets from now on, or stop it: a look-up a packet. */
void capture_net_usage_on(struct capture *c, bool on);
/* Root only: bytes that the sandbox sent and received while they were counted. */
uint64_t capture_net_usage(const struct capture *c, uint32_t sandbox);

struct capture_stats {
	uint64_t records, bytes, late; /* late: came after a younger one had been handed out */
	uint64_t ring_used[WIRE_RING_COUNT], ring_size[WIRE_RING_COUNT];
	uint64_t fails[FAIL_SITE_COUNT];
};
void capture_stats(struct capture *c, struct capture_stats *ret);

/* ---- recorded records ---- */

/* File of wire records behind the 16-byte header "WARDERREC1\n" + NULs. */
int record_file_begin(FILE *f);
int record_file_write(FILE *f, const void *rec, size_t len);
/* Calls `fn` for each record; -EBADMSG names the offset in err. */
int record_file_replay(FILE *f, capture_fn fn, void *arg, struct err *err);

#endif
