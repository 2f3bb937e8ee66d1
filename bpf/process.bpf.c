/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* exec and exit of processes. */
#include "bpf/lib/gvisor.bpf.h"
#include "bpf/lib/path.bpf.h"
#include "bpf/lib/cred.bpf.h"
#include "bpf/lib/enforce.bpf.h"
#include "bpf/lib/made.bpf.h"
#include "bpf/lib/sysend.bpf.h"
#include "bpf/lib/miss.bpf.h"
#include "bpf/lib/writes.bpf.h"

#define ARGS_INLINE	  8192
#define ENV_INLINE	  3072
#define ARGS_HEAD	  (WIRE_ARGS_SENT - WIRE_ARGS_TAIL)
#define TMPFS_MAGIC	  0x01021994
#define S_IFMT		  0170000
#define S_IFSOCK	  0140000
#define S_IFREG		  0100000
#define S_IFCHR		  0020000
#define S_IFIFO		  0010000
#define SIGSYS		  31
#define SIGNAL_GROUP_EXIT 0x00000004

struct args_ctx {
	struct scratch *s;
};

/* One piece of argv or environment. The record's header was made before the loop. Where it stands lies in
 * the map value: numbers on the stack would be followed range by range. */
static long args_step(__u32 i, struct args_ctx *x)
{
	struct scratch *s = x->s;
	struct wire_chunk *c = (struct wire_chunk *)s->rec;
	__u32 off = s->pieces.off, end = s->pieces.end, n = end - off;

	if (off >= end)
		return 1;
	if (n > WIRE_CHUNK_MAX)
		n = WIRE_CHUNK_MAX;
	if (bpf_probe_read_user(s->rec + sizeof(*c), n, (void *)(s->pieces.start + off))) {
		s->pieces.fault = 1;
		return 1;
	}
	c->offset = off;
	c->n = n;
	s->len = sizeof(*c) + n;
	s->pieces.off = off + n;
	emit_scratch(s, WIRE_RING_URGENT);
	return 0;
}

static __noinline __u32 stdin_type(struct task_struct *t)
{
	struct file *f = fd_file(t, 0);
	__u32 rdev, major;
	__u16 mode;

	if (!f)
		return WIRE_STDIN_NONE;
	mode = BPF_CORE_READ(f, f_inode, i_mode);
	switch (mode & S_IFMT) {
	case S_IFIFO:
		return WIRE_STDIN_PIPE;
	case S_IFSOCK:
		return WIRE_STDIN_SOCKET;
	case S_IFREG:
		return WIRE_STDIN_FILE;
	case S_IFCHR:
		rdev = BPF_CORE_READ(f, f_inode, i_rdev);
		major = rdev >> 20;
		if (rdev == (1 << 20 | 3))
			return WIRE_STDIN_NULL;
		if (major == 4 || major == 5 || (major >= 136 && major <= 143))
			return WIRE_STDIN_TTY;
		return WIRE_STDIN_OTHER;
	}
	return WIRE_STDIN_OTHER;
}

static __always_inline void exec_creds(struct wire_exec *r, struct task_struct *p)
{
	const struct cred *cred = BPF_CORE_READ(p, cred);
	struct nsproxy *ns = BPF_CORE_READ(p, nsproxy);

	r->cap_effective = cap_bits(&cred->cap_effective);
	r->cap_permitted = cap_bits(&cred->cap_permitted);
	r->ruid = BPF_CORE_READ(cred, uid.val);
	r->loginuid = bpf_core_field_exists(p->loginuid) ? p->loginuid.val : ~0u;
	r->ns_mnt = BPF_CORE_READ(ns, mnt_ns, ns.inum);
	r->ns_pid = BPF_CORE_READ(ns, pid_ns_for_children, ns.inum);
	r->ns_net = BPF_CORE_READ(ns, net_ns, ns.inum);
	r->ns_user = BPF_CORE_READ(cred, user_ns, ns.inum);
}

/* Parent first; ends where the sandbox ends: what is above is the host's business. */
GLOBAL int exec_ancestors(struct wire_exec *r, struct task_state *st)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct task_struct *a = BPF_CORE_READ(p, real_parent);
	__u32 tgid, below = p->tgid;
	int i;

	if (!r || !st)
		return 0;
	r->parent_start = BPF_CORE_READ(a, group_leader, start_boottime);
