/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* The wire contract: records as BPF programs, the sandbox launcher and recorded files write them,
 * and as userspace/event/decode.c reads them. The only header besides maps.h that both sides
 * include. Little endian, 8-byte aligned, ids are written numbers and never reused.
 * Everything behind the header is untrusted for the reader. */
#ifndef WARDER_BPF_ABI_WIRE_H
#define WARDER_BPF_ABI_WIRE_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#define WIRE_VERSION 1

/* id, name (the JSON `kind`), family. Ids below 0x4000: kernel; 0x4000: runtime; 0x8000: agent. */
/* clang-format off */
#define WIRE_KINDS(X)                                        \
	X(1, EXEC, "exec", PROC)                             \
	X(2, FORK, "fork", PROC)                             \
	X(3, EXIT, "exit", PROC)                             \
	X(10, FILE_OPEN, "file.open", FILE)                  \
	X(11, FILE_WRITE, "file.write", FILE)                \
	X(12, FILE_RENAME, "file.rename", FILE)              \
	X(13, FILE_DELETE, "file.delete", FILE)              \
	X(14, FILE_LINK, "file.link", FILE)                  \
	X(15, FILE_ATTR, "file.attr", FILE)                  \
	X(16, FILE_MKDIR, "file.mkdir", FILE)                \
	X(17, FILE_MKNOD, "file.mknod", FILE)                \
	X(18, FILE_MMAP, "file.mmap", FILE)                  \
	X(20, MOUNT, "mount", FILE)                          \
	X(30, NET_CONNECT, "net.connect", NET)               \
	X(31, NET_LISTEN, "net.listen", NET)                 \
	X(32, NET_ACCEPT, "net.accept", NET)                 \
	X(33, NET_SEND, "net.send", NET)                     \
	X(34, NET_CLOSE, "net.close", NET)                   \
	X(35, NET_BIND, "net.bind", NET)                     \
	X(36, NET_SOCKET, "net.socket", NET)                 \
	X(37, NET_REQUEST, "net.request", NET)               \
	X(40, DNS_QUERY, "dns.query", DNS)                   \
	X(41, DNS_ANSWER, "dns.answer", DNS)                 \
	X(50, OOM, "oom", LIMIT)                             \
	X(51, LIMIT, "limit", LIMIT)                         \
	X(52, SIGNAL, "signal", PROC)                        \
	X(53, USAGE, "usage", LIMIT)                         \
	X(60, ESCAPE, "escape", ESCAPE)                      \
	X(70, PACKAGE_INSTALL, "package.install", PROC)      \
	X(0x4001, SESSION_START, "session.start", SESSION)   \
	X(0x4002, SESSION_STOP, "session.stop", SESSION)     \
	X(0x4003, SESSION_PAUSE, "session.pause", SESSION)   \
	X(0x4004, SESSION_RESUME, "session.resume", SESSION) \
	X(0x4005, WORKSPACE_CHANGE, "workspace.change", WORK) \
	X(0x4006, WORKSPACE_SCAN, "workspace.scan", SESSION) \
	X(0x4007, SESSION_SNAPSHOT, "session.snapshot", SESSION) \
	X(0x4008, SESSION_RESTORE, "session.restore", SESSION) \
	X(0x8001, RULE_ALERT, "rule.alert", RULE)            \
	X(0x8002, ACTION, "action", RULE)                    \
	X(0x8003, APPROVAL, "approval", RULE)                \
	X(0x8004, GAP, "gap", AGENT)                         \
	X(0x8005, AUDIT_START, "audit.start", AGENT)         \
	X(0x8006, AUDIT_STOP, "audit.stop", AGENT)           \
	X(0x8007, AUDIT_DEGRADED, "audit.degraded", AGENT)   \
	X(0x8008, AUDIT_RULES, "audit.rules", AGENT)         \
	X(0x8009, REVIEW, "review", AGENT)                   \
	X(0x800a, TERMINAL, "terminal", AGENT)
/* clang-format on */

/* Not an event: a piece of an argv that did not fit its exec record. Sent BEFORE that record. */
#define WIRE_CHUNK 100
/* Not an event: what the host's kernel saw of a gVisor guest's call (struct wire_mirror). */
#define WIRE_MIRROR 101

