/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Sockets: made (if refused or raw), bound, connected with its outcome, listening, accepting, and
 * datagrams to an address of their own. Ends of flows: flow.bpf.c.
 *
 * cgroup/connect4+6 see the kernel's copy of the address, before the act; sys_exit knows the outcome.
 * A non-blocking connect is told at once as pending (-EINPROGRESS) and again when
 * inet_sock_set_state decides it; so is one without a sys_exit of its own (io_uring, MSG_FASTOPEN), by
 * the cgroup program. Misses: sockets made outside the sandbox are in no cgroup program (sys_exit
 * still sees what is called on them, by the caller's copy of the address). */
#include "bpf/lib/path.bpf.h"
#include "bpf/lib/cred.bpf.h"
#include "bpf/lib/enforce.bpf.h"
#include "bpf/lib/sockfile.bpf.h"
#include "bpf/lib/family.bpf.h"
#include "bpf/lib/watched.bpf.h"
#include "bpf/lib/sysend.bpf.h"

#define PF_IO_WORKER	  0x00000010
#define PF_KTHREAD	  0x00200000
#define NR_IO_URING_ENTER 426
#define EPERM		  1
#define EINTR		  4
#define EAGAIN		  11
#define EACCES		  13
#define EAFNOSUPPORT	  97
#define EISCONN		  106
#define EALREADY	  114
#define ERESTARTSYS	  512

/* ---- before the act: the kernel's copy of the address ---- */

/* Will sys_exit tell this connect, with its outcome? Not one by io_uring or sendto(MSG_FASTOPEN), nor
 * by socketcall. */
static __always_inline bool in_connect(void)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(t);
	__u64 nr = BPF_CORE_READ(regs, orig_ax);

	if (t->flags & (PF_IO_WORKER | PF_KTHREAD))
		return false;
	return nr == (t->thread_info.status & TS_COMPAT ? 362 : 42);
}

static __always_inline bool by_uring(void)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(t);

	return t->flags & PF_IO_WORKER || BPF_CORE_READ(regs, orig_ax) == NR_IO_URING_ENTER;
}

static __always_inline void send_attempt(const struct owner *o, const struct peer *p,
					 struct bpf_sock_addr *ctx)
{
	struct flow f = {};

	header_of_owner(&f.r.h, o, WIRE_NET_CONNECT);
	if (by_uring())
		f.r.h.flags = WIRE_F_IOURING;
	f.r.h.ret = -EINPROGRESS;
	f.r.cookie = p->cookie;
	f.r.family = p->family;
	f.r.type = ctx->type;
	f.r.proto = ctx->protocol;
	f.r.dport = p->port;
	__builtin_memcpy(f.r.daddr, p->addr, sizeof(f.r.daddr));
	if (ctx->type == SOCK_STREAM && !enforce_denies(p->verdict))
		flow_keep(&p->cookie, &f);
	enforce_mark_cgroup(&f.r.h, p->verdict);
	emit_wake(&f.r, sizeof(f.r), 0, WIRE_RING_BULK, true);
}

/* Returns what the program does: 0 = refused. */
static __always_inline int remember(struct bpf_sock_addr *ctx, __u16 family, const __u8 *addr)
{
	__u64 tid = bpf_get_current_pid_tgid();
	struct peer p = { .cookie = bpf_get_socket_cookie(ctx),
			  .family = family,
			  .port = ntohs((__u16)ctx->user_port) };
	struct sock_state *st = NULL;
	struct owner o = {};
	bool called = in_connect();

	__builtin_memcpy(p.addr, addr, sizeof(p.addr));
	p.verdict = enforce_here(WIRE_NET_CONNECT, family, addr, p.port);
	if (called && bpf_map_update_elem(&connecting, &tid, &p, BPF_ANY))
		count_fail(FAIL_STASH);
	if (ctx->type != SOCK_STREAM)
		st = bpf_sk_storage_get(&socks, ctx->sk, 0, 0);
	if ((called && !st) || !owner_of_current(&o))
		return !enforce_denies(p.verdict);
	if (st) {
		__builtin_memcpy(&st->who, &o, sizeof(o));
		if (!st->refused) /* they are of the target before */
			sock_target(st, family, addr, p.port, 0);
	}
	if (!called)
		send_attempt(&o, &p, ctx);
	return !enforce_denies(p.verdict);
}

