/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Connections: connect with its outcome, listen, accept, the end of TCP connections with their bytes,
 * and UDP datagrams to an address of their own.
 *
 * cgroup/connect4+6 see the kernel's copy of the address, before the act; sys_exit knows the outcome.
 * A non-blocking connect is told at once as pending (-EINPROGRESS) and again when
 * inet_sock_set_state decides it; so is one without a sys_exit of its own (io_uring, MSG_FASTOPEN), by
 * the cgroup program and without the second record. Misses: sockets made outside the sandbox are in no cgroup program (sys_exit still sees their connect). */
#include "bpf/lib/path.bpf.h"
#include "bpf/lib/cred.bpf.h"
#include "bpf/lib/enforce.bpf.h"
#include "bpf/lib/watched.bpf.h"
#include "bpf/lib/calls.bpf.h"

#define PF_IO_WORKER	  0x00000010
#define PF_KTHREAD	  0x00200000
#define NR_IO_URING_ENTER 426
#define AF_UNIX		  1
#define AF_INET		  2
#define AF_INET6	  10
#define EPERM		  1
#define EINPROGRESS	  115
#define EALREADY	  114
#define EISCONN		  106
#define EINTR		  4
#define TCP_ESTABLISHED	  1
#define TCP_SYN_SENT	  2
#define TCP_CLOSE	  7
#define IPPROTO_TCP	  6
#define S_IFMT		  0170000
#define S_IFSOCK	  0140000
#define DNS_PORT	  53
#define SEND_EVERY_NS	  1000000000ull
#define ntohs(x)	  __builtin_bswap16(x)

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

static __always_inline void send_attempt(const struct owner *o, const struct peer *p, __u8 type,
					 __u8 proto)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(t);
	struct wire_net r = {};

	header_of_owner(&r.h, o, WIRE_NET_CONNECT);
	if (t->flags & PF_IO_WORKER || BPF_CORE_READ(regs, orig_ax) == NR_IO_URING_ENTER)
		r.h.flags = WIRE_F_IOURING;
	r.h.ret = -EINPROGRESS;
	r.cookie = p->cookie;
	r.family = p->family;
	r.type = type;
	r.proto = proto;
	r.dport = p->port;
	__builtin_memcpy(r.daddr, p->addr, sizeof(r.daddr));
	enforce_mark_cgroup(&r.h, p->verdict);
	emit_wake(&r, sizeof(r), 0, WIRE_RING_BULK, true);
}

/* Returns what the program does: 0 = refused. */
static __always_inline int remember(__u64 cookie, __u16 family, const __u8 *addr, __u16 port,
				    __u8 type, __u8 proto)
{
	__u64 tid = bpf_get_current_pid_tgid();
	struct peer p = { .cookie = cookie, .family = family, .port = port };
	struct owner o = {};

	__builtin_memcpy(p.addr, addr, sizeof(p.addr));
	p.verdict = enforce_here(WIRE_NET_CONNECT, family, addr, port);
	if (!in_connect()) {
		if (owner_of_current(&o))
			send_attempt(&o, &p, type, proto);
		return !enforce_denies(p.verdict);
	}
	if (bpf_map_update_elem(&connecting, &tid, &p, BPF_ANY))
		count_fail(FAIL_STASH);
	if (port == DNS_PORT && owner_of_current(&o))
		bpf_map_update_elem(&resolvers, &cookie, &o, BPF_ANY);
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
	__u8 addr[16] = {};

	addr4(addr, ctx->user_ip4);
	return remember(bpf_get_socket_cookie(ctx), AF_INET, addr, ntohs((__u16)ctx->user_port),
			ctx->type, ctx->protocol);
}

SEC("cgroup/connect6")
int on_connect6(struct bpf_sock_addr *ctx)
{
	__u8 addr[16];

	addr6(addr, ctx);
	return remember(bpf_get_socket_cookie(ctx), AF_INET6, addr, ntohs((__u16)ctx->user_port),
			ctx->type, ctx->protocol);
}

/* ---- UDP to an address given with the datagram: once a second for each target ---- */

