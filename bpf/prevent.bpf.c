/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Full tier: what the enforcement maps deny is refused before it happens. fmod_ret on the kernel's
 * security_* functions works where no LSM may (`lsm/` programs attach and never run unless `bpf` is in the
 * lsm= list), for 32-bit calls and for io_uring; paths come from the kernel's own objects, so there is
 * nothing to race for. Loaded only when something is to be enforced: each costs 0.1 s to detach. Then they also
 * note what a name led to (lib/named.bpf.h).
 * The record is made when the call ends and learns from `acts` who decided; io_uring has no such end. */
#include "bpf/lib/path.bpf.h"
#include "bpf/lib/enforce.bpf.h"
#include "bpf/lib/watched.bpf.h"
#include "bpf/lib/watchlist.bpf.h"
#include "bpf/lib/named.bpf.h"

#define EPERM		    1
#define FMODE_WRITE	    0x2
#define O_CREAT		    00000100
#define O_TRUNC		    00001000
#define PF_IO_WORKER	    0x00000010
#define NR_IO_URING_ENTER   426
#define MAP_SHARED	    1
#define MAP_SHARED_VALIDATE 3
#define MAP_TYPE	    3
#define S_IFMT		    0170000
#define S_IFREG		    0100000

struct prevent_ctx {
	__u64 dentry, mnt, dentry2, mnt2;
	__u64 ino; /* EXEC only */
	__u32 dev;
	__u32 kind;
	__u8 child; /* bits: dentry, dentry2 are names in a directory, not files themselves */
	__u64 text; /* of a symbolic link */
	bool reads; /* FILE_OPEN: nothing to judge unless the operator lists the file */
};

/* The strictest answer for what is in `x`. */
static __always_inline int prevent_judge(struct scratch *s, __u32 set, struct prevent_ctx *x)
{
	int v = enforce_task(set, x->kind);

	if (x->kind == WIRE_EXEC)
		v = enforce_max(v, enforce_exe(set, WIRE_EXEC, x->dev, x->ino));
	if (x->dentry2) {
		path_walk(s, x->dentry2, x->mnt2);
		v = enforce_max(v, enforce_path(s, set, x->kind));
	}
	path_walk(s, x->dentry, x->mnt);
	return enforce_max(v, enforce_path(s, set, x->kind));
}

static __always_inline bool prevent_by_uring(struct task_struct *t)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(t);

	return t->flags & PF_IO_WORKER || regs->orig_ax == NR_IO_URING_ENTER;
}

/* Nothing else will tell of it. */
static __always_inline void prevent_tell(struct scratch *s, struct task_state *st,
					 struct prevent_ctx *x, int v)
{
	struct wire_file *r = rec_begin(s, struct wire_file);

	header(&r->h, st, x->kind);
	r->h.flags = WIRE_F_IOURING;
	r->fd = -1;
	/* By way of the map a typed pointer becomes a number, which is all a global function takes. */
	s->args[0] = x->dentry;
	s->args[1] = x->mnt;
	r->path = unpack(
		rec_path_packed(s, *(volatile __u64 *)&s->args[0], *(volatile __u64 *)&s->args[1]));
	enforce_mark(&r->h, v, true);
	emit_scratch(s, WIRE_RING_BULK);
}

static __always_inline __u64 parent_of(__u64 dentry)
{
	return (__u64)BPF_CORE_READ((struct dentry *)dentry, d_parent);
}

static __always_inline void prevent_note(struct scratch *s, struct task_struct *t,
					 struct prevent_ctx *x)
{
	/* Files are made by open, too, which tells what it opened. */
	__u32 nr = 0, kind = x->kind == WIRE_FILE_OPEN ? WIRE_FILE_MKNOD : x->kind;

	if (kind == WIRE_EXEC || !named_wanted(t, kind, &nr))
		return;
	/* By way of the map typed pointers become numbers. */
	s->args[0] = x->child & 1 ? parent_of(x->dentry) : x->dentry;
	s->args[1] = x->mnt;
	s->args[2] = x->child & 1 ? x->dentry : 0;
	s->args[3] = !x->dentry2 ? 0 : x->child & 2 ? parent_of(x->dentry2) : x->dentry2;
	s->args[4] = x->mnt2;
	s->args[5] = x->child & 2 ? x->dentry2 : 0;
	s->args[6] = x->text;
	named_note(s, kind, nr, *(volatile __u64 *)&s->args[6]);
}

static __always_inline int prevent(struct prevent_ctx *x)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task_state *st = task_own_state(t);
	__u64 tid = bpf_get_current_pid_tgid();
	struct act act = { .kind = x->kind };
	struct scratch *s;
	__u32 set;

	if (!st || st->role != ROLE_PAYLOAD)
		return 0;
	set = enforce_set_of(st);
	if (!set && names_mode != NAMES_PREVENT)
		return 0;
	s = scratch_get();
	if (!s && !set)
		return 0;
	if (!s) { /* what could not be judged by path is not let through */
		count_fail(FAIL_SCRATCH);
		return -EPERM;
	}
	if (names_mode == NAMES_PREVENT)
		prevent_note(s, t, x);
	if (!set) {
		scratch_put(s);
		return 0;
	}
	if (!x->reads || watchlist_file(s, x->dentry, x->mnt))
		act.verdict = prevent_judge(s, set, x);
	if (!enforce_denies(act.verdict)) {
		scratch_put(s);
		return 0;
	}
	if (x->kind != WIRE_EXEC && prevent_by_uring(t)) {
		prevent_tell(s, st, x, act.verdict);
	} else {
		if (enforce_kills(act.verdict) && bpf_send_signal(9))
			count_fail(FAIL_SIGNAL);
		bpf_map_update_elem(&acts, &tid, &act, BPF_ANY);
	}
	scratch_put(s);
	return -EPERM;
}