static __always_inline void addr4(__u8 *addr, __u32 ip)
{
	__builtin_memcpy(addr, &ip, 4);
}

static __always_inline void addr6(__u8 *addr, struct bpf_sock_addr *ctx)
{
	__u32 w[4] = { ctx->user_ip6[0], ctx->user_ip6[1], ctx->user_ip6[2], ctx->user_ip6[3] };

	__builtin_memcpy(addr, w, 16);
}

SEC("cgroup/connect4")
int on_connect4(struct bpf_sock_addr *ctx)
{
	__u8 addr[16] __attribute__((aligned(8))) = {};

	addr4(addr, ctx->user_ip4);
	return remember(ctx, AF_INET, addr);
}

SEC("cgroup/connect6")
int on_connect6(struct bpf_sock_addr *ctx)
{
	__u8 addr[16] __attribute__((aligned(8)));

	addr6(addr, ctx);
	return remember(ctx, AF_INET6, addr);
}

/* ---- UDP to an address given with the datagram: once a second for each target ---- */

/* r: the caller's, as the stack has room for one. */
static __always_inline void send_datagram(struct wire_net *r, struct bpf_sock_addr *ctx,
					  const struct owner *o, const struct send_key *key,
					  __u16 family, __u32 count, int verdict)
{
	__builtin_memset(r, 0, sizeof(*r));
	header_of_owner(&r->h, o, WIRE_NET_SEND);
	if (by_uring())
		r->h.flags = WIRE_F_IOURING;
	r->cookie = key->cookie;
	r->family = family;
	r->type = ctx->type;
	r->proto = ctx->protocol;
	r->dport = key->port;
	r->count = count;
	__builtin_memcpy(r->daddr, key->addr, sizeof(r->daddr));
	enforce_mark_cgroup(&r->h, verdict);
	emit_wake(r, sizeof(*r), 0, WIRE_RING_BULK, true);
}

/* The target told last gives way to another: what was merged since then is kept under its key. */
static __always_inline void keep_count(struct sock_state *st, __u64 cookie)
{
	struct send_key key = { .cookie = cookie, .port = st->port };
	struct send_state *s;

	if (!st->count)
		return;
	__builtin_memcpy(key.addr, st->addr, sizeof(key.addr));
	s = bpf_map_lookup_elem(&sends, &key);
	if (s)
		__sync_fetch_and_add(&s->count, st->count);
}

/* Datagrams to the socket's last target that were refused and not told yet. */
static __always_inline void tell_refused(struct wire_net *r, const struct owner *o,
					 struct bpf_sock_addr *ctx, struct sock_state *st,
					 __u64 cookie)
{
	struct send_key was = { .cookie = cookie, .port = st->port };

	__builtin_memcpy(was.addr, st->addr, sizeof(was.addr));
	send_datagram(r, ctx, o, &was, st->family, st->refused,
		      enforce_pack(ENFORCE_DENY, st->refused_by));
	st->refused = 0;
}

/* Refused ones are told by themselves: as they never became packets, nothing else would count them. One record a
 * second while a socket sends to one target, one for each change of it; the last ones when it is released. */
static __always_inline void send_refused(struct wire_net *r, struct owner *o,
					 struct bpf_sock_addr *ctx, struct sock_state *st,
					 const struct send_key *key, __u16 family, int verdict)
{
	__u64 now = coarse_ns();
	__u32 count = 1;
	bool same;

	same = st && st->port == key->port && same_addr(st->addr, key->addr) &&
	       st->refused_by == enforce_id_of(verdict);
	if (same && !enforce_kills(verdict) && now - st->told_ts < SEND_EVERY_NS) {
		__sync_fetch_and_add(&st->refused, 1);
		return;
	}
	if (!owner_of_current(o))
		return;
	if (st) {
		if (same)
			count += st->refused;
		else if (st->refused)
			tell_refused(r, o, ctx, st, key->cookie);
		keep_count(st, key->cookie);
		__builtin_memcpy(&st->who, o, sizeof(*o));
		sock_target(st, family, key->addr, key->port, now);
		st->refused_by = enforce_id_of(verdict);
	}
	send_datagram(r, ctx, o, key, family, count, verdict);
}

