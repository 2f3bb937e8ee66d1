/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Escape signals: calls that code in a sandbox has no business making. The attempt counts, whatever
 * its result, so those that seccomp denied are told too. With the type's bit in
 * sandbox_cfg.kill_escape the payload gets SIGKILL here and never returns to user space. */
#include "bpf/lib/cred.bpf.h"
#include "bpf/lib/enforce.bpf.h"
#include "bpf/lib/path.bpf.h"
#include "bpf/lib/sysend.bpf.h"
#include "bpf/lib/named.bpf.h"
#include "bpf/lib/limit.bpf.h"

#define CLONE_NS	  0x7e020080
#define CLONE_NS_LEGACY	  0x7e020000 /* clone(2): the low byte is the exit signal */
#define PERSONALITY_QUERY 0xffffffff
#define S_IFMT		  0170000
#define S_IFBLK		  0060000
#define S_IFCHR		  0020000

__u32 alarm = 0;

/* Which uses of a call are no sign of anything. */
GLOBAL int is_harmless(struct scratch *s)
{
	const __u64 *a;
	__u64 v = 0;
	__u32 w = 0, nr;

	if (!s)
		return true;
	a = s->args;
	nr = s->call.nr;
	switch (calls[nr & (CALLS_MAX - 1)].what) {
	case WIRE_ESCAPE_UNSHARE:
		return !(a[0] & CLONE_NS);
	case WIRE_ESCAPE_CLONE_NS: /* what succeeded is told at task_newtask */
		if (s->call.ret >= 0)
			return true;
		if (nr == 56)
			return !(a[0] & CLONE_NS_LEGACY);
		bpf_probe_read_user(&v, sizeof(v), (void *)a[0]);
		return !(v & CLONE_NS);
	case WIRE_ESCAPE_PERSONALITY:
		return (__u32)a[0] == PERSONALITY_QUERY;
	case WIRE_ESCAPE_TIME:
		if (nr != 159 && nr != 305)
			return false;
		bpf_probe_read_user(&w, sizeof(w), (void *)a[nr == 305]);
		return w == 0; /* adjtimex with no mode only asks */
	case WIRE_ESCAPE_MKNOD:
		w = a[nr == 259 ? 2 : 1] & S_IFMT;
		return w != S_IFBLK && w != S_IFCHR;
	}
	return false;
}

/* names: the call's strings are worth telling. */
GLOBAL int send_call(struct scratch *s, struct task_state *st, __u32 type, bool names)
{
	struct wire_escape *r;
	const struct call *c;

	if (!s || !st)
		return 0;
	c = &calls[s->call.nr & (CALLS_MAX - 1)];
	r = escape_begin(s, st, type, s->call.nr, s->call.ret);
	if (s->call.compat)
		r->h.flags |= WIRE_F_COMPAT;
	if (names && c->path >= 0 && s->args[c->path & 7])
		r->detail = rec_user_str(s, s->args[c->path & 7]);
	if (names && c->path2 >= 0 && s->args[c->path2 & 7])
		r->detail2 = rec_user_str(s, s->args[c->path2 & 7]);
	emit_scratch(s, WIRE_RING_URGENT);
	return 0;
}

/* Which change of the mount tree a call makes, and where its arguments stand; -1 = it has none. */
struct mount_call {
	__u16 nr;
	__u8 op;
	__s8 dir, path, source, fstype, flags;
};

#define MOUNT_CALLS 8 /* a power of two; the last rows are empty */

static const struct mount_call mount_calls[MOUNT_CALLS] = {
	{ 165, WIRE_MOUNT_NEW, -1, 1, 0, 2, 3 },      /* mount */
	{ 166, WIRE_MOUNT_REMOVE, -1, 0, -1, -1, 1 }, /* umount2 */
	{ 155, WIRE_MOUNT_PIVOT, -1, 0, 1, -1, -1 },  /* pivot_root */
	{ 429, WIRE_MOUNT_MOVE, 2, 3, 1, -1, 4 },     /* move_mount */
	{ 442, WIRE_MOUNT_ATTR, 0, 1, -1, -1, 2 },    /* mount_setattr */
};

/* which: index of its row. */
GLOBAL int send_mount(struct scratch *s, struct task_state *st, __u32 which)
{
	const struct mount_call *m = &mount_calls[which & (MOUNT_CALLS - 1)];
	struct wire_mount *r;
	char first = 0;

	if (!s || !st)
		return 0;
	r = rec_begin(s, struct wire_mount);
	header(&r->h, st, WIRE_MOUNT);
	if (s->call.compat)
		r->h.flags |= WIRE_F_COMPAT;
	r->h.nr = s->call.nr;
	r->h.ret = s->call.ret;
	r->op = m->op;
	if (m->flags >= 0)
		r->flags = s->args[m->flags & 7];
	r->path = rec_user_str(s, s->args[m->path & 7]);
	bpf_probe_read_kernel(&first, 1, s->rec + (r->path.off & 0x3fff));
	if (r->path.len && first != '/')
		r->base = unpack(
			rec_base_packed(s, m->dir < 0 ? AT_FDCWD : (int)s->args[m->dir & 7]));
	if (m->source >= 0 && s->args[m->source & 7])
		r->source = rec_user_str(s, s->args[m->source & 7]);
	if (m->fstype >= 0 && s->args[m->fstype & 7])
		r->fstype = rec_user_str(s, s->args[m->fstype & 7]);
	emit_scratch(s, WIRE_RING_BULK);
	return 0;
}

