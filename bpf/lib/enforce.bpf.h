/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* What the kernel decides by itself: deny and kill by kind, escape type, path, executable and address.
 * Filled from user space (userspace/capture/enforce.h).
 *
 * A hook asks each function that fits with the number of the sandbox's set and takes the strictest
 * answer; an answer is a number, 0 = nothing to do, larger = stricter:
 *
 *	v = enforce_max(enforce_task(set, WIRE_FILE_OPEN), enforce_path(s, set, WIRE_FILE_OPEN));
 *	...make the record...
 *	denied = enforce_mark(&r->h, v, true);
 *	emit; if (denied) return -EPERM;
 *
 * All functions take numbers or the scratch buffer only: they are checked once by the verifier. */
#ifndef WARDER_BPF_ENFORCE_H
#define WARDER_BPF_ENFORCE_H

#include <bpf/bpf_endian.h>
#include "bpf/lib/emit.bpf.h"
#include "bpf/lib/program.bpf.h"
#include "bpf/lib/task.bpf.h"

#define ENFORCE_IPV4 2 /* AF_INET */
#define ENFORCE_IPV6 10

#define ENFORCE_NAME_AT	 126 /* where a relative name may begin in the key */
#define ENFORCE_NAME_MAX 112

#define enforce_pack(verdict, id) ((int)((__u32)(verdict) << 16 | (__u16)(id)))
#define enforce_verdict_of(v)	  ((__u32)(v) >> 16)
#define enforce_id_of(v)	  ((__u16)(v))

/* Set before load: what is not asked for is not even in the program. */
extern const volatile __u32 enforce_mode;

/* For the walk over a name. */
struct path_look {
	struct scratch *s;
	bool found;
};

static __always_inline int enforce_max(int a, int b)
{
	return a > b ? a : b;
}

static __always_inline bool enforce_denies(int v)
{
	return v >= enforce_pack(ENFORCE_DENY, 0);
}

static __always_inline bool enforce_kills(int v)
{
	return v >= enforce_pack(ENFORCE_KILL, 0);
}

static __always_inline bool enforce_is_used(void)
{
	__u32 zero = 0, *n = bpf_map_lookup_elem(&enforce_any, &zero);

	return enforce_mode != ENFORCE_MODE_OFF && n && *n;
}

/* Number of the set for the payload of the task's sandbox, and the program that it runs; 0: nothing is enforced.
 * `st` is the current task's. */
static __always_inline __u32 enforce_set_of(struct task_state *st)
{
	struct sandbox_cfg *cfg;
	__u64 cgid;

	if (!enforce_is_used() || st->role != ROLE_PAYLOAD)
		return 0;
	cgid = st->cgid; /* on the stack: to 6.1 no key may lie in a global function's argument */
	cfg = bpf_map_lookup_elem(&sandboxes, &cgid);
	return cfg && cfg->armed && cfg->enforce ? program_row(cfg->enforce) : 0;
}

/* The same in a cgroup program, where the task's state cannot be had before 6.16: by the cgroup that
 * the current task is in. */
static __always_inline __u32 enforce_set_here(void)
{
	struct sandbox_cfg *cfg;
	__u64 id;

	if (!enforce_is_used())
		return 0;
	id = cgroup_sandbox((__u64)BPF_CORE_READ(bpf_get_current_task_btf(), cgroups, dfl_cgrp));
	cfg = bpf_map_lookup_elem(&sandboxes, &id);
	return cfg && cfg->armed && cfg->enforce ? program_row(cfg->enforce) : 0;
}

static __always_inline struct enforce_set *enforce_set_get(__u32 set, __u32 by, __u32 kind)
{
	struct enforce_set *e;

	if (!set || kind >= ENFORCE_KINDS)
		return NULL;
	e = bpf_map_lookup_elem(&enforce_sets, &set);
	return e && e->kinds[by] >> kind & 1 ? e : NULL;
}

/* The first rule that covers kind and port. */
static __always_inline int enforce_pick(const struct enforce_rules *rules, __u32 kind, __u16 port)
{
	int i;

#pragma unroll
	for (i = 0; i < ENFORCE_RULES; i++) {
		const struct enforce_rule *r = &rules->r[i];

		if (!r->id)
			return 0;
		if (!(r->kinds >> (kind & 63) & 1) || port < r->port_from || port > r->port_to)
			continue;
		return r->verdict == ENFORCE_PASS ? 0 : enforce_pack(r->verdict, r->id);
	}
	return 0;
}

