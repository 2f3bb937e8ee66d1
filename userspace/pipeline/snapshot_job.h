/* SPDX-License-Identifier: Apache-2.0 */
/* Taking a snapshot of a sandbox that runs: it stands still while a process without privilege but to read packs its
 * directories, and goes on unless somebody else wants it stopped. And the way back, before the start. */
#ifndef WARDER_PIPELINE_SNAPSHOT_JOB_H
#define WARDER_PIPELINE_SNAPSHOT_JOB_H

#include "runtime/sandbox.h"
#include "userspace/base/buf.h"
#include "userspace/pipeline/snapshots.h"

struct snapshot_shared; /* with the process that works */

struct snapshot_job {
	bool busy;
	uint32_t id; /* whose request it is (hub.h) */
	char who[96];
	int pidfd; /* valid while busy */
	pid_t pid;
	struct snapshots_new file;
	struct snapshot_shared *shared;
	bool let_go;	/* it was thawed meanwhile */
	bool processes; /* what runs, too: that comes first, */
	bool written;	/* and is all there */
};

/* `max`: bytes of it. The sandbox is being frozen when this returns. */
int snapshot_job_begin(struct snapshot_job *j, struct sandbox *s, const char *tenant,
		       const char *name, uint64_t max, uid_t uid, gid_t gid, struct err *err);
/* The same with j->processes: it is frozen by snapshot_job_written, when sandbox_checkpoint_end says so. */
int snapshot_job_written(struct snapshot_job *j, const struct sandbox *s, struct err *err);
/* Readable when there is something to end; -1: there is nothing. */
int snapshot_job_fd(const struct snapshot_job *j);
/* The result, at most a moment after snapshot_job_fd was readable. Then the sandbox may go on, which is not done
 * here. On success the snapshot is there, and j->file.row is about it. Anyhow j->file.row.name is its name. */
int snapshot_job_end(struct snapshot_job *j, const struct sandbox *s, struct err *err);
/* Has who packs given up? Then that is why nothing more can be written. */
bool snapshot_job_has_failed(const struct snapshot_job *j);
/* Without a result. */
void snapshot_job_drop(struct snapshot_job *j);

/* Fill a new sandbox from the archive. */
int snapshot_restore(struct sandbox *s, const struct snapshots_row *row, int fd, struct err *err);

/* Records of both. `r`: 0 or -errno. What ran is told by one of its own, whose name says so. */
int record_snapshot(struct buf *out, uint32_t sandbox_id, const struct snapshots_row *row,
		    const char *who, bool is_restore, bool processes, int r);

#endif
