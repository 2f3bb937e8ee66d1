/* SPDX-License-Identifier: Apache-2.0 */
/* The recorded sessions of this host, for `warder sessions` and its kin. */
#ifndef WARDER_CLI_SESSIONS_H
#define WARDER_CLI_SESSIONS_H

#include "userspace/base/ulid.h"
#include "userspace/catalog/catalog.h"

/* <state>/sessions. */
int sessions_open_dir(int *ret_fd, struct err *err);
/* The catalogue, brought up to date with the bundles there are. */
int sessions_open_catalog(struct catalog **ret, struct err *err);
/* "24h" (that long ago), "2026-01-31" or "2026-01-31T12:34:56Z" as ns since 1970. -EINVAL. */
int sessions_parse_time(const char *text, uint64_t *ret, struct err *err);
/* A session's full id, by the id or a part of it, as everywhere. */
int sessions_find(char ret[ULID_LEN + 1], const char *word, struct err *err);

/* Is it held, by the host log: nobody may prune it? */
struct session_holds;
int session_holds_read(struct session_holds **ret, struct err *err);
bool session_is_held(const struct session_holds *h, const char *id);
void session_holds_free(struct session_holds *h);

#define PRUNE_NOT_GIVEN UINT64_MAX

struct prune_options {
	uint64_t older_ns; /* ended longer ago than this; PRUNE_NOT_GIVEN = no matter */
	uint64_t
		max_bytes; /* the oldest go until the rest is no more than this; PRUNE_NOT_GIVEN = no matter */
	bool sent;   /* those that every required sink took whole, at least one */
	bool unsent; /* and those of which a required sink has not taken all */
	bool dry_run;
};

#define PRUNE_CURSORS_NS \
	(30ull * 24 * 3600 * 1000000000) /* of sessions that are gone; without older_ns */

/* Delete sealed bundles that nobody holds and that no required sink waits for, and what sinks keep of them; each is
 * written to the host log before it goes. Prints what it does. */
int sessions_prune(struct catalog *c, const struct prune_options *opt, struct err *err);

#endif