static __always_inline int sent(struct bpf_sock_addr *ctx, __u16 family, const __u8 *addr)
{
	struct send_key key = { .port = ntohs((__u16)ctx->user_port) };
	struct sock_state *st = bpf_sk_storage_get(&socks, ctx->sk, 0, 0);
	__u64 now = coarse_ns();
	struct send_state *seen, told = { .told_ts = now };
	int verdict = enforce_here(WIRE_NET_SEND, family, addr, key.port);
	bool may_merge = key.port != DNS_PORT;
	struct owner o = {};
	struct wire_net r;
	__u32 count = 1;

	if (!verdict && st && may_merge && is_merged(st, addr, key.port, now))
		return 1;
	key.cookie = bpf_get_socket_cookie(ctx);
	__builtin_memcpy(key.addr, addr, sizeof(key.addr));
	if (enforce_denies(verdict)) {
		send_refused(&r, &o, ctx, st, &key, family, verdict);
		return 0;
	}
	seen = bpf_map_lookup_elem(&sends, &key);
	if (seen && may_merge && now - seen->told_ts < SEND_EVERY_NS) {
		__sync_fetch_and_add(&seen->count, 1);
		return 1;
	}
	if (!owner_of_current(&o))
		return 1;
	if (seen)
		count += seen->count;
	if (st) {
		if (st->refused)
			tell_refused(&r, &o, ctx, st, key.cookie);
		__builtin_memcpy(&st->who, &o, sizeof(o));
		if (st->port == key.port && same_addr(st->addr, addr))
			count += st->count;
		else
			keep_count(st, key.cookie);
		sock_target(st, family, addr, key.port, now);
	}
	if (key.port == DNS_PORT) /* the packet itself is told */
		return 1;
	send_datagram(&r, ctx, &o, &key, family, count, 0);
	bpf_map_update_elem(&sends, &key, &told, BPF_ANY);
	return 1;
}

SEC("cgroup/sendmsg4")
int on_sendmsg4(struct bpf_sock_addr *ctx)
{
	__u8 addr[16] __attribute__((aligned(8))) = {};

	addr4(addr, ctx->user_ip4);
	return sent(ctx, AF_INET, addr);
}

SEC("cgroup/sendmsg6")
int on_sendmsg6(struct bpf_sock_addr *ctx)
{
	__u8 addr[16] __attribute__((aligned(8)));

	addr6(addr, ctx);
	return sent(ctx, AF_INET6, addr);
}

/* ---- addresses ---- */

/* What the caller said, where no kernel object has it. With `own` it is the socket's own address. */
static __always_inline bool user_addr(struct scratch *s, struct wire_net *r, __u64 uptr, bool own)
{
	__u8 *addr = own ? r->saddr : r->daddr;
	struct {
		__u16 family;
		__u16 port;
		__u32 ip_or_flow;
		__u8 ip6[16];
	} sa = {};

	s->flags |= WIRE_F_TOCTOU;
	if (bpf_probe_read_user(&sa, 8, (void *)uptr)) {
		s->flags |= WIRE_F_READ_FAULT;
		return true;
	}
	if (sa.family != r->family)
		return false;
	if (own)
		r->sport = ntohs(sa.port);
	else
		r->dport = ntohs(sa.port);
	if (sa.family == AF_INET)
		__builtin_memcpy(addr, &sa.ip_or_flow, 4);
	else if (bpf_probe_read_user(addr, 16, (void *)(uptr + 8)))
		s->flags |= WIRE_F_READ_FAULT;
	return true;
}

/* vsock sockets live in a module, whose types we don't have: what the caller said. */
static __always_inline void vsock_addr(struct scratch *s, struct wire_net *r, __u64 uptr, bool own)
{
	struct {
		__u16 family;
		__u16 reserved;
		__u32 port;
		__u32 cid;
	} sa = {};
	struct wire_vsock *w = (struct wire_vsock *)(own ? r->saddr : r->daddr);

	s->flags |= WIRE_F_TOCTOU;
	if (bpf_probe_read_user(&sa, sizeof(sa), (void *)uptr))
		s->flags |= WIRE_F_READ_FAULT;
	w->cid = sa.cid;
	w->port = sa.port;
}

