// SPDX-License-Identifier: Apache-2.0
#include "userspace/event/names.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/socket.h>

#include "userspace/base/auto.h"
#include "userspace/event/syscall_table.h"

#define LOOKUP(table, i) ((i) < ARRAY_SIZE(table) ? (table)[i] : NULL)

const char *name_syscall(uint16_t nr)
{
	return LOOKUP(SYSCALLS, nr);
}

const char *name_errno(int err)
{
	switch (err) { /* include/linux/errno.h: user space never sees these, a probe does */
	case 512:
		return "ERESTARTSYS";
	case 513:
		return "ERESTARTNOINTR";
	case 514:
		return "ERESTARTNOHAND";
	case 515:
		return "ENOIOCTLCMD";
	case 516:
		return "ERESTART_RESTARTBLOCK";
	case 517:
		return "EPROBE_DEFER";
	case 524:
		return "ENOTSUPP";
	}
	return strerrorname_np(err);
}

#define SIGNAL_NAME(n) [SIG##n] = "SIG" #n
#define RT(n)	       [34 + (n)] = "SIGRTMIN+" #n

/* Numbers of the kernel, where SIGRTMIN is 32; glibc keeps two for itself, so that 34 is what
 * programs call SIGRTMIN. */
static const char *const SIGNALS[] = {
	SIGNAL_NAME(HUP),
	SIGNAL_NAME(INT),
	SIGNAL_NAME(QUIT),
	SIGNAL_NAME(ILL),
	SIGNAL_NAME(TRAP),
	SIGNAL_NAME(ABRT),
	SIGNAL_NAME(BUS),
	SIGNAL_NAME(FPE),
	SIGNAL_NAME(KILL),
	SIGNAL_NAME(USR1),
	SIGNAL_NAME(SEGV),
	SIGNAL_NAME(USR2),
	SIGNAL_NAME(PIPE),
	SIGNAL_NAME(ALRM),
	SIGNAL_NAME(TERM),
	SIGNAL_NAME(STKFLT),
	SIGNAL_NAME(CHLD),
	SIGNAL_NAME(CONT),
	SIGNAL_NAME(STOP),
	SIGNAL_NAME(TSTP),
	SIGNAL_NAME(TTIN),
	SIGNAL_NAME(TTOU),
	SIGNAL_NAME(URG),
	SIGNAL_NAME(XCPU),
	SIGNAL_NAME(XFSZ),
	SIGNAL_NAME(VTALRM),
	SIGNAL_NAME(PROF),
	SIGNAL_NAME(WINCH),
	SIGNAL_NAME(IO),
	SIGNAL_NAME(PWR),
	SIGNAL_NAME(SYS),
	[32] = "SIG32",
	[33] = "SIG33",
	[34] = "SIGRTMIN",
	RT(1),
	RT(2),
	RT(3),
	RT(4),
	RT(5),
	RT(6),
	RT(7),
	RT(8),
	RT(9),
	RT(10),
	RT(11),
	RT(12),
	RT(13),
	RT(14),
	RT(15),
	RT(16),
	RT(17),
	RT(18),
	RT(19),
	RT(20),
	RT(21),
	RT(22),
	RT(23),
	RT(24),
	RT(25),
	RT(26),
	RT(27),
	RT(28),
	RT(29),
	[64] = "SIGRTMAX",
};

const char *name_signal(uint32_t sig)
{
	return LOOKUP(SIGNALS, sig);
}

static const char *const FAMILIES[] = {
	[AF_UNSPEC] = "unspec",
	[AF_UNIX] = "unix",
	[AF_INET] = "inet",
	[AF_AX25] = "ax25",
	[AF_IPX] = "ipx",
	[AF_APPLETALK] = "appletalk",
	[AF_NETROM] = "netrom",
	[AF_BRIDGE] = "bridge",
	[AF_ATMPVC] = "atmpvc",
	[AF_X25] = "x25",
	[AF_INET6] = "inet6",
	[AF_ROSE] = "rose",
	[AF_KEY] = "key",
	[AF_NETLINK] = "netlink",
	[AF_PACKET] = "packet",
	[AF_ECONET] = "econet",
	[AF_ATMSVC] = "atmsvc",
	[AF_RDS] = "rds",
	[AF_IRDA] = "irda",
	[AF_PPPOX] = "pppox",
	[AF_WANPIPE] = "wanpipe",
	[AF_LLC] = "llc",
	[AF_IB] = "ib",
	[AF_MPLS] = "mpls",
	[AF_CAN] = "can",
	[AF_TIPC] = "tipc",
	[AF_BLUETOOTH] = "bluetooth",
	[AF_IUCV] = "iucv",
	[AF_RXRPC] = "rxrpc",
	[AF_ISDN] = "isdn",
	[AF_PHONET] = "phonet",
	[AF_IEEE802154] = "ieee802154",
	[AF_CAIF] = "caif",
	[AF_ALG] = "alg",
	[AF_NFC] = "nfc",
	[AF_VSOCK] = "vsock",
	[AF_KCM] = "kcm",
	[AF_QIPCRTR] = "qipcrtr",
	[AF_SMC] = "smc",
	[AF_XDP] = "xdp",
	[45] = "mctp",
};