/* By kind alone. */
GLOBAL int enforce_kind(__u32 set, __u32 kind)
{
	struct enforce_set *e = enforce_set_get(set, ENFORCE_BY_KIND, kind);

	kind &= ENFORCE_KINDS - 1;
	if (!e || !e->kind_verdict[kind])
		return 0;
	return enforce_pack(e->kind_verdict[kind], e->kind_id[kind]);
}

/* By type of an escape signal; entries for the kind `escape` as a whole are included. */
GLOBAL int enforce_escape(__u32 set, __u32 type)
{
	struct enforce_set *e = enforce_set_get(set, ENFORCE_BY_ESCAPE, WIRE_ESCAPE);
	int v = 0;

	type &= ENFORCE_KINDS - 1;
	if (e && e->escape_verdict[type])
		v = enforce_pack(e->escape_verdict[type], e->escape_id[type]);
	return enforce_max(v, enforce_kind(set, WIRE_ESCAPE));
}

/* By executable: for WIRE_EXEC the new one, for other kinds the one that acts. dev as in wire_exec. */
GLOBAL int enforce_exe(__u32 set, __u32 kind, __u32 dev, __u64 ino)
{
	struct enforce_set *e = enforce_set_get(set, ENFORCE_BY_EXE, kind);
	struct enforce_exe_key key = {};
	struct enforce_rules *rules;
	int v = 0;

	if (!e)
		return 0;
	key.keys = e->keys;
	key.dev = dev;
	key.ino = ino;
	rules = bpf_map_lookup_elem(&enforce_exes, &key);
	if (rules)
		v = enforce_pick(rules, kind, 0);
	key.dev = 0;
	rules = bpf_map_lookup_elem(&enforce_exes, &key);
	return rules ? enforce_max(v, enforce_pick(rules, kind, 0)) : v;
}

/* What can be said knowing only who does it: the kind, and the executable of the current task. */
GLOBAL int enforce_task(__u32 set, __u32 kind)
{
	struct task_struct *t;
	struct inode *inode;
	int v;

	if (!set)
		return 0;
	v = enforce_kind(set, kind);
	if (kind == WIRE_EXEC || !enforce_set_get(set, ENFORCE_BY_EXE, kind))
		return v;
	t = bpf_get_current_task_btf();
	inode = BPF_CORE_READ(t, mm, exe_file, f_inode);
	return enforce_max(v, enforce_exe(set, kind, BPF_CORE_READ(inode, i_sb, s_dev),
					  BPF_CORE_READ(inode, i_ino)));
}

/* To 6.1 a key may not lie in a global function's argument: the buffer is looked up again. */
static __always_inline int enforce_key(struct scratch *arg, struct enforce_set *e, __u32 kind)
{
	struct enforce_rules *rules;
	__u32 index = arg->index;
	struct scratch *s = bpf_map_lookup_elem(&scratches, &index);

	if (!s)
		return 0;
	s->enforce.keys = e->keys;
	s->enforce.prefixlen = (sizeof(s->enforce) - sizeof(s->enforce.prefixlen)) * 8;
	rules = bpf_map_lookup_elem(&enforce_paths, &s->enforce);
	return rules ? enforce_pick(rules, kind, 0) : 0;
}

static __always_inline int enforce_cut(struct enforce_set *e, __u32 kind)
{
	return e->cut_kinds >> (kind & 63) & 1 ? enforce_pack(e->cut_verdict, e->cut_id) : 0;
}

/* By the path that the last walk left in s->path (path_walk, rec_path and the like). A path that was cut has
 * no known head: the strictest of the entries that ask for such paths decides. */
GLOBAL int enforce_path(struct scratch *s, __u32 set, __u32 kind)
{
	struct enforce_set *e;
	__u32 pos, n;

	if (!s)
		return 0;
	e = enforce_set_get(set, ENFORCE_BY_PATH, kind);
	if (!e)
		return 0;
	if (s->w.flags & WIRE_F_TRUNC)
		return enforce_cut(e, kind);
	pos = s->w.pos;
	if (pos >= WIRE_PATH_MAX)
		return 0;
	n = WIRE_PATH_MAX - pos;
	__builtin_memset(s->enforce.path, 0, sizeof(s->enforce.path));
	if (bpf_probe_read_kernel(s->enforce.path, bounded(n, ENFORCE_PATH_MAX), s->path + pos))
		return enforce_cut(e, kind);
	return enforce_key(s, e, kind);
}