static __always_inline int sent(__u64 cookie, __u16 family, const __u8 *addr, __u16 port, __u8 type,
				__u8 proto)
{
	struct send_key key = { .cookie = cookie, .port = port };
	struct send_state *seen, now = {};
	struct owner o = {};
	struct wire_net r = {};
	__u64 ts = bpf_ktime_get_boot_ns();
	int verdict;

	__builtin_memcpy(key.addr, addr, sizeof(key.addr));
	verdict = enforce_here(WIRE_NET_SEND, family, addr, port);
	seen = bpf_map_lookup_elem(&sends, &key);
	if (seen && ts - seen->told_ts < SEND_EVERY_NS && !enforce_kills(verdict)) {
		__sync_fetch_and_add(&seen->count, 1);
		return !enforce_denies(verdict);
	}
	if (!owner_of_current(&o))
		return !enforce_denies(verdict);
	if (port == DNS_PORT && !verdict) /* the packet itself is told */
		bpf_map_update_elem(&resolvers, &cookie, &o, BPF_ANY);
	else {
		header_of_owner(&r.h, &o, WIRE_NET_SEND);
		r.cookie = cookie;
		r.family = family;
		r.type = type;
		r.proto = proto;
		r.dport = port;
		r.count = seen ? seen->count + 1 : 1;
		__builtin_memcpy(r.daddr, addr, sizeof(r.daddr));
		enforce_mark_cgroup(&r.h, verdict);
		emit_wake(&r, sizeof(r), 0, WIRE_RING_BULK, true);
	}
	now.told_ts = ts;
	bpf_map_update_elem(&sends, &key, &now, BPF_ANY);
	return !enforce_denies(verdict);
}

SEC("cgroup/sendmsg4")
int on_sendmsg4(struct bpf_sock_addr *ctx)
{
	__u8 addr[16] = {};

	addr4(addr, ctx->user_ip4);
	return sent(bpf_get_socket_cookie(ctx), AF_INET, addr, ntohs((__u16)ctx->user_port),
		    ctx->type, ctx->protocol);
}

SEC("cgroup/sendmsg6")
int on_sendmsg6(struct bpf_sock_addr *ctx)
{
	__u8 addr[16];

	addr6(addr, ctx);
	return sent(bpf_get_socket_cookie(ctx), AF_INET6, addr, ntohs((__u16)ctx->user_port),
		    ctx->type, ctx->protocol);
}

/* ---- the outcome ---- */

static __always_inline struct socket *file_socket(struct file *f)
{
	__u16 mode = BPF_CORE_READ(f, f_inode, i_mode);

	if ((mode & S_IFMT) != S_IFSOCK)
		return NULL;
	return BPF_CORE_READ(f, private_data);
}

/* The socket's own end, and with `peer` the other one. */
static __always_inline void sock_addrs(struct wire_net *r, struct sock *sk, bool peer)
{
	r->sport = BPF_CORE_READ(sk, __sk_common.skc_num);
	if (peer)
		r->dport = ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (r->family == AF_INET) {
		bpf_core_read(r->saddr, 4, &sk->__sk_common.skc_rcv_saddr);
		if (peer)
			bpf_core_read(r->daddr, 4, &sk->__sk_common.skc_daddr);
	} else {
		bpf_core_read(r->saddr, 16, &sk->__sk_common.skc_v6_rcv_saddr);
		if (peer)
			bpf_core_read(r->daddr, 16, &sk->__sk_common.skc_v6_daddr);
	}
}

/* What the caller said, for a connect that never came to the cgroup program. */
static __always_inline bool user_addr(struct scratch *s, struct wire_net *r, __u64 uptr)
{
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
	r->dport = ntohs(sa.port);
	if (sa.family == AF_INET)
		__builtin_memcpy(r->daddr, &sa.ip_or_flow, 4);
	else if (bpf_probe_read_user(r->daddr, 16, (void *)(uptr + 8)))
		s->flags |= WIRE_F_READ_FAULT;
	return true;
}

