/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Keys and values of the maps that user space fills or reads, and the knobs set before load. */
#ifndef WARDER_BPF_ABI_MAPS_H
#define WARDER_BPF_ABI_MAPS_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#define SANDBOXES_MAX 4096 /* live sandboxes one agent can watch */

/* `sandboxes`: key __u64 cgroup v2 id of the sandbox's leaf; written before its first instruction. */
struct sandbox_cfg {
	__u32 id; /* goes into wire_hdr.sandbox; never 0 */
	__u32 flags;
	__u64 kill_escape; /* bit n set: enum wire_escape_type n is killed in the kernel */
	__u32 armed; /* set by the kernel at the payload's first exec: until then set-up is quiet */
	__u32 events_off; /* EVENTS_OFF_* not wanted; 0 = all are */
	__u32 pressure;	  /* enum pressure_policy */
	__u32 doomed; /* set by the kernel: one of it is killed, so each other one is at its next call */
	__u32 left;    /* tasks that left the cgroup: cgroup.kill does not reach them */
	__u32 enforce; /* number of a set in `enforce_sets`; 0 = none */
};

/* Families of kinds (last column of WIRE_KINDS). Membership, enforcement and kills go on without. */
#define EVENTS_OFF_PROC	  0x01
#define EVENTS_OFF_FILE	  0x02
#define EVENTS_OFF_NET	  0x04
#define EVENTS_OFF_DNS	  0x08
#define EVENTS_OFF_LIMIT  0x10
#define EVENTS_OFF_ESCAPE 0x20

#define SANDBOX_F_WATCH 0x1 /* an existing cgroup: no set-up phase, armed from the start */
#define SANDBOX_F_HELD \
	0x2 /* it is set up by programs (gVisor): an exec of a child of ours arms nothing */

/* Which part of a sandbox a task is. Set at birth, never lowered. */
enum task_role {
	ROLE_RUNTIME = 1,  /* our own init: born into the cgroup from outside */
	ROLE_PRESTART = 2, /* child of init before its exec: still our code */
	ROLE_PAYLOAD = 3,
};

/* Which part of gVisor a task is, in a sandbox with SANDBOX_F_HELD. */
enum gvisor_part { GVISOR_CLI = 1, GVISOR_GOFER, GVISOR_SENTRY, GVISOR_STUB };

#define GVISOR_PARTS 8 /* a power of two */
#define GVISOR_CALLS 512
#define GVISOR_WORDS (GVISOR_CALLS / 64)

#define TASK_SAW_FOREIGN  0x1 /* foreign_abi was told */
#define TASK_KILL_PENDING 0x2 /* to be killed at its own next return to user space */
#define TASK_EXIT_TOLD	  0x4
#define TASK_LEFT	  0x8  /* cgroup_leave was told */
#define TASK_HELD	  0x20 /* a part of gVisor: what it is was noted when the guest began */
#define TASK_WRITES	  0x10 /* at a process's leader: it has descriptors in `writes` */

/* Namespaces, as a mask of their CLONE_NEW* flags in args[0] of ns_change. */
#define NS_LIST(X)            \
	X(MNT, 0x00020000)    \
	X(CGROUP, 0x02000000) \
	X(UTS, 0x04000000)    \
	X(IPC, 0x08000000)    \
	X(PID, 0x20000000)    \
	X(NET, 0x40000000)    \
	X(TIME, 0x00000080)   \
	X(USER, 0x10000000)

#define NS_ENUM(name, flag) NS_##name,
enum ns_kind { NS_LIST(NS_ENUM) NS_KINDS };

/* `tasks`: task storage. Membership: inherited at task_newtask, ended by the task's own end only. */
struct task_state {
	__u64 cgid;  /* of the sandbox's leaf: key in `sandboxes` */
	__u64 start; /* of the process; 0 = seeded from user space, not yet filled */
	__u32 sandbox;
	__u32 nspid;
	__u32 top; /* tgid of the first task of this line in the sandbox: ancestry ends there */
	__u32 role;
	__u32 flags;
	__u32 may_root; /* one of its user ids is 0 */
	__u64 at;	/* cgroup id where it was last seen; 0 = the leaf */
	__u64 cred;	/* struct cred * last looked at; 0 = none yet */
	__u64 caps;	/* permitted ones then */
	__u64 user_ns;	/* struct user_namespace * then */
	__u32 uids[3];	/* real, effective, saved then */
	__u16 part;	/* enum gvisor_part; 0 = none */
	__u16 told;	/* escapes of it that were told, as such a part */
	/* Where it is, as last looked at; 0 = not yet. */
	__u64 nsproxy;	      /* struct nsproxy * */
	__u64 root_mnt, root; /* struct vfsmount *, struct dentry * */
	__u64 root_ino;
	__u32 ns[NS_KINDS]; /* inode numbers, in the order of enum ns_kind */
};