#define WIRE_KIND_ENUM(id, name, text, family) WIRE_##name = id,
enum wire_kind { WIRE_KINDS(WIRE_KIND_ENUM) };
_Static_assert(WIRE_ESCAPE < 64, "kinds of the kernel are bits of a word");

/* Escape types: `escape.type`. The number is also the bit in sandbox_cfg.kill_escape. */
/* clang-format off */
#define WIRE_ESCAPES(X)                                                                            \
	X(1, SETNS, "setns")                                                                       \
	X(2, UNSHARE, "unshare")                                                                   \
	X(3, MOUNT, "mount")                                                                       \
	X(4, UMOUNT, "umount")                                                                     \
	X(5, MOUNT_API,                                                                            \
	  "mount_api") /* fsopen fsmount fsconfig fspick open_tree move_mount mount_setattr */     \
	X(6, PIVOT_ROOT, "pivot_root")                                                             \
	X(7, CHROOT, "chroot")                                                                     \
	X(8, PTRACE, "ptrace")                                                                     \
	X(9, BPF, "bpf")                                                                           \
	X(10, MODULE, "module") /* init_module finit_module delete_module */                       \
	X(11, OPEN_BY_HANDLE, "open_by_handle_at")                                                 \
	X(12, PROCESS_VM, "process_vm") /* process_vm_readv process_vm_writev process_madvise */   \
	X(13, KEYCTL, "keyctl")		/* keyctl add_key request_key */                           \
	X(14, IO_URING, "io_uring")                                                                \
	X(15, PERF_EVENT, "perf_event_open")                                                       \
	X(16, USERFAULTFD, "userfaultfd")                                                          \
	X(17, CGROUP_LEAVE, "cgroup_leave") /* a tracked task seen outside its sandbox cgroup */   \
	X(18, CLONE_NS, "clone_ns")	    /* clone or clone3 with namespace flags */             \
	X(19, KEXEC, "kexec")                                                                      \
	X(20, REBOOT, "reboot")                                                                    \
	X(21, SWAP, "swap")                                                                        \
	X(22, PERSONALITY, "personality")                                                          \
	X(23, PIDFD_GETFD, "pidfd_getfd")                                                          \
	X(24, FOREIGN_ABI, "foreign_abi") /* int 0x80, x32 */                                      \
	X(25, CRED_GAIN, "cred_gain")                                                              \
	X(26, NS_CHANGE, "ns_change")                                                              \
	X(27, ROOT_CHANGE, "root_change")                                                          \
	X(28, KERNEL_FILE, "kernel_file") /* core_pattern, sysrq-trigger, release_agent ... */     \
	X(29, DEVICE, "device")                                                                    \
	X(30, RUNTIME_SOCKET, "runtime_socket")                                                    \
	X(31, METADATA, "metadata")                                                                \
	X(32, MKNOD, "mknod")                                                                      \
	X(33, SOCKET_FAMILY, "socket_family") /* AF_PACKET, AF_ALG, AF_VSOCK, netfilter netlink */ \
	X(34, SYSLOG, "syslog")                                                                    \
	X(35, TIME, "time") /* settimeofday clock_settime adjtimex */                              \
	X(36, SECCOMP, "seccomp_violation")                                                        \
	X(37, FANOTIFY, "fanotify")                                                                \
	X(38, ACCT, "acct")                                                                        \
	X(39, MEMFD_EXEC, "memfd_exec")                                                            \
	X(40, QUOTA, "quotactl")                                                                   \
	X(41, NFS, "nfsservctl")                                                                   \
	X(42, IOPORT, "ioport") /* ioperm iopl */                                                  \
	X(43, GUEST_DIVERGENCE, "guest_divergence")                                                \
	X(44, HANDSHAKE, "setup") /* the launcher's own set-up did not go as planned */            \
	X(45, PROC_MEM, "proc_mem") /* /proc/PID/mem opened for writing */                         \
	/* by gVisor's own processes on the host, once the guest runs */                           \
	X(46, RUNTIME_CALL, "runtime_call")   /* a system call that is none of their work */       \
	X(47, RUNTIME_EXEC, "runtime_exec")   /* they never start a program */                     \
	X(48, RUNTIME_PATH, "runtime_path")   /* a name that is more than one in a directory */    \
	X(49, RUNTIME_FILE, "runtime_file")   /* of no mount that was declared */                  \
	X(50, RUNTIME_NET, "runtime_net")     /* a socket of the host, without a network */        \
	X(51, RUNTIME_CLONE, "runtime_clone") /* a process that is neither thread nor stub */      \
	X(52, RUNTIME_KILLED, "runtime_killed") /* by SIGKILL that is neither ours nor memory's */
