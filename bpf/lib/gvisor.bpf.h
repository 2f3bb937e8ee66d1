/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Which part of gVisor a task is. Learned by its words at its exec, before anything of the guest runs, and inherited:
 * what the sentry forks are stubs. */
#ifndef WARDER_BPF_GVISOR_H
#define WARDER_BPF_GVISOR_H

#include "bpf/lib/escape.bpf.h"

#define CLONE_THREAD_	0x00010000
#define GVISOR_TOLD_MAX 8

#define CLONE_NS_ANY 0x7e020000 /* CLONE_NEW* */

static __always_inline bool gvisor_armed(struct task_state *st)
{
	__u64 cgid = st->cgid;
	struct sandbox_cfg *cfg = bpf_map_lookup_elem(&sandboxes, &cgid);

	return cfg && cfg->armed;
}

static __always_inline __u16 gvisor_flags(struct task_state *st)
{
	return st->part ? WIRE_F_RUNTIME | (__u16)(st->part << WIRE_PART_SHIFT) : 0;
}

/* At an exec of a sandbox that is set up by programs. */
static __always_inline void gvisor_learn(struct task_struct *p, struct task_state *st)
{
	__u64 arg = BPF_CORE_READ(p, mm, arg_start);
	char w[16] = {};

	bpf_probe_read_user_str(w, sizeof(w), (void *)arg);
	/* "runsc-gofer", "runsc-sandbox" */
	if (w[0] == 'r' && w[5] == '-' && w[6] == 'g')
		st->part = GVISOR_GOFER;
	else if (w[0] == 'r' && w[5] == '-' && w[6] == 's')
		st->part = GVISOR_SENTRY;
	else
		st->part = GVISOR_CLI;
}

/* Not by the flags of a part's own work? Stubs are made by stubs, in ways that differ by platform and version, but never
 * in namespaces of their own. */
static __always_inline bool gvisor_is_odd_clone(__u32 part, __u64 flags)
{
	if (part == GVISOR_STUB)
		return flags & CLONE_NS_ANY;
	return part != GVISOR_CLI && !(flags & CLONE_THREAD_);
}

#endif
