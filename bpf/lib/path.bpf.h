/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Absolute paths from kernel objects, as the task sees them: up from the dentry, through mount
 * points, to the task's root. bpf_d_path is not allowed in tracepoints. About 28 ns a component. */
#ifndef WARDER_BPF_PATH_H
#define WARDER_BPF_PATH_H

#include "bpf/lib/emit.bpf.h"
#include "bpf/lib/task.bpf.h"

#define PATH_STEPS (WIRE_PATH_MAX / 2 + 64)
#define AT_FDCWD   (-100)

struct path_ctx {
	struct scratch *s;
};

#define NAME_WORDS 4

/* The `len` bytes of a name to where s->path ends at `end`. Short ones by words from the name's end on: what
 * is copied in front of it is overwritten by what comes next, or lies before where the path begins. */
static __always_inline long put_name(struct scratch *s, __u32 end, __u32 len, __u64 name)
{
	__u32 pos = end - len;
	int i;

	if (!has_cast || len > 8 * NAME_WORDS || end < 8 * NAME_WORDS)
		return bpf_probe_read_kernel(s->path + (pos & (WIRE_PATH_MAX - 1)), len & 255,
					     (void *)name);
#pragma unroll
	for (i = 1; i <= NAME_WORDS; i++) {
		*(__u64 *)(s->path + ((end - 8 * i) & (WIRE_PATH_MAX - 1))) =
			load_u64((void *)(name + len - 8 * i));
		if (len <= 8 * i)
			break;
	}
	return 0;
}

/* One step up. The state lives in the map value: as unknown scalars it keeps the verifier short. Helper
 * calls are what it costs: two a component, one more where a mount is left. */
static long path_step(__u32 i, struct path_ctx *x)
{
	struct scratch *s = x->s;
	__u32 len, pos;

	if (s->w.d == s->w.root_d && s->w.m == s->w.root_m)
		return 1;
	if (s->w.d == s->w.mount.root) {
		if (s->w.mount.parent ==
		    s->w.m) { /* top of a namespace, or unmounted: never met the task's root */
			s->w.flags |= WIRE_F_UNREACH;
			return 1;
		}
		s->w.d = s->w.mount.mountpoint;
		s->w.m = s->w.mount.parent;
		if (read_mount(&s->w.mount, (struct mount *)s->w.m))
			goto fault;
		return 0;
	}

	if (read_dentry(&s->w.dentry, (struct dentry *)s->w.d))
		goto fault;
	len = s->w.dentry.len;
	pos = s->w.pos;
	if (len > 255)
		len = 255;
	if (pos < len + 1 || pos > WIRE_PATH_MAX) {
		s->w.flags |= WIRE_F_TRUNC;
		return 1;
	}
	pos -= len;
	if (put_name(s, pos + len, len, s->w.dentry.name))
		goto fault;
	if (s->w.dentry.parent == s->w.d) { /* memfd, pipe, socket: a bare name */
		s->w.flags |= WIRE_F_PSEUDO;
		s->w.pos = pos;
		return 1;
	}
	pos--;
	s->path[pos & (WIRE_PATH_MAX - 1)] = '/';
	s->w.pos = pos;
	s->w.d = s->w.dentry.parent;
	return 0;
fault:
	count_fail(FAIL_READ_PATH);
	s->w.flags |= WIRE_F_TRUNC;
	return 1;
}

/* Build the path of (dentry, vfsmount) in s->path from s->w.pos to WIRE_PATH_MAX. */
static __always_inline int path_walk(struct scratch *s, __u64 dentry, __u64 vfsmount)
{
	struct task_struct *t = task_plain(bpf_get_current_task_btf());
	struct path_ctx x = { .s = s };
	long off = bpf_core_field_offset(struct mount, mnt);

	if (!s)
		return 0;
	s->w.d = dentry;
	s->w.m = vfsmount - off;
	s->w.root_d = (__u64)t->fs->root.dentry;
	s->w.root_m = (__u64)t->fs->root.mnt - off;
	s->w.pos = WIRE_PATH_MAX;
	s->w.flags = 0;
	if (read_mount(&s->w.mount, (struct mount *)s->w.m))
		return 0;
	bpf_loop(PATH_STEPS, path_step, &x, 0);
	if (s->w.pos == WIRE_PATH_MAX) {
		s->w.pos = WIRE_PATH_MAX - 1;
		s->path[WIRE_PATH_MAX - 1] = '/';
	}
	return 0;
}

