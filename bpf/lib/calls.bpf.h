/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* The system calls we look at (abi/calls.def.h), by number. Everything else leaves on_sys_exit after
 * one table look-up. */
#ifndef WARDER_BPF_CALLS_H
#define WARDER_BPF_CALLS_H

#include "bpf/abi/calls.h"
#include "bpf/lib/maps.bpf.h"

#define is_x32(nr) (((nr) >> 30) == 1) /* not -1, as after rt_sigreturn */
#define TS_COMPAT  0x0002	       /* thread_info.status: in a 32-bit call */

struct call {
	__u8 slot;
	__u8 what; /* FILE: wire_kind; ESCAPE: escape type */
	__u8 op;   /* FILE_ATTR, FILE_LINK: wire_file.op */
	/* Argument numbers, -1 = none. FILE: descriptor that `path` is relative to (alone: the file
	 * itself). ESCAPE: path and path2 are the strings worth telling. */
	__s8 dir, path, dir2, path2;
	__u8 pad;
};

static const struct call calls[CALLS_MAX] = {
#define CALL(name, nr, nr32, slot, what, op, dir, path, dir2, path2) \
	[nr] = { SLOT_##slot, WIRE_##what, op, dir, path, dir2, path2, 0 },
#define CALL64(name, nr, slot, what, op, dir, path, dir2, path2) \
	[nr] = { SLOT_##slot, WIRE_##what, op, dir, path, dir2, path2, 0 },
#include "bpf/abi/calls.def.h"
};

/* Native numbers of 32-bit ones (int 0x80, ia32). */
static const __u16 calls32[CALLS_MAX] = {
#define CALL(name, nr, nr32, ...) [nr32] = nr,
#define CALL32(name, nr32, nr)	  [nr32] = nr,
#include "bpf/abi/calls.def.h"
};

/* Native numbers of the x32 calls that have one of their own, 512 to 547 (arch/x86/entry/syscalls/syscall_64.tbl). */
#define X32_FIRST 512
#define X32_OWN	  36

static const __u16 calls_x32[X32_OWN] = {
	13,  15,  16,  19,  20,	 45,  46,  47,	59,  101, 127, 128, 129, 131, 222, 244, 246, 247,
	273, 274, 278, 279, 295, 296, 297, 299, 307, 310, 311, 54,  55,	 206, 209, 322, 327, 328,
};

struct sysctx {
	__u32 nr; /* native number */
	bool compat;
};

/* Which call is `regs` the end of? Numbers are translated to native ones; 0xffff = not in the table. */
static __always_inline struct sysctx call_of(struct pt_regs *regs, struct task_struct *t)
{
	struct sysctx c = {};
	__u64 nr = regs->orig_ax;

	if (t->thread_info.status & TS_COMPAT) {
		c.compat = true;
		nr &= 0xffffffff;
		c.nr = nr < CALLS_MAX ? calls32[nr] : 0;
		if (!c.nr)
			c.nr = 0xffff;
	} else if (is_x32(nr)) {
		c.compat = true;
		c.nr = nr & 0xffff;
		nr = c.nr - X32_FIRST;
		if (nr < X32_OWN)
			c.nr = calls_x32[nr];
	} else {
		c.nr = nr < 0xffff ? nr : 0xffff;
	}
	return c;
}

static __always_inline void call_args(__u64 *args, struct pt_regs *regs, struct task_struct *t)
{
	if (t->thread_info.status & TS_COMPAT) {
		args[0] = (__u32)regs->bx;
		args[1] = (__u32)regs->cx;
		args[2] = (__u32)regs->dx;
		args[3] = (__u32)regs->si;
		args[4] = (__u32)regs->di;
		args[5] = (__u32)regs->bp;
	} else {
		args[0] = regs->di;
		args[1] = regs->si;
		args[2] = regs->dx;
		args[3] = regs->r10;
		args[4] = regs->r8;
		args[5] = regs->r9;
	}
	args[6] = args[7] = 0;
}

/* Which call it is and with what, for functions that take the scratch buffer. */
static __always_inline void call_take(struct scratch *s, struct pt_regs *regs,
				      struct task_struct *t, struct sysctx c, long ret)
{
	call_args(s->args, regs, t);
	s->call.ret = ret;
	s->call.nr = c.nr;
	s->call.compat = c.compat;
}

/* Of the failed attempts only refusals are worth a record: what does not exist is noise. */
static __always_inline bool is_told(long ret)
{
	return ret >= 0 || ret == -1 /* EPERM */ || ret == -13 /* EACCES */ ||
	       ret == -30 /* EROFS */;
}

#endif
