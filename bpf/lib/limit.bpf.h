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

/* Native numbers: what makes tasks; what has an ENOSPC or EMFILE of another meaning (watches and instances
 * of inotify). */
static __always_inline bool limit_is_fork(__u64 nr)
{
	return nr == 56 || nr == 57 || nr == 58 || nr == 435; /* clone fork vfork clone3 */
}

static __always_inline bool limit_is_inotify(__u64 nr)
{
	return nr == 253 || nr == 254 || nr == 294;
}

/* enum wire_limit; 0 = none. */
static __always_inline __u32 limit_of(__u64 nr, long ret)
{
	switch (ret) {
	case -LIMIT_ENOSPC:
	case -LIMIT_EDQUOT:
		return limit_is_inotify(nr) ? 0 : WIRE_LIMIT_DISK;
	case -LIMIT_EFBIG:
		return WIRE_LIMIT_FSIZE;
	case -LIMIT_EMFILE:
		return limit_is_inotify(nr) ? 0 : WIRE_LIMIT_NOFILE;
	case -LIMIT_EAGAIN:
		return limit_is_fork(nr) ? WIRE_LIMIT_PIDS : 0;
	}
	return 0;
}

#endif
