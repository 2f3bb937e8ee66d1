/* SPDX-License-Identifier: Apache-2.0 */
/* What is known about one sandbox, shared by the enrichers. Inside userspace/enrich only. */
#ifndef WARDER_ENRICH_SANDBOX_H
#define WARDER_ENRICH_SANDBOX_H

#include <stdbool.h>
#include "userspace/enrich/enrich.h"
#include "userspace/enrich/lru.h"
#include "userspace/event/part.h"

#define PROCESSES_DEFAULT   16384
#define DNS_ENTRIES_DEFAULT 4096
#define FILES_DEFAULT	    16384
#define OPENS_DEFAULT	    8192
#define OPENS_BYTES_MAX	    (2u << 20)
#define OPENS_TOLD_MAX	    1024	/* files whose writes were told */
#define DNS_PENDING_MAX	    1024	/* queries that wait for their answer */
#define EXITED_KEPT	    512		/* ended processes that late events may still name */
#define IMAGE_BYTES_MAX	    (32u << 20) /* exe, argv and cwd of all processes of a sandbox */
#define IMAGE_ARGS_BYTES    4096	/* of argv repeated on events that are no exec */
#define IMAGE_ARGS_MAX	    64
#define WHO_KEPT	    32 /* processes, of all sandboxes, whose part of an event is kept as text */

struct hash_key {
	unsigned char k[16];
};

/* What the events of a task have in common. */
struct who {
	uint64_t version; /* of the process, when this was made or, without a part, looked for */
	const void *image;
	uint64_t given; /* fields that the event has by itself */
	bool hopeless;	/* no part can be made of it */
	struct event_part part;
};

struct exited {
	uint64_t start;
	uint64_t pid;
};

struct sandbox {
	const struct hash_key *hash_key;
	struct who *who;	       /* WHO_KEPT of them, everybody's */
	struct enrich_session session; /* strings owned by `text` */
	struct ip_addr resolvers[ENRICH_RESOLVERS_MAX];
	char *text; /* session, name, tenant, host, then env_values */
	size_t text_n;
	size_t text_told; /* of it, what goes into events */
	struct event_part part;
	bool moved; /* mounts or roots are not those it was built with any more */

	struct lru processes;
	size_t image_bytes;
	struct exited exited[EXITED_KEPT]; /* ring */
	size_t exited_at;

	struct lru dns_names;	/* address -> name */
	struct lru dns_pending; /* queries without answer */
	struct lru files;	/* written in the sandbox: by (dev, ino) and by path */
	struct lru opens;	/* file.open_id -> path */
	struct lru opens_told;	/* the same of those whose writes were told */
	size_t open_bytes;
};

/* An exact 16-byte key. */
struct lru_key key_exact(const struct sandbox *s, uint64_t a, uint64_t b);
/* The same of numbers that the kernel or we count up, and nobody chooses: a tenth of the time. */
struct lru_key key_of_ids(const struct sandbox *s, uint64_t a, uint64_t b);
/* 128 bits of keyed hash stand for the bytes. */
struct lru_key key_of_bytes(const struct sandbox *s, const void *p, size_t n);

/* Did the call of this event do what it should? */
static inline bool event_succeeded(const struct event *ev)
{
	return str_eqz(event_str(ev, F_OUTCOME), "success");
}

/* Values in the environment that nobody chose to keep are cut off. */
void environ_apply(const struct sandbox *s, struct event *ev);

void processes_init(struct sandbox *s, size_t max);
/* Fills the process slots, then learns from exec, fork and exit. 0 or -ENOMEM. */
int processes_apply(struct sandbox *s, struct event *ev);

void names_init(struct sandbox *s, size_t max);
int names_apply(struct sandbox *s, struct event *ev);

/* Once, before the first event. */
void opaque_init(void);
void opaque_apply(struct event *ev);

void opens_init(struct sandbox *s, size_t max);
/* Remembers the path of an open file, and gives it to the writes that only have its id. */
int opens_apply(struct sandbox *s, struct event *ev);

int places_init(struct sandbox *s, const struct enrich_session *from);
void places_done(struct sandbox *s);
/* Path on the host, and the watch list's entry by its text. After opens_apply. */
int places_apply(struct sandbox *s, struct event *ev);

void files_init(struct sandbox *s, size_t max);
/* Before processes_apply: says whether an exec's file was written here. */
int files_apply(struct sandbox *s, struct event *ev);

#endif