const char *name_family(uint32_t family)
{
	return LOOKUP(FAMILIES, family);
}

const char *name_ptrace(uint64_t request)
{
	static const char *const low[] = {
		[0] = "PTRACE_TRACEME",	   [1] = "PTRACE_PEEKTEXT",   [2] = "PTRACE_PEEKDATA",
		[3] = "PTRACE_PEEKUSER",   [4] = "PTRACE_POKETEXT",   [5] = "PTRACE_POKEDATA",
		[6] = "PTRACE_POKEUSER",   [7] = "PTRACE_CONT",	      [8] = "PTRACE_KILL",
		[9] = "PTRACE_SINGLESTEP", [12] = "PTRACE_GETREGS",   [13] = "PTRACE_SETREGS",
		[14] = "PTRACE_GETFPREGS", [15] = "PTRACE_SETFPREGS", [16] = "PTRACE_ATTACH",
		[17] = "PTRACE_DETACH",	   [24] = "PTRACE_SYSCALL",
	};
	static const char *const high[] = {
		/* from 0x4200 */
		"PTRACE_SETOPTIONS",
		"PTRACE_GETEVENTMSG",
		"PTRACE_GETSIGINFO",
		"PTRACE_SETSIGINFO",
		"PTRACE_GETREGSET",
		"PTRACE_SETREGSET",
		"PTRACE_SEIZE",
		"PTRACE_INTERRUPT",
		"PTRACE_LISTEN",
		"PTRACE_PEEKSIGINFO",
		"PTRACE_GETSIGMASK",
		"PTRACE_SETSIGMASK",
		"PTRACE_SECCOMP_GET_FILTER",
		"PTRACE_SECCOMP_GET_METADATA",
		"PTRACE_GET_SYSCALL_INFO",
		"PTRACE_GET_RSEQ_CONFIGURATION",
	};

	return request >= 0x4200 ? LOOKUP(high, request - 0x4200) : LOOKUP(low, request);
}

#define BPF_NAME(c) [c] = #c

const char *name_bpf_cmd(uint64_t cmd)
{
	static const char *const names[] = {
		BPF_NAME(BPF_MAP_CREATE),	 BPF_NAME(BPF_MAP_LOOKUP_ELEM),
		BPF_NAME(BPF_MAP_UPDATE_ELEM),	 BPF_NAME(BPF_MAP_DELETE_ELEM),
		BPF_NAME(BPF_MAP_GET_NEXT_KEY),	 BPF_NAME(BPF_PROG_LOAD),
		BPF_NAME(BPF_OBJ_PIN),		 BPF_NAME(BPF_OBJ_GET),
		BPF_NAME(BPF_PROG_ATTACH),	 BPF_NAME(BPF_PROG_DETACH),
		BPF_NAME(BPF_PROG_TEST_RUN),	 BPF_NAME(BPF_PROG_GET_NEXT_ID),
		BPF_NAME(BPF_MAP_GET_NEXT_ID),	 BPF_NAME(BPF_PROG_GET_FD_BY_ID),
		BPF_NAME(BPF_MAP_GET_FD_BY_ID),	 BPF_NAME(BPF_OBJ_GET_INFO_BY_FD),
		BPF_NAME(BPF_PROG_QUERY),	 BPF_NAME(BPF_RAW_TRACEPOINT_OPEN),
		BPF_NAME(BPF_BTF_LOAD),		 BPF_NAME(BPF_BTF_GET_FD_BY_ID),
		BPF_NAME(BPF_TASK_FD_QUERY),	 BPF_NAME(BPF_MAP_LOOKUP_AND_DELETE_ELEM),
		BPF_NAME(BPF_MAP_FREEZE),	 BPF_NAME(BPF_BTF_GET_NEXT_ID),
		BPF_NAME(BPF_MAP_LOOKUP_BATCH),	 BPF_NAME(BPF_MAP_LOOKUP_AND_DELETE_BATCH),
		BPF_NAME(BPF_MAP_UPDATE_BATCH),	 BPF_NAME(BPF_MAP_DELETE_BATCH),
		BPF_NAME(BPF_LINK_CREATE),	 BPF_NAME(BPF_LINK_UPDATE),
		BPF_NAME(BPF_LINK_GET_FD_BY_ID), BPF_NAME(BPF_LINK_GET_NEXT_ID),
		BPF_NAME(BPF_ENABLE_STATS),	 BPF_NAME(BPF_ITER_CREATE),
		BPF_NAME(BPF_LINK_DETACH),	 BPF_NAME(BPF_PROG_BIND_MAP),
		[36] = "BPF_TOKEN_CREATE",
	};

	return LOOKUP(names, cmd);
}

#define KEYCTL_NAME(c) [KEYCTL_##c] = "KEYCTL_" #c

