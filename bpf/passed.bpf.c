/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Sends through sockets that were passed in (lib/passed.bpf.h), of the internet families. Full tier: in front of the
 * act, with the kernel's copy of the address, by io_uring too; it can be refused. Portable: at the end of the
 * calls, of io_uring when a request gets its file; a name by the caller's word. Misses: there, in 32-bit code those by
 * socketcall, and requests on a registered file that an earlier one of their chain has yet to register; to 6.4
 * what sendfile and splice put into a stream; how many there were after the last one that was told. */
#include "bpf/lib/passed.bpf.h"
#include "bpf/lib/sockfile.bpf.h"
#include "bpf/lib/sysend.bpf.h"
#include "bpf/lib/uring.bpf.h"

#define EPERM		  1
#define NR_SENDTO	  44
#define NR_SENDMSG	  46
#define NR_SENDMMSG	  307
#define MMSG_MAX	  1024 /* UIO_MAXIOV: more the kernel does not take */
#define PF_IO_WORKER	  0x00000010
#define NR_IO_URING_ENTER 426

/* ---- full tier ---- */

static __always_inline bool sent_by_uring(struct task_struct *t)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(t);

	return t->flags & PF_IO_WORKER || BPF_CORE_READ(regs, orig_ax) == NR_IO_URING_ENTER;
}

/* Each send on any socket of the host comes here, and leaves after one look-up. */
SEC("fmod_ret/security_socket_sendmsg")
int BPF_PROG(on_sock_send, struct socket *sock, struct msghdr *msg)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task_state *st = task_state(t);
	struct sent_name name = {};
	struct wire_net *r;
	struct scratch *s;
	struct sock *sk;
	int denied;

	if (!st || st->role != ROLE_PAYLOAD)
		return 0;
	sk = (struct sock *)LOAD_PTR(sock, sk);
	if (!is_passed_in(sk, st)) {
		pressure(st);
		return 0;
	}
	s = scratch_get();
	if (!s) {
		no_scratch(st, WIRE_NET_SEND);
		return 0;
	}
	/* As a number: `sock` itself is a pointer to the verifier, which no function of its own takes for one. */
	passed_begin(s, st, (__u64)BPF_CORE_READ(sk, sk_socket));
	r = (struct wire_net *)s->rec;
	if (sent_by_uring(t))
		r->h.flags |= WIRE_F_IOURING;
	if (BPF_CORE_READ(msg, msg_namelen) > 0 && BPF_CORE_READ(msg, msg_name)) {
		bpf_probe_read_kernel(&name, sizeof(name), BPF_CORE_READ(msg, msg_name));
		if (is_named(r, &name))
			sent_to(r, &name);
	}
	denied = passed_tell(s, st, (__u64)sk, true);
	pressure(st);
	scratch_put(s);
	if (!denied)
		return 0;
	count_fail(FAIL_SITE_COUNT); /* nothing: so that the verifier sees two returns */
	return -EPERM;
}

/* ---- portable ---- */

const volatile bool sends_by_call = false; /* set by user space */

/* A name in the caller's memory; without one the socket's peer is who gets it. */
static __always_inline void named_by_user(struct scratch *s, __u64 uptr, __u64 len)
{
	struct wire_net *r = (struct wire_net *)s->rec;
	struct sent_name name = {};

	if (!uptr || !len || (r->type == SOCK_STREAM && r->dport))
		return;
	s->flags |= WIRE_F_TOCTOU;
	if (bpf_probe_read_user(&name, 8, (void *)uptr) ||
	    (name.family == AF_INET6 &&
	     bpf_probe_read_user(name.ip6, sizeof(name.ip6), (void *)(uptr + 8))))
		s->flags |= WIRE_F_READ_FAULT;
	else if (is_named(r, &name))
		sent_to(r, &name);
}

/* struct msghdr of 64 and 32 bits: pointer and length of the name. */
static __always_inline void named_by_msghdr(struct scratch *s, __u64 uptr)
{
	struct {
		__u64 name;
		__u32 len;
	} h = {};
	struct {
		__u32 name;
		__u32 len;
	} h32 = {};

	if (s->call.compat) {
		if (bpf_probe_read_user(&h32, sizeof(h32), (void *)uptr))
			s->flags |= WIRE_F_READ_FAULT;
		named_by_user(s, h32.name, h32.len);
		return;
	}
	if (bpf_probe_read_user(&h, 12, (void *)uptr))
		s->flags |= WIRE_F_READ_FAULT;
	named_by_user(s, h.name, h.len);
}

