/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Which results of system calls say that a limit of the sandbox was hit. */
#ifndef WARDER_BPF_LIMIT_H
#define WARDER_BPF_LIMIT_H

#include "bpf/lib/calls.bpf.h"

#define LIMIT_EAGAIN 11
#define LIMIT_EMFILE 24
#define LIMIT_EFBIG  27
#define LIMIT_ENOSPC 28
#define LIMIT_EDQUOT 122

/* Native numbers: what makes tasks; what has an ENOSPC, EDQUOT or EMFILE of another meaning: instances and
 * watches, System V and message queues, keys, breakpoints, namespaces and mounts. */
static __always_inline bool limit_is_fork(__u64 nr)
{
	return nr == 56 || nr == 57 || nr == 58 || nr == 435; /* clone fork vfork clone3 */
}

static __always_inline bool limit_is_other(__u64 nr)
{
	switch (nr) {
	case 29:  /* shmget */
	case 64:  /* semget */
	case 68:  /* msgget */
	case 165: /* mount */
	case 233: /* epoll_ctl */
	case 240: /* mq_open */
	case 248: /* add_key */
	case 249: /* request_key */
	case 250: /* keyctl */
	case 253: /* inotify_init */
	case 254: /* inotify_add_watch */
	case 272: /* unshare */
	case 294: /* inotify_init1 */
	case 298: /* perf_event_open */
	case 300: /* fanotify_init */
	case 301: /* fanotify_mark */
		return true;
	}
	return limit_is_fork(nr);
}

/* May limit_of() have an answer? Small, for the hooks that each call goes through. */
static __always_inline bool limit_maybe(__u64 nr, long ret)
{
	return ret == -LIMIT_ENOSPC || ret == -LIMIT_EDQUOT || ret == -LIMIT_EFBIG ||
	       ret == -LIMIT_EMFILE || (ret == -LIMIT_EAGAIN && limit_is_fork(nr));
}

/* enum wire_limit; 0 = none. */
static __always_inline __u32 limit_of(__u64 nr, long ret)
{
	switch (ret) {
	case -LIMIT_ENOSPC:
	case -LIMIT_EDQUOT:
		return limit_is_other(nr) ? 0 : WIRE_LIMIT_DISK;
	case -LIMIT_EFBIG:
		return WIRE_LIMIT_FSIZE;
	case -LIMIT_EMFILE:
		return limit_is_other(nr) ? 0 : WIRE_LIMIT_NOFILE;
	case -LIMIT_EAGAIN:
		return limit_is_fork(nr) ? WIRE_LIMIT_PIDS : 0;
	}
	return 0;
}

#endif
