/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* One function per difference between kernels. */
#ifndef WARDER_BPF_COMPAT_H
#define WARDER_BPF_COMPAT_H

#include "bpf/lib/maps.bpf.h"

/* libbpf 1.1 links a function of the kernel only when one object, the first, has it in its section. */
#ifdef WITH_KSYMS
extern void *bpf_rdonly_cast(const void *obj, __u32 btf_id) __weak __ksym;
#else
extern void *bpf_rdonly_cast(const void *obj, __u32 btf_id) __weak;
#endif
extern const volatile bool has_cast;

/* The same task, of which the verifier does not ask whether its pointers can be trusted. For each pointer
 * loaded from a trusted one it looks through all of vmlinux's types by name, some four times: 1-4 ms a
 * load (6.12, 6.18), half of what loading took. Loads from what the cast gives (6.2) are as fast when they
 * run and are not looked up. Kernels without the cast know no trust. */
static __always_inline struct task_struct *task_plain(struct task_struct *t)
{
	if (has_cast)
		return bpf_rdonly_cast(t, bpf_core_type_id_kernel(struct task_struct));
	return t;
}

/* BPF_CORE_READ for the paths that many events take: where there is a cast, a load of 1 ns for each pointer
 * instead of a helper call of 4-8. Both give 0 for what cannot be read.
 * For numbers; a pointer that goes to a function is to be BPF_CORE_READ. Not from pointers to const. */
#define READ(src, ...)                                                               \
	(has_cast ? ___arrow(((typeof(src))bpf_rdonly_cast(                          \
				     src, bpf_core_type_id_kernel(typeof(*(src))))), \
			     __VA_ARGS__)                                            \
		  : BPF_CORE_READ(src, __VA_ARGS__))

/* Eight bytes of kernel memory as a number, pointers too: BPF_CORE_READ's 10 ns are a load where there is a cast.
 * timespec64 because it begins with a plain 64-bit number. */
static __always_inline __u64 load_u64(const void *p)
{
	__u64 v = 0;

	if (has_cast)
		return ((struct timespec64 *)bpf_rdonly_cast(
				p, bpf_core_type_id_kernel(struct timespec64)))
			->tv_sec;
	bpf_probe_read_kernel(&v, sizeof(v), p);
	return v;
}

/* A pointer in `src` as a number, which goes to functions. */
#define LOAD_PTR(src, field) \
	load_u64((const char *)(src) + bpf_core_field_offset(typeof(*(src)), field))

/* 6.3 (f122a08b197d) turned kernel_cap_t from two u32 into one u64: the same eight bytes. */
static __always_inline __u64 cap_bits(const void *cap)
{
	return load_u64(cap);
}

/* Parent in the hierarchy; NULL at the root. `self` is the cgroup's own css, so it leads back. The
 * ancestor array changed its type in 6.1 (7f203bc89eb6); the parent link never did. */
static __always_inline struct cgroup *cgroup_up(struct cgroup *cg)
{
	struct cgroup_subsys_state *css = BPF_CORE_READ(cg, self.parent);

	if (!css)
		return NULL;
	return (struct cgroup *)((char *)css - bpf_core_field_offset(struct cgroup, self));
}

/* Three neighbours in one read; where a kernel has put them elsewhere, one by one. Not 0: cannot be read. */
static __always_inline int read_mount(struct mount_part *to, struct mount *m)
{
	const __u32 at = bpf_core_field_offset(struct mount, mnt_parent);

	if (has_cast) {
		m = bpf_rdonly_cast(m, bpf_core_type_id_kernel(struct mount));
		to->parent = (__u64)m->mnt_parent;
		to->mountpoint = (__u64)m->mnt_mountpoint;
		to->root = (__u64)m->mnt.mnt_root;
		return to->root ? 0 : -1;
	}
	if (bpf_core_field_offset(struct mount, mnt_mountpoint) == at + 8 &&
	    bpf_core_field_offset(struct mount, mnt.mnt_root) == at + 16)
		return bpf_probe_read_kernel(to, sizeof(*to), (char *)m + at);
	to->parent = (__u64)BPF_CORE_READ(m, mnt_parent);
	to->mountpoint = (__u64)BPF_CORE_READ(m, mnt_mountpoint);
	to->root = (__u64)BPF_CORE_READ(m, mnt.mnt_root);
	return 0;
}

