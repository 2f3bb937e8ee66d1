/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Packets of a sandbox's sockets, on its leaf only, so the host's pay nothing: what is no stream is
 * counted, and what goes to and comes from port 53 is copied raw and parsed in user space. A packet has
 * no task: its process is the one that made, connected or last used the socket.
 * Misses: resolvers on other ports, DNS over TLS or HTTPS, IPv6 fragments made by the sender. */
#include "bpf/lib/sock.bpf.h"

#define ETH_P_IP    0x0800
#define ETH_P_IPV6  0x86dd
#define DNS_HEADER  12
#define SKB_LEVELS  8
#define IPV6_EXTS   4 /* extension headers that are walked over */
#define TCP_FIN_SYN 0x03
#define TCP_SYN	    0x02

struct packet {
	__u8 saddr[16] __attribute__((aligned(8)));
	__u8 daddr[16];
	__u16 family;
	__u16 sport, dport;
	__u8 proto;
	__u8 tcp_flags;
	__u32 l4;      /* offset */
	__u32 payload; /* offset */
	__u32 tcp_seq;
};

/* Over IPv6 extension headers, behind which a query could hide. */
static __always_inline bool skip_extensions(struct __sk_buff *skb, struct packet *p)
{
	__u8 h[2];
	int i;

#pragma unroll
	for (i = 0; i < IPV6_EXTS; i++) {
		if (p->proto != 0 /* hop by hop */ && p->proto != 43 /* routing */ &&
		    p->proto != 60 /* destination */)
			return true;
		if (bpf_skb_load_bytes(skb, p->l4, h, 2))
			return false;
		p->proto = h[0];
		p->l4 += (h[1] + 1) * 8;
	}
	return true;
}

/* Addresses and protocol. False: no IP, a later fragment, cut. */
static __always_inline bool parse_ip(struct __sk_buff *skb, struct packet *p)
{
	__u8 h[40] = {};

	if (skb->protocol == ntohs(ETH_P_IP)) {
		if (bpf_skb_load_bytes(skb, 0, h, 20))
			return false;
		if ((h[6] & 0x1f) || h[7])
			return false;
		p->family = AF_INET;
		p->proto = h[9];
		p->l4 = (h[0] & 0xf) * 4;
		__builtin_memcpy(p->saddr, h + 12, 4);
		__builtin_memcpy(p->daddr, h + 16, 4);
		return true;
	}
	if (skb->protocol == ntohs(ETH_P_IPV6)) {
		if (bpf_skb_load_bytes(skb, 0, h, 40))
			return false;
		p->family = AF_INET6;
		p->proto = h[6];
		p->l4 = 40;
		__builtin_memcpy(p->saddr, h + 8, 16);
		__builtin_memcpy(p->daddr, h + 24, 16);
		return skip_extensions(skb, p);
	}
	return false;
}

/* Ports, where the payload begins. False: neither UDP nor TCP, or cut. */
static __always_inline bool parse_ports(struct __sk_buff *skb, struct packet *p)
{
	__u16 ports[2];
	__u32 seq;
	__u8 off4;

	if (p->proto != IPPROTO_UDP && p->proto != IPPROTO_TCP)
		return false;
	if (bpf_skb_load_bytes(skb, p->l4, ports, 4))
		return false;
	p->sport = ntohs(ports[0]);
	p->dport = ntohs(ports[1]);
	p->payload = p->l4 + 8;
	if (p->proto == IPPROTO_TCP) {
		if (bpf_skb_load_bytes(skb, p->l4 + 4, &seq, 4) ||
		    bpf_skb_load_bytes(skb, p->l4 + 12, &off4, 1) ||
		    bpf_skb_load_bytes(skb, p->l4 + 13, &p->tcp_flags, 1))
			return false;
		p->tcp_seq = __builtin_bswap32(seq);
		if (p->tcp_flags & TCP_SYN) /* data with it come behind */
			p->tcp_seq++;
		p->payload = p->l4 + (off4 >> 4) * 4;
	}
	return true;
}

enum { PACKET_NONE, PACKET_IP, PACKET_PORTS };

/* What is known of it: PACKET_IP without ports, payload and what TCP says. */
GLOBAL int parse_packet(struct __sk_buff *skb, struct packet *p)
{
	if (!p || !parse_ip(skb, p))
		return PACKET_NONE;
	return parse_ports(skb, p) ? PACKET_PORTS : PACKET_IP;
}