/* One message: `which` of sendmmsg, 0 of the others. */
GLOBAL int passed_one(struct scratch *s, struct task_state *st, __u64 socket, __u32 which)
{
	struct socket *so = (struct socket *)socket;
	struct wire_net *r;

	if (!s || !st)
		return 0;
	passed_begin(s, st, socket);
	r = (struct wire_net *)s->rec;
	r->h.nr = s->call.nr;
	if (s->call.compat)
		r->h.flags |= WIRE_F_COMPAT;
	if (s->call.ret < 0)
		r->h.ret = s->call.ret;
	if (s->call.nr == NR_SENDTO)
		named_by_user(s, s->args[4], s->args[5]);
	else if (s->call.nr == NR_SENDMSG)
		named_by_msghdr(s, s->args[1]);
	else if (s->call.nr == NR_SENDMMSG)
		named_by_msghdr(s, s->args[1] + (__u64)which * (s->call.compat ? 32 : 64));
	passed_tell(s, st, (__u64)BPF_CORE_READ(so, sk), false);
	return 0;
}

struct mmsg_ctx {
	struct scratch *s;
	struct task_state *st;
	__u64 socket;
	__u32 n;
};

static long mmsg_step(__u32 i, struct mmsg_ctx *x)
{
	if (i >= x->n)
		return 1;
	passed_one(x->s, x->st, x->socket, i);
	return 0;
}

static __always_inline void passed_call(struct scratch *s, struct task_state *st, __u64 socket)
{
	struct mmsg_ctx x = { .s = s, .st = st, .socket = socket };

	if (s->call.nr != NR_SENDMMSG || s->call.ret <= 1) {
		passed_one(s, st, socket, 0);
		return;
	}
	x.n = s->call.ret;
	bpf_loop(MMSG_MAX, mmsg_step, &x, 0);
}

/* The socket behind a descriptor, if it was passed in, else 0. */
static __always_inline __u64 passed_socket(struct file *f, const struct task_state *st)
{
	struct socket *so;

	if ((READ(f, f_inode, i_mode) & S_IFMT) != S_IFSOCK)
		return 0;
	so = (struct socket *)LOAD_PTR(f, private_data);
	return is_passed_in((struct sock *)LOAD_PTR(so, sk), st) ? (__u64)so : 0;
}

/* sendto, sendmsg, sendmmsg; and write and the like (sys_write hands over what is no regular file). Of the sandbox's
 * own sockets nothing is told here: that costs some 50 ns. */
SEC("tp_btf/sys_exit")
int sys_send(__u64 *ctx)
{
	struct pt_regs *regs = (struct pt_regs *)ctx[0];
	struct task_struct *t = bpf_get_current_task_btf();
	struct task_state *st = task_own_state(t);
	struct sysctx c = call_of(regs, t);
	long ret = (long)ctx[1];
	struct scratch *s;
	struct file *f;
	__u64 so = 0;
	bool second;

	if (!st || st->role != ROLE_PAYLOAD)
		return 0;
	second = calls[c.nr & (CALLS_MAX - 1)].dir == 2; /* of what copies, the target */
	if (c.compat)
		f = fd_file(t, second ? (__u32)regs->dx : (__u32)regs->bx);
	else
		f = fd_file(t, second ? regs->dx : regs->di);
	if (f && is_told(ret))
		so = passed_socket(f, st);
	if (so) {
		s = scratch_get();
		if (s) {
			call_take(s, regs, t, c, ret);
			passed_call(s, st, so);
			scratch_put(s);
		} else {
			no_scratch(st, WIRE_NET_SEND);
		}
	}
	pressure(st);
	return 0;
}

/* ---- portable, by io_uring ---- */

/* Numbers of the interface (include/uapi/linux/io_uring.h); older kernels' types do not have them all. */
enum {
	SENDS_WRITEV = 2,
	SENDS_WRITE_FIXED = 5,
	SENDS_SENDMSG = 9,
	SENDS_WRITE = 23,
	SENDS_SEND = 26,
	SENDS_SPLICE = 30,
	SENDS_SEND_ZC = 47,
	SENDS_SENDMSG_ZC = 48,
	SENDS_WRITEV_FIXED = 61,
};

