/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Who belongs to a sandbox: inherited from parent to child, begun by birth or arrival in a
 * registered cgroup, ended by nothing but the task's end. */
#include "bpf/lib/escape.bpf.h"
#include "bpf/lib/gvisor.bpf.h"
#include "bpf/lib/program.bpf.h"

#define CLONE_THREAD 0x00010000
#define CLONE_NS     0x7e020080 /* CLONE_NEW*; NEWTIME (0x80) reaches us only from clone3 */

static __always_inline void send_fork(struct task_struct *t, struct task_state *st,
				      struct task_struct *child, struct task_state *cs, __u64 flags)
{
	struct wire_fork r = {};

	header_of(&r.h, t, st, WIRE_FORK);
	r.h.ret = child->tgid;
	r.child_start = cs->start;
	r.clone_flags = flags;
	r.child_tgid = child->tgid;
	r.child_nspid = cs->nspid;
	emit(&r, sizeof(r), WIRE_RING_URGENT);
}

/* cgroup.kill does not reach it any more: root looks for it at the end (capture_kill_left). */
static __always_inline void note_left(struct task_state *st)
{
	__u64 cgid = st->cgid;
	struct sandbox_cfg *cfg = bpf_map_lookup_elem(&sandboxes, &cgid);

	st->flags |= TASK_LEFT;
	if (cfg)
		__sync_fetch_and_add(&cfg->left, 1);
}

