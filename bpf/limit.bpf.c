/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Calls that failed because a limit was hit: the sandbox's file system is full, a file may grow no more, no
 * task or descriptor is left. By the end of system calls; once a second for each sandbox and limit, with the
 * number of refusals. What the cgroup controllers count besides is told by the launcher. */
#include "bpf/lib/path.bpf.h"
#include "bpf/lib/limited.bpf.h"
#include "bpf/lib/sysend.bpf.h"

/* A function by itself: the verifier is not to follow each answer on. */
GLOBAL int limit_type(__u32 nr, __s64 ret)
{
	return limit_of(nr, ret);
}

/* The file that was to grow: of what copies, the target; of the rest, the first argument. */
static __always_inline struct file *limit_file(struct task_struct *t, __u32 nr, const __u64 *args)
{
	const struct call *c = &calls[nr & (CALLS_MAX - 1)];

	if (nr < CALLS_MAX && c->slot && c->path >= 0)
		return NULL;					       /* by name */
	return fd_file(t, nr == 326 || nr == 275 ? args[2] : args[0]); /* copy_file_range, splice */
}

GLOBAL int limit_send(struct scratch *s, struct task_state *st, __u32 type, __u32 count)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct wire_limit_hit *r;
	const struct call *c;
	struct file *f = NULL;
	__u32 nr;

	if (!s || !st)
		return 0;
	nr = s->call.nr;
	c = &calls[nr & (CALLS_MAX - 1)];
	r = rec_begin(s, struct wire_limit_hit);
	header(&r->h, st, WIRE_LIMIT);
	r->h.nr = nr;
	r->h.ret = s->call.ret;
	r->type = type;
	r->count = count;
	if (r->type == WIRE_LIMIT_FSIZE || r->type == WIRE_LIMIT_DISK)
		f = limit_file(t, nr, s->args);
	limit_fill(s, r, t, f);
	if (!f && r->type == WIRE_LIMIT_DISK && c->path >= 0)
		r->target = rec_user_str(s, s->args[c->path & 7]);
	emit_scratch(s, WIRE_RING_URGENT);
	return 0;
}

SYSCALL_END(sys_limit)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task_state *st = task_own_state(t);
	struct sysctx c = call_of(regs, t);
	struct scratch *s;
	__u32 count, slot, type;

	if (!st)
		return 0;
	type = limit_type(c.nr, ret);
	count = type && st->role == ROLE_PAYLOAD ? limit_turn(st->sandbox, type) : 0;
	if (count) {
		s = scratch_get();
		if (s) {
			call_take(s, regs, t, c, ret);
			limit_send(s, st, type, count);
			scratch_put(s);
		} else {
			no_scratch(st, WIRE_LIMIT);
		}
	}
	if (c.nr >= CALLS_MAX)
		return 0;
	slot = calls[c.nr].slot;
	if (slot && slot != SLOT_LIMIT)
		bpf_tail_call(ctx, table, slot);
	return 0;
}