/* Append the path of (dentry, vfsmount). */
GLOBAL int rec_path_packed(struct scratch *s, __u64 dentry, __u64 vfsmount)
{
	union packed_str p = {};
	__u32 off, n, pos;
	char *dst;

	if (!s)
		return 0;
	path_walk(s, dentry, vfsmount);
	s->flags |= s->w.flags;
	pos = s->w.pos;
	dst = rec_room(s, WIRE_PATH_MAX, &off);
	if (!dst) {
		s->flags |= WIRE_F_TRUNC;
		return 0;
	}
	if (pos >= WIRE_PATH_MAX)
		return 0;
	n = WIRE_PATH_MAX - pos;
	if (n > WIRE_PATH_MAX)
		return 0;
	if (bpf_probe_read_kernel(dst, n, s->path + pos))
		return 0;
	p.w.off = off;
	p.w.len = n;
	s->len = off + n;
	return p.v;
}

static __always_inline struct wire_str rec_path(struct scratch *s, const struct dentry *d,
						const struct vfsmount *m)
{
	return unpack(rec_path_packed(s, (__u64)d, (__u64)m));
}

static __always_inline struct wire_str rec_file_path(struct scratch *s, struct file *f)
{
	return unpack(rec_path_packed(s, LOAD_PTR(f, f_path.dentry), LOAD_PTR(f, f_path.mnt)));
}

/* The open file behind a descriptor of the current task, or NULL. */
static __always_inline struct file *fd_file(struct task_struct *t, __u32 fd)
{
	struct fdtable *fdt = task_plain(t)->files->fdt;

	if (fd >= fdt->max_fds)
		return NULL;
	return (struct file *)load_u64(fdt->fd + fd);
}

/* A pointer that was loaded directly, as an argument for a global function: by way of a map value the
 * verifier forgets what it pointed to. */
static __always_inline __u64 to_number(struct scratch *s, const void *p)
{
	volatile __u64 *way = &s->w.d;

	*way = (__u64)p;
	return *way;
}

/* Walk to the directory that a relative path starts from; false: there is none. */
GLOBAL int walk_base(struct scratch *s, int dirfd)
{
	struct task_struct *t = task_plain(bpf_get_current_task_btf());
	struct file *f;

	if (!s)
		return 0;
	if (dirfd == AT_FDCWD) {
		s->args[6] = (__u64)t->fs->pwd.dentry;
		s->args[7] = (__u64)t->fs->pwd.mnt;
	} else {
		f = fd_file(bpf_get_current_task_btf(), dirfd);
		if (!f)
			return 0;
		s->args[6] = LOAD_PTR(f, f_path.dentry);
		s->args[7] = LOAD_PTR(f, f_path.mnt);
	}
	path_walk(s, s->args[6], s->args[7]);
	return 1;
}

/* Append the directory that a relative path starts from. */
GLOBAL int rec_base_packed(struct scratch *s, int dirfd)
{
	struct task_struct *t = task_plain(bpf_get_current_task_btf());
	struct file *f;

	if (!s)
		return 0;
	if (dirfd == AT_FDCWD)
		return rec_path_packed(s, to_number(s, t->fs->pwd.dentry),
				       to_number(s, t->fs->pwd.mnt));
	f = fd_file(bpf_get_current_task_btf(), dirfd);
	if (!f)
		return 0;
	return rec_path_packed(s, LOAD_PTR(f, f_path.dentry), LOAD_PTR(f, f_path.mnt));
}

static __always_inline bool is_relative(struct scratch *s, struct wire_str path)
{
	return path.len && s->rec[path.off & 0x3fff] != '/';
}

/* Names that a caller gave: absolute, or with the directory they start from. */
static __always_inline void rec_name(struct scratch *s, int dirfd, __u64 uptr,
				     struct wire_str *base, struct wire_str *path)
{
	*path = rec_user_str(s, uptr);
	if (is_relative(s, *path))
		*base = unpack(rec_base_packed(s, dirfd));
}

#endif
