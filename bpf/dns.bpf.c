/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* DNS as it is on the wire: datagrams (and TCP segments) to and from port 53, copied raw and parsed
 * in user space. On the sandbox's leaf only, so the host's packets pay nothing. A packet has no task:
 * its process is the one that last used the socket for a resolver (`resolvers`, by cookie).
 * Misses: resolvers on other ports, DNS over TLS or HTTPS, messages split over TCP segments. */
#include "bpf/lib/emit.bpf.h"
#include "bpf/lib/task.bpf.h"

#define ETH_P_IP    0x0800
#define ETH_P_IPV6  0x86dd
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define AF_INET	    2
#define AF_INET6    10
#define DNS_PORT    53
#define DNS_HEADER  12
#define SKB_LEVELS  8
#define ntohs(x)    __builtin_bswap16(x)

struct packet {
	__u16 family;
	__u16 sport, dport;
	__u8 proto;
	__u8 pad;
	__u32 payload; /* offset */
	__u8 saddr[16];
	__u8 daddr[16];
};

/* Addresses, ports, where the payload begins. False: not UDP or TCP, a later fragment, cut. */
static __always_inline bool parse(struct __sk_buff *skb, struct packet *p)
{
	__u8 h[40] = {};
	__u16 ports[2];
	__u8 off4;
	__u32 l4;

	if (skb->protocol == ntohs(ETH_P_IP)) {
		if (bpf_skb_load_bytes(skb, 0, h, 20))
			return false;
		if ((h[6] & 0x1f) || h[7])
			return false;
		p->family = AF_INET;
		p->proto = h[9];
		l4 = (h[0] & 0xf) * 4;
		__builtin_memcpy(p->saddr, h + 12, 4);
		__builtin_memcpy(p->daddr, h + 16, 4);
	} else if (skb->protocol == ntohs(ETH_P_IPV6)) {
		if (bpf_skb_load_bytes(skb, 0, h, 40))
			return false;
		p->family = AF_INET6;
		p->proto = h[6];
		l4 = 40;
		__builtin_memcpy(p->saddr, h + 8, 16);
		__builtin_memcpy(p->daddr, h + 24, 16);
	} else {
		return false;
	}
	if (p->proto != IPPROTO_UDP && p->proto != IPPROTO_TCP)
		return false;
	if (bpf_skb_load_bytes(skb, l4, ports, 4))
		return false;
	p->sport = ntohs(ports[0]);
	p->dport = ntohs(ports[1]);
	p->payload = l4 + 8;
	if (p->proto == IPPROTO_TCP) {
		if (bpf_skb_load_bytes(skb, l4 + 12, &off4, 1))
			return false;
		p->payload = l4 + (off4 >> 4) * 4;
	}
	return true;
}

/* The sandbox whose leaf the socket was made in, or below. */
static __always_inline void owner_of_skb(struct __sk_buff *skb, struct owner *o)
{
	struct sandbox_cfg *cfg;
	__u64 id;
	int i;

	o->cgid = bpf_skb_cgroup_id(skb);
#pragma unroll
	for (i = 0; i < SKB_LEVELS; i++) {
		id = bpf_skb_ancestor_cgroup_id(skb, i + 1);
		if (!id)
			return;
		cfg = bpf_map_lookup_elem(&sandboxes, &id);
		if (cfg) {
			o->sandbox = cfg->id;
			return;
		}
	}
}

static __always_inline void copy_data(struct __sk_buff *skb, struct scratch *s, struct wire_dns *r,
				      __u32 payload)
{
	__u32 n = r->total;

	if (n > WIRE_DNS_MAX) {
		n = WIRE_DNS_MAX;
		r->h.flags |= WIRE_F_TRUNC;
	}
	/* 6.1's helper takes no length that might be 0, and its verifier learns nothing from n != 0. */
	n--;
	barrier_var(n);
	n = (n & (WIRE_DNS_MAX - 1)) + 1;
	if (bpf_skb_load_bytes(skb, payload, s->rec + sizeof(*r), n)) {
		count_fail(FAIL_SKB);
		return;
	}
	r->data.off = sizeof(*r);
	r->data.len = n;
	s->len = sizeof(*r) + n;
}

static __always_inline int on_packet(struct __sk_buff *skb, bool out)
{
	struct packet p = {};
	struct owner *who, unknown = {};
	struct wire_dns *r;
	struct scratch *s;
	__u64 cookie;

	if (!parse(skb, &p) || (out ? p.dport : p.sport) != DNS_PORT)
		return 1;
	if (skb->len < p.payload + DNS_HEADER) /* a bare ACK, or no DNS message */
		return 1;
	cookie = bpf_get_socket_cookie(skb);
	who = bpf_map_lookup_elem(&resolvers, &cookie);
	if (!who) {
		owner_of_skb(skb, &unknown);
		who = &unknown;
	}
	s = scratch_get();
	if (!s) {
		count_fail(FAIL_SCRATCH);
		count_drop(who->sandbox, out ? WIRE_DNS_QUERY : WIRE_DNS_ANSWER,
			   bpf_ktime_get_boot_ns());
		return 1;
	}
	r = rec_begin(s, struct wire_dns);
	header_of_owner(&r->h, who, out ? WIRE_DNS_QUERY : WIRE_DNS_ANSWER);
	r->cookie = cookie;
	r->family = p.family;
	r->proto = p.proto;
	r->sport = out ? p.sport : p.dport;
	r->dport = out ? p.dport : p.sport;
	__builtin_memcpy(r->saddr, out ? p.saddr : p.daddr, 16);
	__builtin_memcpy(r->daddr, out ? p.daddr : p.saddr, 16);
	r->total = skb->len - p.payload;
	copy_data(skb, s, r, p.payload);
	emit_scratch(s, WIRE_RING_BULK);
	scratch_put(s);
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
