/* SPDX-License-Identifier: Apache-2.0 */
/* What a verdict can do to a sandbox. Works on descriptors that root opened before the engine dropped
 * its privileges; never acts by pid, so it can hit nothing outside the sandbox. */
#ifndef WARDER_ACTION_ACTION_H
#define WARDER_ACTION_ACTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Descriptors of one sandbox's cgroup v2 leaf; -1 = not there. Borrowed. */
struct action_target {
	int kill_fd;   /* cgroup.kill, for writing */
	int freeze_fd; /* cgroup.freeze, for writing */
	int events_fd; /* cgroup.events, for reading */
	int proc_fd; /* to the root part, which alone may end a single process (struct action_proc) */
	/* May be NULL: a task that waits for us in the kernel stops only when it no longer does. Called once the rest is on
	 * its way to a stop. */
	void (*let_go)(void *arg);
	void *arg;
};

/* What is asked of the root part over a SOCK_SEQPACKET pair, and its answer: 0 or -errno in `result`. */
struct action_proc {
	uint32_t tgid;
	int32_t result;
	uint64_t
		start; /* of the process, CLOCK_BOOTTIME ns: a number that was used again is another one */
};

enum action_outcome {
	ACTION_DONE,	/* carried out and seen to have worked */
	ACTION_PARTIAL, /* asked for, not yet seen complete within the wait */
	ACTION_FAILED,	/* refused: text says why */
};

struct action_report {
	enum action_outcome outcome;
	uint64_t done_ns; /* CLOCK_BOOTTIME when it was seen done, or given up */
	char text[128];	  /* "done", "partial: ...", "failed: ..." */
};

/* Kill every task of the sandbox at once (cgroup.kill: forks cannot win the race) and wait until the
 * cgroup is empty, at most `wait_ms`. */
void action_kill_sandbox(const struct action_target *t, int wait_ms, struct action_report *ret);

/* End one process of the sandbox. It is checked by the root part that it is one. */
void action_kill_process(const struct action_target *t, uint32_t tgid, uint64_t start, int wait_ms,
			 struct action_report *ret);

/* Stop every task of the sandbox, or let them go on, and wait until the kernel says that it is so. A kill
 * works on a frozen sandbox as well. */
void action_freeze(const struct action_target *t, bool frozen, int wait_ms,
		   struct action_report *ret);

/* Is any task left? 1, 0, or -errno. */
int action_is_populated(const struct action_target *t);
/* Is every task stopped? 1, 0, or -errno. */
int action_is_frozen(const struct action_target *t);

#endif