/* A function with a stack of its own: the state is large. */
static __noinline struct task_state *member_new(struct task_struct *task, struct sandbox_cfg *cfg,
						__u64 cgid, bool arrived)
{
	struct task_state init = {};

	init.cgid = cgid;
	init.sandbox = cfg->id;
	init.top = task->tgid;
	init.role = cfg->flags & SANDBOX_F_WATCH || (arrived && cfg->armed) ? ROLE_PAYLOAD
									    : ROLE_RUNTIME;
	return bpf_task_storage_get(&tasks, task, &init, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* Begins a membership by birth or arrival in a registered cgroup. */
static __always_inline struct task_state *adopt(struct task_struct *task, __u64 cg, bool arrived)
{
	__u64 cgid = cgroup_sandbox(cg);
	struct sandbox_cfg *cfg;
	struct task_state *st;

	if (!cgid)
		return NULL;
	cfg = bpf_map_lookup_elem(&sandboxes, &cgid);
	if (!cfg)
		return NULL;
	st = member_new(task, cfg, cgid, arrived);
	if (!st) {
		count_fail(FAIL_TASK_STORAGE);
		count_drop(cfg->id, 0, bpf_ktime_get_boot_ns());
	}
	return st;
}

static __always_inline struct task_state *inherit(struct task_struct *child, struct task_state *st,
						  __u64 clone_flags)
{
	struct task_state *cs =
		bpf_task_storage_get(&tasks, child, st, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!cs) {
		count_fail(FAIL_TASK_STORAGE);
		count_drop(st->sandbox, 0, bpf_ktime_get_boot_ns());
		return NULL;
	}
	cs->flags &= TASK_SAW_FOREIGN;
	if (st->role == ROLE_RUNTIME && !(clone_flags & CLONE_THREAD))
		cs->role = ROLE_PRESTART;
	if (!(clone_flags & CLONE_THREAD))
		cs->start = 0;
	if (st->part == GVISOR_SENTRY && !(clone_flags & CLONE_THREAD))
		cs->part = GVISOR_STUB;
	return cs;
}

static __always_inline void payload_made(struct task_struct *t, struct task_state *st,
					 struct task_struct *child, struct task_state *cs,
					 __u64 clone_flags)
{
	int killed;

	if (!(clone_flags & CLONE_THREAD)) {
		program_inherit(child->tgid);
		send_fork(t, st, child, cs, clone_flags);
	}
	pressure(st);
	if (!(clone_flags & CLONE_NS))
		return;
	killed = escape_kill(st, WIRE_ESCAPE_CLONE_NS);
	if (killed)
		cs->flags |= TASK_KILL_PENDING;
	send_escape(t, st, WIRE_ESCAPE_CLONE_NS, clone_flags, 0, child->tgid, killed);
}

/* Every new task: processes, threads, io_uring workers (which sched_process_fork does not show).
 * The child has its cgroup already, so CLONE_INTO_CGROUP is seen here. Untracked parents pay one
 * storage look-up and a pointer comparison. */
SEC("tp_btf/task_newtask")
int BPF_PROG(on_newtask, struct task_struct *child, u64 clone_flags)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task_state *st = task_state(t), *cs;
	__u64 cg = (__u64)BPF_CORE_READ(child, cgroups, dfl_cgrp);
	bool moved = cg != (__u64)BPF_CORE_READ(t, cgroups, dfl_cgrp);
	int killed = 0;

	if (st)
		cs = inherit(child, st, clone_flags);
	else if (!moved)
		return 0;
	else
		cs = adopt(child, cg, 0);
	if (!cs)
		return 0;
	if (moved)
		cs->at = task_cgid(child);
	if (!cs->start) {
		cs->nspid = task_nspid(child);
		cs->start = child->start_boottime;
	}
	if (st && st->part && gvisor_is_odd_clone(st->part, clone_flags) && gvisor_armed(st))
		send_escape(t, st, WIRE_ESCAPE_RUNTIME_CLONE, clone_flags, 0, child->tgid, 0);
	if (!st || (st->role != ROLE_PAYLOAD && !(st->part && gvisor_armed(st))))
		return 0;

	if (st->role == ROLE_PAYLOAD)
		payload_made(t, st, child, cs, clone_flags);
	if (moved && !cgroup_is_under(cg, st->cgid)) {
		killed = escape_kill(st, WIRE_ESCAPE_CGROUP_LEAVE);
		if (killed)
			cs->flags |= TASK_KILL_PENDING;
		note_left(cs);
		send_escape(child, cs, WIRE_ESCAPE_CGROUP_LEAVE, clone_flags, task_cgid(t),
			    task_cgid(child), killed);
	}
	return 0;
}

/* A task (or, with threadgroup, its whole process) was moved, by itself or by anybody. Fires for v1
 * hierarchies too: their id is not 0. */
SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(on_cgroup_attach, struct cgroup *dst, const char *path, struct task_struct *task,
	     bool threadgroup)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct sandbox_cfg *cfg;
	struct task_state *st;
	int killed = 0;
	__u64 was, is, to;

	if (BPF_CORE_READ(dst, root, hierarchy_id) != 0)
		return 0;
	to = (__u64)BPF_CORE_READ(dst, self.cgroup); /* itself, as the number that functions take */
	st = task_state(task);
	is = BPF_CORE_READ(dst, kn, id);
	if (!st) {
		st = adopt(task, to, true);
		if (st)
			st->at = is;
		return 0;
	}
	/* The move is done by now: the task's own pointer says where it is, not where it was. */
	was = st->at ? st->at : st->cgid;
	st->at = is;
	if ((st->role == ROLE_PRESTART && !(st->part && gvisor_armed(st))) ||
	    cgroup_is_under(to, st->cgid))
		return 0;
	if (st->role == ROLE_RUNTIME) {
		cfg = bpf_map_lookup_elem(&sandboxes, &st->cgid);
		if (!cfg || !cfg->armed)
			return 0;
	}
	note_left(st);
	/* Only the current task can be signalled from here; another one at its next system call, when its
	 * whole sandbox is doomed. */
	if (t == task)
		killed = escape_kill(st, WIRE_ESCAPE_CGROUP_LEAVE);
	else
		escape_doom(st, WIRE_ESCAPE_CGROUP_LEAVE);
	send_escape(task, st, WIRE_ESCAPE_CGROUP_LEAVE, t->tgid, was, is, killed);
	return 0;
}
