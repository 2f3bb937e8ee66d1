/* SPDX-License-Identifier: Apache-2.0 */
/* Adds what the record alone does not say: session, wall time, the process's exe and argv from its
 * exec, its ancestors, names from DNS answers, dropped binaries. Missing = absent, never guessed. */
#ifndef WARDER_ENRICH_ENRICH_H
#define WARDER_ENRICH_ENRICH_H

#include "userspace/event/event.h"

struct enrich;

/* A path inside, with all below it, and what it is of the host; NULL: the sandbox's own. */
struct enrich_place {
	const char *inside, *host;
};

struct enrich_session {
	uint32_t sandbox_id; /* wire_hdr.sandbox */
	const char *session; /* ULID; copied */
	const char *name;    /* sandbox name; copied */
	const char *tenant;  /* NULL = none */
	const char *host;
	/* 0 = none. They go into events as limit.value where the record does not say it. */
	uint64_t memory_limit; /* bytes */
	uint64_t pids_limit;
	int64_t real_offset_ns; /* CLOCK_REALTIME - CLOCK_BOOTTIME at start */
	/* Only answers of these name addresses: what runs in the sandbox can ask a resolver of its own
	 * and have any address called anything. n == 0: every resolver is believed. Copied. */
	const struct ip_addr *resolvers;
	size_t resolvers_n; /* at most ENRICH_RESOLVERS_MAX; more are ignored */
	/* Environment variables whose values may be kept, comma-separated; NAME* = all that begin so.
	 * NULL = of none. Copied. */
	const char *env_values;
	/* The mounts that the sandbox is built from. Copied; at most ENRICH_PLACES_MAX. */
	const struct enrich_place *places;
	size_t places_n;
	/* Texts of the watch list, by id - 1. Copied; at most WATCHLIST_MAX. */
	const char *const *watch;
	size_t watch_n;
};

#define ENRICH_RESOLVERS_MAX 8
#define ENRICH_PLACES_MAX    256

struct enrich_limits {
	size_t processes;   /* per sandbox; 0 = 16384 */
	size_t dns_entries; /* per sandbox; 0 = 4096 */
	size_t files;	    /* written inodes remembered per sandbox; 0 = 16384 */
	size_t opens;	    /* open files whose paths are remembered; 0 = 8192, at most 2 MiB */
};

struct enrich_stats {
	uint64_t sandboxes, processes, dns_entries, files, evicted;
};

int enrich_new(struct enrich **ret, const struct enrich_limits *limits);
void enrich_free(struct enrich *e);
int enrich_session_add(struct enrich *e, const struct enrich_session *s);
/* Forget the sandbox and everything learned about it. */
void enrich_session_remove(struct enrich *e, uint32_t sandbox_id);
/* Fill slots of `ev` and learn from it. Strings put into ev live in its arena. -ENOENT: no such
 * sandbox. Does not set SEQ and ID: the journal's owner does. */
int enrich_apply(struct enrich *e, struct event *ev);
void enrich_stats(const struct enrich *e, struct enrich_stats *ret);

#endif
