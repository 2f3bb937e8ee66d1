/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Full tier: sockets that no program of the sandbox's cgroup judges. Those of the internet families that were made in
 * the sandbox are judged there (net.bpf.c); here what was made outside and passed in, and all other families.
 * Loaded with prevent.bpf.c, only when something is to be enforced. */
#include "bpf/lib/enforce.bpf.h"
#include "bpf/lib/escape.bpf.h"
#include "bpf/lib/sock.bpf.h"
#include "bpf/lib/family.bpf.h"

#define EPERM		  1
#define PF_IO_WORKER	  0x00000010
#define NR_IO_URING_ENTER 426

static __always_inline bool sock_by_uring(struct task_struct *t)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(t);

	return t->flags & PF_IO_WORKER || regs->orig_ax == NR_IO_URING_ENTER;
}

/* Refused, by `v`: the end of the call tells it. */
static __always_inline int sock_refuse(__u32 kind, int v)
{
	__u64 tid = bpf_get_current_pid_tgid();
	struct act act = { .verdict = v, .kind = kind };

	if (enforce_kills(v) && bpf_send_signal(9))
		count_fail(FAIL_SIGNAL);
	bpf_map_update_elem(&acts, &tid, &act, BPF_ANY);
	return -EPERM;
}

/* io_uring has no such end. */
static __always_inline void tell_connect(struct task_state *st, const struct peer *p, __u8 type)
{
	struct wire_net r = {};

	header_of(&r.h, bpf_get_current_task_btf(), st, WIRE_NET_CONNECT);
	r.h.flags = WIRE_F_IOURING;
	r.family = p->family;
	r.type = type;
	r.cookie = p->cookie;
	r.dport = p->port;
	__builtin_memcpy(r.daddr, p->addr, sizeof(r.daddr));
	enforce_mark(&r.h, p->verdict, true);
	emit_wake(&r, sizeof(r), 0, WIRE_RING_BULK, false);
}

/* Address and port of an internet family, from the kernel's copy. */
static __always_inline void peer_of(struct peer *p, const struct sockaddr *address)
{
	struct {
		__u16 family;
		__u16 port;
		__u32 ip_or_flow;
		__u8 ip6[16];
	} sa = {};

	bpf_probe_read_kernel(&sa, sizeof(sa), address);
	p->port = ntohs(sa.port);
	if (p->family == AF_INET)
		__builtin_memcpy(p->addr, &sa.ip_or_flow, 4);
	else
		__builtin_memcpy(p->addr, sa.ip6, sizeof(p->addr));
}

SEC("fmod_ret/security_socket_connect")
int BPF_PROG(prevent_connect, struct socket *sock, struct sockaddr *address)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task_state *st = task_own_state(t);
	__u64 tid = bpf_get_current_pid_tgid();
	struct sock *sk = BPF_CORE_READ(sock, sk);
	struct peer p = {};
	__u64 half[2];
	__u32 set;
	bool inet;

	if (!st || st->role != ROLE_PAYLOAD)
		return 0;
	set = enforce_set_of(st);
	if (!set)
		return 0;
	p.family = BPF_CORE_READ(address, sa_family);
	inet = p.family == AF_INET || p.family == AF_INET6;
	if (!p.family || /* AF_UNSPEC: a disconnect */
	    (inet && cgroup_is_under((__u64)BPF_CORE_READ(sk, sk_cgrp_data.cgroup), st->cgid)))
		return 0;
	p.verdict = enforce_task(set, WIRE_NET_CONNECT);
	if (inet) {
		peer_of(&p, address);
		p.cookie = BPF_CORE_READ(sk, __sk_common.skc_cookie.counter);
		__builtin_memcpy(half, p.addr, sizeof(half));
		p.verdict = enforce_max(
			p.verdict, enforce_addr(set, enforce_kind_port(WIRE_NET_CONNECT, p.port),
						p.family, half[0], half[1]));
	}
	if (sock_by_uring(t)) {
		if (!enforce_denies(p.verdict))
			return 0;
		tell_connect(st, &p, BPF_CORE_READ(sock, type));
		return -EPERM;
	}
	/* The end of the call has the kernel's copy of the address from here. */
	if (inet)
		bpf_map_update_elem(&connecting, &tid, &p, BPF_ANY);
	if (!enforce_denies(p.verdict))
		return 0;
	return sock_refuse(WIRE_NET_CONNECT, p.verdict);
}

/* What is told as the escape signal socket_family. */
SEC("fmod_ret/security_socket_create")
int BPF_PROG(prevent_socket, int family, int type, int protocol, int kern)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task_state *st = task_own_state(t);
	struct wire_escape *r;
	struct scratch *s;
	int v;

	if (kern || !is_escape_family(family, protocol) || !st || st->role != ROLE_PAYLOAD)
		return 0;
	v = enforce_escape(enforce_set_of(st), WIRE_ESCAPE_SOCKET_FAMILY);
	if (!enforce_denies(v))
		return 0;
	if (!sock_by_uring(t))
		return sock_refuse(WIRE_ESCAPE, v);
	s = scratch_get();
	if (!s) {
		no_scratch(st, WIRE_ESCAPE);
		return -EPERM;
	}
	r = rec_begin(s, struct wire_escape);
	header(&r->h, st, WIRE_ESCAPE);
	r->h.flags = WIRE_F_IOURING;
	r->type = WIRE_ESCAPE_SOCKET_FAMILY;
	r->args[0] = family;
	r->args[1] = type;
	r->args[2] = protocol;
	enforce_mark(&r->h, v, true);
	emit_scratch(s, WIRE_RING_URGENT);
	scratch_put(s);
	return -EPERM;
}
