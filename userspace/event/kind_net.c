// SPDX-License-Identifier: Apache-2.0
/* net.* */
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "userspace/base/auto.h"
#include "userspace/event/decode_ctx.h"
#include "userspace/event/net.h"
#include "userspace/event/names.h"

#define TYPE_MASK 0xf /* SOCK_NONBLOCK and SOCK_CLOEXEC may ride along */

bool decode_ip(uint16_t family, const uint8_t b[16], struct ip_addr *ret)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct ip_addr ip = { 0 };

	if (family == AF_INET) {
		ip.family = 4;
		memcpy(ip.b, b, 4);
	} else if (family == AF_INET6 && !memcmp(b, mapped, sizeof(mapped))) {
		ip.family = 4;
		memcpy(ip.b, b + 12, 4);
	} else if (family == AF_INET6) {
		ip.family = 6;
		memcpy(ip.b, b, 16);
	} else {
		return false;
	}
	*ret = ip;
	return true;
}

static bool ip_is_zero(const struct ip_addr *ip)
{
	static const uint8_t zero[16];

	return !memcmp(ip->b, zero, sizeof(zero));
}

/* What a flow is called after its address was unmapped: by the packets, not by the socket. */
void decode_set_family(struct decode_ctx *c, uint16_t family, const struct ip_addr *ip)
{
	const char *name = ip && ip->family == 4 ? "inet" : name_family(family);

	if (name)
		event_set_strz(c->ev, F_NET_FAMILY, name);
	else
		event_set_str(c->ev, F_NET_FAMILY, arena_printf(c->ev->arena, "af_%u", family));
}

/* Sent to the unspecified address is sent to this host; a rule about loopback must see it as that. */
static void set_loopback(struct ip_addr *ip)
{
	static const uint8_t v4[4] = { 127, 0, 0, 1 };

	if (ip->family == 4)
		memcpy(ip->b, v4, sizeof(v4));
	else
		ip->b[15] = 1;
}

void decode_set_endpoints(struct decode_ctx *c, const struct net_endpoints *e)
{
	struct ip_addr src, dst;
	bool has_src = decode_ip(e->family, e->saddr, &src);
	bool has_dst = decode_ip(e->family, e->daddr, &dst);
	bool listens = c->ev->kind == WIRE_NET_LISTEN || c->ev->kind == WIRE_NET_BIND;

	decode_set_family(c, e->family, listens ? (has_src ? &src : NULL) : has_dst ? &dst : NULL);
	if (has_src && (listens || e->sport || !ip_is_zero(&src))) {
		/* before a connect a mapped socket's own address is still "::" */
		if (!listens && has_dst && src.family != dst.family && ip_is_zero(&src))
			src.family = dst.family;
		event_set_ip(c->ev, F_NET_SRC_IP, src);
		event_set_u64(c->ev, F_NET_SRC_PORT, e->sport);
	}
	if (has_dst && e->dport && ip_is_zero(&dst) &&
	    (c->ev->kind == WIRE_NET_CONNECT || c->ev->kind == WIRE_NET_SEND))
		set_loopback(&dst);
	if (has_dst && (!listens || e->dport || !ip_is_zero(&dst))) {
		event_set_ip(c->ev, F_NET_DST_IP, dst);
		event_set_u64(c->ev, F_NET_DST_PORT, e->dport);
	}
	if (e->cookie)
		event_set_u64(c->ev, F_NET_COOKIE, e->cookie);
}

static const char *proto_name(uint16_t family, uint8_t type, uint8_t proto)
{
	bool stream = (type & TYPE_MASK) == SOCK_STREAM, dgram = (type & TYPE_MASK) == SOCK_DGRAM;

	if (family == AF_UNIX)
		return "unix";
	if (family != AF_INET && family != AF_INET6)
		return NULL;
	if ((type & TYPE_MASK) == SOCK_RAW)
		return "raw";
	switch (proto) {
	case IPPROTO_TCP:
		return "tcp";
	case IPPROTO_UDP:
		return "udp";
	case IPPROTO_ICMP:
		return "icmp";
	case IPPROTO_ICMPV6:
		return "icmp6";
	case IPPROTO_SCTP:
		return "sctp";
	case IPPROTO_UDPLITE:
		return "udplite";
	case 0:
		return stream ? "tcp" : dgram ? "udp" : NULL;
	}
	return NULL;
}

void decode_set_proto(struct decode_ctx *c, uint16_t family, uint8_t type, uint8_t proto)
{
	const char *name = proto_name(family, type, proto);

	if (name)
		event_set_strz(c->ev, F_NET_PROTO, name);
	else if (proto)
		event_set_str(c->ev, F_NET_PROTO, arena_printf(c->ev->arena, "proto_%u", proto));
}