/* Address of the end that `u` is, else what the caller said. */
GLOBAL int unix_path(struct scratch *s, __u64 u)
{
	union packed_str p = {};
	__u32 off, n;
	char *dst;

	if (!s)
		return 0;
	if (u)
		p.v = unix_name(s, u);
	if (p.v)
		return p.v;
	n = s->args[2];
	dst = rec_room(s, WIRE_SUN_PATH, &off);
	if (!dst || n <= 2)
		return 0;
	n -= 2;
	if (n > WIRE_SUN_PATH)
		n = WIRE_SUN_PATH;
	s->flags |= WIRE_F_TOCTOU;
	if (bpf_probe_read_user(dst, n, (void *)(s->args[1] + 2))) {
		s->flags |= WIRE_F_READ_FAULT;
		return 0;
	}
	if (dst[0]) /* a path ends at its NUL; an abstract name has its length only */
		n = bpf_probe_read_kernel_str(dst, n, dst) - 1;
	if (n > WIRE_SUN_PATH)
		return 0;
	p.w.off = off;
	p.w.len = n;
	s->len = off + n;
	return p.v;
}

/* The socket of a container engine, reached or only sought: an escape signal of its own. */
static __always_inline void engine_socket(struct scratch *s, struct task_state *st, struct sock *sk)
{
	struct unix_sock *peer = NULL;
	struct wire_escape *r;
	struct dentry *d = NULL;
	__u32 class;

	if (s->call.ret == 0)
		peer = (struct unix_sock *)BPF_CORE_READ((struct unix_sock *)sk, peer);
	if (peer)
		d = BPF_CORE_READ(peer, path.dentry);
	class = d ? watched_dentry((__u64)d) : 0;
	if (class != WATCHED_SOCKET) /* a link to it has another name */
		class = watched_string(s, s->args[1] + 2, WIRE_SUN_PATH);
	if (class != WATCHED_SOCKET)
		return;
	r = escape_begin(s, st, WIRE_ESCAPE_RUNTIME_SOCKET, s->call.nr, s->call.ret);
	if (d)
		r->detail = rec_path(s, d, BPF_CORE_READ(peer, path.mnt));
	else
		r->detail = unpack(rec_str(s, s->args[1] + 2, WIRE_SUN_PATH, STR_USER));
	emit_scratch(s, WIRE_RING_URGENT);
}

/* Where does a non-blocking TCP connect stand by now? Over loopback it is decided already. */
static __always_inline long tcp_outcome(struct sock *sk, long ret)
{
	__u8 state = READ(sk, __sk_common.skc_state);

	if (state == TCP_ESTABLISHED)
		return 0;
	if (state == TCP_CLOSE && READ(sk, sk_err))
		return -READ(sk, sk_err);
	return ret;
}

enum { CONNECT_TOLD = 1, CONNECT_HOOKED = 2 };

/* connect() to AF_UNSPEC: the socket has no peer any more. By the socket, not by what the caller's memory
 * says meanwhile. */
static __always_inline bool is_disconnected(const struct wire_net *r, const struct sock *sk)
{
	return r->h.ret == 0 && READ(sk, __sk_common.skc_state) == TCP_CLOSE &&
	       !BPF_CORE_READ(sk, __sk_common.skc_dport);
}

