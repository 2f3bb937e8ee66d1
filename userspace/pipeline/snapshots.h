/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots that are kept: <state>/snapshots/<tenant>/<name>/, root's alone, with the archive (workspace/archive.h) and
 * what is known of it. A directory has its name only when all of it is on disk; what somebody who was killed had
 * begun is removed by whoever comes next. */
#ifndef WARDER_PIPELINE_SNAPSHOTS_H
#define WARDER_PIPELINE_SNAPSHOTS_H

#include <stdbool.h>
#include <stdint.h>
#include "userspace/base/err.h"
#include "userspace/base/json.h"
#include "userspace/base/ulid.h"
#include "userspace/pipeline/tenant_dir.h"

#define SNAPSHOT_NAME_MAX TENANT_DIR_NAME_MAX
#define SNAPSHOTS_MAX	  256 /* of one tenant */

struct snapshots_row {
	char name[SNAPSHOT_NAME_MAX + 1], tenant[SNAPSHOT_NAME_MAX + 1];
	char session[ULID_LEN + 1];	     /* that it was taken of */
	char sandbox[SNAPSHOT_NAME_MAX + 1]; /* the name of that */
	char policy[65];		     /* hash of that one's plan */
	uint64_t created_ns;		     /* CLOCK_REALTIME */
	uint64_t files, bytes, stored;
	uint8_t sha256[32];
	/* What ran, too: bytes, 0 = it is not kept. And by what alone it can be read. */
	uint64_t processes;
	uint8_t processes_sha256[32];
	char runtime[96];
};

struct snapshots_new {
	int all, dir, file, processes; /* the tenant's, its own, the archive's, of what ran; -1 */
	char tmp[ULID_LEN + 8];
	struct snapshots_row row;
};

/* Beside those that are there: -EEXIST, -EDQUOT. Fills row.name, .tenant. */
int snapshots_begin(struct snapshots_new *ret, const char *tenant, const char *name,
		    struct err *err);
/* With what ran, to be written to n->processes. */
int snapshots_add_processes(struct snapshots_new *n, struct err *err);
/* The archive and `row` are complete: it appears under its name. */
int snapshots_commit(struct snapshots_new *n, struct err *err);
/* Removes what was not committed. Does nothing twice. */
void snapshots_done(struct snapshots_new *n);

/* *ret_fd: the archive, to be checked against row.sha256 by who reads it. -ENOENT, -EBADMSG. */
int snapshots_open(struct snapshots_row *ret, int *ret_fd, const char *tenant, const char *name,
		   struct err *err);
/* What ran, of a row that snapshots_open gave, checked against its digest: nobody but root can have changed it since.
 * -ENOENT: there is none. -EBADMSG. */
int snapshots_open_processes(int *ret_fd, const struct snapshots_row *row, struct err *err);
/* By tenant and name; `tenant` NULL = of all. A value that is not 0 ends it. */
int snapshots_each(const char *tenant, int (*fn)(void *arg, const struct snapshots_row *row),
		   void *arg, struct err *err);
int snapshots_remove(const char *tenant, const char *name, struct err *err);
/* Bytes that a tenant's lie in. */
uint64_t snapshots_bytes(const char *tenant);

/* One JSON object. */
void snapshots_json(struct json *j, const struct snapshots_row *row);

#endif
