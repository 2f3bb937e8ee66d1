/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Sockets: what the families' programs share. */
#ifndef WARDER_BPF_SOCK_H
#define WARDER_BPF_SOCK_H

#include "bpf/lib/emit.bpf.h"
#include "bpf/lib/task.bpf.h"

#define AF_UNIX		1
#define AF_INET		2
#define AF_INET6	10
#define AF_NETLINK	16
#define AF_VSOCK	40
#define SOCK_STREAM	1
#define SOCK_RAW	3
#define SOCK_TYPE_MASK	0xf
#define IPPROTO_ICMP	1
#define IPPROTO_TCP	6
#define IPPROTO_UDP	17
#define IPPROTO_ICMPV6	58
#define IPPROTO_MPTCP	262
#define TCP_ESTABLISHED 1
#define TCP_SYN_SENT	2
#define TCP_SYN_RECV	3
#define TCP_CLOSE	7
#define EEXIST		17
#define EINPROGRESS	115
#define DNS_PORT	53
#define SEND_EVERY_NS	1000000000ull
#define ntohs(x)	__builtin_bswap16(x)

/* A socket made in a sandbox has a cookie by the time it has a flow. One that was passed in may have
 * none: then its address stands in, which no cookie ever equals. */
static __always_inline __u64 flow_key(__u64 cookie, __u64 sk)
{
	return cookie ? cookie : sk;
}

/* It is not there any more whose end would have been told, or, of one that is not decided yet, both. */
GLOBAL int flow_lost(__u32 sandbox, bool pending)
{
	__u64 now = bpf_ktime_get_boot_ns();

	if (pending)
		count_drop(sandbox, WIRE_NET_CONNECT, now);
	count_drop(sandbox, WIRE_NET_CLOSE, now);
	return 0;
}

/* Remember a connection for its end. */
static __always_inline void flow_keep(const __u64 *key, const struct flow *f)
{
	__u32 sandbox = f->r.h.sandbox, place = sandbox & (SANDBOXES_MAX - 1);
	struct guard *g = bpf_map_lookup_elem(&guards, &place);
	long r = -EEXIST;

	if (!g || is_former(g, sandbox))
		return;
	/* One that is there already takes no more room. */
	if (!shared || g->flows < FLOWS_EACH)
		r = bpf_map_update_elem(&flows, key, f, BPF_NOEXIST);
	if (r == 0)
		__sync_fetch_and_add(&g->flows, 1);
	if (r == 0 || (r == -EEXIST && !bpf_map_update_elem(&flows, key, f, BPF_EXIST)))
		return;
	flow_lost(sandbox, f->r.h.ret == -EINPROGRESS);
}

/* The connection has ended. */
static __always_inline void flow_done(const __u64 *key, const struct flow *f)
{
	__u32 sandbox = f->r.h.sandbox, place = sandbox & (SANDBOXES_MAX - 1);
	struct guard *g = bpf_map_lookup_elem(&guards, &place);

	if (bpf_map_delete_elem(&flows, key) == 0 && g && g->sandbox == sandbox)
		__sync_fetch_and_sub(&g->flows, 1);
}

/* The socket's own end, and with `peer` the other one. */
static __always_inline void sock_addrs(struct wire_net *r, const struct sock *sk, bool peer)
{
	struct sock *s = (struct sock *)sk;

	r->sport = READ(s, __sk_common.skc_num);
	if (peer)
		r->dport = ntohs(READ(s, __sk_common.skc_dport));
	if (r->family == AF_INET) {
		*(__u32 *)r->saddr = READ(s, __sk_common.skc_rcv_saddr);
		if (peer)
			*(__u32 *)r->daddr = READ(s, __sk_common.skc_daddr);
	} else {
		bpf_core_read(r->saddr, 16, &sk->__sk_common.skc_v6_rcv_saddr);
		if (peer)
			bpf_core_read(r->daddr, 16, &sk->__sk_common.skc_v6_daddr);
	}
}

/* Not memcmp: the verifier of 6.1 follows two words more easily than a loop. */
static __always_inline bool same_addr(const __u8 *a, const __u8 *b)
{
	const __u64 *x = (const __u64 *)a, *y = (const __u64 *)b;

	return x[0] == y[0] && x[1] == y[1];
}

/* For what cgroup programs do once a second (tracing ones may not ask for it, and have targets of their own): ticks are
 * fine enough, and to read the clock is ten times as dear. */
static __always_inline __u64 coarse_ns(void)
{
	return bpf_ktime_get_coarse_ns();
}

/* Datagrams to one target are one record a second: is this one merged into the next? */
static __always_inline bool is_merged(struct sock_state *st, const __u8 *addr, __u16 port,
				      __u64 now)
{
	if (st->port != port || !same_addr(st->addr, addr) || now - st->told_ts >= SEND_EVERY_NS)
		return false;
	__sync_fetch_and_add(&st->count, 1);
	return true;
}

static __always_inline void sock_target(struct sock_state *st, __u16 family, const __u8 *addr,
					__u16 port, __u64 now)
{
	st->family = family;
	st->port = port;
	__builtin_memcpy(st->addr, addr, sizeof(st->addr));
	st->told_ts = now;
	st->count = 0;
	st->refused = 0;
}

#endif
