/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Signals sent by programs in a sandbox. signal_generate fires at every signal of the host, also those the
 * kernel makes; only what kill, tgkill and sigqueue send counts. Not told: SIGCHLD, and what a program sends
 * to itself for its own run-time's sake (Go preempts with SIGURG, libc and Java use their own numbers). Misses
 * attempts that were refused: they generate nothing. */
#include "bpf/lib/escape.bpf.h"

#define SIGINT	2
#define SIGQUIT 3
#define SIGABRT 6
#define SIGKILL 9
#define SIGTERM 15
#define SIGCHLD 17
#define SIGSTOP 19

#define SI_USER	 0
#define SI_QUEUE (-1)
#define SI_TKILL (-6)

#define TRACE_SIGNAL_DELIVERED 0
#define TRACE_SIGNAL_IGNORED   1

static __always_inline bool sent_by_program(struct kernel_siginfo *info)
{
	int code = 1;

	/* 0 and 1 stand for the kernel itself */
	if ((unsigned long)info <= 1)
		return false;
	bpf_core_read(&code, sizeof(code), &info->si_code);
	return code == SI_USER || code == SI_TKILL || code == SI_QUEUE;
}

static __always_inline bool is_own_business(int sig)
{
	return sig != SIGINT && sig != SIGQUIT && sig != SIGABRT && sig != SIGKILL &&
	       sig != SIGTERM && sig != SIGSTOP;
}

SEC("tp_btf/signal_generate")
int BPF_PROG(on_signal, int sig, struct kernel_siginfo *info, struct task_struct *target, int group,
	     int result)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct wire_signal r = {};
	struct task_state *st;

	if (sig == SIGCHLD || (result != TRACE_SIGNAL_DELIVERED && result != TRACE_SIGNAL_IGNORED))
		return 0;
	st = task_state(t);
	if (!st || !is_watched(st) || !sent_by_program(info))
		return 0;
	if (target->tgid == t->tgid && is_own_business(sig))
		return 0;
	header(&r.h, st, WIRE_SIGNAL);
	if (st->role == ROLE_RUNTIME)
		r.h.flags = WIRE_F_RUNTIME;
	r.target_tgid = target->tgid;
	r.target_start = BPF_CORE_READ(target, group_leader, start_boottime);
	r.sig = sig;
	bpf_probe_read_kernel(r.target_comm, sizeof(r.target_comm), &target->comm);
	emit(&r, sizeof(r), WIRE_RING_BULK);
	pressure(st);
	return 0;
}
