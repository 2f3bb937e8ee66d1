/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Files whose reading the operator wants to see (`warder run --watch`): by path, as the sandbox sees it,
 * and by inode, so that a hard link or another mount of the same file does not hide it. */
#ifndef WARDER_BPF_WATCHLIST_H
#define WARDER_BPF_WATCHLIST_H

#include "bpf/lib/path.bpf.h"

#define WATCHLIST_DEPTH	  64  /* components looked at upwards, for a directory's inode */
#define WATCHLIST_NAME_AT 126 /* where a relative name may begin in the key */
#define WATCHLIST_NAME	  112

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, WATCHLIST_PATHS_MAX);
	__type(key, struct enforce_path_key);
	__type(value, __u32);
} watchlist_paths __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, WATCHLIST_INODES_MAX);
	__type(key, struct watchlist_inode);
	__type(value, __u32);
} watchlist_inodes __weak SEC(".maps");

extern const volatile __u32 watchlist_mode;

static __always_inline __u32 watchlist_inode_id(struct inode *inode, __u32 below)
{
	struct watchlist_inode key = { .below = below };
	__u32 *id;

	key.ino = BPF_CORE_READ(inode, i_ino);
	key.dev = BPF_CORE_READ(inode, i_sb, s_dev);
	id = bpf_map_lookup_elem(&watchlist_inodes, &key);
	return id ? *id : 0;
}

/* One directory up, within the file system: other mounts of it do not hide what is below. */
static long watchlist_step(__u32 i, struct path_ctx *x)
{
	struct scratch *s = x->s;
	struct dentry *d = (struct dentry *)s->w.d;
	struct dentry *up = BPF_CORE_READ(d, d_parent);
	__u32 id = watchlist_inode_id(BPF_CORE_READ(d, d_inode), 1);

	if (id)
		s->open.listed = id;
	s->w.d = (__u64)up;
	return id || up == d;
}

/* To 6.1 a key may not lie in a global function's argument: the buffer is looked up again. */
static __always_inline __u32 watchlist_key_id(struct scratch *arg)
{
	__u32 index = arg->index, *id;
	struct scratch *s = bpf_map_lookup_elem(&scratches, &index);

	if (!s)
		return 0;
	s->enforce.keys = 0;
	s->enforce.prefixlen = (sizeof(s->enforce) - sizeof(s->enforce.prefixlen)) * 8;
	id = bpf_map_lookup_elem(&watchlist_paths, &s->enforce);
	return id ? *id : 0;
}

/* Id of the entry that an opened file falls under, 0 = none. */
GLOBAL int watchlist_file(struct scratch *s, __u64 dentry, __u64 mnt)
{
	struct path_ctx x = { .s = s };
	__u32 id = 0, n;

	if (!s)
		return 0;
	if (watchlist_mode & WATCHLIST_INODES)
		id = watchlist_inode_id(BPF_CORE_READ((struct dentry *)dentry, d_inode), 0);
	if (!id && watchlist_mode & WATCHLIST_BELOW) {
		s->open.listed = 0;
		s->w.d = dentry;
		bpf_loop(WATCHLIST_DEPTH, watchlist_step, &x, 0);
		id = s->open.listed;
	}
	if (!id && watchlist_mode & WATCHLIST_PATHS) {
		path_walk(s, dentry, mnt);
		n = s->w.pos;
		if (n >= WIRE_PATH_MAX)
			return 0;
		n = WIRE_PATH_MAX - n;
		__builtin_memset(s->enforce.path, 0, sizeof(s->enforce.path));
		if (!bpf_probe_read_kernel(s->enforce.path, bounded(n, ENFORCE_PATH_MAX),
					   s->path + WIRE_PATH_MAX - n))
			id = watchlist_key_id(s);
	}
	return id;
}

/* The same of a name that led to nothing: only by path, and as the caller wrote it. */
GLOBAL int watchlist_name(struct scratch *s, int dirfd, __u64 uptr)
{
	__u32 n, at;
	char first = 0;

	if (!s)
		return 0;
	__builtin_memset(s->enforce.path, 0, sizeof(s->enforce.path));
	bpf_probe_read_user(&first, 1, (void *)uptr);
	if (first == '/') {
		bpf_probe_read_user_str(s->enforce.path, ENFORCE_PATH_MAX, (void *)uptr);
		return watchlist_key_id(s);
	}
	if (!walk_base(s, dirfd))
		return 0;
	at = s->w.pos;
	if (at >= WIRE_PATH_MAX)
		return 0;
	n = WIRE_PATH_MAX - at;
	if (n > WATCHLIST_NAME_AT || /* else the name would have no room */
	    bpf_probe_read_kernel(s->enforce.path, bounded(n, WATCHLIST_NAME_AT), s->path + at))
		return 0;
	if (n > 1)
		s->enforce.path[n++ & 127] = '/';
	bpf_probe_read_user_str(s->enforce.path + (n & 127), WATCHLIST_NAME, (void *)uptr);
	return watchlist_key_id(s);
}

#endif