/* CONNECT_TOLD: it is worth a record. CONNECT_HOOKED: the cgroup program saw it. */
GLOBAL int fill_connect(struct scratch *s, __u64 sock)
{
	__u64 tid = bpf_get_current_pid_tgid();
	struct peer *p = bpf_map_lookup_elem(&connecting, &tid);
	struct sock *sk = (struct sock *)sock;
	struct wire_net *r;
	int hooked = p ? CONNECT_HOOKED : 0;

	if (!s)
		return 0;
	r = (struct wire_net *)s->rec;
	if (r->family == AF_UNIX) {
		__u64 peer = 0;

		if (r->h.ret == 0)
			peer = (__u64)BPF_CORE_READ((struct unix_sock *)sk, peer);
		r->path = unpack(unix_path(s, peer));
		return CONNECT_TOLD | hooked;
	}
	if (r->family == AF_VSOCK)
		vsock_addr(s, r, s->args[1], false);
	if (r->family != AF_INET && r->family != AF_INET6)
		return CONNECT_TOLD | hooked;
	if (!p && is_disconnected(r, sk)) {
		r->h.kind = WIRE_NET_CLOSE;
		r->bytes_out = r->bytes_in = WIRE_UNKNOWN;
		sock_addrs(r, sk, false);
		/* A connection's end was told when its state changed. */
		return r->type == SOCK_STREAM ? 0 : CONNECT_TOLD | CONNECT_HOOKED;
	}
	if (r->h.ret == -EINPROGRESS && r->type == SOCK_STREAM)
		r->h.ret = tcp_outcome(sk, r->h.ret);
	sock_addrs(r, sk, r->h.ret == 0);
	if (p) {
		r->cookie = p->cookie;
		r->dport = p->port;
		__builtin_memcpy(r->daddr, p->addr, sizeof(r->daddr));
		if (r->h.ret == -EPERM)
			enforce_mark(&r->h, p->verdict, true);
		return CONNECT_TOLD | CONNECT_HOOKED;
	}
	return r->h.ret == 0 || user_addr(s, r, s->args[1], false) ? CONNECT_TOLD : 0;
}

/* bind, listen, accept: the own address is the point. */
GLOBAL int fill_own(struct scratch *s, __u64 sock)
{
	struct sock *sk = (struct sock *)sock;
	struct wire_net *r;
	bool binds;

	if (!s)
		return 0;
	r = (struct wire_net *)s->rec;
	binds = r->h.kind == WIRE_NET_BIND;
	switch (r->family) {
	case AF_UNIX:
		/* Only a bind that failed leaves nothing but the caller's word. */
		if (binds && r->h.ret)
			r->path = unpack(unix_path(s, 0));
		else
			r->path = unpack(unix_name(s, (__u64)sk));
		return true;
	case AF_VSOCK:
		if (binds)
			vsock_addr(s, r, s->args[1], true);
		return true;
	case AF_INET:
	case AF_INET6:
		if (binds && r->h.ret)
			return user_addr(s, r, s->args[1], true);
		sock_addrs(r, sk, r->h.kind == WIRE_NET_ACCEPT);
		return true;
	}
	/* Of other families (netlink: each look at the interfaces) only what was refused. */
	return !binds || r->h.ret;
}

/* A second connect() for the outcome of a first, interrupted one, which was told when it was decided: the
 * cgroup program, from which the cookie is, did not run again. */
static __always_inline bool is_decided_before(const struct wire_net *r)
{
	return r->cookie && r->type == SOCK_STREAM &&
	       (r->family == AF_INET || r->family == AF_INET6) && r->h.ret < 0 &&
	       r->h.ret != -EINPROGRESS && r->h.ret != -EPERM && r->h.ret != -EACCES;
}

GLOBAL int send_net(struct scratch *s, struct task_state *st)
{
	const struct call *c;
	bool connects, accepts;
	struct wire_net *r;
	struct socket *so;
	struct sock *sk;
	struct file *f;
	long ret;
	int how;

	if (!s || !st)
		return 0;
	c = &calls[s->call.nr & (CALLS_MAX - 1)];
	ret = s->call.ret;
	connects = c->what == WIRE_NET_CONNECT;
	accepts = c->what == WIRE_NET_ACCEPT;
	f = fd_file(bpf_get_current_task_btf(), accepts && ret >= 0 ? (__u64)ret : s->args[0]);
	so = f ? file_socket(f) : NULL;
	sk = so ? (struct sock *)LOAD_PTR(so, sk) : NULL;
	if (!sk)
		return 0;
	r = rec_begin(s, struct wire_net);
	header(&r->h, st, c->what);
	if (s->call.compat)
		r->h.flags |= WIRE_F_COMPAT;
	r->h.nr = s->call.nr;
	r->h.ret = accepts && ret > 0 ? 0 : ret;
	r->family = READ(sk, __sk_common.skc_family);
	r->type = READ(so, type);
	r->proto = READ(sk, sk_protocol);
	r->cookie = READ(sk, __sk_common.skc_cookie.counter);
	if (connects) {
		/* It goes on without the caller, who was interrupted. */
		if (ret == -EINTR || ret <= -ERESTARTSYS)
			r->h.ret = -EINPROGRESS;
		how = fill_connect(s, (__u64)sk);
	} else {
		how = fill_own(s, (__u64)sk) ? CONNECT_TOLD | CONNECT_HOOKED : 0;
	}
	if (!(how & CONNECT_TOLD) || (!(how & CONNECT_HOOKED) && is_decided_before(r)))
		return 0;
	if (connects && ret == -EPERM && enforce_set_of(st))
		enforce_acted(s);
	if ((connects || accepts) && r->type == SOCK_STREAM &&
	    (r->family == AF_INET || r->family == AF_INET6) &&
	    (r->h.ret == 0 || r->h.ret == -EINPROGRESS) &&
	    !keep_flow(s, sk, !(how & CONNECT_HOOKED)))
		return 0;
	emit_scratch(s, WIRE_RING_BULK_WAKE);
	if (connects && r->family == AF_UNIX)
		engine_socket(s, st, sk);
	return 0;
}