/* Opens that are told: for writing or making, of watched names; of raw devices is the cgroup program's. */
SEC("fmod_ret/security_file_open")
int BPF_PROG(prevent_open, struct file *f)
{
	struct prevent_ctx x = { .kind = WIRE_FILE_OPEN };

	x.dentry = (__u64)BPF_CORE_READ(f, f_path.dentry);
	x.mnt = (__u64)BPF_CORE_READ(f, f_path.mnt);
	x.reads = !(BPF_CORE_READ(f, f_mode) & FMODE_WRITE) &&
		  !(BPF_CORE_READ(f, f_flags) & (O_CREAT | O_TRUNC)) &&
		  watched_dentry(x.dentry) != WATCHED_FILE;
	if (x.reads && !watchlist_mode)
		return 0;
	return prevent(&x);
}

#define DIR_HOOK(name, hook, what)                                        \
	SEC("fmod_ret/security_path_" #hook)                              \
	int BPF_PROG(name, const struct path *dir, struct dentry *dentry) \
	{                                                                 \
		struct prevent_ctx x = { .kind = what, .child = 1 };      \
                                                                          \
		x.dentry = (__u64)dentry;                                 \
                                                                          \
		x.mnt = (__u64)BPF_CORE_READ(dir, mnt);                   \
		return prevent(&x);                                       \
	}

DIR_HOOK(prevent_create, mknod, WIRE_FILE_OPEN)
DIR_HOOK(prevent_mkdir, mkdir, WIRE_FILE_MKDIR)
DIR_HOOK(prevent_unlink, unlink, WIRE_FILE_DELETE)
DIR_HOOK(prevent_rmdir, rmdir, WIRE_FILE_DELETE)

SEC("fmod_ret/security_path_symlink")
int BPF_PROG(prevent_symlink, const struct path *dir, struct dentry *dentry, const char *text)
{
	struct prevent_ctx x = { .kind = WIRE_FILE_LINK, .child = 1 };

	x.dentry = (__u64)dentry;
	x.mnt = (__u64)BPF_CORE_READ(dir, mnt);
	x.text = (__u64)text;
	return prevent(&x);
}

#define PATH_HOOK(name, hook)                                      \
	SEC("fmod_ret/security_path_" #hook)                       \
	int BPF_PROG(name, const struct path *path)                \
	{                                                          \
		struct prevent_ctx x = { .kind = WIRE_FILE_ATTR }; \
                                                                   \
		x.dentry = (__u64)BPF_CORE_READ(path, dentry);     \
		x.mnt = (__u64)BPF_CORE_READ(path, mnt);           \
		return prevent(&x);                                \
	}

PATH_HOOK(prevent_chmod, chmod)
PATH_HOOK(prevent_chown, chown)
PATH_HOOK(prevent_truncate, truncate)

/* Of the file that gets another name, and of the name. Both lie on one mount. */
SEC("fmod_ret/security_path_link")
int BPF_PROG(prevent_link, struct dentry *old, const struct path *dir, struct dentry *dentry)
{
	struct prevent_ctx x = {
		.kind = WIRE_FILE_LINK, .child = 1, .dentry = (__u64)dentry, .dentry2 = (__u64)old
	};

	x.mnt = (__u64)BPF_CORE_READ(dir, mnt);
	x.mnt2 = x.mnt;
	return prevent(&x);
}

SEC("fmod_ret/security_path_rename")
int BPF_PROG(prevent_rename, const struct path *dir, struct dentry *old, const struct path *dir2,
	     struct dentry *dentry)
{
	struct prevent_ctx x = {
		.kind = WIRE_FILE_RENAME, .child = 3, .dentry = (__u64)old, .dentry2 = (__u64)dentry
	};

	x.mnt = (__u64)BPF_CORE_READ(dir, mnt);
	x.mnt2 = (__u64)BPF_CORE_READ(dir2, mnt);
	return prevent(&x);
}

/* Not of a script: what will run is its interpreter, which comes here as well. */
SEC("fmod_ret/security_bprm_check")
int BPF_PROG(prevent_exec, struct linux_binprm *bprm)
{
	struct prevent_ctx x = { .kind = WIRE_EXEC };
	struct file *f = BPF_CORE_READ(bprm, file);
	char head[2] = {};

	bpf_probe_read_kernel(head, sizeof(head), bprm->buf);
	if (head[0] == '#' && head[1] == '!')
		return 0;
	x.dentry = (__u64)BPF_CORE_READ(f, f_path.dentry);
	x.mnt = (__u64)BPF_CORE_READ(f, f_path.mnt);
	x.ino = BPF_CORE_READ(f, f_inode, i_ino);
	x.dev = BPF_CORE_READ(f, f_inode, i_sb, s_dev);
	return prevent(&x);
}

/* Shared, of a file that is open for writing: what would be told (write.bpf.c). Of an anonymous mapping there is no
 * file. */
SEC("fmod_ret/security_mmap_file")
int BPF_PROG(prevent_mmap, struct file *f, unsigned long prot, unsigned long flags)
{
	struct prevent_ctx x = { .kind = WIRE_FILE_MMAP };
	__u32 type = flags & MAP_TYPE, mode;

	if (!f || (type != MAP_SHARED && type != MAP_SHARED_VALIDATE))
		return 0;
	mode = BPF_CORE_READ(f, f_inode, i_mode);
	if (!(BPF_CORE_READ(f, f_mode) & FMODE_WRITE) || (mode & S_IFMT) != S_IFREG)
		return 0;
	x.dentry = (__u64)BPF_CORE_READ(f, f_path.dentry);
	x.mnt = (__u64)BPF_CORE_READ(f, f_path.mnt);
	return prevent(&x);
}