/* One byte of a name: does a component begin here that is not what it says (`.`, `..`, none at all)? */
static long enforce_name_step(__u32 i, struct path_look *x)
{
	const char *p = x->s->enforce.path + (i & 0xff);
	char c;

	if (i >= ENFORCE_PATH_MAX || !p[0])
		return 1;
	if (p[0] != '/')
		return 0;
	c = p[1];
	if (c == '.') {
		c = p[2];
		if (c == '.')
			c = p[3];
	}
	x->found = !c || c == '/';
	return x->found;
}

/* By a name that the caller gave, already in the record at `path`, relative to `base` when it is not
 * absolute (both as packed wire_str). Only for hooks that have no object: links in it are not resolved, so
 * this may kill, but what must be prevented is decided by enforce_path. A name whose text is not that of
 * the path it leads to (`..`, `//`), or that does not fit the key, is left to user space, which cleans it; of one
 * that was cut or cannot be read the strictest of the entries that ask for such paths decides. */
GLOBAL int enforce_name(struct scratch *arg, __u32 set, __u32 kind, int base, int path)
{
	struct wire_str b = unpack(base), p = unpack(path);
	struct path_look x = {};
	struct enforce_set *e;
	struct scratch *s;
	__u32 at = 0, index;

	if (!arg)
		return 0;
	e = enforce_set_get(set, ENFORCE_BY_PATH, kind);
	if (!e)
		return 0;
	/* Cut, or not to be read any more, the name or where it begins: nobody knows its head. */
	if (arg->flags & (WIRE_F_TRUNC | WIRE_F_READ_FAULT))
		return enforce_cut(e, kind);
	if (!p.len)
		return 0;
	index = arg->index;
	s = bpf_map_lookup_elem(&scratches, &index);
	if (!s)
		return 0;
	__builtin_memset(s->enforce.path, 0, sizeof(s->enforce.path));
	if (!b.len) {
		if (p.len > ENFORCE_PATH_MAX ||
		    bpf_probe_read_kernel(s->enforce.path, bounded(p.len, ENFORCE_PATH_MAX),
					  s->rec + (p.off & 0x3fff)))
			return 0;
	} else {
		if (b.len > ENFORCE_NAME_AT || p.len > ENFORCE_NAME_MAX ||
		    bpf_probe_read_kernel(s->enforce.path, bounded(b.len, ENFORCE_NAME_AT),
					  s->rec + (b.off & 0x3fff)))
			return 0;
		at = b.len;
		if (at > 1) /* "/" has its slash */
			s->enforce.path[at++ & 127] = '/';
		if (bpf_probe_read_kernel(s->enforce.path + (at & 127),
					  bounded(p.len, ENFORCE_NAME_MAX),
					  s->rec + (p.off & 0x3fff)))
			return 0;
	}
	if (s->enforce.path[0] != '/') /* relative to what is unknown */
		return enforce_cut(e, kind);
	x.s = s;
	bpf_loop(ENFORCE_PATH_MAX, enforce_name_step, &x, 0);
	return x.found ? 0 : enforce_key(s, e, kind);
}

/* By remote address and port (host order). To send to the unspecified address is to send to this host
 * (tcp_v4_connect, ip_route_output, tcp_v6_connect), and is judged as that. family AF_INET: the address is the low 32 bits of `a`, in
 * memory order; AF_INET6: a and b are the two halves as they lie in memory. v4-mapped is v4. */