/* cred_gain: what was gained, wire_escape.args[0]. */
#define GAIN_ROOT 0x1 /* a user id 0 */
#define GAIN_UID  0x2 /* a user id that it did not have, without the right to take it */
#define GAIN_CAPS 0x4

/* ---- losses: who may be dropped, stopped or killed when a ring fills up ---- */

enum pressure_policy {
	PRESSURE_DROP, /* the guard drops what goes beyond a sandbox's rate */
	PRESSURE_STOP, /* the producer gets SIGSTOP, and SIGCONT when the ring was drained: nothing lost */
	PRESSURE_KILL,
};

#define GUARD_KINDS 64 /* of events: all that the kernel makes */
/* What is counted by itself: kinds, then the records that are none (WIRE_CHUNK, WIRE_MIRROR). */
#define GUARD_CHUNK   GUARD_KINDS
#define GUARD_MIRROR  (GUARD_KINDS + 1)
#define GUARD_BUCKETS (GUARD_KINDS + 2)

/* What a sandbox put into a ring while that was at least half full. */
struct guard_share {
	__u64 turn; /* the ring's then (`crowds`): of another one it is nothing */
	__u64 bytes;
};

/* `guards`: by sandbox id modulo SANDBOXES_MAX. Beside it `pressed` (BPF_F_MMAPABLE: an unprivileged reader sees it, and
 * not 600 bytes for each): how often a producer was stopped or killed. */
struct guard {
	__u64 off;    /* bit per kind (ENFORCE_KIND) that is not wanted */
	__u32 policy; /* enum pressure_policy */
	__u32 pad;
	__u32 sandbox; /* whose this is now. Shared: of another one that had the place before, nothing is told */
	__s32 flows;		      /* that it has in `flows` */
	struct guard_share shares[2]; /* by enum wire_ring */
	/* Token buckets: CLOCK_BOOTTIME ns when each will be full again. */
	__u64 full_at[GUARD_BUCKETS];
};

/* Programs that many sessions share (rodata `shared`): what each has of its own, by its sandbox's id modulo
 * SANDBOXES_MAX: its place. Who comes to a place later has another id. `rings`: that times two, and enum wire_ring.
 * `own_counters`, `own_sleepers`: a map as `counters`, `sleeper`. They are there before the sandbox is, and until the
 * last who reads them has ended. */
#define shared_ring(sandbox, ring) (((sandbox) & (SANDBOXES_MAX - 1)) << 1 | ((ring)&1))

/* `crowds`: as `rings` (not shared: by enum wire_ring): turn << CROWD_TURN | sandboxes that put something into it in this turn. A turn begins
 * when the ring is half full, is called by the ring's producer position then, and ends when all that was there then
 * was read. */
#define CROWD_TURN 16
#define CROWD_MASK 0xffff

/* When a ring is this full, in eighths: */
#define GUARD_FROM   4 /* each sandbox gets no more than its rate of each kind */
#define PRESSURE_AT  6 /* producers are stopped or killed, where the policy says so */
#define RESERVE_FROM 7 /* of the urgent one: the rest is for escapes and out of memory */

/* The rate then: a flood leaves the other half of the ring to those that are quiet. */
#define GUARD_NS_PER_BYTE 8000	      /* 125 kB/s of each kind */
#define GUARD_BURST	  (160 << 10) /* one exec with 128 KiB of arguments fits */

/* Connections whose end will be told. Of each sandbox no more than FLOWS_EACH where programs are shared. */
#define FLOWS_MAX    8192
#define FLOWS_SHARED 32768
#define FLOWS_EACH   4096

/* Processes stopped for a full ring: `stopped`, key tgid, value start of the process. */
#define STOPPED_MAX 4096

/* ---- what the kernel decides by itself (bpf/lib/enforce.bpf.h, userspace/capture/enforce.h) ---- */

#define ENFORCE_SETS_MAX  64
#define ENFORCE_PATHS_MAX 16384 /* keys of all sets; a directory takes two */
#define ENFORCE_EXES_MAX  16384
#define ENFORCE_ADDRS_MAX 4096 /* of each family */
#define ENFORCE_RULES	  8    /* rules that can meet at one key */
#define ENFORCE_PATH_MAX  240  /* bytes of a path prefix */
#define ENFORCE_KINDS	  64   /* kinds of the kernel have lower ids */
#define ENFORCE_CLASSES	  32   /* programs that one set tells apart, each with entries of its own */
#define ENFORCE_ROWS_MAX  1024 /* sets and their classes */
#define ENFORCE_NAMES_MAX 4096 /* paths of programs that make a class */
#define PROGRAMS_MAX	  32768 /* processes whose program is known */

#define ENFORCE_KIND(kind) ((__u64)1 << (kind))