/* clang-format on */

#define WIRE_ESCAPE_ENUM(id, name, text) WIRE_ESCAPE_##name = id,
enum wire_escape_type { WIRE_ESCAPES(WIRE_ESCAPE_ENUM) };

/* wire_hdr.flags */
#define WIRE_F_TOCTOU	  0x0001 /* a string came from user memory and could change under us */
#define WIRE_F_TRUNC	  0x0002 /* something in here was cut at a limit */
#define WIRE_F_UNREACH	  0x0004 /* path is not reachable from the task's root */
#define WIRE_F_DELETED	  0x0008 /* the file had no link left */
#define WIRE_F_PSEUDO	  0x0010 /* memfd, pipe, socket: a name, not a path */
#define WIRE_F_COMPAT	  0x0020 /* 32-bit or x32 entry */
#define WIRE_F_IOURING	  0x0040 /* done by io_uring, not by a syscall */
#define WIRE_F_DENIED	  0x0080 /* we denied it */
#define WIRE_F_KILLED	  0x0100 /* SIGKILL was sent to the task in the kernel */
#define WIRE_F_RUNTIME	  0x0200 /* by our own init inside the sandbox, not by the payload */
#define WIRE_F_READ_FAULT 0x0400 /* a user string could not be read */
#define WIRE_F_PART \
	0x3800 /* << WIRE_PART_SHIFT: enum gvisor_part of a process of gVisor; 0 = none */
#define WIRE_PART_SHIFT 11

enum wire_vantage { WIRE_V_KERNEL = 0, WIRE_V_GUEST = 1, WIRE_V_RUNTIME = 2, WIRE_V_AGENT = 3 };

/* Which ring: a sequence is counted per (ring, cpu). */
enum wire_ring {
	WIRE_RING_URGENT = 0,
	WIRE_RING_BULK = 1,
	WIRE_RING_NONE = 2,
	WIRE_RING_COUNT = 2
};

struct wire_hdr {
	__u32 len;     /* whole record, header included */
	__u16 kind;    /* enum wire_kind or WIRE_CHUNK */
	__u16 flags;   /* WIRE_F_* */
	__u64 seq;     /* per (ring, cpu), from 1, counts lost ones too; 0 = source has none */
	__u64 ts;      /* CLOCK_BOOTTIME ns, taken when the record was sent */
	__u64 start;   /* start_boottime of the group leader: (tgid, start) is the process */
	__u64 cgid;    /* v2 cgroup id at the time of the event */
	__u32 sandbox; /* id that user space put in `sandboxes`; inherited at fork */
	__u32 tgid;    /* process, initial pid namespace */
	__u32 tid;     /* thread */
	__u32 ppid;    /* real parent's tgid */
	__u32 uid;     /* effective, initial user namespace */
	__u32 gid;
	__u32 nspid; /* tgid in the task's own pid namespace */
	__s32 ret;   /* result or -errno of the call; 0 where there is none */
	/* Syscall number in the 64-bit table, also for 32-bit and x32 entries (FOREIGN_ABI: as it was
	 * called); WIRE_NR_NONE where there is none. */
	__u16 nr;
	__u16 cpu;
	__u8 ring;    /* enum wire_ring */
	__u8 vantage; /* enum wire_vantage */
	/* Entry of the enforcement maps that denied (WIRE_F_DENIED) or killed (WIRE_F_KILLED); 0 = none. */
	__u16 enforced;
	char comm[16];
};

#define WIRE_NR_NONE 0xffff

/* A piece of the record's tail: offset from the record's start. len 0 = absent. */
struct wire_str {
	__u16 off;
	__u16 len;
};