#pragma unroll
	for (i = 0; i < WIRE_ANCESTORS; i++) {
		tgid = BPF_CORE_READ(a, tgid);
		if (tgid <= 1 || below == st->top)
			break;
		r->ancestors[i].tgid = tgid;
		r->ancestors[i].start = BPF_CORE_READ(a, group_leader, start_boottime);
		bpf_probe_read_kernel(r->ancestors[i].comm, 16, &a->comm);
		r->ancestors_n = i + 1;
		below = tgid;
		a = BPF_CORE_READ(a, real_parent);
	}
	return 0;
}

static __always_inline void exec_tty(struct scratch *s, struct wire_exec *r, struct task_struct *p)
{
	struct tty_struct *tty = BPF_CORE_READ(p, signal, tty);

	if (!tty)
		return;
	r->tty_nr = (__u32)BPF_CORE_READ(tty, driver, major) << 20 |
		    (BPF_CORE_READ(tty, driver, minor_start) + BPF_CORE_READ(tty, index));
	r->tty = rec_kernel_str(s, tty->name, 64);
}

static __always_inline void exec_file(struct scratch *s, struct wire_exec *r, struct task_state *st,
				      struct linux_binprm *bprm)
{
	struct file *f = BPF_CORE_READ(bprm, file);
	struct inode *inode = BPF_CORE_READ(f, f_inode);
	struct dentry *d = BPF_CORE_READ(f, f_path.dentry);
	const char *name_given;
	char name[8] = {};
	__u32 set;
	int v;

	r->ino = BPF_CORE_READ(inode, i_ino);
	r->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	r->nlink = BPF_CORE_READ(inode, i_nlink);
	r->mode = BPF_CORE_READ(inode, i_mode);
	r->exe_uid = BPF_CORE_READ(inode, i_uid.val);
	r->exe_mtime = inode_mtime(inode);
	r->exe_ctime = inode_ctime(inode);
	r->secureexec = BPF_CORE_READ_BITFIELD_PROBED(bprm, secureexec);
	r->exe = rec_file_path(s, f);
	program_begin(s, r->dev, r->ino);
	set = enforce_set_of(st);
	if (set) {
		v = enforce_max(enforce_task(set, WIRE_EXEC), enforce_path(s, set, WIRE_EXEC));
		enforce_mark(&r->h, enforce_max(v, enforce_exe(set, WIRE_EXEC, r->dev, r->ino)),
			     false);
	}
	if (!r->nlink) {
		s->flags |= WIRE_F_DELETED;
		bpf_probe_read_kernel(name, 6, BPF_CORE_READ(d, d_name.name));
		r->memfd = BPF_CORE_READ(inode, i_sb, s_magic) == TMPFS_MAGIC && name[0] == 'm' &&
			   name[1] == 'e' && name[2] == 'm' && name[3] == 'f' && name[4] == 'd' &&
			   name[5] == ':';
	}
	r->upper_layer = is_made(r->ino, r->dev, st->sandbox) || inode_is_upper(inode);
	/* Of a script the file is its interpreter, the name given is the script. */
	name_given = BPF_CORE_READ(bprm, filename);
	if (BPF_CORE_READ(bprm, interp) != name_given)
		r->script = rec_kernel_str(s, name_given, WIRE_PATH_MAX);
}

static __always_inline void exec_args(struct scratch *s, struct wire_exec *r, __u64 start)
{
	__u32 n = r->args_total, off;
	void *dst = rec_room(s, ARGS_INLINE, &off);

	if (n > ARGS_INLINE)
		n = ARGS_INLINE;
	if (!dst || s->pieces.fault || bpf_probe_read_user(dst, n, (void *)start)) {
		s->flags |= WIRE_F_READ_FAULT | WIRE_F_TRUNC;
		count_fail(FAIL_READ_ARGS);
		return;
	}
	r->args.off = off;
	r->args.len = n;
	s->len = off + n;
	if (r->args_total > WIRE_ARGS_MAX)
		s->flags |= WIRE_F_TRUNC;
}