const char *name_keyctl(uint64_t op)
{
	static const char *const names[] = {
		KEYCTL_NAME(GET_KEYRING_ID),
		KEYCTL_NAME(JOIN_SESSION_KEYRING),
		KEYCTL_NAME(UPDATE),
		KEYCTL_NAME(REVOKE),
		KEYCTL_NAME(CHOWN),
		KEYCTL_NAME(SETPERM),
		KEYCTL_NAME(DESCRIBE),
		KEYCTL_NAME(CLEAR),
		KEYCTL_NAME(LINK),
		KEYCTL_NAME(UNLINK),
		KEYCTL_NAME(SEARCH),
		KEYCTL_NAME(READ),
		KEYCTL_NAME(INSTANTIATE),
		KEYCTL_NAME(NEGATE),
		KEYCTL_NAME(SET_REQKEY_KEYRING),
		KEYCTL_NAME(SET_TIMEOUT),
		KEYCTL_NAME(ASSUME_AUTHORITY),
		KEYCTL_NAME(GET_SECURITY),
		KEYCTL_NAME(SESSION_TO_PARENT),
		KEYCTL_NAME(REJECT),
		KEYCTL_NAME(INSTANTIATE_IOV),
		KEYCTL_NAME(INVALIDATE),
		KEYCTL_NAME(GET_PERSISTENT),
	};

	return LOOKUP(names, op);
}

#define FLAG(f)       \
	{             \
		f, #f \
	}

const struct flag_name clone_flag_names[] = {
	FLAG(CLONE_NEWNS),     FLAG(CLONE_NEWUSER),	  FLAG(CLONE_NEWPID),
	FLAG(CLONE_NEWNET),    FLAG(CLONE_NEWIPC),	  FLAG(CLONE_NEWUTS),
	FLAG(CLONE_NEWCGROUP), { 0x80, "CLONE_NEWTIME" }, { 0 },
};

const struct flag_name mount_flag_names[] = {
	FLAG(MS_RDONLY),      FLAG(MS_NOSUID),
	FLAG(MS_NODEV),	      FLAG(MS_NOEXEC),
	FLAG(MS_SYNCHRONOUS), FLAG(MS_REMOUNT),
	FLAG(MS_MANDLOCK),    FLAG(MS_DIRSYNC),
	FLAG(MS_NOATIME),     FLAG(MS_NODIRATIME),
	FLAG(MS_BIND),	      FLAG(MS_MOVE),
	FLAG(MS_REC),	      FLAG(MS_SILENT),
	FLAG(MS_UNBINDABLE),  FLAG(MS_PRIVATE),
	FLAG(MS_SLAVE),	      FLAG(MS_SHARED),
	FLAG(MS_RELATIME),    FLAG(MS_STRICTATIME),
	FLAG(MS_LAZYTIME),    { 0 },
};

/* A flag that contains another stands before it. */
const struct flag_name open_flag_names[] = {
	FLAG(O_CREAT),	 FLAG(O_EXCL),	   FLAG(O_NOCTTY),    FLAG(O_TRUNC),
	FLAG(O_APPEND),	 FLAG(O_NONBLOCK), FLAG(O_SYNC),      FLAG(O_DSYNC),
	FLAG(O_DIRECT),	 FLAG(O_TMPFILE),  FLAG(O_DIRECTORY), FLAG(O_NOFOLLOW),
	FLAG(O_NOATIME), FLAG(O_CLOEXEC),  FLAG(O_PATH),      { 0 },
};

const struct flag_name personality_flag_names[] = {
	FLAG(ADDR_NO_RANDOMIZE), FLAG(MMAP_PAGE_ZERO),	 FLAG(ADDR_COMPAT_LAYOUT),
	FLAG(READ_IMPLIES_EXEC), FLAG(ADDR_LIMIT_32BIT), FLAG(SHORT_INODE),
	FLAG(WHOLE_SECONDS),	 FLAG(STICKY_TIMEOUTS),	 FLAG(ADDR_LIMIT_3GB),
	FLAG(UNAME26),		 FLAG(FDPIC_FUNCPTRS),	 { 0 },
};

struct str flags_text(struct arena *a, const struct flag_name *names, uint64_t flags)
{
	char text[512];
	size_t n = 0;

	for (; names->mask; names++) {
		if ((flags & names->mask) != names->mask)
			continue;
		flags &= ~names->mask;
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", n ? "|" : "",
				      names->name);
		if (n + 32 > sizeof(text))
			break;
	}
	if (flags || !n)
		n += (size_t)snprintf(text + n, sizeof(text) - n, n ? "|%#llx" : "%#llx",
				      (unsigned long long)flags);
	return arena_strndup(a, text, n);
}

size_t flags_list(const struct flag_name *names, uint64_t flags, struct str *ret, size_t max)
{
	size_t n = 0;

	for (; names->mask && n < max; names++) {
		if ((flags & names->mask) != names->mask)
			continue;
		flags &= ~names->mask;
		ret[n++] = str_from(names->name);
	}
	return n;
}
