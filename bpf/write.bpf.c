/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Bytes written and descriptors closed; files mapped shared and writable. All from sys_exit, for tracked
 * tasks only: about 100 ns a write, 30 a close. Writes through a mapping are seen by nobody: the mapping
 * itself is told. */
#include "bpf/lib/writes.bpf.h"
#include "bpf/lib/sysend.bpf.h"

extern const volatile bool sends_by_call;

#define MAP_SHARED	    1
#define MAP_SHARED_VALIDATE 3
#define MAP_TYPE	    3
#define MMAP_FMODE_WRITE    0x2

static __always_inline __u64 arg_at(struct pt_regs *regs, bool compat, __u32 i)
{
	switch (i) {
	case 0:
		return compat ? (__u32)regs->bx : regs->di;
	case 1:
		return compat ? (__u32)regs->cx : regs->si;
	case 2:
		return compat ? (__u32)regs->dx : regs->dx;
	case 3:
		return compat ? (__u32)regs->si : regs->r10;
	}
	return compat ? (__u32)regs->di : regs->r8;
}

/* write, pwrite, writev, sendfile, splice, copy_file_range ... */
SYSCALL_END(sys_write)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task_state *st = task_own_state(t);
	struct sysctx c;

	if (ret <= 0 || !st || st->role != ROLE_PAYLOAD)
		return 0;
	c = call_of(regs, t);
	if (written(st, arg_at(regs, c.compat, calls[c.nr & (CALLS_MAX - 1)].dir ? 2 : 0), ret,
		    c.nr) &&
	    sends_by_call)
		bpf_tail_call(ctx, table, SLOT_SEND); /* a socket, perhaps */
	pressure(st);
	return 0;
}

/* close, dup2, dup3, close_range. */
SYSCALL_END(sys_close)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task_state *st = task_own_state(t);
	struct scratch *s;
	struct sysctx c;

	if (!st || st->role != ROLE_PAYLOAD || !writes_any(t, st))
		return 0;
	c = call_of(regs, t);
	switch (calls[c.nr & (CALLS_MAX - 1)].op) {
	case 0:
		write_closed(st, arg_at(regs, c.compat, 0), -1);
		break;
	case 1:
		write_closed(st, arg_at(regs, c.compat, 1), arg_at(regs, c.compat, 0));
		break;
	default:
		s = scratch_get();
		if (!s) {
			no_scratch(st, WIRE_FILE_WRITE);
			return 0;
		}
		writes_sweep(s, st, arg_at(regs, c.compat, 0), arg_at(regs, c.compat, 1), false);
		scratch_put(s);
	}
	pressure(st);
	return 0;
}

/* Shared and of a file that is open for writing: it can be written from now on (mprotect too), and
 * nothing will show. */
SYSCALL_END(sys_mmap)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task_state *st = task_own_state(t);
	struct sysctx c = call_of(regs, t);
	struct wire_file *r;
	struct inode *inode;
	struct scratch *s;
	struct file *f;
	__u64 tid = bpf_get_current_pid_tgid();
	__u32 type, set;

	if (!st || st->role != ROLE_PAYLOAD)
		return 0;
	/* Of failures only what a hook in front of it refused. */
	if (ret < 0 && ret > -4096 && (ret != -1 || !bpf_map_lookup_elem(&acts, &tid)))
		return 0;
	type = arg_at(regs, c.compat, 3) & MAP_TYPE;
	if (type != MAP_SHARED && type != MAP_SHARED_VALIDATE)
		return 0;
	f = fd_file(t, arg_at(regs, c.compat, 4));
	if (!f || !(BPF_CORE_READ(f, f_mode) & MMAP_FMODE_WRITE))
		return 0;
	inode = BPF_CORE_READ(f, f_inode);
	if ((BPF_CORE_READ(inode, i_mode) & WRITE_S_IFMT) != WRITE_S_IFREG ||
	    !BPF_CORE_READ(inode, i_nlink))
		return 0;
	s = scratch_get();
	if (!s) {
		no_scratch(st, WIRE_FILE_MMAP);
		return 0;
	}
	r = rec_begin(s, struct wire_file);
	header(&r->h, st, WIRE_FILE_MMAP);
	if (c.compat)
		r->h.flags |= WIRE_F_COMPAT;
	r->h.nr = c.nr;
	r->h.ret = ret == -1 ? ret : 0;
	r->fd = arg_at(regs, c.compat, 4);
	r->size = arg_at(regs, c.compat, 1);
	r->op = arg_at(regs, c.compat, 2);
	r->ino = BPF_CORE_READ(inode, i_ino);
	r->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	r->mode = BPF_CORE_READ(inode, i_mode);
	r->path = rec_file_path(s, f);
	set = enforce_set_of(st);
	if (set && !enforce_acted(s))
		enforce_mark(&r->h,
			     enforce_max(enforce_task(set, WIRE_FILE_MMAP),
					 enforce_path(s, set, WIRE_FILE_MMAP)),
			     false);
	emit_scratch(s, WIRE_RING_BULK);
	pressure(st);
	scratch_put(s);
	return 0;
}