#define WIRE_RECORD_MAX 32000 /* fits a per-CPU map value; also the most a ring record holds */
#define WIRE_PATH_MAX	4096
#define WIRE_ARGS_MAX	(128 * 1024) /* argv bytes kept of one exec */
/* argv bytes that cross the ring, so that a hash can cover what is not kept: all of them up to here,
 * of a longer argv its beginning and its last WIRE_ARGS_TAIL bytes. */
#define WIRE_ARGS_SENT	(256 * 1024)
#define WIRE_ARGS_TAIL	(32 * 1024)
#define WIRE_ENV_MAX	(32 * 1024) /* bytes of the environment looked at */
#define WIRE_CHUNK_MAX	16384
#define WIRE_ANCESTORS	8
#define WIRE_DNS_MAX	4096 /* of one datagram, or of one piece of a TCP segment */
#define WIRE_DNS_PIECES 4    /* of a segment: the rest is cut */
#define WIRE_SUN_PATH	108

enum wire_stdin {
	WIRE_STDIN_NONE,
	WIRE_STDIN_TTY,
	WIRE_STDIN_PIPE,
	WIRE_STDIN_SOCKET,
	WIRE_STDIN_FILE,
	WIRE_STDIN_OTHER,
	WIRE_STDIN_NULL /* /dev/null */
};

struct wire_ancestor {
	__u64 start;
	__u32 tgid;
	__u32 pad;
	char comm[16];
};

/* EXEC. args: NUL-separated argv, as /proc/PID/cmdline has it. If args.len < args_total, the rest
 * came in WIRE_CHUNKs with the same exec_id before this record (or was cut: WIRE_F_TRUNC). env the
 * same, but it is either all here or all in chunks; values are in it, and user space drops them.
 * h.ret < 0: an exec that failed. exe is then the name that the caller gave (relative to cwd), tries how
 * often in a row that program was not found, and everything else is empty. */
struct wire_exec {
	struct wire_hdr h;
	__u64 exec_id; /* unique per boot: ties chunks to the exec */
	__u64 parent_start;
	__u64 cap_effective;
	__u64 cap_permitted;
	__u64 ino; /* executable */
	__u32 dev; /* kernel's dev_t: major << 20 | minor */
	__u32 nlink;
	__u32 mode; /* of the executable: setuid shows */
	__u32 args_total;
	__u32 argc;
	__u32 env_total;
	__u32 ruid;
	__u32 loginuid;
	__u32 ns_mnt, ns_pid, ns_net, ns_user; /* inode numbers */
	__u32 tty_nr;			       /* 0 = none; major << 20 | minor */
	__u8 stdin_type;		       /* enum wire_stdin */
	__u8 memfd;			       /* executable is a memfd */
	__u8 secureexec;
	__u8 upper_layer; /* executable lies in an overlay's upper layer or was made in the sandbox */
	__u64 exe_mtime; /* ns since the epoch */
	__u64 exe_ctime;
	__u32 exe_uid; /* its owner, initial user namespace */
	__u32 tries;
	struct wire_str exe;	/* resolved path of the file that runs */
	struct wire_str script; /* what was asked for, when an interpreter runs it */
	struct wire_str cwd;
	struct wire_str args;
	struct wire_str tty;
	struct wire_str env;
	__u32 pad2;
	__u16 ancestors_n;
	__u16 pad;
	struct wire_ancestor ancestors[WIRE_ANCESTORS]; /* parent first */
};

enum wire_chunk_what { WIRE_CHUNK_ARGS, WIRE_CHUNK_ENV };

struct wire_chunk {
	struct wire_hdr h;
	__u64 exec_id;
	__u32 offset; /* of data in the argv area, or in the environment */
	__u32 n;
	__u32 what; /* enum wire_chunk_what */
	__u32 pad;
	/* n bytes follow */
};

/* MIRROR: a call of a guest as its stub's registers had it when it ended (WIRE_F_PART: stub; nr, ret and args are the
 * guest's, names what it gave), or one by which the gofer changed a file for it (names are the file's own, as in wire_file).
 * userspace/pipeline/guest_mirror.c makes events of them, with what the guest's own kernel told. */
