/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* All maps. Weak: each object carries the definitions it uses, the linker keeps one of each. */
#ifndef WARDER_BPF_MAPS_H
#define WARDER_BPF_MAPS_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "bpf/abi/wire.h"
#include "bpf/abi/maps.h"

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_state);
} tasks __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SANDBOXES_MAX);
	__type(key, __u64);
	__type(value, struct sandbox_cfg);
} sandboxes __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} urgent __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 23);
} bulk __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counters);
} counters __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct sleeper);
} sleeper __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SANDBOXES_MAX);
	__type(key, __u32);
	__type(value, struct guard);
} guards __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SANDBOXES_MAX);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, __u64);
} pressed __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, __u64);
} crowds __weak SEC(".maps");

/* ---- what each session has of its own where programs are shared; else one entry that nobody uses ---- */

struct own_ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
};

struct own_counters {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counters);
};

struct own_sleeper {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sleeper);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct own_ring);
} rings __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct own_counters);
} own_counters __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct own_sleeper);
} own_sleepers __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STOPPED_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, __u64);
} stopped __weak SEC(".maps");

/* Programs that the hook at a system call's end hands over to, by enum slot: one table for each way there
 * (lib/sysend.bpf.h). Filled before the hook is attached. */
#define HANDLERS 32

#define HANDLER_TABLE(name)                            \
	struct {                                       \
		__uint(type, BPF_MAP_TYPE_PROG_ARRAY); \
		__uint(max_entries, HANDLERS);         \
		__type(key, __u32);                    \
		__type(value, __u32);                  \
	} name __weak SEC(".maps")

HANDLER_TABLE(handlers);
HANDLER_TABLE(handlers_k);
HANDLER_TABLE(handlers_f);
HANDLER_TABLE(handlers_s);

/* A function that the verifier checks once, by itself, instead of anew at each call. Weak: defined in
 * headers, one copy is linked. Takes numbers and map values only. */
#define GLOBAL __weak __noinline

/* Where a record is put together: too large for the stack. A program may be interrupted by another
 * on the same CPU (newer kernels even preempt them), so there are a few and each is claimed. */
#define SCRATCHES 3
#define REC_SIZE  24576

/* Of a mount: neighbours in its structure, in this order. */
struct mount_part {
	__u64 parent, mountpoint, root;
};

/* The same of a dentry. */
struct dentry_part {
	__u64 parent;
	__u32 hash, len; /* of the name */
	__u64 name;
};

struct walk {
	__u64 d, m;	      /* struct dentry *, struct mount *: where we are */
	__u64 root_d, root_m; /* where to stop */
	struct mount_part mount;
	struct dentry_part dentry;
	__u32 pos;   /* in scratch.path: the string begins here */
	__u32 flags; /* WIRE_F_* */
};

/* What a handler knows between its steps. In a map value, not on the stack: the verifier then takes
 * each for an unknown number instead of following every combination (a third of the time to load). */
struct tail_state {
	__u32 at;  /* of the character to look at next */
	__u32 end; /* of the component */
	__u32 class;
	__u32 pad;
};

struct call_state {
	__s64 ret;
	__u32 nr; /* native number */
	__u32 compat;
};

struct open_state {
	__u64 f; /* struct file * that was opened; 0: refused */
	__s64 ret;
	__u32 nr;
	__u32 how; /* O_* */
	__u32 writes, steers;
	__u32 listed; /* id of the watch list's entry, 0 = none */
	__u32 pad;
	__u64 id; /* wire_file.id */
};

struct pieces_state {
	__u64 start; /* of the area in user memory */
	__u32 off, end;
	__u32 fault;
	__u32 pad;
};

/* A directory and a name in it, or (len 0) a file itself, as a hook in front of the act saw them. */
#define NAMED_MAX 256

struct named_at {
	__u64 dentry, mnt; /* struct dentry *, struct vfsmount *; 0: only the name */
	__u64 ino;
	__u32 len;
	char name[NAMED_MAX + 4];
};

struct named {
	__u64 tid;
	__u32 kind, nr;
	struct named_at at[2];
};

struct scratch {
	__u32 busy;
	__u32 len;   /* of the record so far */
	__u32 flags; /* WIRE_F_* of what was put into it */
	__u32 index; /* its key */
	__u64 args[8];
	struct call_state call; /* whose arguments those are */
	struct walk w;
	struct tail_state tail;
	struct pieces_state pieces;
	struct open_state open;
	struct enforce_path_key enforce;
	struct program program;
	struct named named;
	char path[WIRE_PATH_MAX + 256]; /* filled from the end: the walk goes up */
	__u8 rec[REC_SIZE] __attribute__((aligned(8)));
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCHES);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches __weak SEC(".maps");

/* Who does something, where the task's state cannot be had: cgroup programs have no task storage
 * before 6.16, and a packet no task at all. */