/* What does not fit here came in pieces. */
static __always_inline void exec_env(struct scratch *s, struct wire_exec *r, __u64 start)
{
	__u32 n = r->env_total, off;
	void *dst = rec_room(s, ENV_INLINE, &off);

	if (!dst || !n)
		return;
	barrier_var(n); /* two comparisons as one (n - 1 < max) are beyond 6.1's verifier */
	if (n > ENV_INLINE)
		return;
	if (bpf_probe_read_user(dst, n, (void *)start)) {
		count_fail(FAIL_READ_ARGS);
		return;
	}
	r->env.off = off;
	r->env.len = n;
	s->len = off + n;
}

GLOBAL int send_pieces(struct scratch *s, __u64 start, __u32 from, __u32 to)
{
	struct args_ctx x = { .s = s };

	if (!s)
		return 0;
	s->pieces.start = start;
	s->pieces.off = from;
	s->pieces.end = to;
	bpf_loop(WIRE_ARGS_SENT / WIRE_CHUNK_MAX + 1, args_step, &x, 0);
	return 0;
}

/* The new image has not run: argv is what the caller gave, nobody can have changed it. */
static __always_inline void exec_pieces(struct scratch *s, struct task_state *st, __u64 id,
					__u64 args, __u64 args_n, __u64 env, __u64 env_n)
{
	struct wire_chunk *chunk = rec_begin(s, struct wire_chunk);

	header(&chunk->h, st, WIRE_CHUNK);
	chunk->exec_id = id;
	if (env_n > ENV_INLINE) {
		chunk->what = WIRE_CHUNK_ENV;
		send_pieces(s, env, 0, env_n > WIRE_ENV_MAX ? WIRE_ENV_MAX : env_n);
		s->pieces.fault = 0;
	}
	chunk->what = WIRE_CHUNK_ARGS;
	if (args_n > WIRE_ARGS_SENT) {
		send_pieces(s, args, ARGS_INLINE, ARGS_HEAD);
		if (!s->pieces.fault)
			send_pieces(s, args, args_n - WIRE_ARGS_TAIL, args_n);
	} else if (args_n > ARGS_INLINE) {
		send_pieces(s, args, ARGS_INLINE, args_n);
	}
}

static __always_inline void send_exec(struct scratch *s, struct task_struct *p,
				      struct task_state *st, struct linux_binprm *bprm)
{
	struct counters *c = counters_get();
	struct wire_exec *r;
	struct mm_struct *mm;
	__u64 args, env, total, env_total, id = 0;

	if (c)
		id = (__u64)bpf_get_smp_processor_id() << 48 |
		     (__sync_fetch_and_add(&cpu_counters(c)->exec_id, 1) + 1);
	mm = BPF_CORE_READ(p, mm);
	args = BPF_CORE_READ(mm, arg_start);
	total = BPF_CORE_READ(mm, arg_end) - args;
	if (total > 0xffffffff)
		total = 0xffffffff;
	env = BPF_CORE_READ(mm, env_start);
	env_total = BPF_CORE_READ(mm, env_end) - env;
	if (env_total > 0xffffffff)
		env_total = 0xffffffff;
	s->pieces.fault = 0;
	if (total > ARGS_INLINE || env_total > ENV_INLINE)
		exec_pieces(s, st, id, args, total, env, env_total);

	r = rec_begin(s, struct wire_exec);
	header(&r->h, st, WIRE_EXEC);
	r->exec_id = id;
	r->args_total = total;
	r->argc = bprm->argc;
	r->env_total = env_total;
	r->stdin_type = stdin_type(p);
	exec_creds(r, p);
	exec_ancestors(r, st);
	exec_tty(s, r, p);
	exec_file(s, r, st, bprm);
	r->cwd = rec_path(s, BPF_CORE_READ(p, fs, pwd.dentry), BPF_CORE_READ(p, fs, pwd.mnt));
	exec_args(s, r, args);
	exec_env(s, r, env);
	emit_scratch(s, WIRE_RING_URGENT);
	/* A program without a file is an escape signal too, so that it can be killed before its first
	 * instruction. */
	if (r->memfd)
		escape_now(st, WIRE_ESCAPE_MEMFD_EXEC, 0, 0, r->ino);
}