struct wire_mirror {
	struct wire_hdr h;
	__u64 args[6];
	struct wire_str base;
	struct wire_str path;
	struct wire_str base2;
	struct wire_str path2;
	struct wire_str addr; /* sends: struct sockaddr */
	struct wire_str data; /* sends: what looks like a question to a name server */
	__u32 total;	      /* bytes sent */
	__u32 index;	      /* of sendmmsg */
};

/* FORK: the header is the parent (caller); child below. Sent for processes, not threads. */
struct wire_fork {
	struct wire_hdr h;
	__u64 child_start;
	__u64 clone_flags;
	__u32 child_tgid;
	__u32 child_nspid;
};

/* EXIT of a whole process. */
struct wire_exit {
	struct wire_hdr h;
	__u32 status; /* wait status: code << 8 | signal | 0x80 core */
	__u32 pad;
	__u64 utime_ns;
	__u64 stime_ns;
};

/* FILE_*. path is absolute as the sandbox sees it when `base` is empty; else it is the
 * string given by the caller and base the directory that it is relative to. Same for path2/base2
 * (rename target, link target). */
struct wire_file {
	struct wire_hdr h;
	__u64 ino;
	__u64 size; /* FILE_WRITE: bytes so far; truncate, FILE_MMAP: length; FILE_MKNOD: dev_t as given */
	/* FILE_OPEN, FILE_WRITE: number of the open file, unique per boot, 0 = none. A FILE_WRITE without
	 * a path is about the file of the FILE_OPEN with this id. */
	__u64 id;
	__u64 first_ts; /* FILE_WRITE: time of the first write, CLOCK_BOOTTIME ns */
	__u32 dev;
	__u32 mode; /* st_mode of the object, or the mode asked for */
	__u32 open_flags;
	__s32 fd;
	/* FILE_ATTR: 1 chmod 2 chown 3 setxattr 4 truncate; FILE_LINK: 1 hard 2 symlink; FILE_WRITE: enum
	 * wire_write_op; FILE_MMAP: PROT_*; FILE_OPEN: id in the operator's watch list, 0 = not in it */
	__u32 op;
	__u32 uid, gid;
	struct wire_str base;
	struct wire_str path;
	struct wire_str base2;
	struct wire_str path2;
	__u32 count; /* FILE_WRITE: writes so far */
};

enum wire_write_op {
	WIRE_WRITE_FIRST = 1, /* the file is still open */
	WIRE_WRITE_TOTAL      /* this descriptor of this process is closed */
};

/* NET_*. Addresses in network order, IPv4 in the first 4 bytes (v4-mapped ones are unmapped by the
 * decoder); ports in host order. Unix: path, a leading NUL = abstract. vsock: address and port as
 * struct wire_vsock in the place of the address. SOCKET: a socket() that was refused, or raw.
 * CLOSE with WIRE_UNKNOWN bytes: the socket gave up its peer and lives on; what it sent is told at its end. */
struct wire_net {
	struct wire_hdr h;
	__u64 cookie;
	__u64 bytes_out;
	__u64 bytes_in;
	__u16 family; /* AF_* */
	__u8 type;    /* SOCK_* */
	__u8 proto;   /* IPPROTO_* */
	__u16 sport, dport;
	__u8 saddr[16];
	__u8 daddr[16];
	__u32 count; /* sends merged into this record */
	struct wire_str path;
	__u64 packets_out; /* CLOSE, but of TCP: datagrams, to whichever addresses */
	__u64 packets_in;
};

/* NET_REQUEST: what was asked of a route's upstream; h.ret < 0: it was not, or not to its end. */
struct wire_request {
	struct wire_hdr h;
	__u64 bytes_out, bytes_in; /* of bodies */
	__u16 dport;
	__u16 status; /* 0 = there was no answer */
	struct wire_str name, method, path, reason;
	__u32 pad;
};

struct wire_vsock {
	__u32 cid;
	__u32 port;
};

/* DNS_*: one datagram, or a piece of the TCP/53 stream, as it was on the wire; user space joins pieces
 * and parses. Same address meaning as wire_net, from the sandbox's point of view: daddr is the resolver. */
struct wire_dns {
	struct wire_hdr h;
	__u64 cookie;
	__u16 family;
	__u16 sport, dport;
	__u8 proto;
	__u8 pad;
	__u8 saddr[16];
	__u8 daddr[16];
	__u32 total; /* length on the wire; more than data.len = cut */
	struct wire_str data;
	__u32 tcp_seq; /* of data's first byte */
	__u32 pad2;
};

