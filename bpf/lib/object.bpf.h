/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* What an opened file is, by the object itself: wherever its file system is mounted, and by whatever link,
 * bind mount or /proc/self/fd it was reached. Tells the escape signal that opening it is, 0 = none. */
#ifndef WARDER_BPF_OBJECT_H
#define WARDER_BPF_OBJECT_H

#include "bpf/lib/emit.bpf.h"
#include "bpf/lib/path.bpf.h"
#include "bpf/lib/watched.bpf.h"

#define OBJECT_IFMT  0170000
#define OBJECT_IFBLK 0060000
#define OBJECT_IFCHR 0020000

/* include/uapi/linux/magic.h */
#define PROC_MAGIC	 0x9fa0
#define SYSFS_MAGIC	 0x62656572
#define DEBUGFS_MAGIC	 0x64626720
#define TRACEFS_MAGIC	 0x74726163
#define SECURITYFS_MAGIC 0x73636673
#define SELINUX_MAGIC	 0xf97cff8c
#define SMACK_MAGIC	 0x43415d53
#define CGROUP_MAGIC	 0x27e0eb
#define CGROUP2_MAGIC	 0x63677270
#define BPF_FS_MAGIC	 0xcafe4a11
#define EFIVARFS_MAGIC	 0xde5e81e4
#define BINFMTFS_MAGIC	 0x42494e4d
#define CONFIGFS_MAGIC	 0x62656570
#define PSTOREFS_MAGIC	 0x6165676c
#define RDTGROUP_MAGIC	 0x7655821

#define PROC_DEPTH 16 /* components of the longest path in /proc that matters */

/* Character devices that reach the machine itself (Documentation/admin-guide/devices.txt); minor ANY: all of
 * that major. */
#define DEVICE_ANY 0xfffff
#define DEVICE_NODES(X)                                              \
	X(1, 1)		   /* mem */                                 \
	X(1, 2)		   /* kmem */                                \
	X(1, 4)		   /* port */                                \
	X(1, 11)	   /* kmsg */                                \
	X(7, DEVICE_ANY)   /* vcs: what is on the console */         \
	X(10, 144)	   /* nvram */                               \
	X(10, 196)	   /* vfio */                                \
	X(10, 200)	   /* net/tun */                             \
	X(10, 223)	   /* uinput */                              \
	X(10, 229)	   /* fuse */                                \
	X(10, 231)	   /* snapshot: the memory of the machine */ \
	X(10, 232)	   /* kvm */                                 \
	X(10, 234)	   /* btrfs-control */                       \
	X(10, 235)	   /* autofs */                              \
	X(10, 236)	   /* mapper/control */                      \
	X(10, 237)	   /* loop-control */                        \
	X(10, 238)	   /* vhost-net */                           \
	X(10, 241)	   /* vhost-vsock */                         \
	X(21, DEVICE_ANY)  /* sg: SCSI commands */                   \
	X(162, DEVICE_ANY) /* raw */                                 \
	X(202, DEVICE_ANY) /* cpu/N/msr */

static __always_inline bool is_raw_device(struct file *f)
{
	__u16 mode = READ(f, f_inode, i_mode);
	__u32 rdev, major, minor;

	if ((mode & OBJECT_IFMT) == OBJECT_IFBLK)
		return true;
	if ((mode & OBJECT_IFMT) != OBJECT_IFCHR)
		return false;
	rdev = READ(f, f_inode, i_rdev);
	major = rdev >> 20;
	minor = rdev & 0xfffff;
#define DEVICE_IS(ma, mi)                                           \
	if (major == (ma) && ((mi) == DEVICE_ANY || minor == (mi))) \
		return true;
	DEVICE_NODES(DEVICE_IS)
	return false;
}

struct top_ctx {
	__u64 d;
};

/* Up to the component below the file system's root. */
static long top_step(__u32 i, struct top_ctx *x)
{
	struct dentry *d = (struct dentry *)x->d;
	struct dentry *up = BPF_CORE_READ(d, d_parent);

	if (up == BPF_CORE_READ(up, d_parent))
		return 1;
	x->d = (__u64)up;
	return 0;
}