enum enforce_mode {
	ENFORCE_MODE_OFF,
	ENFORCE_MODE_SENTENCE, /* cgroup programs cannot send signals: at the end of the call */
	ENFORCE_MODE_SIGNAL,
};

enum enforce_verdict {
	ENFORCE_PASS, /* an exception in front of a wider entry */
	ENFORCE_DENY,
	ENFORCE_KILL, /* and denied, where that is possible */
};

struct enforce_rule {
	__u64 kinds; /* ENFORCE_KIND bits */
	__u16 id;    /* who decided: goes into wire_hdr.enforced; 0 = no rule, end of the list */
	__u16 verdict;
	__u16 port_from, port_to; /* addresses only; host order, inclusive */
};

/* The first one that covers kind and port decides. User space put more specific ones in front. */
struct enforce_rules {
	struct enforce_rule r[ENFORCE_RULES];
};

enum enforce_by {
	ENFORCE_BY_KIND,
	ENFORCE_BY_ESCAPE,
	ENFORCE_BY_PATH,
	ENFORCE_BY_EXE,
	ENFORCE_BY_ADDR,
	ENFORCE_BY_NAME, /* decides nothing: which class a program is of */
};
#define ENFORCE_BY_COUNT 5 /* that decide */

/* `enforce_sets`: key __u32 number, as in sandbox_cfg.enforce. One update replaces a set as a whole, with the classes
 * that it leads to: rows of the same map, whose numbers are never used again. */
struct enforce_set {
	__u32 keys; /* number in the keys of the other maps */
	__u32 names; /* number in the keys of `enforce_names`; 0: the same for all programs. Else this row is for those
			that are not known */
	__u16 cut_id,
		cut_verdict; /* for a path that was cut: its head, which decides, is not known */
	__u64 cut_kinds;
	__u64 kinds[ENFORCE_BY_COUNT]; /* that any entry of this sort covers */
	__u16 kind_verdict[ENFORCE_KINDS];
	__u16 kind_id[ENFORCE_KINDS];
	__u16 escape_verdict[ENFORCE_KINDS];
	__u16 escape_id[ENFORCE_KINDS];
};

/* Longest prefix: bits of keys number and path, or of keys number and address. */
struct enforce_path_key {
	__u32 prefixlen;
	__u32 keys;
	char path[ENFORCE_PATH_MAX + 8];
};

struct enforce_addr4_key {
	__u32 prefixlen;
	__u32 keys;
	__u8 addr[4];
};

struct enforce_addr6_key {
	__u32 prefixlen;
	__u32 keys;
	__u8 addr[16];
};

struct enforce_exe_key {
	__u64 ino;
	__u32 dev; /* kernel's dev_t: major << 20 | minor; 0 = of any device */
	__u32 keys;
};

/* `enforce_names`: struct enforce_path_key -> the class of programs that were run by this path. */
struct enforce_class {
	__u32 row; /* in `enforce_sets` */
	__u32 names;
};

/* `programs`: tgid -> what a process runs, by the path at its exec and bound to the file itself: another one there is
 * another program, and a link, a rename or a removal afterwards changes nothing. */
struct program {
	struct enforce_path_key key;
	__u64 ino;
	__u32 dev; /* kernel's dev_t */
	__u32 pad;
	__u64 found; /* names << 32 | row: what it was found to be, by which names */
};

/* `seen`: which hooks fired while user space looked. */
enum { SEEN_CALL_END, SEEN_X64_CALL, SEEN_IA32_CALL, SEEN_SECCOMP };

/* Cookie of kretprobe.multi on x32_sys_call; elsewhere 0. */
#define COOKIE_X32 1

struct hook_seen {
	__u32 armed; /* by user space */
	__u32 hooks; /* bits, by the hooks */
};

/* `watched`: last component of a path -> class. */
#define WATCHED_MAX	 256
#define WATCHED_NAME_MAX 48 /* NUL included */

enum watched_class {
	WATCHED_FILE = 1,     /* open is told, whatever for */
	WATCHED_WITH_DIR = 2, /* the same, in a WATCHED_DIR only */
	WATCHED_DIR = 3,
	WATCHED_SOCKET = 4, /* of a container engine */
	WATCHED_DEVICE = 5, /* below /dev: sought is told, too */
	WATCHED_PROC_MEM = 6,
	WATCHED_STEERS =
		7, /* the kernel: to be refused to write it is told, wherever the name leads */
};

struct watched_key {
	char name[WATCHED_NAME_MAX];
};

/* Hooks in front of acts on names, and the kinds that they are about (full tier). */
#define NAME_HOOKS(X)       \
	X(MKNOD, mknod)     \
	X(MKDIR, mkdir)     \
	X(UNLINK, unlink)   \
	X(RMDIR, rmdir)     \
	X(SYMLINK, symlink) \
	X(LINK, link)       \
	X(RENAME, rename)   \
	X(CHMOD, chmod)     \
	X(CHOWN, chown)     \
	X(TRUNCATE, truncate)

