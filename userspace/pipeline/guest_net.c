// SPDX-License-Identifier: Apache-2.0
/* Sockets of the guest. An address is the guest's own bytes, unchecked. */
#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "userspace/base/auto.h"
#include "userspace/capture/metadata.h"
#include "userspace/capture/watched.h"
#include "userspace/event/path.h"
#include "userspace/pipeline/guest_mirror.h"
#include "userspace/pipeline/guest_priv.h"

#define SOCK_TYPE_MASK 0xf

/* As bpf/lib/family.bpf.h: families that code in a sandbox has no business with. */
static bool is_escape_family(int32_t family, int32_t proto)
{
	switch (family) {
	case AF_KEY:
	case AF_PACKET:
	case AF_RDS:
	case AF_CAN:
	case AF_TIPC:
	case AF_ALG:
	case AF_VSOCK:
	case AF_XDP:
		return true;
	case AF_NETLINK:
		return proto == NETLINK_NETFILTER;
	default:
		return false;
	}
}

static bool is_refused(int64_t error)
{
	return error == EPERM || error == EACCES || error == EAFNOSUPPORT;
}

void guest_socket(struct guest *g, const struct seccheck_msg *m)
{
	uint64_t args[6] = { (uint64_t)(uint32_t)m->domain, (uint64_t)(uint32_t)m->socktype,
			     (uint64_t)(uint32_t)m->protocol };
	uint8_t type = (uint8_t)(m->socktype & SOCK_TYPE_MASK);
	struct wire_net w;
	struct guest_fd *f;

	if (!m->has_exit)
		return;
	if (is_escape_family(m->domain, m->protocol))
		guest_escape(g, m, WIRE_ESCAPE_SOCKET_FAMILY, (struct str){ 0 }, args);
	if (!m->error) {
		f = guest_fd(g, m->c.tgid, m->result, false);
		if (f) /* the number is used again */
			lru_remove(&g->fds, &f->node);
		f = guest_fd(g, m->c.tgid, m->result, true);
		if (f) {
			f->id = 0;
			f->port = f->peer_port = 0;
			f->family = (uint16_t)m->domain;
			f->type = type;
			f->proto = (uint8_t)m->protocol;
		}
	}
	if (!is_refused(m->error) &&
	    (m->error || type != SOCK_RAW || (m->domain != AF_INET && m->domain != AF_INET6)))
		return;
	w = (struct wire_net){
		.h = guest_header(g, m, WIRE_NET_SOCKET),
		.family = (uint16_t)m->domain,
		.type = type,
		.proto = (uint8_t)m->protocol,
	};
	guest_call_header(&w.h, m);
	if (w.h.ret > 0)
		w.h.ret = 0;
	guest_begin(g, sizeof(w));
	guest_send(g, &w, sizeof(w));
}

/* The address, and its port in host order. Sets family to 0 where there is none. */
struct address {
	uint16_t family, port;
	uint8_t b[16];
	struct str path;
};

static void read_address(struct address *ret, struct str raw)
{
	struct sockaddr_in6 in6;
	struct sockaddr_in in;
	uint16_t family;

	*ret = (struct address){ 0 };
	if (raw.n < sizeof(family))
		return;
	memcpy(&family, raw.p, sizeof(family));
	if (family == AF_INET && raw.n >= offsetof(struct sockaddr_in, sin_zero)) {
		memcpy(&in, raw.p, offsetof(struct sockaddr_in, sin_zero));
		memcpy(ret->b, &in.sin_addr, 4);
		ret->port = ntohs(in.sin_port);
	} else if (family == AF_INET6 && raw.n >= offsetof(struct sockaddr_in6, sin6_scope_id)) {
		memcpy(&in6, raw.p, offsetof(struct sockaddr_in6, sin6_scope_id));
		memcpy(ret->b, &in6.sin6_addr, 16);
		ret->port = ntohs(in6.sin6_port);
	} else if (family == AF_UNIX) {
		ret->path = (struct str){ raw.p + 2, MIN(raw.n - 2, (size_t)WIRE_SUN_PATH) };
		if (ret->path.n && ret->path.p[0])
			ret->path.n = strnlen(ret->path.p, ret->path.n);
	} else if (family == AF_INET || family == AF_INET6) {
		return;
	}
	ret->family = family;
}

