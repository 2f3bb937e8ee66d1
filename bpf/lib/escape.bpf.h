/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Telling an escape signal, and killing for it. */
#ifndef WARDER_BPF_ESCAPE_H
#define WARDER_BPF_ESCAPE_H

#include "bpf/lib/emit.bpf.h"
#include "bpf/lib/enforce.bpf.h"

/* Is it told at all? Set-up is quiet; our own init is watched once the payload runs. */
static __always_inline bool is_watched(struct task_state *st)
{
	struct sandbox_cfg *cfg;
	__u64 cgid;

	if (st->role == ROLE_PAYLOAD)
		return true;
	if (st->role != ROLE_RUNTIME)
		return false;
	cgid = st->cgid; /* on the stack: to 6.1 no key may lie in a global function's argument */
	cfg = bpf_map_lookup_elem(&sandboxes, &cgid);
	return cfg && cfg->armed;
}

/* How many sandboxes are doomed: while it is 0, the hook at a system call's end need not ask which. */
extern __u32 alarm;

/* One of a sandbox is killed in the kernel: its other tasks must not run on until user space acts. */
static __always_inline void sandbox_doom(struct sandbox_cfg *cfg)
{
	if (!cfg->doomed && !__sync_val_compare_and_swap(&cfg->doomed, 0, 1))
		__sync_fetch_and_add(&alarm, 1);
}

/* At the end of a system call, when `alarm` is not 0: is this task's turn over? */
static __always_inline bool is_doomed(struct task_state *st)
{
	struct sandbox_cfg *cfg;
	__u64 cgid = st->cgid;

	if (st->role != ROLE_PAYLOAD)
		return false;
	cfg = bpf_map_lookup_elem(&sandboxes, &cgid);
	return cfg && cfg->doomed;
}

/* Is this type to be killed in the kernel, and was it? Only the payload, only once armed. The signal
 * goes to the current task. Not 0 = killed; enforce_id_of() it is the entry that asked, 0 = the mask. */
static __always_inline int escape_kill(struct task_state *st, __u32 type)
{
	__u32 set;
	int v = 0;

	struct sandbox_cfg *cfg;
	__u64 cgid;

	if (st->role != ROLE_PAYLOAD)
		return 0;
	cgid = st->cgid; /* on the stack: to 6.1 no key may lie in a global function's argument */
	cfg = bpf_map_lookup_elem(&sandboxes, &cgid);
	if (!cfg || !cfg->armed)
		return 0;
	if (cfg->kill_escape >> (type & 63) & 1) {
		v = enforce_pack(ENFORCE_KILL, 0);
		sandbox_doom(cfg);
	}
	set = cfg->enforce;
	if (set && enforce_is_used())
		v = enforce_max(v, enforce_escape(set, type));
	if (!enforce_kills(v))
		return 0;
	if (bpf_send_signal(9)) {
		count_fail(FAIL_SIGNAL);
		return 0;
	}
	return v;
}

/* The same where the task is not the current one: it ends at its next system call, with the others. */
static __always_inline void escape_doom(struct task_state *st, __u32 type)
{
	struct sandbox_cfg *cfg;
	__u64 cgid = st->cgid;

	cfg = bpf_map_lookup_elem(&sandboxes, &cgid);
	if (st->role == ROLE_PAYLOAD && cfg && cfg->armed && cfg->kill_escape >> (type & 63) & 1)
		sandbox_doom(cfg);
}

static __always_inline __u16 escape_flags(struct task_state *st, bool killed)
{
	return (killed ? WIRE_F_KILLED : 0) |
	       (st->role == ROLE_RUNTIME || st->part ? WIRE_F_RUNTIME : 0) |
	       (__u16)(st->part << WIRE_PART_SHIFT);
}

/* One without strings, of a task that need not be the current one. */
static __always_inline void send_escape(struct task_struct *t, struct task_state *st, __u32 type,
					__u64 arg, __u64 was, __u64 is, int killed)
{
	struct wire_escape *r;
	struct scratch *s;

	s = scratch_get();
	if (!s) {
		no_scratch(st, WIRE_ESCAPE);
		return;
	}
	r = rec_begin(s, struct wire_escape);
	header_of(&r->h, t, st, WIRE_ESCAPE);
	r->h.flags = escape_flags(st, killed);
	r->h.enforced = enforce_id_of(killed);
	r->type = type;
	r->args[0] = arg;
	r->old_value = was;
	r->new_value = is;
	emit_scratch(s, WIRE_RING_URGENT);
	scratch_put(s);
}

/* One without strings by the current task, killed for it where that is asked. Not on the stack: the
 * callers of a program share 512 bytes. */
GLOBAL int escape_now(struct task_state *st, __u32 type, __u64 arg, __u64 was, __u64 is)
{
	struct wire_escape *r;
	struct scratch *s;
	int killed;

	if (!st)
		return 0;
	s = scratch_get();
	if (!s) {
		no_scratch(st, WIRE_ESCAPE);
		return 0;
	}
	r = rec_begin(s, struct wire_escape);
	header(&r->h, st, WIRE_ESCAPE);
	killed = escape_kill(st, type);
	r->h.flags = escape_flags(st, killed);
	r->h.enforced = enforce_id_of(killed);
	r->type = type;
	r->args[0] = arg;
	r->old_value = was;
	r->new_value = is;
	emit_scratch(s, WIRE_RING_URGENT);
	scratch_put(s);
	return 0;
}

/* One by the current task's system call, to which strings will be added. */
static __always_inline struct wire_escape *escape_begin(struct scratch *s, struct task_state *st,
							__u32 type, __u32 nr, long ret)
{
	struct wire_escape *r = rec_begin(s, struct wire_escape);
	int killed;

	header(&r->h, st, WIRE_ESCAPE);
	r->h.nr = nr;
	r->h.ret = ret;
	r->type = type;
	__builtin_memcpy(r->args, s->args, sizeof(r->args));
	killed = escape_kill(st, type);
	r->h.flags = escape_flags(st, killed);
	r->h.enforced = enforce_id_of(killed);
	return r;
}

#endif