struct owner {
	__u64 start;
	__u64 cgid;
	__u32 sandbox;
	__u32 tgid, tid, ppid;
	__u32 uid, gid;
	__u32 nspid;
	__u32 pad;
	char comm[16];
};

/* Address of a connect() under way, by thread: the kernel's copy, which nobody can change. */
struct peer {
	__u64 cookie;
	__u8 addr[16];
	__u16 port;
	__u16 family;
	int verdict; /* of enforcement; 0 = none */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, struct peer);
} connecting __weak SEC(".maps");

/* A TCP connection, from its connect or accept on, to be told again at its end. */
struct flow {
	struct wire_net r;
	__u64 sk; /* struct sock *; 0: not known yet */
};

/* Key: flow_key(). Nobody's entry makes room for another's: what does not fit is counted (flow_keep). */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, FLOWS_MAX);
	__type(key, __u64);
	__type(value, struct flow);
} flows __weak SEC(".maps");

/* Accepts that were handed to io_uring: of one that goes on after its first connection only the ring and
 * the caller's mark are told with each. */
struct accept_key {
	__u64 ring; /* struct io_ring_ctx * */
	__u64 user_data;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 2048);
	__type(key, struct accept_key);
	__type(value, __u32); /* slot to be filled, as in struct io_accept; 0: a descriptor */
} accepting __weak SEC(".maps");

/* A socket of the internet family that is no stream: who made it or used it last, what went through
 * it, the target that was told last. Ends with the socket. */
struct sock_state {
	struct owner who;
	__u64 bytes_out, bytes_in;
	__u64 packets_out, packets_in;
	__u64 told_ts;
	__u8 addr[16]; /* the target */
	__u8 own[16];
	__u16 port, own_port;
	__u16 family;
	__u16 pad;
	__u32 count;	  /* datagrams to the target since it was told */
	__u32 refused;	  /* those of them that enforcement refused; told as such */
	__u16 refused_by; /* its entry */
	__u16 pad2[3];
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct sock_state);
} socks __weak SEC(".maps");

/* UDP targets told lately: one record a second for each. The one told last is in `socks`. */
struct send_key {
	__u64 cookie;
	__u8 addr[16];
	__u32 port;
	__u32 pad;
};

struct send_state {
	__u64 told_ts;
	__u32 count; /* since then */
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct send_key);
	__type(value, struct send_state);
} sends __weak SEC(".maps");

/* ---- enforcement: filled by user space only ---- */

/* How many sets are loaded. An array: the look-up is inlined, so without any set nothing is paid. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} enforce_any __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, ENFORCE_ROWS_MAX);
	__type(key, __u32);
	__type(value, struct enforce_set);
} enforce_sets __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, ENFORCE_NAMES_MAX);
	__type(key, struct enforce_path_key);
	__type(value, struct enforce_class);
} enforce_names __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, PROGRAMS_MAX);
	__type(key, __u32);
	__type(value, struct program);
} programs __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, ENFORCE_PATHS_MAX);
	__type(key, struct enforce_path_key);
	__type(value, struct enforce_rules);
} enforce_paths __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, ENFORCE_EXES_MAX);
	__type(key, struct enforce_exe_key);
	__type(value, struct enforce_rules);
} enforce_exes __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, ENFORCE_ADDRS_MAX);
	__type(key, struct enforce_addr4_key);
	__type(value, struct enforce_rules);
} enforce_addrs4 __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, ENFORCE_ADDRS_MAX);
	__type(key, struct enforce_addr6_key);
	__type(value, struct enforce_rules);
} enforce_addrs6 __weak SEC(".maps");

/* Processes to be killed at their next return from a system call, by a cgroup program that cannot send
 * the signal itself. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u64);
} sentenced __weak SEC(".maps");

/* Limits told lately: one record a second for each sandbox and limit. */
struct limit_key {
	__u32 sandbox;
	__u32 type;
};

struct limit_seen {
	__u64 told_ts;
	__u32 count; /* since then */
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct limit_key);
	__type(value, struct limit_seen);
} limits_seen __weak SEC(".maps");

/* What a hook in front of the act refused, by thread, until its system call ends. */
struct act {
	int verdict;
	__u32 kind;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, struct act);
} acts __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WATCHED_MAX);
	__type(key, struct watched_key);
	__type(value, __u32);
} watched __weak SEC(".maps");

/* Programs that were not found, by process: told as one when it looks for another one or ends, not at
 * all when it finds it after all. */
#define MISS_PATH 256

struct exec_miss {
	__u64 hash; /* of the path's last component */
	__u32 tries;
	__s32 ret;
	__u32 nr;
	__u32 pad;
	char path[MISS_PATH];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct exec_miss);
} misses __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, METADATA_MAX);
	__type(key, struct metadata_key);
	__type(value, __u32);
} metadata __weak SEC(".maps");

#endif
