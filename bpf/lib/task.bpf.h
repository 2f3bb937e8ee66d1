/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Tasks: membership, identity, the header of a record.
 *
 * Pointers are followed with BPF_CORE_READ (4 ns each), or directly from task_plain(): directly from a task
 * as helpers give it each load of a pointer costs 1-4 ms when the program is loaded. Numbers are free. */
#ifndef WARDER_BPF_TASK_H
#define WARDER_BPF_TASK_H

#include "bpf/lib/compat.bpf.h"
#include "bpf/lib/fail.bpf.h"

#define CGROUP_LEVELS 12 /* how deep below a sandbox's leaf a cgroup may be */

static __always_inline __u64 task_cgid(struct task_struct *t)
{
	return BPF_CORE_READ(t, cgroups, dfl_cgrp, kn, id);
}

struct cgroup_walk {
	__u64 cg;     /* struct cgroup * */
	__u64 wanted; /* 0: any registered sandbox */
	__u64 found;
};

static long cgroup_step(__u32 i, struct cgroup_walk *x)
{
	struct cgroup *cg = (struct cgroup *)x->cg;
	__u64 id = BPF_CORE_READ(cg, kn, id);

	if (x->wanted ? id == x->wanted : !!bpf_map_lookup_elem(&sandboxes, &id)) {
		x->found = id;
		return 1;
	}
	x->cg = (__u64)cgroup_up(cg);
	return !x->cg;
}

/* Id of the first cgroup at or above `cg` that is `wanted` (0: that is registered), or 0. */
GLOBAL __u64 cgroup_find(__u64 cg, __u64 wanted)
{
	struct cgroup_walk x = { .cg = cg, .wanted = wanted };

	bpf_loop(CGROUP_LEVELS, cgroup_step, &x, 0);
	return x.found;
}

static __always_inline __u64 cgroup_sandbox(__u64 cg)
{
	return cgroup_find(cg, 0);
}

static __always_inline bool cgroup_is_under(__u64 cg, __u64 id)
{
	return cgroup_find(cg, id) != 0;
}

/* Process id in the task's own pid namespace. */
static __always_inline __u32 task_nspid(struct task_struct *t)
{
	struct pid *pid = BPF_CORE_READ(t, signal, pids[PIDTYPE_TGID]);
	__u32 level = BPF_CORE_READ(pid, level);
	struct upid *up = &pid->numbers[0];
	__u32 nr = 0;

	bpf_core_read(&nr, sizeof(nr),
		      (char *)up + level * bpf_core_type_size(struct upid) +
			      bpf_core_field_offset(struct upid, nr));
	return nr;
}

static __always_inline void state_fill(struct task_state *st, struct task_struct *t)
{
	st->nspid = task_nspid(t);
	st->start = BPF_CORE_READ(t, group_leader, start_boottime);
}

/* The membership that a task has by itself, or NULL. What on_sys_exit hands over has it. */
static __always_inline struct task_state *task_own_state(struct task_struct *t)
{
	return bpf_task_storage_get(&tasks, t, 0, 0);
}

/* The task's membership, or NULL. A thread whose process was moved into a sandbox as a whole has
 * none of its own yet (the tracepoint names the leader only): it takes the leader's. */
static __always_inline struct task_state *task_state(struct task_struct *t)
{
	struct task_state *st = bpf_task_storage_get(&tasks, t, 0, 0);
	struct task_state *of;

	if (!st && t->pid != t->tgid) {
		of = bpf_task_storage_get(&tasks, t->group_leader, 0, 0);
		if (!of)
			return NULL;
		st = bpf_task_storage_get(&tasks, t, of, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (!st)
			count_fail(FAIL_TASK_STORAGE);
	}
	return st;
}

/* Everything in the header but flags, ret and nr, and what emit_wake adds. The record was zeroed. */
static __always_inline void header_of(struct wire_hdr *h, struct task_struct *t,
				      struct task_state *st, __u16 kind)
{
	struct task_struct *plain;
	const struct cred *cred;

	if (!st->start)
		state_fill(st, t);
	plain = task_plain(t);
	cred = plain->cred;
	h->kind = kind;
	h->start = st->start;
	h->cgid = plain->cgroups->dfl_cgrp->kn->id;
	h->sandbox = st->sandbox;
	h->tgid = t->tgid;
	h->tid = t->pid;
	h->ppid = plain->real_parent->tgid;
	h->uid = cred->euid.val;
	h->gid = cred->egid.val;
	h->nspid = st->nspid;
	h->nr = WIRE_NR_NONE;
	h->vantage = WIRE_V_KERNEL;
	if (has_cast) {
		((__u64 *)h->comm)[0] = LOAD_PTR(t, comm);
		((__u64 *)h->comm)[1] = LOAD_PTR(t, comm[8]);
	} else {
		bpf_probe_read_kernel(h->comm, sizeof(h->comm), &t->comm);
	}
}

/* The same for the current task. */
GLOBAL int header(struct wire_hdr *h, struct task_state *st, __u32 kind)
{
	if (h && st)
		header_of(h, bpf_get_current_task_btf(), st, kind);
	return 0;
}

/* Fill `o` from the current task. False when its cgroup is in no sandbox. */
GLOBAL int owner_of_current(struct owner *o)
{
	struct task_struct *t = bpf_get_current_task_btf();
	const struct cred *cred = BPF_CORE_READ(t, cred);
	struct sandbox_cfg *cfg;
	__u64 id = cgroup_sandbox((__u64)BPF_CORE_READ(t, cgroups, dfl_cgrp));

	cfg = bpf_map_lookup_elem(&sandboxes, &id);
	if (!o || !cfg || !cfg->armed)
		return false;
	o->start = BPF_CORE_READ(t, group_leader, start_boottime);
	o->cgid = task_cgid(t);
	o->sandbox = cfg->id;
	o->tgid = t->tgid;
	o->tid = t->pid;
	o->ppid = BPF_CORE_READ(t, real_parent, tgid);
	o->uid = BPF_CORE_READ(cred, euid.val);
	o->gid = BPF_CORE_READ(cred, egid.val);
	o->nspid = task_nspid(t);
	bpf_probe_read_kernel(o->comm, sizeof(o->comm), &t->comm);
	return true;
}

static __always_inline void header_of_owner(struct wire_hdr *h, const struct owner *o, __u16 kind)
{
	h->kind = kind;
	h->start = o->start;
	h->cgid = o->cgid;
	h->sandbox = o->sandbox;
	h->tgid = o->tgid;
	h->tid = o->tid;
	h->ppid = o->ppid;
	h->uid = o->uid;
	h->gid = o->gid;
	h->nspid = o->nspid;
	h->nr = WIRE_NR_NONE;
	h->vantage = WIRE_V_KERNEL;
	__builtin_memcpy(h->comm, o->comm, sizeof(h->comm));
}

/* No scratch buffer was free: the record is lost, and says so. */
static __always_inline void no_scratch(struct task_state *st, __u16 kind)
{
	count_fail(FAIL_SCRATCH);
	count_drop(st->sandbox, kind, bpf_ktime_get_boot_ns());
}

#endif
