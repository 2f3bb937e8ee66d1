/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* The life of a flow: a pending connect that is decided, the end of a connection or of a socket with
 * what went each way.
 *
 * The end is when the last descriptor is closed (cgroup/sock_release, also when the sandbox is killed)
 * or when TCP gives up before (inet_sock_set_state), whichever is first. At release nothing more can be
 * written: what still waits in the send queue counts as sent. UDP and raw sockets are counted packet by
 * packet in dns.bpf.c. Misses: bytes of MPTCP before 6.5; datagrams of sockets made outside (their sends: passed.bpf.c). */
#include "bpf/lib/sock.bpf.h"

#define SEND_SHUTDOWN 2

/* Datagram sockets get their state at birth: a packet later has no task to ask. Once a socket. */
SEC("cgroup/sock_create")
int on_sock_made(struct bpf_sock *ctx)
{
	struct sock_state *st;
	struct owner o = {};

	if (ctx->type == SOCK_STREAM || !owner_of_current(&o))
		return 1;
	st = bpf_sk_storage_get(&socks, ctx, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (st)
		__builtin_memcpy(&st->who, &o, sizeof(o));
	else
		count_fail(FAIL_STASH);
	return 1;
}

/* What the application sent and received. False: this kernel does not count it. */
static __always_inline bool flow_bytes(struct wire_net *r, const struct sock *sk, bool released)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct mptcp_sock *mp = (struct mptcp_sock *)sk;
	struct sock *s = (struct sock *)sk;
	__u32 queued;

	if (READ(s, sk_protocol) == IPPROTO_MPTCP) {
		if (!bpf_core_field_exists(mp->bytes_sent))
			return false;
		r->bytes_out = BPF_CORE_READ(mp, bytes_sent);
		r->bytes_in = BPF_CORE_READ(mp, bytes_received);
		return true;
	}
	r->bytes_out = READ(tp, bytes_sent) - READ(tp, bytes_retrans);
	/* Counts the peer's FIN as a byte. */
	r->bytes_in = READ(tp, bytes_received) - (READ(s, __sk_common.skc_flags) >> SOCK_DONE & 1);
	if (!released)
		return true;
	queued = READ(tp, write_seq) - READ(tp, snd_nxt);
	if (queued && READ(s, sk_shutdown) & SEND_SHUTDOWN)
		queued--; /* our own FIN */
	r->bytes_out += queued;
	return true;
}

static __always_inline void flow_end(const struct flow *flow, const struct sock *sk, bool released)
{
	struct wire_net r;

	__builtin_memcpy(&r, &flow->r, sizeof(r));
	r.h.nr = WIRE_NR_NONE;
	r.h.flags = 0;
	r.h.enforced = 0;
	r.h.ret = 0;
	r.h.kind = WIRE_NET_CLOSE;
	if (flow_bytes(&r, sk, released))
		emit_wake(&r, sizeof(r), 0, WIRE_RING_BULK, false);
}

static __always_inline void stream_released(struct bpf_sock *ctx)
{
	__u64 key = bpf_get_socket_cookie(ctx);
	struct flow *flow = bpf_map_lookup_elem(&flows, &key);

	if (!flow)
		return;
	/* A connect that never came to anything has no end. */
	if (flow->sk && flow->r.h.ret != -EINPROGRESS)
		flow_end(flow, (const struct sock *)flow->sk, true);
	flow_done(&key, flow);
}

/* Datagrams that enforcement refused since the last time that this was told. */
static __always_inline void refused_last(struct bpf_sock *ctx, struct sock_state *st, __u64 cookie)
{
	struct wire_net r = {};

	header_of_owner(&r.h, &st->who, WIRE_NET_SEND);
	r.h.flags = WIRE_F_DENIED;
	r.h.ret = -1; /* EPERM */
	r.h.enforced = st->refused_by;
	r.cookie = cookie;
	r.family = st->family;
	r.type = ctx->type;
	r.proto = ctx->protocol;
	r.dport = st->port;
	__builtin_memcpy(r.daddr, st->addr, sizeof(r.daddr));
	r.count = st->refused;
	emit_wake(&r, sizeof(r), 0, WIRE_RING_BULK, false);
}

static __always_inline void sock_released(struct bpf_sock *ctx)
{
	struct sock_state *st = bpf_sk_storage_get(&socks, ctx, 0, 0);
	struct wire_net r = {};

	if (!st)
		return;
	r.cookie = bpf_get_socket_cookie(ctx);
	if (st->refused)
		refused_last(ctx, st, r.cookie);
	if (!(st->packets_out | st->packets_in | st->count))
		return;
	header_of_owner(&r.h, &st->who, WIRE_NET_CLOSE);
	r.bytes_out = st->bytes_out;
	r.bytes_in = st->bytes_in;
	r.packets_out = st->packets_out;
	r.packets_in = st->packets_in;
	r.family = st->family;
	r.type = ctx->type;
	r.proto = ctx->protocol;
	r.sport = st->own_port;
	r.dport = st->port;
	__builtin_memcpy(r.saddr, st->own, sizeof(r.saddr));
	__builtin_memcpy(r.daddr, st->addr, sizeof(r.daddr));
	r.count = st->count;
	emit_wake(&r, sizeof(r), 0, WIRE_RING_BULK, false);
}

/* The last descriptor of a socket made in the sandbox is closed. */
SEC("cgroup/sock_release")
int on_sock_release(struct bpf_sock *ctx)
{
	if (ctx->type == SOCK_STREAM)
		stream_released(ctx);
	else
		sock_released(ctx);
	return 1;
}

/* A connection arrived at a listener of a sandbox: its socket gets a cookie, by which its end will be
 * known. The host's pay a walk up their cgroups, once a connection. */
static __always_inline void arrived(struct sock *sk)
{
	if (cgroup_sandbox((__u64)BPF_CORE_READ(sk, sk_cgrp_data.cgroup)))
		bpf_get_socket_cookie(sk);
}

static __always_inline void connect_decided(struct flow *flow, const struct sock *sk, int state)
{
	struct wire_net r;

	sock_addrs(&flow->r, sk, false);
	flow->r.h.ret = 0;
	__builtin_memcpy(&r, &flow->r, sizeof(r));
	r.h.nr = WIRE_NR_NONE;
	r.h.kind = WIRE_NET_CONNECT;
	r.h.ret = state == TCP_ESTABLISHED ? 0 : -BPF_CORE_READ(sk, sk_err);
	emit_wake(&r, sizeof(r), 0, WIRE_RING_BULK, false);
}

/* Each change of state of each TCP socket of the host, but only those in `flows` go on. Often in
 * softirq: the record is the connect's. */
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(on_sock_state, struct sock *sk, int oldstate, int newstate)
{
	__u64 cookie, key;
	struct flow *flow;

	if (newstate != TCP_ESTABLISHED && newstate != TCP_CLOSE)
		return 0;
	if (newstate == TCP_ESTABLISHED && oldstate == TCP_SYN_RECV) {
		arrived(sk);
		return 0;
	}
	cookie = sk->__sk_common.skc_cookie.counter;
	key = flow_key(cookie, (__u64)sk);
	flow = bpf_map_lookup_elem(&flows, &key);
	if (!flow)
		return 0;
	flow->sk = (__u64)sk;
	if (flow->r.h.ret == -EINPROGRESS)
		connect_decided(flow, sk, newstate);
	else if (newstate == TCP_CLOSE)
		flow_end(flow, sk, false);
	if (newstate == TCP_CLOSE)
		flow_done(&key, flow);
	return 0;
}
