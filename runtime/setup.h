/* SPDX-License-Identifier: Apache-2.0 */
/* The set-up task: born by clone3 in the sandbox's cgroup and namespaces, it builds everything and
 * then becomes init by exec. It is the copy of a process that may have threads, so nothing here
 * allocates memory or takes a lock. */
#ifndef WARDER_RUNTIME_SETUP_H
#define WARDER_RUNTIME_SETUP_H

#include "runtime/init/frame.h"
#include "runtime/plan.h"

#define OURS_MAX 8

struct setup {
	const struct sandbox_plan *plan;
	uint32_t host_id;
	int control;
	/* The launcher's, closed at once: held here, a dead launcher would seem alive to a sweep (lock of
	 * the leaf) and to ourselves (other end of `control`). */
	int leaf, peer;
	int secrets; /* their file system; -1 */
	int made_workspace,
		made_scratch; /* file systems that are filled; -1 = they are made here */
	int netns;	      /* made ahead; -1 = made by clone3 */
	int init;	      /* memfd of init's program */
	int config;	      /* memfd of struct init_config */
	int stdio[3];
	int v1_tasks[CONTROLLER_COUNT];
	int ids[PLAN_ROOT_MAX]; /* user namespace for an id-mapped bind; -1 */

	int root;	      /* the new root's mount */
	dev_t ours[OURS_MAX]; /* file systems in which a missing mount point is made */
	size_t ours_n;
	bool templated; /* born in a root that has all but what is this sandbox's own */
	bool image;	/* the root is an overlay over ROOT_IMAGE */
	int stage;	/* with it, what lies below the root */
	int scratch;	/* file system of the private directories */
	int dev;	/* where /dev is made, when that is not in the root: scratch; -1 */
	int proc;	/* the new /proc */
	int mask_file, mask_dir;
	int proc_sys;		/* the host's /proc/sys, which follows our namespaces */
	char at[INIT_TEXT_MAX]; /* what is being worked on, for the error text */
	const struct setup_step *steps;
	const struct gvisor_setup *gvisor; /* NULL: another backend */
};

/* Up to a row without a name; the last one is an exec. */
struct setup_step {
	const char *name;
	int (*run)(struct setup *s);
};
extern const struct setup_step setup_steps_ns[];

/* Never returns: execs init, or reports to s->control and exits. */
void setup_run(struct setup *s) __attribute__((noreturn));
void setup_at(struct setup *s, const char *what);

/* Steps, one file each. 0 or -errno with s->at naming the object. */
int setup_root(struct setup *s);       /* mount.c */
int setup_pivot(struct setup *s);      /* mount.c */
int setup_net(struct setup *s);	       /* net.c */
int setup_userns(struct setup *s);     /* userns.c */
int setup_ns_limits(struct setup *s);  /* userns.c */
int setup_ids(struct setup *s);	       /* userns.c */
int setup_caps_bound(struct setup *s); /* caps.c */
int setup_caps_drop(struct setup *s);  /* caps.c */
int setup_rlimits(struct setup *s);    /* rlimit.c */
int setup_landlock(struct setup *s);   /* landlock.c */
/* setup.c */
int setup_v1(struct setup *s);
int setup_keyring(struct setup *s);
int setup_umask(struct setup *s);
int setup_scheduling(struct setup *s);
int setup_no_new_privs(struct setup *s);
int setup_fds(struct setup *s);
int setup_exec(struct setup *s);
/* A step of setup_root; secret.c */
int setup_secrets(struct setup *s, const struct root_op *op, size_t i);

/* userns.c, in the launcher: maps for the set-up task, and a namespace that only carries a map. */
int userns_map(pid_t pid, uint32_t uid, uint32_t gid, uint32_t host_id);
struct userns_id {
	uint32_t inner, outer;
};
/* The same for users and groups; at most 8. */
int userns_map_ids(pid_t pid, const struct userns_id *ids, size_t n);
/* Maps on-disk owner:group to host_id, for mount_setattr; and `self`, unless 0, to itself: who makes a file under that
 * id before it gives it away. */
#define USERNS_OTHERS UINT32_MAX /* as `self`: every other id up to PLAN_INNER_MAX to itself */
int userns_for_mount(uint32_t owner, uint32_t group, uint32_t host_id, uint32_t self, int *ret_fd);

#endif