/* After the new image is in place, before its first instruction. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *p, pid_t old_pid, struct linux_binprm *bprm)
{
	struct task_state *st = task_state(p);
	struct sandbox_cfg *cfg;
	struct scratch *s;

	if (!st || st->role == ROLE_RUNTIME)
		return 0;
	if (st->role == ROLE_PRESTART) {
		cfg = bpf_map_lookup_elem(&sandboxes, &st->cgid);
		if (cfg && cfg->flags & SANDBOX_F_HELD) {
			if (st->part > GVISOR_CLI && cfg->armed)
				escape_now(st, WIRE_ESCAPE_RUNTIME_EXEC, 0, 0, 0);
			else
				gvisor_learn(p, st);
			return 0;
		}
		st->role = ROLE_PAYLOAD;
		if (cfg)
			cfg->armed = 1;
	}
	st->flags &= ~TASK_SAW_FOREIGN;
	/* Another thread than the leader takes the leader's place, and what was noted there is gone with it. */
	if (old_pid != p->pid)
		st->flags |= TASK_WRITES;
	s = scratch_get();
	if (!s) {
		no_scratch(st, WIRE_EXEC);
		return 0;
	}
	if (writes_any(p, st)) /* what O_CLOEXEC closed */
		writes_sweep(s, st, 0, ~0u, false);
	miss_found(s, st, (__u64)BPF_CORE_READ(bprm, filename));
	send_exec(s, p, st, bprm);
	pressure(st);
	cred_check(st, BPF_CORE_READ_BITFIELD_PROBED(bprm, secureexec));
	scratch_put(s);
	return 0;
}

/* An exec that failed. What succeeded is told above, and this returns at once. */
SYSCALL_END(sys_exec)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task_state *st = task_own_state(t);
	struct sysctx c = call_of(regs, t);
	struct scratch *s;

	if (ret >= 0 || !st || st->role != ROLE_PAYLOAD)
		return 0;
	s = scratch_get();
	if (!s) {
		no_scratch(st, WIRE_EXEC);
		return 0;
	}
	call_args(s->args, regs, t);
	exec_failed(s, st, c.nr, c.compat, ret);
	scratch_put(s);
	return 0;
}

static __always_inline void writes_end(struct task_struct *p, struct task_state *st)
{
	struct scratch *s;

	if (!writes_any(p, st))
		return;
	s = scratch_get();
	if (!s) {
		no_scratch(st, WIRE_FILE_WRITE);
		return;
	}
	writes_sweep(s, st, 0, ~0u, true);
	scratch_put(s);
}

/* Every thread's end; the record is for the last one of a process. Two threads that end together
 * can both see nobody left, so the leader's state remembers that it was told. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *p)
{
	struct task_state *st = task_state(p), *of;
	struct wire_exit r = {};
	struct task_struct *leader;
	struct signal_struct *sig;

	if (!st ||
	    (st->role != ROLE_PAYLOAD && st->part != GVISOR_GOFER && st->part != GVISOR_SENTRY))
		return 0;
	sig = BPF_CORE_READ(p, signal);
	if (BPF_CORE_READ(sig, live.counter) != 0)
		return 0;
	leader = p->group_leader;
	of = bpf_task_storage_get(&tasks, leader, 0, 0);
	if (of && __sync_fetch_and_or(&of->flags, TASK_EXIT_TOLD) & TASK_EXIT_TOLD)
		return 0;
	miss_end(st);
	writes_end(p, st);
	program_end(p->tgid);
	header(&r.h, st, WIRE_EXIT);
	r.h.flags = gvisor_flags(st);
	if (BPF_CORE_READ(sig, flags) & SIGNAL_GROUP_EXIT)
		r.status = BPF_CORE_READ(sig, group_exit_code);
	else
		r.status = BPF_CORE_READ(leader, exit_code);
	r.utime_ns = BPF_CORE_READ(sig, utime) + p->utime;
	r.stime_ns = BPF_CORE_READ(sig, stime) + p->stime;
	emit(&r, sizeof(r), WIRE_RING_URGENT);
	/* How a filter that kills shows: the call itself leaves no other trace. */
	if ((r.status & 0x7f) == SIGSYS)
		escape_now(st, WIRE_ESCAPE_SECCOMP, 0, 0, 0);
	return 0;
}