/* Row of a call that changes the mount tree; MOUNT_CALLS = it is none. */
GLOBAL int mount_call_of(__u32 nr)
{
	__u32 i;

#pragma unroll
	for (i = 0; i < MOUNT_CALLS; i++)
		if (mount_calls[i].nr && mount_calls[i].nr == nr)
			return i;
	return MOUNT_CALLS;
}

/* The attempt is an escape signal; that it worked is an event of its own. */
static __always_inline void tell_mount(struct scratch *s, struct task_state *st, __u32 nr, long ret)
{
	__u32 which = ret < 0 ? MOUNT_CALLS : mount_call_of(nr);

	if (which < MOUNT_CALLS)
		send_mount(s, st, which);
}

/* A file too, of whatever sort. */
GLOBAL int send_mknod(struct scratch *s, struct task_state *st)
{
	struct wire_file *r;
	const struct call *c;
	__u32 at, set;

	if (!s || !st)
		return 0;
	c = &calls[s->call.nr & (CALLS_MAX - 1)];
	at = c->path & 7;
	r = rec_begin(s, struct wire_file);
	header(&r->h, st, WIRE_FILE_MKNOD);
	if (s->call.compat)
		r->h.flags |= WIRE_F_COMPAT;
	r->h.nr = s->call.nr;
	r->h.ret = s->call.ret;
	r->fd = -1;
	r->mode = s->args[(at + 1) & 7];
	r->size = s->args[(at + 2) & 7];
	if (named_take(s, WIRE_FILE_MKNOD, s->call.nr))
		r->path = unpack(rec_named_packed(s, 0));
	if (!r->path.len)
		rec_name(s, c->dir < 0 ? AT_FDCWD : s->args[0], s->args[at], &r->base, &r->path);
	set = enforce_set_of(st);
	if (set)
		enforce_mark(&r->h, enforce_task(set, WIRE_FILE_MKNOD), false);
	emit_scratch(s, WIRE_RING_BULK);
	return 0;
}

SYSCALL_END(sys_escape)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task_state *st = task_own_state(t);
	struct sysctx c = call_of(regs, t);
	const struct call *call = &calls[c.nr & (CALLS_MAX - 1)];
	struct scratch *s;

	if (!st)
		return 0;
	if (st->flags & TASK_KILL_PENDING) { /* born by a clone that was an escape */
		bpf_send_signal(9);
		return 0;
	}
	cred_check(st, false);
	if (!is_watched(st))
		return 0;
	s = scratch_get();
	if (!s) {
		no_scratch(st, WIRE_ESCAPE);
		return 0;
	}
	call_take(s, regs, t, c, ret);
	if (!is_harmless(s))
		send_call(s, st, call->what, true);
	tell_mount(s, st, c.nr, ret);
	if (names_mode && call->what == WIRE_ESCAPE_MKNOD && !is_told(ret))
		named_take(s, WIRE_FILE_MKNOD, c.nr); /* noted in vain */
	if (call->what == WIRE_ESCAPE_MKNOD && st->role == ROLE_PAYLOAD && is_told(ret))
		send_mknod(s, st);
	pressure(st);
	scratch_put(s);
	return 0;
}

/* A call by a foreign entry (int 0x80, ia32, x32): told once for each image, then handled like the
 * native call it stands for. */
SYSCALL_END(sys_foreign)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task_state *st = task_own_state(t);
	struct sysctx c = call_of(regs, t);
	struct scratch *s;
	__u32 slot;

	if (!st)
		return 0;
	if (!(st->flags & TASK_SAW_FOREIGN) && is_watched(st)) {
		st->flags |= TASK_SAW_FOREIGN;
		s = scratch_get();
		if (!s) {
			no_scratch(st, WIRE_ESCAPE);
			return 0;
		}
		call_take(s, regs, t, c, ret);
		s->call.nr = regs->orig_ax & 0xffff;
		s->call.compat = true;
		send_call(s, st, WIRE_ESCAPE_FOREIGN_ABI, false);
		scratch_put(s);
	}
	if (c.nr >= CALLS_MAX)
		return 0;
	slot = calls[c.nr].slot;
	if (ret < 0 && limit_maybe(c.nr, ret))
		slot = SLOT_LIMIT;
	if (slot && slot != SLOT_FOREIGN)
		bpf_tail_call(ctx, table, slot);
	return 0;
}