/* MOUNT: a change of the mount tree that was made. Strings are the caller's; `base` as in wire_file. */
enum wire_mount_op {
	WIRE_MOUNT_NEW = 1,
	WIRE_MOUNT_REMOVE,
	WIRE_MOUNT_MOVE,
	WIRE_MOUNT_PIVOT,
	WIRE_MOUNT_ATTR
};

struct wire_mount {
	struct wire_hdr h;
	__u64 flags; /* MS_*, MNT_* */
	__u32 op;    /* enum wire_mount_op */
	struct wire_str base;
	struct wire_str path;
	struct wire_str source; /* pivot_root: where the old root goes */
	struct wire_str fstype;
	__u32 pad;
};

/* OOM: the header is the victim. */
struct wire_oom {
	struct wire_hdr h;
	__u64 total_vm, anon_rss, file_rss, shmem_rss; /* bytes; 0 where unknown */
	__s32 oom_score_adj;
	__u32 pad;
};

/* LIMIT: runtime or kernel hit a limit. */
enum wire_limit {
	WIRE_LIMIT_MEMORY = 1,
	WIRE_LIMIT_PIDS,
	WIRE_LIMIT_CPU,
	WIRE_LIMIT_DISK,
	WIRE_LIMIT_OUTPUT,
	WIRE_LIMIT_TIMEOUT,
	WIRE_LIMIT_IDLE,
	WIRE_LIMIT_TTL,
	WIRE_LIMIT_NOFILE,
	WIRE_LIMIT_FSIZE,
	WIRE_LIMIT_EVENTS /* came faster than they could be taken */
};

struct wire_limit_hit {
	struct wire_hdr h;
	__u64 value; /* the limit; 0 = user space knows it */
	__u64 used;
	__u32 type;  /* enum wire_limit */
	__u32 count; /* how often it was hit since it was told last, this time included */
	struct wire_str target; /* file, stream */
	__u32 pad;
};

/* USAGE: what the sandbox used in one period; WIRE_UNKNOWN = not known. */
struct wire_usage {
	struct wire_hdr h;
	__u64 period_ns;
	__u64 cpu_ns;	  /* in the period */
	__u64 mem;	  /* bytes now */
	__s64 mem_growth; /* bytes since the sample before */
	__u64 net;	  /* bytes in the period, both ways */
	__u64 pids;	  /* now */
};

/* SIGNAL: the header is the sender. */
struct wire_signal {
	struct wire_hdr h;
	__u64 target_start;
	__u32 target_tgid;
	__u32 sig;
	char target_comm[16];
};

/* ESCAPE: an attempt, whatever its result (h.ret). */
struct wire_escape {
	struct wire_hdr h;
	__u64 args[6];		    /* raw syscall arguments */
	__u64 old_value, new_value; /* CRED/NS/CGROUP changes: ids before and after */
	__u32 type;		    /* enum wire_escape_type */
	__u32 pad;
	struct wire_str detail; /* a path or name where there is one */
	struct wire_str detail2;
};

#define WIRE_UNKNOWN (~0ull)

/* SESSION_*: by the launcher. Strings are UTF-8, made by us (command words come from the operator). */
struct wire_session {
	struct wire_hdr h;
	__s32 exit_code; /* STOP: as `warder run` exits */
	__s32 signal;	 /* STOP: that ended the payload, 0 = none */
	__u64 cpu_usec, mem_peak, pids_peak;
	__u64 stdout_bytes, stderr_bytes; /* WIRE_UNKNOWN where nobody counted */
	struct wire_str backend;
	struct wire_str name;
	struct wire_str tenant;
	struct wire_str reason;	 /* STOP: exit signal timeout oom rule output_limit internal */
	struct wire_str policy;	 /* START: hash of the plan */
	struct wire_str command; /* START: NUL-separated */
	struct wire_str host;
	struct wire_str degraded; /* NUL-separated names */
	struct wire_str image;	  /* START: digest of what its root was made of */
	struct wire_str secrets;  /* START: names of those that it may read, NUL-separated */
};

