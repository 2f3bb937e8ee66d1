/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Escape signals: calls that code in a sandbox has no business making. The attempt counts, whatever
 * its result, so those that seccomp denied are told too. With the type's bit in
 * sandbox_cfg.kill_escape the payload gets SIGKILL here and never returns to user space. */
#include "bpf/lib/cred.bpf.h"
#include "bpf/lib/enforce.bpf.h"
#include "bpf/lib/path.bpf.h"
#include "bpf/lib/sysend.bpf.h"

#define CLONE_NS	  0x7e020080
#define CLONE_NS_LEGACY	  0x7e020000 /* clone(2): the low byte is the exit signal */
#define PERSONALITY_QUERY 0xffffffff
#define S_IFMT		  0170000
#define S_IFBLK		  0060000
#define S_IFCHR		  0020000

__u32 alarm = 0;

/* Which uses of a call are no sign of anything. */
static __always_inline bool is_harmless(const struct call *c, __u32 nr, const __u64 *a, long ret)
{
	__u64 v = 0;
	__u32 w = 0;

	switch (c->what) {
	case WIRE_ESCAPE_UNSHARE:
		return !(a[0] & CLONE_NS);
	case WIRE_ESCAPE_CLONE_NS: /* what succeeded is told at task_newtask */
		if (ret >= 0)
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

static __always_inline void send_call(struct scratch *s, struct task_struct *t,
				      struct task_state *st, __u32 nr, __u32 type, bool compat,
				      long ret, const struct call *c)
{
	struct wire_escape *r = escape_begin(s, st, type, nr, ret);

	if (compat)
		r->h.flags |= WIRE_F_COMPAT;
	if (c && c->path >= 0 && s->args[c->path & 7])
		r->detail = rec_user_str(s, s->args[c->path & 7]);
	if (c && c->path2 >= 0 && s->args[c->path2 & 7])
		r->detail2 = rec_user_str(s, s->args[c->path2 & 7]);
	emit_scratch(s, WIRE_RING_URGENT);
}

/* Which change of the mount tree a call makes, and where its arguments stand; -1 = it has none. */
struct mount_call {
	__u16 nr;
	__u8 op;
	__s8 dir, path, source, fstype, flags;
};

static const struct mount_call mount_calls[] = {
	{ 165, WIRE_MOUNT_NEW, -1, 1, 0, 2, 3 },      /* mount */
	{ 166, WIRE_MOUNT_REMOVE, -1, 0, -1, -1, 1 }, /* umount2 */
	{ 155, WIRE_MOUNT_PIVOT, -1, 0, 1, -1, -1 },  /* pivot_root */
	{ 429, WIRE_MOUNT_MOVE, 2, 3, 1, -1, 4 },     /* move_mount */
	{ 442, WIRE_MOUNT_ATTR, 0, 1, -1, -1, 2 },    /* mount_setattr */
};

static __always_inline void send_mount(struct scratch *s, struct task_state *st, __u32 nr,
				       bool compat, long ret, const struct mount_call *m)
{
	struct wire_mount *r = rec_begin(s, struct wire_mount);
	char first = 0;

	header(&r->h, st, WIRE_MOUNT);
	if (compat)
		r->h.flags |= WIRE_F_COMPAT;
	r->h.nr = nr;
	r->h.ret = ret;
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
}

/* The attempt is an escape signal; that it worked is an event of its own. */
static __always_inline void tell_mount(struct scratch *s, struct task_state *st, __u32 nr,
				       bool compat, long ret)
{
	__u32 i;

	if (ret < 0)
		return;
#pragma unroll
	for (i = 0; i < sizeof(mount_calls) / sizeof(mount_calls[0]); i++) {
		if (mount_calls[i].nr == nr) {
			send_mount(s, st, nr, compat, ret, &mount_calls[i]);
			return;
		}
	}
}

/* A file too, of whatever sort. */
static __always_inline void send_mknod(struct scratch *s, struct task_state *st,
				       const struct call *c, __u32 nr, bool compat, long ret)
{
	struct wire_file *r = rec_begin(s, struct wire_file);
	__u32 at = c->path & 7, set;

	header(&r->h, st, WIRE_FILE_MKNOD);
	if (compat)
		r->h.flags |= WIRE_F_COMPAT;
	r->h.nr = nr;
	r->h.ret = ret;
	r->fd = -1;
	r->mode = s->args[(at + 1) & 7];
	r->size = s->args[(at + 2) & 7];
	rec_name(s, c->dir < 0 ? AT_FDCWD : s->args[0], s->args[at], &r->base, &r->path);
	set = enforce_set_of(st);
	if (set)
		enforce_mark(&r->h, enforce_task(set, WIRE_FILE_MKNOD), false);
	emit_scratch(s, WIRE_RING_BULK);
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
	call_args(s->args, regs, t);
	if (!is_harmless(call, c.nr, s->args, ret))
		send_call(s, t, st, c.nr, call->what, c.compat, ret, call);
	tell_mount(s, st, c.nr, c.compat, ret);
	if (call->what == WIRE_ESCAPE_MKNOD && st->role == ROLE_PAYLOAD && is_told(ret))
		send_mknod(s, st, call, c.nr, c.compat, ret);
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
		call_args(s->args, regs, t);
		send_call(s, t, st, regs->orig_ax & 0xffff, WIRE_ESCAPE_FOREIGN_ABI, true, ret,
			  NULL);
		scratch_put(s);
	}
	if (c.nr >= CALLS_MAX)
		return 0;
	slot = calls[c.nr].slot;
	if (slot && slot != SLOT_FOREIGN)
		bpf_tail_call(ctx, table, slot);
	return 0;
}
