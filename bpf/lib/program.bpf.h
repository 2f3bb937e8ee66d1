/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Which program a process runs, for what is enforced by it: the path that its exec led to, as the exec's record has
 * it, so that kernel and rules speak of the same. Kept by process, since cgroup programs have no task storage before
 * 6.16, and with the file's inode: when the process's executable is no longer that file, nothing is known.
 * Noted in probes that enforce something; 0.3 us an exec and a fork. */
#ifndef WARDER_BPF_PROGRAM_H
#define WARDER_BPF_PROGRAM_H

#include "bpf/lib/fail.bpf.h"
#include "bpf/lib/maps.bpf.h"

#define PROGRAM_TRIES 3

extern const volatile __u32 enforce_mode;

/* At exec: s->path is the executable's. */
GLOBAL int program_begin(struct scratch *arg, __u32 dev, __u64 ino)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32, pos, n, index;
	struct scratch *s;

	if (enforce_mode == ENFORCE_MODE_OFF || !arg)
		return 0;
	index = arg->index; /* to 6.1 no value of a map may lie in an argument */
	s = bpf_map_lookup_elem(&scratches, &index);
	if (!s)
		return 0;
	pos = s->w.pos;
	if (s->w.flags & WIRE_F_TRUNC || pos >= WIRE_PATH_MAX)
		goto unknown; /* its head, which decides, is not there */
	n = WIRE_PATH_MAX - pos;
	if (n > ENFORCE_PATH_MAX)
		n = ENFORCE_PATH_MAX;
	__builtin_memset(&s->program, 0, sizeof(s->program));
	if (bpf_probe_read_kernel(s->program.key.path, n, s->path + pos))
		goto unknown;
	s->program.key.prefixlen = (sizeof(s->program.key) - sizeof(__u32)) * 8;
	s->program.ino = ino;
	s->program.dev = dev;
	if (bpf_map_update_elem(&programs, &tgid, &s->program, BPF_ANY) == 0)
		return 0;
	count_fail(FAIL_STASH);
unknown:
	bpf_map_delete_elem(&programs, &tgid);
	return 0;
}

/* A new process runs what its parent does. */
static __always_inline void program_inherit(__u32 child)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct program *p;

	if (enforce_mode == ENFORCE_MODE_OFF)
		return;
	p = bpf_map_lookup_elem(&programs, &tgid);
	if (p && bpf_map_update_elem(&programs, &child, p, BPF_ANY) == 0)
		return;
	if (p)
		count_fail(FAIL_STASH);
	bpf_map_delete_elem(&programs, &child);
}

static __always_inline void program_end(__u32 tgid)
{
	if (enforce_mode != ENFORCE_MODE_OFF)
		bpf_map_delete_elem(&programs, &tgid);
}

/* Row of `enforce_sets` for the current process in the set `set`: its class's; the set's own where that tells no
 * programs apart, or the process's is not known. */
GLOBAL int program_row(__u32 set)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32, names;
	struct enforce_class *class;
	struct enforce_set *e;
	struct program *p;
	struct inode *inode;
	__u64 found;
	int i;

	e = bpf_map_lookup_elem(&enforce_sets, &set);
	if (!e || !e->names)
		return set;
	names = e->names;
	p = bpf_map_lookup_elem(&programs, &tgid);
	if (!p)
		return set;
	inode = BPF_CORE_READ(bpf_get_current_task_btf(), mm, exe_file, f_inode);
	if (p->ino != BPF_CORE_READ(inode, i_ino) || p->dev != BPF_CORE_READ(inode, i_sb, s_dev))
		return set;
	found = *(volatile __u64 *)&p->found;
	if (found >> 32 == names)
		return (__u32)found;
		/* Another thread may be at the same, still by the names before a change of rules: what it finds is not ours. */
#pragma unroll
	for (i = 0; i < PROGRAM_TRIES; i++) {
		*(volatile __u32 *)&p->key.keys = names;
		class = bpf_map_lookup_elem(&enforce_names, &p->key);
		if (class && class->names == names) {
			*(volatile __u64 *)&p->found = (__u64)names << 32 | class->row;
			return class->row;
		}
	}
	return set;
}

#endif