#define SENDING                                                                                    \
	(1ull << SENDS_WRITEV | 1ull << SENDS_WRITE_FIXED | 1ull << SENDS_SENDMSG |                \
	 1ull << SENDS_WRITE | 1ull << SENDS_SEND | 1ull << SENDS_SPLICE | 1ull << SENDS_SEND_ZC | \
	 1ull << SENDS_SENDMSG_ZC | 1ull << SENDS_WRITEV_FIXED)

/* To 6.12 or so: later the name that comes with a plain send is in the kernel's copy alone. */
struct io_sr_msg___612 {
	void *addr;
	__u16 addr_len;
} __attribute__((preserve_access_index));

/* The kernel's copy of the name, where it has made one by then (6.10), else the caller's. */
static __always_inline void named_by_request(struct scratch *s, struct io_kiocb *req, __u8 op)
{
	struct io_sr_msg *sr = (void *)req + bpf_core_field_offset(struct io_kiocb, cmd);
	struct io_async_msghdr *copy = BPF_CORE_READ(req, async_data);
	bool by_message = op == SENDS_SENDMSG || op == SENDS_SENDMSG_ZC;
	struct io_sr_msg___612 *old = (void *)sr;
	struct wire_net *r = (struct wire_net *)s->rec;
	__u64 addr = 0, len = 0, at = 0;
	struct sent_name name = {};

	if (!by_message && op != SENDS_SEND && op != SENDS_SEND_ZC)
		return;
	if (!by_message && bpf_core_field_exists(old->addr)) {
		addr = (__u64)BPF_CORE_READ(old, addr);
		len = BPF_CORE_READ(old, addr_len);
		if (!addr) /* then what is in the copy is an older request's */
			return;
	}
	if (copy)
		at = (__u64)BPF_CORE_READ(copy, msg.msg_name);
	if (at && at == (__u64)copy + bpf_core_field_offset(struct io_async_msghdr, addr)) {
		bpf_probe_read_kernel(&name, sizeof(name), (void *)at);
		if (BPF_CORE_READ(copy, msg.msg_namelen) > 0 && is_named(r, &name))
			sent_to(r, &name);
		return;
	}
	if (!by_message)
		named_by_user(s, addr, len);
	else if (!copy)
		named_by_msghdr(s, (__u64)BPF_CORE_READ(sr, umsg));
}

static __always_inline int ring_sends(struct io_kiocb *req, __u32 fd, bool fixed)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task_state *st = task_state(t);
	__u8 op = req->opcode;
	struct scratch *s;
	struct socket *so;
	struct file *f;

	if (!st || st->role != ROLE_PAYLOAD || op > SENDS_WRITEV_FIXED || !(SENDING >> op & 1))
		return 0;
	f = fixed ? direct_file(req->ctx, fd) : fd_file(t, fd);
	so = f ? file_socket(f) : NULL;
	if (!so || !is_passed_in(BPF_CORE_READ(so, sk), st))
		return 0;
	s = scratch_get();
	if (!s) {
		no_scratch(st, WIRE_NET_SEND);
		return 0;
	}
	s->call.compat = 0;
	passed_begin(s, st, (__u64)so);
	((struct wire_net *)s->rec)->h.flags |= WIRE_F_IOURING;
	named_by_request(s, req, op);
	passed_tell(s, st, (__u64)BPF_CORE_READ(so, sk), false);
	pressure(st);
	scratch_put(s);
	return 0;
}

/* The request is about to be done: in its task, in a worker or in the ring's thread, which share the descriptors. */
SEC("tp_btf/io_uring_file_get")
int BPF_PROG(on_passed_get, struct io_kiocb *req, int fd)
{
	return ring_sends(req, fd, false);
}

/* A registered file is got without a word: told when handed in. */
SEC("tp_btf/io_uring_submit_req")
int BPF_PROG(on_passed_req, struct io_kiocb *req)
{
	return req->flags & REQ_FIXED_FILE ? ring_sends(req, req->cqe.fd, true) : 0;
}

/* To 6.3 or so. */
SEC("tp_btf/io_uring_submit_sqe")
int BPF_PROG(on_passed_sqe, struct io_kiocb *req)
{
	return req->flags & REQ_FIXED_FILE ? ring_sends(req, req->cqe.fd, true) : 0;
}
