/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Execs that failed. A shell or execvp() tries each directory of PATH until one has the program: the
 * attempts that find nothing are kept by process and told as one (the last name, how many), when the
 * process tries another program, finds another one, or ends. Found after all: not told. */
#ifndef WARDER_BPF_MISS_H
#define WARDER_BPF_MISS_H

#include "bpf/lib/enforce.bpf.h"
#include "bpf/lib/path.bpf.h"

#define ENOENT	    2
#define ENOTDIR	    20
#define NR_EXECVE   59
#define NR_EXECVEAT 322

/* Append the name that lies in s->path. */
static __always_inline struct wire_str rec_kept_name(struct scratch *s)
{
	struct wire_str w = {};
	__u32 off;
	char *dst = rec_room(s, MISS_PATH, &off);
	long n;

	if (!dst)
		return w;
	n = bpf_probe_read_kernel_str(dst, MISS_PATH, s->path);
	if (n <= 0)
		return w;
	w.off = off;
	w.len = n - 1;
	s->len = off + n;
	return w;
}

/* The caller's string at `uptr`, or the one in s->path. s->open: nr, ret, how = tries. */
GLOBAL int send_exec_failed(struct scratch *s, struct task_state *st, __u64 uptr, int dirfd)
{
	struct wire_exec *r;

	if (!s || !st)
		return 0;
	r = rec_begin(s, struct wire_exec);
	header(&r->h, st, WIRE_EXEC);
	r->h.nr = s->open.nr;
	r->h.ret = s->open.ret;
	r->h.flags = s->open.writes; /* COMPAT */
	r->tries = s->open.how;
	r->exe = uptr ? rec_user_str(s, uptr) : rec_kept_name(s);
	s->flags |= WIRE_F_TOCTOU;
	r->cwd = unpack(rec_base_packed(s, dirfd));
	enforce_acted(s);
	emit_scratch(s, WIRE_RING_URGENT);
	return 0;
}

struct hash_ctx {
	struct scratch *s;
	__u64 hash;
};

/* FNV-1a, from the end to the last slash. */
static long hash_step(__u32 i, struct hash_ctx *x)
{
	struct scratch *s = x->s;
	__u32 at = s->tail.at;
	char c;

	if (!at)
		return 1;
	c = s->path[(at - 1) & (WIRE_PATH_MAX - 1)];
	if (c == '/')
		return 1;
	s->tail.at = at - 1;
	x->hash = (x->hash ^ (__u8)c) * 0x100000001b3ull;
	return 0;
}

/* Of the last component of s->path, `n` bytes with the NUL. */
static __always_inline __u64 name_hash(struct scratch *s, long n)
{
	struct hash_ctx x = { .s = s, .hash = 0xcbf29ce484222325ull };

	if (n <= 1)
		return 0;
	s->tail.at = n - 1;
	bpf_loop(256, hash_step, &x, 0);
	return x.hash;
}

static __always_inline void miss_tell(struct scratch *s, struct task_state *st, __u32 tgid,
				      struct exec_miss *m)
{
	s->open.nr = m->nr;
	s->open.ret = m->ret;
	s->open.how = m->tries;
	s->open.writes = 0;
	bpf_probe_read_kernel_str(s->path, MISS_PATH, m->path);
	send_exec_failed(s, st, 0, AT_FDCWD);
	bpf_map_delete_elem(&misses, &tgid);
}

/* A program was found: was it the one that was looked for? */
GLOBAL int miss_found(struct scratch *s, struct task_state *st, __u64 filename)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct exec_miss *m = bpf_map_lookup_elem(&misses, &tgid);
	long n;

	if (!m || !s || !st)
		return 0;
	n = bpf_probe_read_kernel_str(s->path, WIRE_PATH_MAX, (void *)filename);
	if (name_hash(s, n) == m->hash)
		bpf_map_delete_elem(&misses, &tgid);
	else
		miss_tell(s, st, tgid, m);
	return 0;
}

/* The process ends. */
GLOBAL int miss_end(struct task_state *st)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct exec_miss *m = bpf_map_lookup_elem(&misses, &tgid);
	struct scratch *s;

	if (!m || !st)
		return 0;
	s = scratch_get();
	if (!s) {
		no_scratch(st, WIRE_EXEC);
		bpf_map_delete_elem(&misses, &tgid);
		return 0;
	}
	miss_tell(s, st, tgid, m);
	scratch_put(s);
	return 0;
}

/* Keep it for later? Only what PATH searches are made of: a name that is not there, from the root or
 * the working directory, that fits. */
static __always_inline bool miss_keep(struct scratch *s, struct task_state *st, long ret)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct exec_miss *m = bpf_map_lookup_elem(&misses, &tgid);
	struct exec_miss *fresh = (struct exec_miss *)s->rec;
	long n = bpf_probe_read_user_str(s->path, WIRE_PATH_MAX, (void *)s->args[0]);
	__u64 hash;

	if (n <= 1 || n > MISS_PATH)
		return false;
	hash = name_hash(s, n);
	if (m && m->hash != hash) {
		miss_tell(s, st, tgid, m);
		bpf_probe_read_user_str(s->path, MISS_PATH, (void *)s->args[0]);
		m = NULL;
	}
	if (m) {
		m->tries++;
		m->ret = ret;
		bpf_probe_read_kernel_str(m->path, MISS_PATH, s->path);
		return true;
	}
	__builtin_memset(fresh, 0, sizeof(*fresh));
	fresh->hash = hash;
	fresh->tries = 1;
	fresh->ret = ret;
	fresh->nr = NR_EXECVE;
	bpf_probe_read_kernel_str(fresh->path, MISS_PATH, s->path);
	return bpf_map_update_elem(&misses, &tgid, fresh, BPF_ANY) == 0;
}

static __always_inline void exec_failed(struct scratch *s, struct task_state *st, __u32 nr,
					bool compat, long ret)
{
	bool at = nr == NR_EXECVEAT;

	if (!at && !compat && (ret == -ENOENT || ret == -ENOTDIR) && miss_keep(s, st, ret))
		return;
	s->open.nr = nr;
	s->open.ret = ret;
	s->open.how = 1;
	s->open.writes = compat ? WIRE_F_COMPAT : 0;
	s->path[0] = 0;
	send_exec_failed(s, st, s->args[at ? 1 : 0], at ? (int)s->args[0] : AT_FDCWD);
}

#endif
