/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* The system calls we look at, x86_64: one row each. Everything else leaves on_sys_exit after one
 * table look-up. */
#ifndef WARDER_BPF_CALLS_H
#define WARDER_BPF_CALLS_H

#include "bpf/lib/maps.bpf.h"

#define CALLS_MAX  512
#define is_x32(nr) (((nr) >> 30) == 1) /* not -1, as after rt_sigreturn */
#define TS_COMPAT  0x0002	       /* thread_info.status: in a 32-bit call */

enum slot { SLOT_NONE, SLOT_OPEN, SLOT_FILE, SLOT_NET, SLOT_ESCAPE, SLOT_FOREIGN };

struct call {
	__u8 slot;
	__u8 what; /* FILE: wire_kind; ESCAPE: escape type */
	__u8 op;   /* FILE_ATTR, FILE_LINK: wire_file.op */
	/* Argument numbers, -1 = none. FILE: descriptor that `path` is relative to (alone: the file
	 * itself). ESCAPE: path and path2 are the strings worth telling. */
	__s8 dir, path, dir2, path2;
	__u8 pad;
};

#define F(kind, op, dir, path, dir2, path2)                                \
	{                                                                  \
		SLOT_FILE, WIRE_FILE_##kind, op, dir, path, dir2, path2, 0 \
	}
#define O(dir, path)                                               \
	{                                                          \
		SLOT_OPEN, WIRE_FILE_OPEN, 0, dir, path, -1, -1, 0 \
	}
#define E(type)                                                       \
	{                                                             \
		SLOT_ESCAPE, WIRE_ESCAPE_##type, 0, -1, -1, -1, -1, 0 \
	}
#define E1(type, path)                                                  \
	{                                                               \
		SLOT_ESCAPE, WIRE_ESCAPE_##type, 0, -1, path, -1, -1, 0 \
	}
#define E2(type, path, path2)                                              \
	{                                                                  \
		SLOT_ESCAPE, WIRE_ESCAPE_##type, 0, -1, path, -1, path2, 0 \
	}

/* clang-format off */
static const struct call calls[CALLS_MAX] = {
	/* open for writing */
	[2] = O(-1, 0) /* open */, [85] = O(-1, 0) /* creat */, [257] = O(0, 1) /* openat */,
	[437] = O(0, 1) /* openat2 */,
	/* names */
	[82] = F(RENAME, 0, -1, 0, -1, 1), [264] = F(RENAME, 0, 0, 1, 2, 3) /* renameat */,
	[316] = F(RENAME, 0, 0, 1, 2, 3) /* renameat2 */,
	[87] = F(DELETE, 0, -1, 0, -1, -1) /* unlink */, [84] = F(DELETE, 0, -1, 0, -1, -1) /* rmdir */,
	[263] = F(DELETE, 0, 0, 1, -1, -1) /* unlinkat */,
	[83] = F(MKDIR, 0, -1, 0, -1, -1), [258] = F(MKDIR, 0, 0, 1, -1, -1) /* mkdirat */,
	/* link: path is the new name, path2 what it leads to */
	[86] = F(LINK, 1, -1, 1, -1, 0), [265] = F(LINK, 1, 2, 3, 0, 1) /* linkat */,
	[88] = F(LINK, 2, -1, 1, -1, 0) /* symlink */, [266] = F(LINK, 2, 1, 2, -1, 0) /* symlinkat */,
	/* attributes: 1 chmod 2 chown 3 setxattr 4 truncate */
	[90] = F(ATTR, 1, -1, 0, -1, -1), [91] = F(ATTR, 1, 0, -1, -1, -1) /* fchmod */,
	[268] = F(ATTR, 1, 0, 1, -1, -1) /* fchmodat */, [452] = F(ATTR, 1, 0, 1, -1, -1) /* fchmodat2 */,
	[92] = F(ATTR, 2, -1, 0, -1, -1), [94] = F(ATTR, 2, -1, 0, -1, -1) /* lchown */,
	[93] = F(ATTR, 2, 0, -1, -1, -1) /* fchown */, [260] = F(ATTR, 2, 0, 1, -1, -1) /* fchownat */,
	[188] = F(ATTR, 3, -1, 0, -1, 1), [189] = F(ATTR, 3, -1, 0, -1, 1) /* lsetxattr */,
	[190] = F(ATTR, 3, 0, -1, -1, 1) /* fsetxattr */,
	[76] = F(ATTR, 4, -1, 0, -1, -1) /* truncate */, [77] = F(ATTR, 4, 0, -1, -1, -1) /* ftruncate */,
	/* network */
	[42] = { SLOT_NET, WIRE_NET_CONNECT, 0, -1, -1, -1, -1, 0 },
	[50] = { SLOT_NET, WIRE_NET_LISTEN, 0, -1, -1, -1, -1, 0 },
	[43] = { SLOT_NET, WIRE_NET_ACCEPT, 0, -1, -1, -1, -1, 0 } /* accept */,
	[288] = { SLOT_NET, WIRE_NET_ACCEPT, 0, -1, -1, -1, -1, 0 } /* accept4 */,
	/* escape signals */
	[41] = E(SOCKET_FAMILY) /* socket */,
	[56] = E(CLONE_NS) /* clone */, [435] = E(CLONE_NS) /* clone3 */,
	[272] = E(UNSHARE), [308] = E(SETNS),
	[165] = E2(MOUNT, 1, 0), [166] = E1(UMOUNT, 0), [155] = E2(PIVOT_ROOT, 0, 1), [161] = E1(CHROOT, 0),
	[428] = E1(MOUNT_API, 1) /* open_tree */, [429] = E2(MOUNT_API, 1, 3) /* move_mount */,
	[430] = E1(MOUNT_API, 0) /* fsopen */, [431] = E1(MOUNT_API, 2) /* fsconfig */,
	[432] = E(MOUNT_API) /* fsmount */, [433] = E1(MOUNT_API, 1) /* fspick */,
	[442] = E1(MOUNT_API, 1) /* mount_setattr */, [467] = E1(MOUNT_API, 1) /* open_tree_attr */,
	[101] = E(PTRACE), [310] = E(PROCESS_VM) /* readv */, [311] = E(PROCESS_VM) /* writev */,
	[440] = E(PROCESS_VM) /* process_madvise */, [438] = E(PIDFD_GETFD),
	[321] = E(BPF), [298] = E(PERF_EVENT), [323] = E(USERFAULTFD), [425] = E(IO_URING) /* setup */,
	[175] = E(MODULE) /* init_module */, [313] = E(MODULE) /* finit_module */,
	[176] = E1(MODULE, 0) /* delete_module */, [246] = E(KEXEC), [320] = E(KEXEC) /* kexec_file_load */,
	[304] = E(OPEN_BY_HANDLE),
	[248] = E2(KEYCTL, 0, 1) /* add_key */, [249] = E2(KEYCTL, 0, 1) /* request_key */, [250] = E(KEYCTL),
	[169] = E(REBOOT), [167] = E1(SWAP, 0), [168] = E1(SWAP, 0), [163] = E1(ACCT, 0),
	[135] = E(PERSONALITY), [164] = E(TIME) /* settimeofday */, [227] = E(TIME) /* clock_settime */,
	[159] = E(TIME) /* adjtimex */, [305] = E(TIME) /* clock_adjtime */, [300] = E(FANOTIFY),
	[133] = E1(MKNOD, 0), [259] = E1(MKNOD, 1) /* mknodat */, [103] = E(SYSLOG),
	[179] = E1(QUOTA, 1), [443] = E(QUOTA) /* quotactl_fd */, [180] = E(NFS),
	[172] = E(IOPORT) /* iopl */, [173] = E(IOPORT) /* ioperm */,
};

