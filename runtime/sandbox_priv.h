/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox from the inside of runtime/. */
#ifndef WARDER_RUNTIME_SANDBOX_PRIV_H
#define WARDER_RUNTIME_SANDBOX_PRIV_H

#include "runtime/cgroup.h"
#include "runtime/egress/kernel.h"
#include "runtime/init/frame.h"
#include "runtime/plan.h"
#include "runtime/sandbox.h"
#include "runtime/secret.h"

enum stage { STAGE_CREATED, STAGE_STARTING, STAGE_RUNNING, STAGE_EXITED, STAGE_DEAD };

struct sandbox {
	const struct sandbox_plan *plan;
	struct cgroup cgroup;
	enum stage stage;
	uint32_t host_id;	    /* uid and gid on the host */
	int control;		    /* to init; -1 */
	int pidfd;		    /* of init; -1 */
	int workspace;		    /* O_PATH; -1 */
	int tty;		    /* the pty's master; -1 */
	int dirs[SANDBOX_DIRS_MAX]; /* O_PATH; -1 */
	struct {
		int workspace, scratch; /* mounts for the set-up task; -1 = it makes its own */
	} made;
	pid_t pid;
	struct secrets secrets;
	sandbox_exec_fn on_exec; /* NULL */
	void *on_exec_arg;
	struct egress *egress;		   /* borrowed; NULL */
	const struct sandbox_guest *guest; /* borrowed; NULL */
	int processes;			   /* borrowed; -1 */
	bool processes_come;		   /* the sentry has them */
	struct {
		bool asked, done;
		int code;
		char text[INIT_TEXT_MAX];
	} checkpoint;
	enum seccomp_notify notify;
	int listener;	    /* -1: not there, or taken */
	bool listener_told; /* by init: it came, or why not: */
	int listener_error;
	int walls[EGRESS_WALLS]; /* programs around the cgroup; -1 */
	bool mapped;		 /* its user namespace has its ids */
	bool exec_failed;	 /* the command, not the sandbox */
	bool ended;		 /* the payload's end is known */
	bool died;		 /* what ran the payload ended before it could say how: */
	int death_code, death_signal;
	bool alone; /* and nothing else was left, as init says */
	int exit_code, exit_signal;
};

/* fill.c */
void dirs_init(struct sandbox *s);
void dirs_done(struct sandbox *s);
void dirs_hold(struct sandbox *s);

#endif
