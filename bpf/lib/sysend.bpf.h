/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* The end of a system call is reached in several ways, depending on what the kernel offers; a handler is
 * written once and made into one program for each (a program's type and prototype are part of it, and
 * tail calls stay within one type). User space loads the ones that it uses (capture/hooks.c).
 *
 *	SYSCALL_END(sys_thing) { ...regs, ret... return 0; }
 *
 * name    tp_btf/sys_exit: each call of the host ends there. Portable.
 * name_k  kretprobe.multi: one link on the entry points in abi/calls.def.h, nothing else is touched
 * name_f  fexit on the dispatcher (x64_sys_call): for kernels that cannot do the former
 * name_s  fexit/__secure_computing: calls that a seccomp filter refused, which come to none of the two */
#ifndef WARDER_BPF_SYSEND_H
#define WARDER_BPF_SYSEND_H

#include "bpf/lib/calls.bpf.h"

#define TASK_REGS ((struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf()))

/* ctx and table (where a handler may hand over to another one) are there too. */
#define SYSCALL_END(name)                                                                     \
	static __always_inline int name##_body(void *ctx, struct pt_regs *regs, long ret,     \
					       void *table);                                  \
	SEC("tp_btf/sys_exit")                                                                \
	int name(__u64 *ctx)                                                                  \
	{                                                                                     \
		return name##_body(ctx, (struct pt_regs *)ctx[0], (long)ctx[1], &handlers);   \
	}                                                                                     \
	SEC("kretprobe.multi")                                                                \
	int name##_k(struct pt_regs *ctx)                                                     \
	{                                                                                     \
		return name##_body(ctx, TASK_REGS, PT_REGS_RC(ctx), &handlers_k);             \
	}                                                                                     \
	SEC("fexit/x64_sys_call")                                                             \
	int name##_f(__u64 *ctx)                                                              \
	{                                                                                     \
		return name##_body(ctx, (struct pt_regs *)ctx[0], (long)ctx[2], &handlers_f); \
	}                                                                                     \
	SEC("fexit/__secure_computing")                                                       \
	int name##_s(__u64 *ctx)                                                              \
	{                                                                                     \
		struct pt_regs *regs = TASK_REGS;                                             \
                                                                                              \
		return name##_body(ctx, regs, (long)regs->ax, &handlers_s);                   \
	}                                                                                     \
	static __always_inline int name##_body(void *ctx, struct pt_regs *regs, long ret,     \
					       void *table)

#endif
