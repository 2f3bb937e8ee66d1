/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* The hooks at the end of system calls: decide in a few ns whether a call is ours, then hand over to the
 * family's program. Why the end: registers still hold the arguments, the result is known, the pages of
 * strings are resident. Missed by all: calls made by io_uring. */
#define WITH_KSYMS /* first of the objects, see Makefile and lib/compat.bpf.h */
#include "bpf/lib/sysend.bpf.h"
#include "bpf/lib/escape.bpf.h"
#include "bpf/lib/limit.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile bool has_cast = false; /* set by user space: bpf_rdonly_cast is there */
const volatile __u32 wake_bytes = 64 * 1024;
const volatile __u32 ring_bytes[2];
const volatile bool shared = false;  /* many sessions, each with rings of its own */
const volatile bool has_x32 = false; /* and x32_sys_call */

/* Seen by user space: which hook was reached while `armed` was set. A hook can load and attach and never
 * fire. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct hook_seen);
} seen SEC(".maps");

static __always_inline void see(__u32 bit)
{
	__u32 key = 0;
	struct hook_seen *h = bpf_map_lookup_elem(&seen, &key);

	if (h && h->armed)
		h->hooks |= 1u << bit;
}

static __always_inline int dispatch(void *ctx, struct pt_regs *regs, long ret, void *table)
{
	struct task_struct *t = bpf_get_current_task_btf();
	__u64 nr = regs->orig_ax;
	struct task_state *st;
	__u32 slot, pending = *(volatile __u32 *)&alarm;

	if (enforce_mode == ENFORCE_MODE_SENTENCE && enforce_sentence())
		return 0;
	if (t->thread_info.status & TS_COMPAT || is_x32(nr)) {
		slot = SLOT_FOREIGN;
	} else {
		slot = nr < CALLS_MAX ? calls[nr].slot : SLOT_NONE;
		if (ret < 0 && limit_maybe(nr, ret))
			slot = SLOT_LIMIT;
		if (!slot && !pending)
			return 0;
	}
	st = task_state(t);
	if (!st || st->role == ROLE_PRESTART)
		return 0;
	/* What it did all the same is told. */
	if (pending && is_doomed(st) && bpf_send_signal(9))
		count_fail(FAIL_SIGNAL);
	bpf_tail_call(ctx, table, slot);
	return 0;
}

/* Portable tier: one hook, about 21 ns on each system call of the host. Calls that seccomp denied show
 * here too. */
SEC("tp_btf/sys_exit")
int on_sys_exit(__u64 *ctx)
{
	return dispatch(ctx, (struct pt_regs *)ctx[0], (long)ctx[1], &handlers);
}

/* Full tier: on the entry points of the calls that we look at, and of all 32-bit ones together. Other
 * calls pay nothing. There is a limited number of return probes under way, so what can block for long
 * has a link of its own; misses are counted (capture/hooks.c). */
SEC("kretprobe.multi")
int on_call_end(struct pt_regs *ctx)
{
	struct pt_regs *regs = TASK_REGS;

	see(SEEN_CALL_END);
	/* An x32 call comes to the native entry point, and then to the end of the function that selected it. */
	if (has_x32 && is_x32(regs->orig_ax) && bpf_get_attach_cookie(ctx) != COOKIE_X32)
		return 0;
	return dispatch(ctx, regs, PT_REGS_RC(ctx), &handlers_k);
}

/* Full tier, kernels without kretprobe.multi (CONFIG_FPROBE): on the functions that select the call by its
 * number, so each call of the host pays for it, though less than for a tracepoint. A hook on each entry
 * point would be free for others, but takes 0.1 s to detach, 90 times. */
SEC("fexit/x64_sys_call")
int on_x64_call(__u64 *ctx)
{
	see(SEEN_X64_CALL);
	return dispatch(ctx, (struct pt_regs *)ctx[0], (long)ctx[2], &handlers_f);
}

SEC("fexit/ia32_sys_call")
int on_ia32_call(__u64 *ctx)
{
	see(SEEN_IA32_CALL);
	return dispatch(ctx, (struct pt_regs *)ctx[0], (long)ctx[2], &handlers_f);
}

/* Where the kernel has x32 calls at all. */
SEC("fexit/x32_sys_call")
int on_x32_call(__u64 *ctx)
{
	return dispatch(ctx, (struct pt_regs *)ctx[0], (long)ctx[2], &handlers_f);
}

/* What a seccomp filter refused never gets to its entry point. Only tasks with a filter come here; the
 * result has been put into the registers by then. */
SEC("fexit/__secure_computing")
int on_seccomp(__u64 *ctx)
{
	__u64 r = 0;

	see(SEEN_SECCOMP);
	if (bpf_get_func_ret(ctx, &r) || (int)r != -1)
		return 0;
	return dispatch(ctx, TASK_REGS, 0, &handlers_s);
}

/* Full tier: a child that was doomed by how it was made is to die before it runs, and its first return to
 * user space is the end of no call that we hook. */
SEC("fentry/schedule_tail")
int on_first_run(__u64 *ctx)
{
	struct task_state *st = task_own_state(bpf_get_current_task_btf());

	if (st && st->flags & TASK_KILL_PENDING && bpf_send_signal(9))
		count_fail(FAIL_SIGNAL);
	return 0;
}
