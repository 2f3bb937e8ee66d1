/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue: what the sessions of this host did, in an SQLite file that can always be made again from
 * their bundles. Nobody's proof, only a quick way to the bundle that is. */
#ifndef WARDER_CATALOG_CATALOG_H
#define WARDER_CATALOG_CATALOG_H

#include <stdbool.h>
#include <stdint.h>
#include "userspace/base/err.h"

#define CATALOG_NAME	  "catalogue.sqlite"
#define CATALOG_FACTS_MAX 20000 /* different values a session and kind; then `cut` is set */

struct catalog;

/* `path` NULL: in memory, for one command. A file of another version, or damaged, is made anew. */
int catalog_open(struct catalog **ret, const char *path, struct err *err);
void catalog_close(struct catalog *c);

/* Read one bundle into it, replacing what was there of this session. `id`: its name in the catalogue.
 * -EBADMSG: the record is damaged; nothing was changed. */
int catalog_index(struct catalog *c, int bundle_fd, const char *id, struct err *err);

struct catalog_sync {
	uint64_t sessions, indexed, gone;
};

typedef void (*catalog_progress_fn)(void *arg, uint64_t done, uint64_t total);

/* Bring it up to date with the bundles in `sessions_fd`: new and changed ones are read, rows of those that
 * are gone go. A bundle that cannot be read is listed as that, and so is a sealed one that is shorter or longer than
 * sealed, by the sizes of its files; whether it was altered only verify can tell. */
int catalog_sync(struct catalog *c, int sessions_fd, catalog_progress_fn fn, void *arg,
		 struct catalog_sync *ret, struct err *err);

struct catalog_filter {
	/* Any may be NULL or 0. Patterns: the whole value, with * and ?, but for `id`. */
	const char *id;
	const char *tenant, *name, *rule, *exe, *path, *dst, *reason, *state;
	const char *text;	     /* somewhere in any value, the command or the name */
	uint64_t since_ns, until_ns; /* started in [since, until) */
	uint64_t limit;		     /* the newest so many */
};

struct catalog_row {
	const char *id, *state, *name, *tenant, *host, *backend, *tier, *command, *reason, *rule,
		*head;
	const char *damage; /* "" or what is wrong with the record: state `damaged` */
	uint64_t started_ns, ended_ns, records, alerts, lost, bytes;
	int64_t exit_code;
	bool has_end, is_signed, is_cut;
};

/* 0: go on; else stop, and be returned. The texts live until it returns. */
typedef int (*catalog_row_fn)(void *arg, const struct catalog_row *row);
/* Newest first. */
int catalog_list(struct catalog *c, const struct catalog_filter *f, catalog_row_fn fn, void *arg,
		 struct err *err);

/* What a session did: kind is exe, path, dst, name (DNS), rule or escape. */
struct catalog_fact {
	const char *kind, *value;
	uint64_t count;
};

typedef int (*catalog_fact_fn)(void *arg, const struct catalog_fact *fact);
/* By kind, the most frequent first; at most `per_kind` of each (0 = all). */
int catalog_facts(struct catalog *c, const char *id, uint64_t per_kind, catalog_fact_fn fn,
		  void *arg, struct err *err);
/* What `b` did and `a` did not. */
int catalog_only_in(struct catalog *c, const char *a, const char *b, catalog_fact_fn fn, void *arg,
		    struct err *err);

#endif