/* ---- counting ---- */

/* A datagram of a socket that no other hook sees sending: ICMP, raw. Once a second for each target. */
static __always_inline void raw_sent(struct __sk_buff *skb, struct sock_state *st,
				     const struct packet *p, __u8 type, __u8 proto)
{
	__u64 now = coarse_ns();
	struct wire_net *r;
	struct scratch *s;

	if (is_merged(st, p->daddr, 0, now))
		return;
	s = scratch_get();
	if (!s) {
		count_fail(FAIL_SCRATCH);
		count_drop(st->who.sandbox, WIRE_NET_SEND, bpf_ktime_get_boot_ns());
		return;
	}
	r = rec_begin(s, struct wire_net);
	header_of_owner(&r->h, &st->who, WIRE_NET_SEND);
	r->cookie = bpf_get_socket_cookie(skb);
	r->family = p->family;
	r->type = type;
	r->proto = proto;
	r->count = 1;
	if (st->port == 0 && same_addr(st->addr, p->daddr))
		r->count += st->count;
	__builtin_memcpy(r->saddr, p->saddr, sizeof(r->saddr));
	__builtin_memcpy(r->daddr, p->daddr, sizeof(r->daddr));
	sock_target(st, p->family, p->daddr, 0, now);
	emit_scratch(s, WIRE_RING_BULK);
	scratch_put(s);
}

static __always_inline void count_packet(struct sock_state *st, const struct packet *p, __u32 n,
					 bool out)
{
	if (!st->own_port || !st->family) {
		st->own_port = out ? p->sport : p->dport;
		__builtin_memcpy(st->own, out ? p->saddr : p->daddr, sizeof(st->own));
	}
	if (!st->family) { /* it only ever listened: the other end is who wrote first */
		st->family = p->family;
		st->port = out ? p->dport : p->sport;
		__builtin_memcpy(st->addr, out ? p->daddr : p->saddr, sizeof(st->addr));
	}
	if (out) {
		__sync_fetch_and_add(&st->bytes_out, n);
		__sync_fetch_and_add(&st->packets_out, 1);
	} else {
		__sync_fetch_and_add(&st->bytes_in, n);
		__sync_fetch_and_add(&st->packets_in, 1);
	}
}

/* ---- DNS ---- */

/* The sandbox whose leaf the socket was made in, or below. */
GLOBAL int owner_of_skb(struct __sk_buff *skb, struct owner *o)
{
	struct sandbox_cfg *cfg;
	__u64 id;
	int i;

	if (!o)
		return 0;
	o->cgid = bpf_skb_cgroup_id(skb);
#pragma unroll
	for (i = 0; i < SKB_LEVELS; i++) {
		id = bpf_skb_ancestor_cgroup_id(skb, i + 1);
		if (!id)
			return 0;
		cfg = bpf_map_lookup_elem(&sandboxes, &id);
		if (cfg) {
			o->sandbox = cfg->id;
			return 0;
		}
	}
	return 0;
}

/* o: the socket's own; one of a stream has none: who connected, or else its cgroup. */
static __always_inline void dns_header(struct wire_hdr *h, struct __sk_buff *skb, __u16 kind,
				       __u64 cookie, struct owner *o)
{
	struct flow *flow = o->sandbox ? NULL : bpf_map_lookup_elem(&flows, &cookie);

	if (flow) {
		__builtin_memcpy(h, &flow->r.h, sizeof(*h));
		h->kind = kind;
		h->nr = WIRE_NR_NONE;
		h->flags = 0;
		h->enforced = 0;
		h->ret = 0;
		return;
	}
	if (!o->sandbox)
		owner_of_skb(skb, o);
	header_of_owner(h, o, kind);
}

/* At most WIRE_DNS_MAX bytes from `at` on. How many were not taken. */
static __always_inline __u32 copy_data(struct __sk_buff *skb, struct scratch *s, struct wire_dns *r,
				       __u32 at)
{
	__u32 left = skb->len - at, n = left;

	if (n > WIRE_DNS_MAX)
		n = WIRE_DNS_MAX;
	left -= n;
	r->data.len = 0; /* of the piece before */
	s->len = sizeof(*r);
	/* 6.1's helper takes no length that might be 0, and its verifier learns nothing from n != 0. */
	n--;
	barrier_var(n);
	n = (n & (WIRE_DNS_MAX - 1)) + 1;
	if (bpf_skb_load_bytes(skb, at, s->rec + sizeof(*r), n)) {
		count_fail(FAIL_SKB);
		return 0;
	}
	r->data.off = sizeof(*r);
	r->data.len = n;
	s->len = sizeof(*r) + n;
	return left;
}

