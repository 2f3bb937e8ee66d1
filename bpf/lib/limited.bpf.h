/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Telling that a limit was hit: how often, and of what it was. */
#ifndef WARDER_BPF_LIMITED_H
#define WARDER_BPF_LIMITED_H

#include "bpf/lib/path.bpf.h"
#include "bpf/lib/limit.bpf.h"

#define TELL_EVERY_NS  1000000000ull
#define TMPFS_MAGIC    0x01021994
#define PAGE_BYTES     4096ull
#define RLIMIT_FSIZE   1
#define RLIMIT_NOFILE  7
#define LIMIT_RLIM_MAX (~0ull)

/* Number of refusals to tell, this one included; 0 = not yet. */
static __always_inline __u32 limit_turn(__u32 sandbox, __u32 type)
{
	struct limit_key key = { .sandbox = sandbox, .type = type };
	struct limit_seen first = {}, *seen = bpf_map_lookup_elem(&limits_seen, &key);
	__u64 now = bpf_ktime_get_boot_ns();
	__u32 n;

	if (!seen) {
		first.told_ts = now;
		bpf_map_update_elem(&limits_seen, &key, &first, BPF_ANY);
		return 1;
	}
	__sync_fetch_and_add(&seen->count, 1);
	if (now - seen->told_ts < TELL_EVERY_NS)
		return 0;
	seen->told_ts = now;
	n = seen->count;
	__sync_fetch_and_sub(&seen->count, n);
	return n;
}

/* Of a tmpfs, which is what a sandbox's own file systems are, in bytes. */
static __always_inline void limit_space(struct wire_limit_hit *r, struct file *f)
{
	struct super_block *sb = BPF_CORE_READ(f, f_inode, i_sb);
	struct shmem_sb_info *info;
	__s64 used;

	if (BPF_CORE_READ(sb, s_magic) != TMPFS_MAGIC)
		return;
	info = (struct shmem_sb_info *)BPF_CORE_READ(sb, s_fs_info);
	r->value = BPF_CORE_READ(info, max_blocks) * PAGE_BYTES;
	used = BPF_CORE_READ(info, used_blocks.count); /* lags a little behind */
	r->used = used > 0 ? used * PAGE_BYTES : 0;
}

static __always_inline __u64 limit_rlim(struct task_struct *t, __u32 which)
{
	__u64 v = BPF_CORE_READ(t, signal, rlim[which].rlim_cur);

	return v == LIMIT_RLIM_MAX ? 0 : v;
}

/* Value and use of a limit; of what concerns a file, which one. */
static __always_inline void limit_fill(struct scratch *s, struct wire_limit_hit *r,
				       struct task_struct *t, struct file *f)
{
	if (r->type == WIRE_LIMIT_FSIZE)
		r->value = limit_rlim(t, RLIMIT_FSIZE);
	if (r->type == WIRE_LIMIT_NOFILE)
		r->value = r->used = limit_rlim(t, RLIMIT_NOFILE);
	if (!f)
		return;
	if (r->type == WIRE_LIMIT_DISK)
		limit_space(r, f);
	else
		r->used = BPF_CORE_READ(f, f_inode, i_size);
	r->target = rec_file_path(s, f);
}

#endif