GLOBAL int enforce_addr(__u32 set, __u32 kind_port, __u32 family, __u64 a, __u64 b)
{
	__u32 kind = kind_port & 0xffff, v4;
	struct enforce_set *e = enforce_set_get(set, ENFORCE_BY_ADDR, kind);
	struct enforce_addr4_key k4 = { .prefixlen = 64 };
	struct enforce_addr6_key k6 = { .prefixlen = 160 };
	struct enforce_rules *rules;

	if (!e)
		return 0;
	v4 = a;
	if (family == ENFORCE_IPV6 && a == 0 && (__u32)b == 0xffff0000) {
		v4 = b >> 32;
		family = ENFORCE_IPV4;
	}
	if (family == ENFORCE_IPV4) {
		if (!v4)
			v4 = bpf_htonl(0x7f000001);
		k4.keys = e->keys;
		__builtin_memcpy(k4.addr, &v4, sizeof(k4.addr));
		rules = bpf_map_lookup_elem(&enforce_addrs4, &k4);
	} else if (family == ENFORCE_IPV6) {
		if (!a && !b)
			b = bpf_cpu_to_be64(1);
		k6.keys = e->keys;
		__builtin_memcpy(k6.addr, &a, 8);
		__builtin_memcpy(k6.addr + 8, &b, 8);
		rules = bpf_map_lookup_elem(&enforce_addrs6, &k6);
	} else {
		return 0;
	}
	return rules ? enforce_pick(rules, kind, kind_port >> 16) : 0;
}

#define enforce_kind_port(kind, port) ((__u32)(kind) | (__u32)(port) << 16)

/* Say it in the record and carry out what the kernel can do here. can_deny: the hook can still refuse
 * the act. Returns whether it must. Only for programs that may send signals (tracing, LSM). */
static __always_inline bool enforce_mark(struct wire_hdr *h, int v, bool can_deny)
{
	if (!enforce_denies(v))
		return false;
	if (enforce_kills(v)) {
		if (bpf_send_signal(9))
			count_fail(FAIL_SIGNAL);
		else
			h->flags |= WIRE_F_KILLED;
	}
	if (can_deny) {
		h->flags |= WIRE_F_DENIED;
		h->ret = -1; /* EPERM */
	} else if (!(h->flags & WIRE_F_KILLED)) {
		return false;
	}
	h->enforced = enforce_id_of(v);
	return can_deny;
}

/* At the end of a call: was it refused by a hook in front of the act (prevent.bpf.c)? Then who decided
 * goes into the record. */
GLOBAL int enforce_acted(struct scratch *s)
{
	__u64 tid = bpf_get_current_pid_tgid();
	struct wire_hdr *h;
	struct act *act;
	int v;

	if (!s)
		return 0;
	act = bpf_map_lookup_elem(&acts, &tid);
	if (!act)
		return 0;
	h = (struct wire_hdr *)s->rec;
	v = act->verdict;
	bpf_map_delete_elem(&acts, &tid);
	if (h->ret != -1)
		return 0;
	h->flags |= WIRE_F_DENIED | (enforce_kills(v) ? WIRE_F_KILLED : 0);
	h->enforced = enforce_id_of(v);
	return 1;
}

/* ---- in cgroup programs ---- */

/* The same there. Where a cgroup program may not send a signal, the process gets it when its system call
 * ends (portable tier), which comes before it runs on. */
static __always_inline void enforce_mark_cgroup(struct wire_hdr *h, int v)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	__u64 ts;

	if (!enforce_denies(v))
		return;
	h->flags |= WIRE_F_DENIED;
	h->ret = -1;
	h->enforced = enforce_id_of(v);
	if (!enforce_kills(v))
		return;
	h->flags |= WIRE_F_KILLED;
	if (enforce_mode == ENFORCE_MODE_SIGNAL) {
		if (bpf_send_signal(9)) {
			count_fail(FAIL_SIGNAL);
			h->flags &= ~WIRE_F_KILLED;
		}
		return;
	}
	ts = bpf_ktime_get_boot_ns();
	bpf_map_update_elem(&sentenced, &tgid, &ts, BPF_ANY);
}

/* At the end of a system call of a tracked task. */
static __always_inline bool enforce_sentence(void)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;

	if (!enforce_is_used() || !bpf_map_lookup_elem(&sentenced, &tgid))
		return false;
	bpf_send_signal(9);
	bpf_map_delete_elem(&sentenced, &tgid);
	return true;
}

/* Who, and to whom: all that a network hook of a cgroup knows. */
static __always_inline int enforce_here(__u32 kind, __u16 family, const __u8 *addr, __u16 port)
{
	__u32 set = enforce_set_here();
	__u64 half[2];

	if (!set)
		return 0;
	__builtin_memcpy(half, addr, sizeof(half));
	return enforce_max(enforce_task(set, kind), enforce_addr(set, enforce_kind_port(kind, port),
								 family, half[0], half[1]));
}

#endif
