/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* The host's side of a gVisor sandbox: what its processes never do once the guest runs is the sign of an escape. Their
 * parts are learned at their execs (lib/gvisor.bpf.h), what each may do is data (userspace/capture/gvisor_parts.c).
 * Loaded for such sandboxes only: a tracepoint on each system call of the host costs all of it 20 ns. */
#include "bpf/lib/gvisor.bpf.h"
#include "bpf/lib/object.bpf.h"
#include "bpf/lib/path.bpf.h"
#include "bpf/lib/sysend.bpf.h"

#define AT_FDCWD_   (-100)
#define O_NOFOLLOW_ 0x20000
#define O_PATH_	    0x200000
#define NAME_LOOK   64

const volatile __u64 gvisor_baseline[GVISOR_PARTS][GVISOR_WORDS] = {};

static __always_inline bool in_baseline(__u32 part, __u32 nr)
{
	if (nr >= GVISOR_CALLS)
		return false;
	return gvisor_baseline[part & (GVISOR_PARTS - 1)][(nr >> 6) & (GVISOR_WORDS - 1)] >>
		       (nr & 63) &
	       1;
}

/* What a call that is none of a part's own is a sign of. */
static __always_inline __u32 call_type(__u32 nr)
{
	switch (nr) {
	case 59:
	case 322:
		return WIRE_ESCAPE_RUNTIME_EXEC;
	case 41:
	case 42:
	case 44:
	case 46:
	case 49:
	case 50:
	case 53:
		return WIRE_ESCAPE_RUNTIME_NET;
	}
	return WIRE_ESCAPE_RUNTIME_CALL;
}

GLOBAL int gvisor_tell(struct scratch *s, struct task_state *st, __u32 type)
{
	struct wire_escape *r;

	if (!s || !st)
		return 0;
	r = rec_begin(s, struct wire_escape);
	header(&r->h, st, WIRE_ESCAPE);
	r->h.nr = s->call.nr;
	r->h.ret = s->call.ret;
	r->h.flags = gvisor_flags(st);
	r->type = type;
	__builtin_memcpy(r->args, s->args, sizeof(r->args));
	if (type == WIRE_ESCAPE_RUNTIME_PATH && s->args[1])
		r->detail = rec_user_str(s, s->args[1]);
	emit_scratch(s, WIRE_RING_URGENT);
	return 0;
}

static __always_inline void tell_call(struct task_state *st, struct pt_regs *regs, __u32 nr,
				      long ret, __u32 type)
{
	struct scratch *s;

	if (st->told >= GVISOR_TOLD_MAX) /* one is enough to be killed for */
		return;
	st->told++;
	s = scratch_get();
	if (!s) {
		no_scratch(st, WIRE_ESCAPE);
		return;
	}
	call_args(s->args, regs, bpf_get_current_task_btf());
	s->call.nr = nr;
	s->call.ret = ret;
	gvisor_tell(s, st, type);
	scratch_put(s);
}

/* In its normal work the gofer opens one name in a directory that it holds, and follows no link; or one of its own
 * descriptors anew, by number. */
static __always_inline bool is_odd_open(struct pt_regs *regs)
{
	char name[NAME_LOOK] = {};
	int dir = (int)regs->di, i;
	bool digits = true, dots;
	long n;

	if (dir <
	    0) /* 20240729 goes from its own root to a link's new directory, and gets no more than its place */
		return (regs->dx & (O_PATH_ | O_NOFOLLOW_)) != (O_PATH_ | O_NOFOLLOW_);
	n = bpf_probe_read_user_str(name, sizeof(name), (void *)regs->si);
	if (n <= 1)
		return n == 1; /* not readable: the call fails as well */
	dots = name[0] == '.' && name[1] == '.' && !name[2];
	for (i = 0; i < NAME_LOOK - 1; i++) {
		if (!name[i])
			break;
		if (name[i] == '/')
			return true;
		if (name[i] < '0' || name[i] > '9')
			digits = false;
	}
	return dots || (!digits && !(regs->dx & O_NOFOLLOW_));
}