GLOBAL int send_dns(struct __sk_buff *skb, struct packet *p, struct owner *o, bool out)
{
	__u16 kind = out ? WIRE_DNS_QUERY : WIRE_DNS_ANSWER;
	__u64 cookie;
	__u32 at, left;
	struct wire_dns *r;
	struct scratch *s;
	int i;

	if (!p || !o)
		return 0;
	cookie = bpf_get_socket_cookie(skb);
	at = p->payload;
	s = scratch_get();
	if (!s) {
		count_fail(FAIL_SCRATCH);
		if (!o->sandbox)
			owner_of_skb(skb, o);
		count_drop(o->sandbox, kind, bpf_ktime_get_boot_ns());
		return 0;
	}
	r = rec_begin(s, struct wire_dns);
	dns_header(&r->h, skb, kind, cookie, o);
	r->cookie = cookie;
	r->family = p->family;
	r->proto = p->proto;
	r->sport = out ? p->sport : p->dport;
	r->dport = out ? p->dport : p->sport;
	__builtin_memcpy(r->saddr, out ? p->saddr : p->daddr, 16);
	__builtin_memcpy(r->daddr, out ? p->daddr : p->saddr, 16);
	for (i = 0; i < WIRE_DNS_PIECES; i++) {
		r->h.flags = 0;
		r->total = skb->len - at;
		r->tcp_seq = p->tcp_seq + (at - p->payload);
		left = copy_data(skb, s, r, at);
		if (p->proto == IPPROTO_TCP && left && i < WIRE_DNS_PIECES - 1)
			r->total = WIRE_DNS_MAX; /* the next piece follows */
		else if (left)
			r->h.flags |= WIRE_F_TRUNC;
		emit_scratch(s, WIRE_RING_BULK);
		if (p->proto != IPPROTO_TCP || !left)
			break;
		at += WIRE_DNS_MAX;
	}
	scratch_put(s);
	return 0;
}

/* Bytes of all packets of a sandbox, while somebody asks for them (rules with usage.net_bps). */
volatile __u32 usage_on;
__u64 usage_bytes[SANDBOXES_MAX];

static __always_inline void count_usage(struct __sk_buff *skb)
{
	struct owner o = {};

	owner_of_skb(skb, &o);
	__sync_fetch_and_add(&usage_bytes[o.sandbox & (SANDBOXES_MAX - 1)], skb->len);
}

static __always_inline int on_packet(struct __sk_buff *skb, bool out)
{
	struct sock_state *st = NULL;
	struct packet p = {};
	struct owner o = {};
	struct bpf_sock *sk = skb->sk;
	__u32 type = 0, proto = 0;
	int known;

	if (usage_on)
		count_usage(skb);
	if (sk)
		sk = bpf_sk_fullsock(sk);
	if (sk) {
		type = sk->type;
		proto = sk->protocol;
		/* The many packets of TCP that are no DNS go no further than here. */
		if (type == SOCK_STREAM && sk->dst_port != ntohs(DNS_PORT))
			return 1;
		if (type != SOCK_STREAM)
			st = bpf_sk_storage_get(&socks, sk, 0, 0);
	}
	known = parse_packet(skb, &p);
	if (known == PACKET_NONE)
		return 1;
	if (st) {
		count_packet(st, &p, skb->len - (known == PACKET_PORTS ? p.payload : p.l4), out);
		if (out && (type == SOCK_RAW || proto != IPPROTO_UDP))
			raw_sent(skb, st, &p, type, proto);
	}
	if (known != PACKET_PORTS || (out ? p.dport : p.sport) != DNS_PORT)
		return 1;
	if (skb->len <= p.payload) /* a bare ACK */
		return 1;
	if (p.proto == IPPROTO_UDP && skb->len < p.payload + DNS_HEADER)
		return 1;
	if (st)
		__builtin_memcpy(&o, &st->who, sizeof(o));
	send_dns(skb, &p, &o, out);
	return 1;
}

SEC("cgroup_skb/egress")
int on_egress(struct __sk_buff *skb)
{
	return on_packet(skb, true);
}

SEC("cgroup_skb/ingress")
int on_ingress(struct __sk_buff *skb)
{
	return on_packet(skb, false);
}