/* WORKSPACE_CHANGE: one path that a comparison found to be other than before; no process did it as far as
 * this record knows. Mode 0: was, or is, not there. */
enum wire_change_op { WIRE_CHANGE_CREATED = 1, WIRE_CHANGE_CHANGED, WIRE_CHANGE_DELETED };

/* wire_change.has */
#define WIRE_CHANGE_SHA256	  0x01
#define WIRE_CHANGE_SHA256_BEFORE 0x02
#define WIRE_CHANGE_TEXT	  0x04 /* blobs/<text> holds it */
#define WIRE_CHANGE_TEXT_BEFORE	  0x08

struct wire_change {
	struct wire_hdr h;
	__u64 size, size_before; /* bytes */
	__u32 mode, mode_before; /* st_mode */
	__u32 op;		 /* enum wire_change_op */
	__u32 has;
	__u8 sha256[32], sha256_before[32];
	__u8 text[32], text_before[32];
	struct wire_str path;	  /* absolute, inside */
	struct wire_str target;	  /* of a symbolic link */
	struct wire_str unhashed; /* why a regular file has no hash */
	__u32 pad;
};

/* WORKSPACE_SCAN: a comparison, behind its changes. */
enum wire_scan_when { WIRE_SCAN_STOP = 1, WIRE_SCAN_DEMAND };

struct wire_scan {
	struct wire_hdr h;
	__u64 files, bytes; /* looked at; hashed */
	__u64 created, changed, deleted;
	__u64 skipped;	/* neither looked at nor told */
	__u64 unhashed; /* told without a hash */
	__u64 duration_ns;
	__u32 when;		/* enum wire_scan_when */
	struct wire_str places; /* NUL-separated, inside */
	struct wire_str why;	/* NUL-separated: what was not looked at, and for what reason */
	__u32 pad;
};

/* SESSION_SNAPSHOT, SESSION_RESTORE: h.ret is 0 or -errno. */
struct wire_snapshot {
	struct wire_hdr h;
	__u64 files, bytes, stored; /* entries; data in them; bytes of the archive */
	__u8 sha256[32];	    /* of the archive */
	struct wire_str name;
	struct wire_str session; /* restore: which it was taken of */
	struct wire_str who;	 /* snapshot: for whom */
	__u32 pad;
};

#define WIRE_ASSERT(expr, text) _Static_assert(expr, text)
WIRE_ASSERT(sizeof(struct wire_hdr) == 96, "wire_hdr size");
WIRE_ASSERT(__builtin_offsetof(struct wire_hdr, comm) == 80, "wire_hdr.comm offset");
WIRE_ASSERT(sizeof(struct wire_exec) % 8 == 0, "wire_exec alignment");
WIRE_ASSERT(sizeof(struct wire_chunk) % 8 == 0, "wire_chunk alignment");
WIRE_ASSERT(sizeof(struct wire_file) % 8 == 0, "wire_file alignment");
WIRE_ASSERT(sizeof(struct wire_net) % 8 == 0, "wire_net alignment");
WIRE_ASSERT(sizeof(struct wire_mount) % 8 == 0, "wire_mount alignment");
WIRE_ASSERT(sizeof(struct wire_signal) % 8 == 0, "wire_signal alignment");
WIRE_ASSERT(sizeof(struct wire_dns) % 8 == 0, "wire_dns alignment");
WIRE_ASSERT(sizeof(struct wire_limit_hit) % 8 == 0, "wire_limit_hit alignment");
WIRE_ASSERT(sizeof(struct wire_usage) == sizeof(struct wire_hdr) + 48, "wire_usage size");
WIRE_ASSERT(sizeof(struct wire_escape) % 8 == 0, "wire_escape alignment");
WIRE_ASSERT(sizeof(struct wire_session) % 8 == 0, "wire_session alignment");
WIRE_ASSERT(sizeof(struct wire_change) % 8 == 0, "wire_change alignment");
WIRE_ASSERT(sizeof(struct wire_scan) % 8 == 0, "wire_scan alignment");
WIRE_ASSERT(sizeof(struct wire_snapshot) % 8 == 0, "wire_snapshot alignment");
WIRE_ASSERT(sizeof(struct wire_request) % 8 == 0, "wire_request alignment");

#endif
