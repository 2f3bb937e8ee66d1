/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Keys and values of the maps that user space fills or reads, and the knobs set before load. */
#ifndef WARDER_BPF_ABI_MAPS_H
#define WARDER_BPF_ABI_MAPS_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#define SANDBOXES_MAX 4096 /* live sandboxes one agent can watch */

/* `sandboxes`: key __u64 cgroup v2 id of the sandbox's leaf; written before its first instruction. */
struct sandbox_cfg {
	__u32 id; /* goes into wire_hdr.sandbox; never 0 */
	__u32 flags;
	__u64 kill_escape; /* bit n set: enum wire_escape_type n is killed in the kernel */
	__u32 armed; /* set by the kernel at the payload's first exec: until then set-up is quiet */
	__u32 events_off; /* bit per kind family that is not wanted; 0 = all */
};

#define SANDBOX_F_WATCH 0x1 /* an existing cgroup: no set-up phase, armed from the start */

/* `drops`: per-CPU array; key = drop_key(ring, kind slot). */
struct drop_count {
	__u64 count;
	__u64 first_ts; /* CLOCK_BOOTTIME ns */
	__u64 last_ts;
};

/* `fails`: per-CPU array of __u64 counters by site; a failed helper is counted, not swallowed. */
#define FAIL_SITES(X)                     \
	X(TASK_STORAGE, "task storage")   \
	X(SCRATCH, "scratch buffer busy") \
	X(READ_ARGS, "argv read")         \
	X(READ_PATH, "path walk")         \
	X(READ_USER, "user string read")  \
	X(STASH, "stash map full")        \
	X(SIGNAL, "send signal")          \
	X(SKB, "packet read")

#define FAIL_ENUM(name, text) FAIL_##name,
enum fail_site { FAIL_SITES(FAIL_ENUM) FAIL_SITE_COUNT };

#endif
