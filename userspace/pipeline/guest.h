/* SPDX-License-Identifier: Apache-2.0 */
/* What gVisor tells of its guest (event/seccheck.h) as wire records with `vantage: guest`: from here on such an event is
 * one like any other. Keeps what a single message does not say: who is whose parent, which open file a descriptor is.
 * The other end may be in the hands of the guest: nothing it says costs more than the tables below. */
#ifndef WARDER_PIPELINE_GUEST_H
#define WARDER_PIPELINE_GUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "userspace/base/str.h"
#include "userspace/event/seccheck.h"

#define GUEST_PROCESSES_MAX 8192
#define GUEST_FDS_MAX	    8192
#define GUEST_PACKETS_TURN  512		   /* before others have their turn */
#define GUEST_EXEC_WAIT_NS  1000000000ull  /* for the description of a program that was started */
#define GUEST_OLD_NS	    60000000000ull /* a message cannot be older than that when it comes */

struct guest;

/* Takes one wire record. Its result is not looked at. */
typedef int (*guest_feed_fn)(void *arg, const void *rec, size_t len);

struct guest_options {
	uint32_t sandbox_id;
	int64_t real_offset_ns;	  /* CLOCK_REALTIME - CLOCK_BOOTTIME, as for the session's `time` */
	uint64_t since_ns;	  /* CLOCK_BOOTTIME: nothing is older */
	const char *const *watch; /* the operator's list; borrowed */
	size_t watch_n;
	/* The host's kernel tells calls of the guest (platform ptrace), besides what the gofer does (bpf/mirror.bpf.c). */
	bool has_mirror;
	bool has_net; /* the sentry sends by sockets of the host, where that is told */
	guest_feed_fn feed;
	void *arg;
};

struct guest_stats {
	uint64_t packets;
	uint64_t bad;	      /* that could not be read */
	uint64_t unknown;     /* of types that are not known */
	uint64_t dropped;     /* that the sentry says it could not send */
	uint64_t drops_back;  /* how often its count of those went backwards */
	uint64_t undescribed; /* programs that were started and not described */
	uint64_t records;
	uint64_t unseen; /* calls that the host saw, whose messages were lost */
	bool started;	 /* the container's start was told */
	bool ended;	 /* the end of process 1 was told */
	uint32_t status; /* how, as wait(2) has it */
	bool is_blind; /* the two views are not compared any more: more came than is kept, or the guest answers calls */
};

int guest_new(struct guest **ret, const struct guest_options *opt);
void guest_free(struct guest *g);
/* One packet, taken off the socket at `boot_ns`; real_offset_ns is today's. What is in it cannot make it fail: it is
 * counted. */
void guest_packet(struct guest *g, struct str packet, uint64_t boot_ns, int64_t real_offset_ns);
/* Processes that were kept and go on here, as the sentry lists them (gVisor: runsc/boot/procfs/dump.go, JSON): each is told
 * as a program, of vantage `runtime`, since nobody saw it begin. Counts as the guest's start. -EBADMSG: none of that. */
#define GUEST_KNOWN_MAX (17u << 20)
int guest_known(struct guest *g, struct str text, uint64_t boot_ns);
/* What has waited too long for what belongs to it. */
void guest_tick(struct guest *g, uint64_t boot_ns);
/* CLOCK_BOOTTIME of the next tick that is needed; UINT64_MAX = none. */
uint64_t guest_deadline(const struct guest *g);
/* A record WIRE_MIRROR of the host's kernel. */
void guest_mirror(struct guest *g, const void *rec, size_t len, uint64_t boot_ns);
/* What the host's kernel told before `boot_ns` has been handed in; UINT64_MAX: nothing more comes. */
void guest_host_read(struct guest *g, uint64_t boot_ns);
/* Does something wait for what the guest's kernel may have told of it? Then guest_quiet is to be called, and this is
 * false until then. */
bool guest_wants_quiet(struct guest *g, uint64_t boot_ns);
/* Every packet that was sent before guest_wants_quiet said so has been handed in. was_full: some may have found no room
 * in the socket; is_last: no other will come. */
void guest_quiet(struct guest *g, bool was_full, bool is_last);
void guest_stats(const struct guest *g, struct guest_stats *ret);
/* Has its first process started, and ended, as far as it was told? 0 to 2. */
unsigned guest_stage(const struct guest *g);

#endif
