/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Files: opened for writing, renamed, deleted, linked, changed. Called from on_sys_exit for tracked
 * tasks only. The path of an open comes from the file that was opened; of the others only the
 * caller's string exists, and the record says so. */
#include "bpf/lib/path.bpf.h"
#include "bpf/lib/calls.bpf.h"

#define O_ACCMODE   00000003
#define O_CREAT	    00000100
#define O_TRUNC	    00001000
#define FMODE_WRITE 0x2
#define NR_OPEN	    2
#define NR_CREAT    85
#define NR_OPENAT2  437

static __always_inline void file_ids(struct wire_file *r, struct file *f)
{
	struct inode *inode = BPF_CORE_READ(f, f_inode);

	r->ino = BPF_CORE_READ(inode, i_ino);
	r->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	r->mode = BPF_CORE_READ(inode, i_mode);
	if (!BPF_CORE_READ(inode, i_nlink))
		r->h.flags |= WIRE_F_DELETED;
}

static __always_inline struct wire_str rec_file_path(struct scratch *s, struct file *f,
						     __u16 *flags)
{
	return rec_path(s, (__u64)BPF_CORE_READ(f, f_path.dentry),
			(__u64)BPF_CORE_READ(f, f_path.mnt), flags);
}

/* Names that a caller gave: absolute, or with the directory they start from. */
static __always_inline void rec_name(struct scratch *s, struct task_struct *t, int dirfd,
				     __u64 uptr, struct wire_str *base, struct wire_str *path,
				     __u16 *flags)
{
	char first = 0;

	*path = rec_user_str(s, uptr, flags);
	if (!path->len)
		return;
	bpf_probe_read_kernel(&first, 1, s->rec + (path->off & 0x7fff));
	if (first != '/')
		*base = rec_base(s, t, dirfd, flags);
}

static __always_inline __u32 open_flags(const __u64 *args, __u32 nr)
{
	__u64 how = 0;

	if (nr == NR_OPEN)
		return args[1];
	if (nr == NR_CREAT)
		return O_CREAT | O_TRUNC | 1;
	if (nr != NR_OPENAT2)
		return args[2];
	bpf_probe_read_user(&how, sizeof(how), (void *)args[2]);
	return how;
}

static __always_inline void send_open(struct scratch *s, struct task_struct *t,
				      struct task_state *st, __u32 nr, bool compat, long ret)
{
	const struct call *c = &calls[nr & (CALLS_MAX - 1)];
	__u32 how = open_flags(s->args, nr);
	struct file *f = ret >= 0 ? fd_file(t, ret) : NULL;
	struct made_key key = {};
	struct wire_file *r;
	__u8 one = 1;
	__u16 flags = compat ? WIRE_F_COMPAT : 0;

	if (f ? !(BPF_CORE_READ(f, f_mode) & FMODE_WRITE) && !(how & (O_CREAT | O_TRUNC))
	      : !(how & (O_ACCMODE | O_CREAT | O_TRUNC)))
		return;

	r = rec_begin(s, struct wire_file);
	header(&r->h, t, st, WIRE_FILE_OPEN);
	r->h.nr = nr;
	r->h.ret = ret;
	r->open_flags = how;
	r->fd = ret;
	if (f) {
		file_ids(r, f);
		flags |= r->h.flags;
		r->path = rec_file_path(s, f, &flags);
		key.ino = r->ino;
		key.dev = r->dev;
		key.sandbox = st->sandbox;
		bpf_map_update_elem(&made, &key, &one, BPF_ANY);
	} else {
		rec_name(s, t, c->dir < 0 ? AT_FDCWD : s->args[0], s->args[c->path & 7], &r->base,
			 &r->path, &flags);
	}
	r->h.flags = flags;
	emit_scratch(s, WIRE_RING_BULK);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(sys_open, struct pt_regs *regs, long ret)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task_state *st = task_own_state(t);
	struct sysctx c = call_of(regs, t);
	struct scratch *s;

	if (!st || st->role != ROLE_PAYLOAD || !is_told(ret))
		return 0;
	/* The common case, reading, ends here. openat2 has its flags in memory. */
	if (c.nr == NR_OPEN && !c.compat && !(regs->si & (O_ACCMODE | O_CREAT | O_TRUNC)))
		return 0;
	if (c.nr == 257 && !c.compat && !(regs->dx & (O_ACCMODE | O_CREAT | O_TRUNC)))
		return 0;
	s = scratch_get();
	if (!s) {
		no_scratch(st, WIRE_FILE_OPEN);
		return 0;
	}
	call_args(s->args, regs, t);
	send_open(s, t, st, c.nr, c.compat, ret);
	scratch_put(s);
	return 0;
}

/* What the call carries besides names: it stands behind the path (or the descriptor). */
static __always_inline void file_extra(struct scratch *s, struct wire_file *r, const struct call *c,
				       __u16 *flags)
{
	int at = (c->path >= 0 ? c->path : c->dir) + 1;
	__u64 v = s->args[at & 7];

	if (c->what == WIRE_FILE_MKDIR || (c->what == WIRE_FILE_ATTR && c->op == 1))
		r->mode = v;
	if (c->what == WIRE_FILE_ATTR && c->op == 2) {
		r->uid = v;
		r->gid = s->args[(at + 1) & 7];
	}
	if (c->what == WIRE_FILE_ATTR && c->op == 4)
		r->size = v;
}

static __always_inline void send_file(struct scratch *s, struct task_struct *t,
				      struct task_state *st, __u32 nr, bool compat, long ret)
{
	const struct call *c = &calls[nr & (CALLS_MAX - 1)];
	__u16 flags = compat ? WIRE_F_COMPAT : 0;
	struct wire_file *r;
	struct file *f;
	int dirfd;

	r = rec_begin(s, struct wire_file);
	header(&r->h, t, st, c->what);
	r->h.nr = nr;
	r->h.ret = ret;
	r->fd = -1;
	r->op = c->op;
	if (c->path >= 0) {
		dirfd = c->dir >= 0 ? (int)s->args[c->dir & 7] : AT_FDCWD;
		rec_name(s, t, dirfd, s->args[c->path & 7], &r->base, &r->path, &flags);
	} else {
		r->fd = s->args[c->dir & 7];
		f = fd_file(t, r->fd);
		if (f) {
			file_ids(r, f);
			flags |= r->h.flags;
			r->path = rec_file_path(s, f, &flags);
		}
	}
	file_extra(s, r, c, &flags);
	if (c->path2 >= 0) {
		if (c->what == WIRE_FILE_ATTR || c->op == 2) { /* attribute name, symlink text */
			r->path2 = rec_user_str(s, s->args[c->path2 & 7], &flags);
		} else {
			dirfd = c->dir2 >= 0 ? (int)s->args[c->dir2 & 7] : AT_FDCWD;
			rec_name(s, t, dirfd, s->args[c->path2 & 7], &r->base2, &r->path2, &flags);
		}
	}
	r->h.flags = flags;
	emit_scratch(s, WIRE_RING_BULK);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(sys_file, struct pt_regs *regs, long ret)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task_state *st = task_own_state(t);
	struct sysctx c = call_of(regs, t);
	struct scratch *s;

	if (!st || st->role != ROLE_PAYLOAD || !is_told(ret))
		return 0;
	s = scratch_get();
	if (!s) {
		no_scratch(st, calls[c.nr & (CALLS_MAX - 1)].what);
		return 0;
	}
	call_args(s->args, regs, t);
	send_file(s, t, st, c.nr, c.compat, ret);
	scratch_put(s);
	return 0;
}
