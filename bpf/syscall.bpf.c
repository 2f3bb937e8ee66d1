/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* The one system call hook of the portable tier: decides in a few ns whether a call is ours, then
 * hands over to the family's program.
 * Why sys_exit: registers still hold the arguments, the result is known, the pages of strings are
 * resident, and calls that seccomp denied show here and nowhere else. One hook, about 21 ns on each
 * system call of the host. Misses: calls made by io_uring. */
#include "bpf/lib/calls.bpf.h"
#include "bpf/lib/enforce.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs *regs, long ret)
{
	struct task_struct *t = bpf_get_current_task_btf();
	__u64 nr = regs->orig_ax;
	struct task_state *st;
	__u32 slot;

	if (enforce_mode == ENFORCE_MODE_SENTENCE && enforce_sentence())
		return 0;
	if (t->thread_info.status & TS_COMPAT || is_x32(nr)) {
		slot = SLOT_FOREIGN;
	} else {
		if (nr >= CALLS_MAX)
			return 0;
		slot = calls[nr].slot;
		if (!slot)
			return 0;
	}
	st = task_state(t);
	if (!st || st->role == ROLE_PRESTART)
		return 0;
	bpf_tail_call(ctx, &handlers, slot);
	return 0;
}
