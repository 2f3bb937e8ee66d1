/* SPDX-License-Identifier: Apache-2.0 */
/* What the process in the scratch sandbox does, a step for each thing that a family must see (selftest.c
 * looks whether it did). */
#ifndef WARDER_CAPTURE_SELFTEST_H
#define WARDER_CAPTURE_SELFTEST_H

#include <stdbool.h>

enum selftest_step {
	STEP_NETNS, /* a network of its own: nothing of this is seen by others */
	STEP_FORK,
	STEP_EXEC,
	STEP_EXEC_FAILS,
	STEP_OPEN,
	STEP_WRITE,
	STEP_MMAP,
	STEP_NAMES,
	STEP_LIMIT,
	STEP_SIGNAL,
	STEP_SETNS,
	STEP_SECCOMP,
	STEP_INT80,
	STEP_TCP4,
	STEP_TCP6,
	STEP_UDP4,
	STEP_UDP6,
	STEP_PASSED,
	STEP_DNS,
	STEP_METADATA4,
	STEP_METADATA6,
	STEP_METADATA_SEND,
	STEP_URING,
	STEP_DENY_CONNECT, /* refused by the kernel side, where that was loaded */
	STEP_DENY_FILE,
	/* Slow, or loud: only when all is asked for. */
	STEP_MOUNT,
	STEP_LEAVE,
	STEP_OOM,
	STEP_COUNT
};

#define STEP_FIRST_SLOW STEP_MOUNT

/* Shared with the child. */
struct selftest_page {
	int done[STEP_COUNT]; /* 0 not come to, 1 done, -errno could not */
};

struct selftest_job {
	struct selftest_page *page;
	bool all;
	bool denies, denies_files; /* what the kernel side was told to refuse */
	int file;		   /* a memfd, made outside the sandbox */
	int passed; /* a UDP socket, made there too: of the host's network, so only for its loopback */
	int dir;    /* of an empty file system that is mounted nowhere */
	int program; /* a memfd that holds a program which ends at once; -1: the host allows none */
	int outside; /* cgroup.procs of another cgroup v2 directory; -1 = none */
	int tasks;   /* where to write "0" to be under a limit of memory; -1 = none */
};

#define SELFTEST_PASSED_PORT 11		    /* where it sends to: nobody else does */
#define SELFTEST_URING_PORT  12		    /* the same, by io_uring */
#define SELFTEST_DENIED_IP   "198.51.100.1" /* RFC 5737: nobody's */

/* In the child: all steps, then the end. */
_Noreturn void selftest_act(const struct selftest_job *job);

#endif