static struct wire_net record_of(struct guest *g, const struct seccheck_msg *m, enum wire_kind kind,
				 const struct guest_fd *f)
{
	struct wire_net w = { .h = guest_header(g, m, kind) };

	guest_call_header(&w.h, m);
	if (w.h.ret > 0)
		w.h.ret = 0;
	if (f) {
		w.family = f->family;
		w.type = f->type;
		w.proto = f->proto;
		w.sport = f->port;
		memcpy(w.saddr, f->addr, sizeof(w.saddr));
	}
	if (!w.proto && (w.family == AF_INET || w.family == AF_INET6))
		w.proto = w.type == SOCK_STREAM	 ? IPPROTO_TCP
			  : w.type == SOCK_DGRAM ? IPPROTO_UDP
						 : 0;
	return w;
}

/* What bpf/metadata.bpf.c tells where the guest's connect reaches the host's kernel: without a network it does not. */
static void seek_metadata(struct guest *g, const struct seccheck_msg *m, const struct address *a)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	uint8_t b[16] = { 0 };
	uint64_t args[6] = { 0 };
	bool is_mapped = a->family == AF_INET6 && !memcmp(a->b, mapped, sizeof(mapped));

	if (g->opt.has_net || (a->family != AF_INET && a->family != AF_INET6))
		return;
	memcpy(b, is_mapped ? a->b + 12 : a->b, is_mapped || a->family == AF_INET ? 4 : 16);
	if (!metadata_has(b))
		return;
	memcpy(args, b, sizeof(b));
	args[2] = a->port;
	args[3] = is_mapped ? AF_INET : a->family;
	guest_escape(g, m, WIRE_ESCAPE_METADATA, (struct str){ 0 }, args);
}

/* The socket of a container engine, by its name. */
static void seek_engine(struct guest *g, const struct seccheck_msg *m, struct str path)
{
	if (path.n && path.p[0] &&
	    watched_class_of(path_join(&g->arena, m->c.cwd, path)) == WATCHED_SOCKET)
		guest_escape(g, m, WIRE_ESCAPE_RUNTIME_SOCKET, path, NULL);
}

void guest_addressed(struct guest *g, const struct seccheck_msg *m, enum wire_kind kind)
{
	struct guest_fd *f = guest_fd(g, m->c.tgid, m->fd, false);
	struct address a;
	struct wire_net w;

	if (!m->has_exit)
		return;
	if (kind == WIRE_NET_CONNECT)
		guest_mirror_told(g, m);
	read_address(&a, m->address);
	w = record_of(g, m, kind, f);
	if (kind == WIRE_NET_ACCEPT && !m->error) {
		struct guest_fd copy = f ? *f : (struct guest_fd){ 0 }, *to;

		to = guest_fd(g, m->c.tgid, m->result, true);
		if (to) {
			to->id = 0;
			to->family = copy.family;
			to->type = copy.type;
			to->proto = copy.proto;
		}
	}
	if (kind == WIRE_NET_ACCEPT && m->error)
		return; /* nobody came: as the kernel's own side has it */
	if (a.family)
		w.family = a.family;
	if (kind == WIRE_NET_BIND) {
		w.sport = a.port;
		memcpy(w.saddr, a.b, sizeof(w.saddr));
		if (f && !m->error) {
			f->port = a.port;
			memcpy(f->addr, a.b, sizeof(f->addr));
		}
	} else {
		w.dport = a.port;
		memcpy(w.daddr, a.b, sizeof(w.daddr));
		if (f && kind == WIRE_NET_CONNECT && (!m->error || m->error == EINPROGRESS)) {
			f->peer_port = a.port;
			memcpy(f->peer, a.b, sizeof(f->peer));
		}
	}
	if (!w.family)
		return;
	guest_begin(g, sizeof(w));
	w.path = guest_tail(g, a.path, WIRE_SUN_PATH);
	w.h.flags |= WIRE_F_TOCTOU;
	guest_send(g, &w, sizeof(w));
	if (kind != WIRE_NET_CONNECT)
		return;
	seek_metadata(g, m, &a);
	seek_engine(g, m, a.path);
}

void guest_listen(struct guest *g, const struct seccheck_msg *m)
{
	struct guest_fd *f = guest_fd(g, m->c.tgid, (int32_t)m->args[0], false);
	struct wire_net w = record_of(g, m, WIRE_NET_LISTEN, f);

	if (!w.family)
		return;
	guest_begin(g, sizeof(w));
	guest_send(g, &w, sizeof(w));
}