static __always_inline int read_dentry(struct dentry_part *to, struct dentry *d)
{
	const __u32 at = bpf_core_field_offset(struct dentry, d_parent);

	if (has_cast) {
		d = bpf_rdonly_cast(d, bpf_core_type_id_kernel(struct dentry));
		to->parent = (__u64)d->d_parent;
		to->len = d->d_name.len;
		to->name = (__u64)d->d_name.name;
		return to->name ? 0 : -1;
	}
	if (bpf_core_field_offset(struct dentry, d_name.len) == at + 12 &&
	    bpf_core_field_offset(struct dentry, d_name.name) == at + 16)
		return bpf_probe_read_kernel(to, sizeof(*to), (char *)d + at);
	to->parent = (__u64)BPF_CORE_READ(d, d_parent);
	to->len = BPF_CORE_READ(d, d_name.len);
	to->name = (__u64)BPF_CORE_READ(d, d_name.name);
	return 0;
}

/* 6.2 (f1a7941243c1) turned rss_stat from atomics into per-CPU counters; `count` of those lags a
 * little behind, which is good enough for a record. */
struct mm_rss_stat___old {
	atomic_long_t count[4];
} __attribute__((preserve_access_index));

/* File times: 6.6 (13bc24457850) renamed the members, 6.11 (3aa63a569c64) split them. */
struct inode___old {
	struct timespec64 i_mtime, i_ctime;
} __attribute__((preserve_access_index));

struct inode___6_6 {
	struct timespec64 __i_mtime, __i_ctime;
} __attribute__((preserve_access_index));

#define NS_PER_SEC 1000000000ull

static __always_inline __u64 inode_mtime(struct inode *inode)
{
	struct inode___old *old = (void *)inode;
	struct inode___6_6 *mid = (void *)inode;

	if (bpf_core_field_exists(inode->i_mtime_sec))
		return BPF_CORE_READ(inode, i_mtime_sec) * NS_PER_SEC +
		       BPF_CORE_READ(inode, i_mtime_nsec);
	if (bpf_core_field_exists(mid->__i_mtime))
		return BPF_CORE_READ(mid, __i_mtime.tv_sec) * NS_PER_SEC +
		       BPF_CORE_READ(mid, __i_mtime.tv_nsec);
	return BPF_CORE_READ(old, i_mtime.tv_sec) * NS_PER_SEC +
	       BPF_CORE_READ(old, i_mtime.tv_nsec);
}

/* The top bit of the nanoseconds is a mark of 6.13's (4e40eff0b573). */
static __always_inline __u64 inode_ctime(struct inode *inode)
{
	struct inode___old *old = (void *)inode;
	struct inode___6_6 *mid = (void *)inode;

	if (bpf_core_field_exists(inode->i_ctime_sec))
		return BPF_CORE_READ(inode, i_ctime_sec) * NS_PER_SEC +
		       (BPF_CORE_READ(inode, i_ctime_nsec) & 0x7fffffff);
	if (bpf_core_field_exists(mid->__i_ctime))
		return BPF_CORE_READ(mid, __i_ctime.tv_sec) * NS_PER_SEC +
		       BPF_CORE_READ(mid, __i_ctime.tv_nsec);
	return BPF_CORE_READ(old, i_ctime.tv_sec) * NS_PER_SEC +
	       BPF_CORE_READ(old, i_ctime.tv_nsec);
}

/* Has a file of an overlay a copy in its upper layer? overlayfs is a module without a type of its own
 * here; since 4.8 the upper dentry follows the inode in its struct ovl_inode. */
#define OVERLAYFS_MAGIC 0x794c7630

static __always_inline bool inode_is_upper(struct inode *inode)
{
	__u64 upper = 0;

	if (BPF_CORE_READ(inode, i_sb, s_magic) != OVERLAYFS_MAGIC)
		return false;
	bpf_probe_read_kernel(&upper, sizeof(upper),
			      (char *)inode + bpf_core_type_size(struct inode));
	return upper != 0;
}

struct mm_struct___old {
	struct mm_rss_stat___old rss_stat;
} __attribute__((preserve_access_index));

static __always_inline __u64 mm_pages(struct mm_struct *mm, int member)
{
	struct mm_struct___old *old = (void *)mm;
	__s64 n;

	if (bpf_core_field_exists(old->rss_stat.count))
		n = BPF_CORE_READ(old, rss_stat.count[member].counter);
	else
		n = BPF_CORE_READ(mm, rss_stat[member].count);
	return n > 0 ? n : 0;
}

#endif