/* 32-bit numbers (int 0x80, ia32) of the same calls; their arguments have the same order. */
static const __u16 calls32[CALLS_MAX] = {
	[5] = 2, [8] = 85, [295] = 257, [437] = 437, [38] = 82, [302] = 264, [353] = 316, [10] = 87,
	[40] = 84, [301] = 263, [39] = 83, [296] = 258, [9] = 86, [303] = 265, [83] = 88, [304] = 266,
	[15] = 90, [94] = 91, [306] = 268, [452] = 452, [182] = 92, [212] = 92, [16] = 94, [198] = 94,
	[95] = 93, [207] = 93, [298] = 260, [226] = 188, [227] = 189, [228] = 190, [92] = 76, [193] = 76,
	[93] = 77, [194] = 77, [362] = 42, [363] = 50, [364] = 288, [359] = 41, [120] = 56, [435] = 435, [310] = 272, [346] = 308,
	[21] = 165, [52] = 166, [217] = 155, [61] = 161, [428] = 428, [429] = 429, [430] = 430,
	[431] = 431, [432] = 432, [433] = 433, [442] = 442, [467] = 467, [26] = 101, [347] = 310,
	[348] = 311, [440] = 440, [438] = 438, [357] = 321, [336] = 298, [374] = 323, [425] = 425,
	[128] = 175, [350] = 313, [129] = 176, [283] = 246, [342] = 304, [286] = 248, [287] = 249,
	[288] = 250, [88] = 169, [87] = 167, [115] = 168, [51] = 163, [136] = 135, [79] = 164,
	[264] = 227, [404] = 227, [124] = 159, [343] = 305, [405] = 305, [338] = 300, [14] = 133,
	[297] = 259, [103] = 103, [131] = 179, [443] = 443, [169] = 180, [110] = 172, [101] = 173,
};
/* clang-format on */

#undef F
#undef O
#undef E
#undef E1
#undef E2

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

/* Of the failed attempts only refusals are worth a record: what does not exist is noise. */
static __always_inline bool is_told(long ret)
{
	return ret >= 0 || ret == -1 /* EPERM */ || ret == -13 /* EACCES */ ||
	       ret == -30 /* EROFS */;
}

#endif