/* Of /proc: a process's memory, and all but the processes' own directories. */
static __always_inline int proc_escape(struct dentry *d)
{
	struct top_ctx x = { .d = (__u64)d };
	char first = 0, name[4] = {};
	struct dentry *top;

	bpf_loop(PROC_DEPTH, top_step, &x, 0);
	top = (struct dentry *)x.d; /* a copy: else x itself were taken for a kernel structure */
	bpf_probe_read_kernel(&first, 1, BPF_CORE_READ(top, d_name.name));
	if (first < '0' || first > '9')
		return WIRE_ESCAPE_KERNEL_FILE;
	bpf_probe_read_kernel(name, sizeof(name), BPF_CORE_READ(d, d_name.name));
	return name[0] == 'm' && name[1] == 'e' && name[2] == 'm' && !name[3] ? WIRE_ESCAPE_PROC_MEM
									      : 0;
}

/* Escape type of opening this file, for writing or not; 0 = none. */
GLOBAL int file_escape(__u64 file, bool writes)
{
	struct file *f = (struct file *)file;
	struct dentry *d;

	if (is_raw_device(f))
		return WIRE_ESCAPE_DEVICE;
	if (!writes)
		return 0;
	d = BPF_CORE_READ(f, f_path.dentry);
	switch (READ(d, d_sb, s_magic)) {
	case SYSFS_MAGIC:
	case DEBUGFS_MAGIC:
	case TRACEFS_MAGIC:
	case SECURITYFS_MAGIC:
	case SELINUX_MAGIC:
	case SMACK_MAGIC:
	case CGROUP_MAGIC:
	case CGROUP2_MAGIC:
	case BPF_FS_MAGIC:
	case EFIVARFS_MAGIC:
	case BINFMTFS_MAGIC:
	case CONFIGFS_MAGIC:
	case PSTOREFS_MAGIC:
	case RDTGROUP_MAGIC:
		return WIRE_ESCAPE_KERNEL_FILE;
	case PROC_MAGIC:
		return proc_escape(d);
	}
	return 0;
}

/* Does the path in s->path from `at` on lie below /proc/sys or /sys? */
static __always_inline bool steers_below(struct scratch *s, __u32 at)
{
	__u64 p[2] = {};
	__u8 next;

	if (at > WIRE_PATH_MAX)
		return false;
	bpf_probe_read_kernel(p, sizeof(p), s->path + at); /* there is room behind the path */
	next = p[0] >> 32;
	return (p[0] == 0x79732f636f72702fULL && (__u8)p[1] == 's') || /* "/proc/sys" */
	       ((p[0] & 0xffffffffULL) == 0x7379732fULL && (next == '/' || !next)); /* "/sys" */
}

/* What an open that failed was for. */
enum { FOR_READING, FOR_WRITING_ABSENT /* it is not there */, FOR_WRITING /* refused */ };

/* The same for an attempt that found or got nothing: only the caller's string is there, which
 * watched_string has put into s->path and classed. Links in it are not followed, so what steers the kernel
 * is known by its last name, too, whatever stands before it; when there is no such file, only below /proc and
 * /sys, where a sandbox has few of them. Overwrites s->path. */
GLOBAL int path_escape(struct scratch *s, int class, int what_for, int dirfd)
{
	__u64 p = 0;

	if (!s)
		return 0;
	bpf_probe_read_kernel(&p, sizeof(p), s->path);
	if ((class == WATCHED_DEVICE || class == WATCHED_PROC_MEM) &&
	    (p & 0xffffffffffULL) == 0x2f7665642fULL) /* "/dev/" */
		return WIRE_ESCAPE_DEVICE;
	if (what_for == FOR_READING)
		return 0;
	if (what_for == FOR_WRITING_ABSENT)
		return class == WATCHED_STEERS &&
				       ((p & 0xffffffffffffULL) ==
						0x2f636f72702fULL ||		  /* "/proc/" */
					(p & 0xffffffffffULL) == 0x2f7379732fULL) /* "/sys/" */
			       ? WIRE_ESCAPE_KERNEL_FILE
			       : 0;
	if (class == WATCHED_PROC_MEM &&
	    (p & 0xffffffffffffULL) == 0x2f636f72702fULL) /* "/proc/" */
		return WIRE_ESCAPE_PROC_MEM;
	if (class == WATCHED_STEERS)
		return WIRE_ESCAPE_KERNEL_FILE;
	if ((__u8)p == '/')
		return steers_below(s, 0) ? WIRE_ESCAPE_KERNEL_FILE : 0;
	if ((p & 0xffff) == 0x2e2e || !walk_base(s, dirfd)) /* ".." leads out of it */
		return 0;
	return steers_below(s, s->w.pos) ? WIRE_ESCAPE_KERNEL_FILE : 0;
}

#endif
