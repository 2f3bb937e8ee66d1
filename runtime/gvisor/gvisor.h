/* SPDX-License-Identifier: Apache-2.0 */
/* The gVisor backend from the inside of this folder: the same plan, whose root becomes a tree in a small root of gVisor's
 * own, an OCI bundle that names it, and runsc, run by the keeper. */
#ifndef WARDER_RUNTIME_GVISOR_GVISOR_H
#define WARDER_RUNTIME_GVISOR_GVISOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/plan.h"
#include "runtime/setup.h"
#include "userspace/base/buf.h"
#include "userspace/base/err.h"

struct sandbox;
struct sandbox_exec;

/* gVisor's processes inside the keeper's user namespace: the gofer and runsc are 0 there, the sentry and the stubs
 * nobody. Both are ids of this sandbox alone. */
#define GVISOR_ROOT_IDS	  0x60000000u
#define GVISOR_NOBODY_IDS 0x50000000u
#define GVISOR_NOBODY	  65534

/* Host tasks that one process of the guest costs at most: a stub, and threads of the sentry for its tasks. */
#define GVISOR_TASKS_EACH 16
#define GVISOR_TASKS_OWN  64

#define GVISOR_PATH_MAX 256

/* What this runsc can do, asked from itself. */
struct gvisor_runsc {
	char path[GVISOR_PATH_MAX];
	char version[64];
	bool has_directfs, has_overlay2, has_ptrace, has_systrap;
	/* Processes that it kept get their descriptors back by what they are. Else by number, whatever has that number
	 * in the new sentry. */
	bool has_restore;
};

/* What the set-up task needs besides the plan. */
struct gvisor_setup {
	const char *runsc;	     /* path on the host */
	const char *sink;	     /* socket on the host; NULL */
	struct buf config, pod_init; /* files of the bundle */
	uint32_t root_id, guest_id;  /* on the host: of the keeper, of the guest's user */
};

/* runsc.c: finds and asks it; kept for the life of the process. -ENOENT: it is not installed. */
int gvisor_runsc_get(const struct gvisor_runsc **ret, struct err *err);
/* The one that is asked for, or the better one; NULL: runsc does not have it. */
const char *gvisor_platform(const struct gvisor_runsc *r, const char *asked);

/* features.c: does a program run on this platform, and in what time? */
int gvisor_trial(const char *platform, uint64_t *ret_ns, struct err *err);
struct sandbox_feature;
size_t gvisor_features(struct sandbox_feature *rows, size_t max);

/* bundle.c */
int gvisor_bundle(const struct sandbox_plan *p, uint32_t uid, struct buf *out, struct err *err);
/* process.json of a further command. */
int gvisor_process(const struct sandbox_plan *p, const struct sandbox_exec *x, uint32_t uid,
		   struct buf *out, struct err *err);
/* keeper's configuration: the command lines of runsc, for this sandbox. */
int gvisor_words(const struct sandbox_plan *p, const struct gvisor_runsc *r, bool points,
		 bool restores, struct buf *out, struct err *err);

/* root.c */
extern const struct setup_step gvisor_steps[];

#endif
