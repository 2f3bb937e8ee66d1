/* SPDX-License-Identifier: Apache-2.0 */
/* The root part's side of the workspace's comparison: a process for each look, which may read everything in
 * the places and nothing else, is given a time, and leaves its result in a memory file. */
#ifndef WARDER_PIPELINE_WORKSPACE_JOB_H
#define WARDER_PIPELINE_WORKSPACE_JOB_H

#include <sys/types.h>
#include "userspace/workspace/workspace.h"

struct workspace_job {
	struct workspace_place places[WORKSPACE_PLACES_MAX];
	size_t places_n;
	size_t shared_n; /* of them, the operator's; the sandbox's own is behind them */
	int before_fd;	 /* valid when has_before */
	bool has_before;
	bool keep_texts;
	/* a look that is under way */
	bool busy;
	enum wire_scan_when when;
	int items_fd;
	pid_t pid; /* 0 = it has ended already */
	int pidfd;
	uint64_t end; /* CLOCK_MONOTONIC */
};

/* A host path; inside is borrowed. -errno. */
int workspace_job_add(struct workspace_job *j, const char *inside, const char *host);
/* /workspace itself when it is the sandbox's own: fd is borrowed; -1 = it is not. */
void workspace_job_own(struct workspace_job *j, int fd);
/* The state now; nothing without a place. */
int workspace_job_before(struct workspace_job *j, uid_t uid, gid_t gid, struct err *err);
/* Look and compare. -EBUSY: somebody is. */
int workspace_job_begin(struct workspace_job *j, enum wire_scan_when when, uid_t uid, gid_t gid,
			struct err *err);
bool workspace_job_busy(const struct workspace_job *j);
/* Readable when it is done, -1 = it is done, or nothing goes on; ms until it is given up, -1 likewise. */
int workspace_job_fd(const struct workspace_job *j);
int workspace_job_timeout(const struct workspace_job *j);
/* *ret_items: for engine_send_workspace. Waits when it is not done. A look that did not come to its end is a scan
 * that says so. */
int workspace_job_end(struct workspace_job *j, int *ret_items, struct err *err);
void workspace_job_done(struct workspace_job *j);

#endif