/* Path of a unix socket: of the listener that was reached, else what the caller said. */
GLOBAL int unix_path(struct scratch *s, __u64 sock, int ret)
{
	struct unix_sock *peer = NULL, *own = (struct unix_sock *)sock;
	union packed_str p = {};
	struct dentry *d = NULL;
	__u32 off, n;
	char *dst;

	if (!s)
		return 0;
	if (ret == 0)
		peer = (struct unix_sock *)BPF_CORE_READ(own, peer);
	if (peer)
		d = BPF_CORE_READ(peer, path.dentry);
	if (d)
		return rec_path_packed(s, (__u64)d, (__u64)BPF_CORE_READ(peer, path.mnt));
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
static __always_inline void engine_socket(struct scratch *s, struct task_struct *t,
					  struct task_state *st, struct sock *sk, __u32 nr,
					  long ret)
{
	struct unix_sock *peer = NULL;
	struct wire_escape *r;
	struct dentry *d = NULL;
	__u32 class;

	if (ret == 0)
		peer = (struct unix_sock *)BPF_CORE_READ((struct unix_sock *)sk, peer);
	if (peer)
		d = BPF_CORE_READ(peer, path.dentry);
	class = d ? watched_dentry((__u64)d) : 0;
	if (class != WATCHED_SOCKET) /* a link to it has another name */
		class = watched_string(s, s->args[1] + 2, WIRE_SUN_PATH);
	if (class != WATCHED_SOCKET)
		return;
	r = escape_begin(s, st, WIRE_ESCAPE_RUNTIME_SOCKET, nr, ret);
	if (d)
		r->detail = rec_path(s, d, BPF_CORE_READ(peer, path.mnt));
	else
		r->detail = unpack(rec_str(s, s->args[1] + 2, WIRE_SUN_PATH, true));
	emit_scratch(s, WIRE_RING_URGENT);
}

/* Where does a non-blocking TCP connect stand by now? Over loopback it is decided already. */
static __always_inline long tcp_outcome(struct sock *sk, long ret)
{
	__u8 state = BPF_CORE_READ(sk, __sk_common.skc_state);

	if (state == TCP_ESTABLISHED)
		return 0;
	if (state == TCP_CLOSE && BPF_CORE_READ(sk, sk_err))
		return -BPF_CORE_READ(sk, sk_err);
	return ret;
}

static __always_inline bool fill_connect(struct scratch *s, struct wire_net *r, struct sock *sk,
					 struct peer *p)
{
	if (r->family == AF_UNIX) {
		r->path = unpack(unix_path(s, (__u64)sk, r->h.ret));
		return true;
	}
	if (r->h.ret == -EINPROGRESS && r->proto == IPPROTO_TCP)
		r->h.ret = tcp_outcome(sk, r->h.ret);
	sock_addrs(r, sk, r->h.ret == 0);
	if (p) {
		r->cookie = p->cookie;
		r->dport = p->port;
		__builtin_memcpy(r->daddr, p->addr, sizeof(r->daddr));
		if (r->h.ret == -EPERM)
			enforce_mark(&r->h, p->verdict, true);
		return true;
	}
	return r->h.ret == 0 || user_addr(s, r, s->args[1]);
}

static __always_inline void send_net(struct scratch *s, struct task_struct *t,
				     struct task_state *st, __u32 nr, bool compat, long ret)
{
	const struct call *c = &calls[nr & (CALLS_MAX - 1)];
	__u64 tid = bpf_get_current_pid_tgid();
	struct peer *p = NULL;
	struct wire_net *r;
	struct socket *so;
	struct sock *sk;
	struct file *f;
	__u64 key;

	f = fd_file(t, c->what == WIRE_NET_ACCEPT ? (__u64)ret : s->args[0]);
	so = f ? file_socket(f) : NULL;
	sk = so ? BPF_CORE_READ(so, sk) : NULL;
	if (!sk)
		return;
	r = rec_begin(s, struct wire_net);
	header(&r->h, st, c->what);
	if (compat)
		r->h.flags |= WIRE_F_COMPAT;
	r->h.nr = nr;
	r->h.ret = c->what == WIRE_NET_ACCEPT ? 0 : ret;
	r->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	r->type = BPF_CORE_READ(so, type);
	r->proto = BPF_CORE_READ(sk, sk_protocol);
	r->cookie = BPF_CORE_READ(sk, __sk_common.skc_cookie.counter);
	if (r->family != AF_INET && r->family != AF_INET6 && r->family != AF_UNIX)
		return;
	if (c->what == WIRE_NET_CONNECT) {
		p = bpf_map_lookup_elem(&connecting, &tid);
		if (!fill_connect(s, r, sk, p))
			return;
	} else if (r->family != AF_UNIX) {
		sock_addrs(r, sk, c->what == WIRE_NET_ACCEPT);
	}
	if (r->proto == IPPROTO_TCP && c->what != WIRE_NET_LISTEN &&
	    (r->h.ret == 0 || r->h.ret == -EINPROGRESS)) {
		key = (__u64)sk;
		if (bpf_map_update_elem(&flows, &key, r, BPF_ANY))
			count_fail(FAIL_STASH);
	}
	emit_scratch(s, WIRE_RING_BULK_WAKE);
	if (c->what == WIRE_NET_CONNECT && r->family == AF_UNIX)
		engine_socket(s, t, st, sk, nr, ret);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(sys_net, struct pt_regs *regs, long ret)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task_state *st = task_own_state(t);
	struct sysctx c = call_of(regs, t);
	const struct call *call = &calls[c.nr & (CALLS_MAX - 1)];
	__u64 tid = bpf_get_current_pid_tgid();
	struct scratch *s;

	if (!st || st->role != ROLE_PAYLOAD)
		goto out;
	if (call->what != WIRE_NET_CONNECT ? ret < 0
					   : ret == -EALREADY || ret == -EISCONN || ret == -EINTR)
		goto out;
	cred_check(st, false);
	s = scratch_get();
	if (!s) {
		no_scratch(st, call->what);
		goto out;
	}
	call_args(s->args, regs, t);
	send_net(s, t, st, c.nr, c.compat, ret);
	scratch_put(s);
out:
	if (call->what == WIRE_NET_CONNECT)
		bpf_map_delete_elem(&connecting, &tid);
	return 0;
}

/* Each change of state of each TCP socket of the host, but only those in `flows` go on: a pending
 * connect that is decided, a connection that ends. Often in softirq: the record is the connect's. */
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(on_sock_state, const struct sock *sk, int oldstate, int newstate)
{
	__u64 key = (__u64)sk;
	struct wire_net *flow, r;
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	bool pending;

	if (newstate != TCP_ESTABLISHED && newstate != TCP_CLOSE)
		return 0;
	flow = bpf_map_lookup_elem(&flows, &key);
	if (!flow)
		return 0;
	pending = flow->h.ret == -EINPROGRESS;
	if (newstate == TCP_ESTABLISHED && !pending)
		return 0;
	__builtin_memcpy(&r, flow, sizeof(r));
	r.h.nr = WIRE_NR_NONE;
	r.h.flags = 0;
	if (pending) {
		r.h.kind = WIRE_NET_CONNECT;
		r.h.ret = newstate == TCP_ESTABLISHED ? 0 : -BPF_CORE_READ(sk, sk_err);
		flow->h.ret = 0;
	} else {
		r.h.kind = WIRE_NET_CLOSE;
		r.bytes_out = BPF_CORE_READ(tp, bytes_sent) - BPF_CORE_READ(tp, bytes_retrans);
		/* Counts the peer's FIN as a byte. */
		r.bytes_in = BPF_CORE_READ(tp, bytes_received) -
			     (BPF_CORE_READ(sk, __sk_common.skc_flags) >> SOCK_DONE & 1);
	}
	if (newstate == TCP_CLOSE)
		bpf_map_delete_elem(&flows, &key);
	emit_wake(&r, sizeof(r), 0, WIRE_RING_BULK, false);
	return 0;
}