/* ---- socket() ---- */

static __always_inline bool is_refused(long ret)
{
	return ret == -EPERM || ret == -EACCES || ret == -EAFNOSUPPORT;
}

GLOBAL int send_socket(struct scratch *s, struct task_state *st)
{
	__u32 family, type, proto;
	struct wire_net *r;
	long ret;

	if (!s || !st)
		return 0;
	family = s->args[0];
	type = s->args[1] & SOCK_TYPE_MASK;
	proto = s->args[2];
	ret = s->call.ret;
	if (is_escape_family(family, proto) && is_watched(st)) {
		struct wire_escape *e =
			escape_begin(s, st, WIRE_ESCAPE_SOCKET_FAMILY, s->call.nr, ret);

		if (s->call.compat)
			e->h.flags |= WIRE_F_COMPAT;
		if (ret == -EPERM && enforce_set_of(st))
			enforce_acted(s);
		emit_scratch(s, WIRE_RING_URGENT);
	}
	if (st->role != ROLE_PAYLOAD ||
	    !(is_refused(ret) ||
	      (ret >= 0 && type == SOCK_RAW && (family == AF_INET || family == AF_INET6))))
		return 0;
	r = rec_begin(s, struct wire_net);
	header(&r->h, st, WIRE_NET_SOCKET);
	if (s->call.compat)
		r->h.flags |= WIRE_F_COMPAT;
	r->h.nr = s->call.nr;
	r->h.ret = ret > 0 ? 0 : ret;
	r->family = family;
	r->type = type;
	r->proto = proto;
	emit_scratch(s, WIRE_RING_BULK_WAKE);
	return 0;
}

/* Is this socket() one of the many that are nothing to tell? */
static __always_inline bool is_plain_socket(const __u64 *args, long ret)
{
	__u32 family = args[0];

	return ret >= 0 && (args[1] & SOCK_TYPE_MASK) != SOCK_RAW &&
	       (family == AF_UNIX || family == AF_INET || family == AF_INET6);
}

/* ---- the outcome ---- */

static __always_inline bool is_outcome(const struct call *call, long ret)
{
	if (call->what == WIRE_NET_CONNECT)
		return ret != -EALREADY && ret != -EISCONN;
	if (call->what == WIRE_NET_ACCEPT)
		return is_told(ret);
	return true;
}

SYSCALL_END(sys_net)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task_state *st = task_own_state(t);
	struct sysctx c = call_of(regs, t);
	const struct call *call = &calls[c.nr & (CALLS_MAX - 1)];
	__u64 tid = bpf_get_current_pid_tgid();
	struct scratch *s;

	if (!st)
		goto out;
	if (call->what == WIRE_NET_SOCKET ? !is_watched(st)
					  : st->role != ROLE_PAYLOAD || !is_outcome(call, ret))
		goto out;
	cred_check(st, false);
	s = scratch_get();
	if (!s) {
		no_scratch(st, call->what);
		goto out;
	}
	call_take(s, regs, t, c, ret);
	if (call->what != WIRE_NET_SOCKET)
		send_net(s, st);
	else if (!is_plain_socket(s->args, ret))
		send_socket(s, st);
	pressure(st);
	scratch_put(s);
out:
	if (call->what == WIRE_NET_CONNECT)
		bpf_map_delete_elem(&connecting, &tid);
	return 0;
}
