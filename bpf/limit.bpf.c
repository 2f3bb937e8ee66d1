/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Calls that failed because a limit was hit: the sandbox's file system is full, a file may grow no more, no
 * task or descriptor is left. By the end of system calls; once a second for each sandbox and limit, with the
 * number of refusals. What the cgroup controllers count besides is told by the launcher. */
#include "bpf/lib/path.bpf.h"
#include "bpf/lib/limit.bpf.h"
#include "bpf/lib/sysend.bpf.h"

#define TELL_EVERY_NS  1000000000ull
#define TMPFS_MAGIC    0x01021994
#define PAGE_BYTES     4096ull
#define RLIMIT_FSIZE   1
#define RLIMIT_NOFILE  7
#define LIMIT_RLIM_MAX (~0ull)

/* A function by itself: the verifier is not to follow each answer on. */
GLOBAL int limit_type(__u32 nr, __s64 ret)
{
	return limit_of(nr, ret);
}

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

/* The file that was to grow: of what copies, the target; of the rest, the first argument. */
static __always_inline struct file *limit_file(struct task_struct *t, __u32 nr, const __u64 *args)
{
	const struct call *c = &calls[nr & (CALLS_MAX - 1)];

	if (nr < CALLS_MAX && c->slot && c->path >= 0)
		return NULL;					       /* by name */
	return fd_file(t, nr == 326 || nr == 275 ? args[2] : args[0]); /* copy_file_range, splice */
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

GLOBAL int limit_send(struct scratch *s, struct task_state *st, __u32 type, __u32 count)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct wire_limit_hit *r;
	const struct call *c;
	struct file *f = NULL;
	__u32 nr;

	if (!s || !st)
		return 0;
	nr = s->call.nr;
	c = &calls[nr & (CALLS_MAX - 1)];
	r = rec_begin(s, struct wire_limit_hit);
	header(&r->h, st, WIRE_LIMIT);
	r->h.nr = nr;
	r->h.ret = s->call.ret;
	r->type = type;
	r->count = count;
	if (r->type == WIRE_LIMIT_FSIZE || r->type == WIRE_LIMIT_DISK)
		f = limit_file(t, nr, s->args);
	if (r->type == WIRE_LIMIT_FSIZE)
		r->value = limit_rlim(t, RLIMIT_FSIZE);
	if (r->type == WIRE_LIMIT_NOFILE)
		r->value = r->used = limit_rlim(t, RLIMIT_NOFILE);
	if (f) {
		if (r->type == WIRE_LIMIT_DISK)
			limit_space(r, f);
		else
			r->used = BPF_CORE_READ(f, f_inode, i_size);
		r->target = rec_file_path(s, f);
	} else if (r->type == WIRE_LIMIT_DISK && c->path >= 0) {
		r->target = rec_user_str(s, s->args[c->path & 7]);
	}
	emit_scratch(s, WIRE_RING_URGENT);
	return 0;
}

SYSCALL_END(sys_limit)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task_state *st = task_own_state(t);
	struct sysctx c = call_of(regs, t);
	struct scratch *s;
	__u32 count, slot, type;

	if (!st)
		return 0;
	type = limit_type(c.nr, ret);
	count = st->role == ROLE_PAYLOAD ? limit_turn(st->sandbox, type) : 0;
	if (count) {
		s = scratch_get();
		if (s) {
			call_take(s, regs, t, c, ret);
			limit_send(s, st, type, count);
			scratch_put(s);
		} else {
			no_scratch(st, WIRE_LIMIT);
		}
	}
	if (c.nr >= CALLS_MAX)
		return 0;
	slot = calls[c.nr].slot;
	if (slot && slot != SLOT_LIMIT)
		bpf_tail_call(ctx, table, slot);
	return 0;
}
