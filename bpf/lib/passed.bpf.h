/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* What is sent through sockets that were made outside the sandbox and passed in: inherited, or with SCM_RIGHTS. Programs
 * of the sandbox's cgroup follow the socket, not who uses it, so none of them sees it. */
#ifndef WARDER_BPF_PASSED_H
#define WARDER_BPF_PASSED_H

#include "bpf/lib/enforce.bpf.h"
#include "bpf/lib/escape.bpf.h"
#include "bpf/lib/sock.bpf.h"

static __always_inline bool is_inet(__u16 family)
{
	return family == AF_INET || family == AF_INET6;
}

/* Of an internet family, and made in none of the sandbox's cgroups. Asked for each send: numbers are loaded. */
static __always_inline bool is_passed_in(struct sock *sk, const struct task_state *st)
{
	struct cgroup *cg;

	if (!is_inet(READ(sk, __sk_common.skc_family)))
		return false;
	cg = (struct cgroup *)LOAD_PTR(sk, sk_cgrp_data.cgroup);
	return READ(cg, kn, id) != st->cgid && !cgroup_is_under((__u64)cg, st->cgid);
}

struct sent_name {
	__u16 family;
	__u16 port;
	__u32 ip_or_flow;
	__u8 ip6[16];
};

/* Does the name that comes with it decide where it goes? Not on a connection. To an IPv4 socket no family means its
 * own, to an IPv6 one that there is no name (udp_sendmsg, udpv6_sendmsg). */
static __always_inline bool is_named(const struct wire_net *r, const struct sent_name *n)
{
	if (r->type == SOCK_STREAM && r->dport)
		return false;
	return is_inet(n->family) || (!n->family && r->family == AF_INET);
}

static __always_inline void sent_to(struct wire_net *r, const struct sent_name *n)
{
	if (n->family == AF_INET)
		r->family = AF_INET;
	r->dport = ntohs(n->port);
	__builtin_memset(r->daddr, 0, sizeof(r->daddr));
	if (r->family == AF_INET)
		__builtin_memcpy(r->daddr, &n->ip_or_flow, 4);
	else
		__builtin_memcpy(r->daddr, n->ip6, sizeof(r->daddr));
}

/* A record of it, with the ends that the socket itself has. */
GLOBAL int passed_begin(struct scratch *s, struct task_state *st, __u64 socket)
{
	struct socket *so = (struct socket *)socket;
	struct sock *sk = BPF_CORE_READ(so, sk);
	struct wire_net *r;

	if (!s || !st)
		return 0;
	r = rec_begin(s, struct wire_net);
	header(&r->h, st, WIRE_NET_SEND);
	r->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	r->type = BPF_CORE_READ(so, type);
	r->proto = BPF_CORE_READ(sk, sk_protocol);
	r->cookie = BPF_CORE_READ(sk, __sk_common.skc_cookie.counter);
	sock_addrs(r, sk, true);
	return 0;
}

/* To where clouds hand out the machine's credentials: as metadata.bpf.c tells it of the sandbox's own sockets. */
GLOBAL int passed_metadata(struct scratch *s, struct task_state *st)
{
	struct metadata_key key;
	struct wire_escape *e;
	struct wire_net *r;
	__u16 family, port;

	if (!s || !st)
		return 0;
	r = (struct wire_net *)s->rec;
	__builtin_memcpy(&key, r->daddr, sizeof(key));
	family = r->family;
	port = r->dport;
	if (family == AF_INET6 && key.addr[0] == 0 && (__u32)key.addr[1] == 0xffff0000) {
		key.addr[0] = key.addr[1] >> 32;
		key.addr[1] = 0;
		family = AF_INET;
	}
	if (!bpf_map_lookup_elem(&metadata, &key))
		return 0;
	e = escape_begin(s, st, WIRE_ESCAPE_METADATA, WIRE_NR_NONE, 0);
	__builtin_memset(e->args, 0, sizeof(e->args));
	e->args[0] = key.addr[0];
	e->args[1] = key.addr[1];
	e->args[2] = port;
	e->args[3] = family;
	emit_scratch(s, WIRE_RING_URGENT);
	return 0;
}

/* Judge and tell what is in the record: for each target once a second, refused ones by themselves. True: it has to
 * be refused, which only a hook in front of it can (can_deny). */
GLOBAL int passed_tell(struct scratch *s, struct task_state *st, __u64 sock, bool can_deny)
{
	__u64 now = bpf_ktime_get_boot_ns(), half[2];
	struct send_state told = { .told_ts = now }, *seen;
	struct send_key key = {};
	struct wire_net *r;
	int v = 0;
	__u32 set;

	if (!s || !st)
		return 0;
	r = (struct wire_net *)s->rec;
	set = enforce_set_of(st);
	if (set) {
		__builtin_memcpy(half, r->daddr, sizeof(half));
		v = enforce_max(enforce_task(set, WIRE_NET_SEND),
				enforce_addr(set, enforce_kind_port(WIRE_NET_SEND, r->dport),
					     r->family, half[0], half[1]));
	}
	key.cookie = flow_key(r->cookie, sock);
	key.port = r->dport;
	key.pad = can_deny && enforce_denies(v);
	__builtin_memcpy(key.addr, r->daddr, sizeof(key.addr));
	seen = bpf_map_lookup_elem(&sends, &key);
	if (seen && !enforce_kills(v) && now - seen->told_ts < SEND_EVERY_NS) {
		__sync_fetch_and_add(&seen->count, 1);
		return key.pad;
	}
	r->count = 1 + (seen ? seen->count : 0);
	enforce_mark(&r->h, v, can_deny);
	emit_scratch(s, WIRE_RING_BULK_WAKE);
	bpf_map_update_elem(&sends, &key, &told, BPF_ANY);
	passed_metadata(s, st);
	return key.pad;
}

#endif