/* Its ids, capabilities and namespaces stay as they were when the guest began. By value each time: what writes kernel
 * memory changes them in place. */
static __always_inline __u32 changed(struct task_struct *t, struct task_state *st)
{
	const struct cred *cred = BPF_CORE_READ(t, cred);
	__u64 ns = (__u64)BPF_CORE_READ(t, nsproxy), was_ns = st->nsproxy;
	__u64 caps = cap_bits(&cred->cap_permitted), user_ns = (__u64)BPF_CORE_READ(cred, user_ns);
	__u32 uid = BPF_CORE_READ(cred, euid.val);

	st->nsproxy = ns;
	if (!(st->flags & TASK_HELD)) { /* seen for the first time */
		st->flags |= TASK_HELD;
		st->uids[1] = uid;
		st->caps = caps;
		st->user_ns = user_ns;
		return 0;
	}
	if (uid != st->uids[1] || caps & ~st->caps || user_ns != st->user_ns) {
		st->uids[1] = uid;
		st->caps = caps;
		st->user_ns = user_ns;
		return WIRE_ESCAPE_CRED_GAIN;
	}
	return ns != was_ns ? WIRE_ESCAPE_NS_CHANGE : 0;
}

/* Each system call of the host that begins; of others than gVisor's processes it ends after one look-up. Calls of the
 * guest do not come here under ptrace (PTRACE_SYSEMU), so what a stub does here it does itself. Not seen: what the
 * part's own filter denies, which ends it by SIGSYS (on_exit tells). */
SEC("tp_btf/sys_enter")
int on_gvisor_call(__u64 *ctx)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task_state *st = task_own_state(t);
	struct pt_regs *regs;
	__u32 nr, type;

	if (!st || !st->part || !gvisor_armed(st))
		return 0;
	if (st->part == GVISOR_CLI)
		return 0;
	regs = (struct pt_regs *)ctx[0];
	nr = (__u32)ctx[1];
	type = changed(t, st);
	if (type)
		tell_call(st, regs, WIRE_NR_NONE, 0, type);
	if (!in_baseline(st->part, nr))
		tell_call(st, regs, nr, 0, call_type(nr));
	else if (st->part == GVISOR_GOFER && nr == 257 && is_odd_open(regs))
		tell_call(st, regs, nr, 0, WIRE_ESCAPE_RUNTIME_PATH);
	return 0;
}

/* A file that lies in no mount of the gofer's own namespace came by a way that was not declared. */
static __always_inline bool is_elsewhere(struct task_struct *t, long fd)
{
	struct file *f = fd_file(t, (__u32)fd);
	struct vfsmount *mnt;
	struct mount *m;

	if (!f)
		return false;
	mnt = BPF_CORE_READ(f, f_path.mnt);
	m = container_of(mnt, struct mount, mnt);
	return (__u64)BPF_CORE_READ(m, mnt_ns) != (__u64)BPF_CORE_READ(t, nsproxy, mnt_ns);
}

/* Each system call of the host that ends. */
SEC("tp_btf/sys_exit")
int on_gvisor_end(__u64 *ctx)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task_state *st = task_own_state(t);
	struct pt_regs *regs;
	long ret;

	if (!st || !st->part || !gvisor_armed(st))
		return 0;
	regs = (struct pt_regs *)ctx[0];
	ret = (long)ctx[1];
	if (st->part == GVISOR_STUB && t->ptrace)
		return 0;
	if ((st->part == GVISOR_GOFER || st->part == GVISOR_SENTRY) && ret >= 0 &&
	    (regs->orig_ax == 257 || regs->orig_ax == 437) && is_elsewhere(t, ret))
		tell_call(st, regs, (__u32)regs->orig_ax, ret, WIRE_ESCAPE_RUNTIME_FILE);
	return 0;
}