static const char *type_name(uint8_t type)
{
	static const char *const names[] = {
		[SOCK_STREAM] = "stream", [SOCK_DGRAM] = "dgram",	  [SOCK_RAW] = "raw",
		[SOCK_RDM] = "rdm",	  [SOCK_SEQPACKET] = "seqpacket", [SOCK_PACKET] = "packet",
	};

	type &= TYPE_MASK;
	return type < ARRAY_SIZE(names) ? names[type] : NULL;
}

static void set_vsock(struct event *ev, const struct wire_net *w)
{
	struct wire_vsock own, peer;

	memcpy(&own, w->saddr, sizeof(own));
	memcpy(&peer, w->daddr, sizeof(peer));
	if (ev->kind == WIRE_NET_CONNECT) {
		event_set_u64(ev, F_NET_DST_CID, peer.cid);
		event_set_u64(ev, F_NET_DST_PORT, peer.port);
	} else if (ev->kind == WIRE_NET_BIND) {
		event_set_u64(ev, F_NET_SRC_PORT, own.port);
	}
}

/* Bytes and datagrams: all of them at the end, zeroes too, else what there is. */
static void set_counts(struct event *ev, const struct wire_net *w)
{
	bool end = ev->kind == WIRE_NET_CLOSE;
	bool datagrams = end && (w->packets_out || w->packets_in);

	if (w->bytes_out != WIRE_UNKNOWN && (end || w->bytes_out))
		event_set_u64(ev, F_NET_BYTES_OUT, w->bytes_out);
	if (w->bytes_in != WIRE_UNKNOWN && (end || w->bytes_in))
		event_set_u64(ev, F_NET_BYTES_IN, w->bytes_in);
	if (w->count)
		event_set_u64(ev, F_NET_COUNT, w->count);
	if (datagrams) {
		event_set_u64(ev, F_NET_PACKETS_OUT, w->packets_out);
		event_set_u64(ev, F_NET_PACKETS_IN, w->packets_in);
	}
}

static void set_unix_path(struct decode_ctx *c, struct wire_str at)
{
	struct str path = decode_bytes(c, at);
	char *z;

	if (path.n == 0)
		return;
	if (path.p[0]) {
		decode_set_string(c, F_NET_PATH, at);
		return;
	}
	path = decode_copy(c,
			   path); /* abstract: the NUL in front is shown as '@', others are kept */
	if (!path.p)
		return;
	z = (char *)path.p;
	z[0] = '@';
	event_set_str(c->ev, F_NET_PATH, path);
}

/* The way out's own word: name, reason and the name that was asked for afterwards. */
static void set_egress_words(struct decode_ctx *c, struct wire_str at)
{
	static const enum field_id fields[] = { F_NET_DST_NAME, F_NET_REASON, F_NET_ASKED };
	struct str rest = decode_bytes(c, at);

	for (size_t i = 0; i < ARRAY_SIZE(fields) && rest.n; i++) {
		size_t n = strnlen(rest.p, rest.n);

		if (n)
			event_set_str(c->ev, fields[i], decode_copy(c, (struct str){ rest.p, n }));
		n = MIN(n + 1, rest.n);
		rest = (struct str){ rest.p + n, rest.n - n };
	}
}

void decode_net(struct decode_ctx *c)
{
	const struct wire_net w = DECODE_FIXED(c, wire_net);
	struct net_endpoints e = {
		.cookie = w.cookie,
		.family = w.family,
		.sport = w.sport,
		.dport = w.dport,
		.saddr = w.saddr,
		.daddr = w.daddr,
	};
	struct event *ev = c->ev;

	decode_set_proto(c, w.family, w.type, w.proto);
	if (ev->kind == WIRE_NET_SOCKET) {
		if (type_name(w.type))
			event_set_strz(ev, F_NET_TYPE, type_name(w.type));
		decode_set_family(c, w.family, NULL);
		return;
	}
	decode_set_endpoints(c, &e);
	if (w.family != AF_UNIX && ev->hdr.vantage == WIRE_V_RUNTIME)
		set_egress_words(c, w.path);
	if (w.family == AF_UNIX)
		set_unix_path(c, w.path);
	if (w.family == AF_VSOCK)
		set_vsock(ev, &w);
	set_counts(ev, &w);
}

/* By the process of the routes, which reads what the sandbox sends and what an upstream answers. */
void decode_request(struct decode_ctx *c)
{
	const struct wire_request w = DECODE_FIXED(c, wire_request);
	struct event *ev = c->ev;

	event_set_strz(ev, F_NET_PROTO, "tcp");
	decode_set_string(c, F_NET_DST_NAME, w.name);
	event_set_u64(ev, F_NET_DST_PORT, w.dport);
	decode_set_string(c, F_NET_REASON, w.reason);
	event_set_u64(ev, F_NET_BYTES_OUT, w.bytes_out);
	event_set_u64(ev, F_NET_BYTES_IN, w.bytes_in);
	decode_set_string(c, F_HTTP_METHOD, w.method);
	decode_set_string(c, F_HTTP_PATH, w.path);
	if (w.status)
		event_set_u64(ev, F_HTTP_STATUS, w.status);
}