#define NAME_HOOK_ENUM(name, hook) NAME_HOOK_##name,
enum name_hook { NAME_HOOKS(NAME_HOOK_ENUM) NAME_HOOK_COUNT };

/* names_mode, set before load: who notes the names that acts are about. */
enum names_mode {
	NAMES_NOBODY,
	NAMES_MULTI,   /* one link on all of these hooks */
	NAMES_PREVENT, /* the programs that prevent */
};

/* What the operator wants told besides, when it is only read: entries have ids from 1 on.
 * `watchlist_paths`: struct enforce_path_key with keys 0 -> id; as the sandbox sees them.
 * `watchlist_inodes`: what was there at the start, whatever it is called -> id. */
#define WATCHLIST_MAX	     256
#define WATCHLIST_PATHS_MAX  1024
#define WATCHLIST_INODES_MAX 1024

/* Bits of watchlist_mode, set before load: what is not asked for is not even in the programs. */
#define WATCHLIST_PATHS	 0x1
#define WATCHLIST_INODES 0x2
#define WATCHLIST_BELOW	 0x4 /* inodes of directories that stand for all below them */

struct watchlist_inode {
	__u64 ino;
	__u32 dev;   /* kernel's dev_t: major << 20 | minor */
	__u32 below; /* a directory: all below it */
};

/* `made`: files that a sandbox made or wrote, by a keyed hash of inode, device and sandbox (lib/made.bpf.h). */
#define MADE_SETS 8192
#define MADE_WAYS 7
/* Shared: so many tables, each for every MADE_PARTS-th sandbox: who makes many files is forgotten itself. */
#define MADE_PARTS	 64
#define MADE_SETS_SHARED 2048 /* of each */

struct made_set {
	__u64 n;		/* marks that were put in, ever */
	__u64 marks[MADE_WAYS]; /* 0: none yet */
};

/* `metadata`: addresses of metadata services, in network order, IPv4 in the first 4 bytes. */
#define METADATA_MAX 64

struct metadata_key {
	__u64 addr[2];
};

/* `counters`: one element, BPF_F_MMAPABLE, so that a process without any privilege that inherited
 * the mapping can read it. All members only grow. */
#define COUNTER_CPUS 1024 /* CPUs beyond share rows: counters are atomic */
#define DROP_ROWS    1024 /* (sandbox, kind) pairs; when full, sandbox 0 takes it, kind by kind */
#define DROP_PROBES  8

/* A failed helper is counted by site, not swallowed. */
#define FAIL_SITES(X)                     \
	X(TASK_STORAGE, "task storage")   \
	X(SCRATCH, "scratch buffer busy") \
	X(READ_ARGS, "argv read")         \
	X(READ_PATH, "path walk")         \
	X(READ_USER, "user string read")  \
	X(STASH, "stash map full")        \
	X(SIGNAL, "send signal")          \
	X(SKB, "packet read")

#define FAIL_ENUM(name, text) FAIL_##name,
enum fail_site { FAIL_SITES(FAIL_ENUM) FAIL_SITE_COUNT };

struct cpu_counters {
	__u64 seq[2]; /* by enum wire_ring: records made, lost ones included */
	__u64 lost[2];
	__u64 exec_id;
	/* A record is on its way into a ring: CLOCK_BOOTTIME ns before which this CPU sends no more, or
	 * SINCE_UNKNOWN. 0 = none. */
	__u64 since;
	__u64 pad[2];
	__u64 fails[FAIL_SITE_COUNT];
};

#define SINCE_UNKNOWN 1

/* `sleeper`: one element, written by both sides. What the consumer wants to be woken for. */
enum sleeper_wants {
	SLEEPER_NOTHING, /* it is looking, and will look again before it sleeps */
	SLEEPER_NAP,	 /* what must be acted on, or much; it looks by itself soon */
	SLEEPER_DEEP,	 /* any record */
};

struct sleeper {
	__u32 wants;
	__u32 pad;
	__u64 woken_ns; /* CLOCK_BOOTTIME of the last wake-up */
};

struct drop_row {
	__u64 key; /* drop_key(); 0 = free */
	__u64 count;
	__u64 first_ts; /* CLOCK_BOOTTIME ns */
	__u64 last_ts;
};

#define DROP_FULL 0x10000 /* no room */
#define DROP_RATE 0x20000 /* beyond the sandbox's rate while the ring was more than half full */

#define drop_key(sandbox, why_kind) ((__u64)(sandbox) << 32 | (why_kind))

struct counters {
	struct cpu_counters cpu[COUNTER_CPUS];
	struct drop_row drops[DROP_ROWS];
	__u64 missed; /* written by root's user space: runs of hooks that the kernel left out */
};

#endif
