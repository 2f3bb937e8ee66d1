/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Accepts by io_uring, told when they complete, in the submitter, its SQPOLL thread or a worker: all
 * of them have the caller's descriptors. One that asked for no completion when it works
 * (IOSQE_CQE_SKIP_SUCCESS) is told as pending when it is handed in, by its listener: nothing fires later.
 * The tracepoint has two shapes; the one that the kernel has is loaded. */
#include "bpf/lib/calls.bpf.h"
#include "bpf/lib/sockfile.bpf.h"
#include "bpf/lib/uring.bpf.h"

#define FILE_INDEX_ALLOC (~0u)

/* The new socket, or with ret < 0 (or gone by now) the listener: the latter has no peer. */
static __always_inline void tell_accept(struct task_state *st, struct file *f, long ret, bool peer)
{
	struct socket *so = f ? file_socket(f) : NULL;
	struct sock *sk = so ? BPF_CORE_READ(so, sk) : NULL;
	struct wire_net *r;
	struct scratch *s;

	if (!sk)
		return;
	s = scratch_get();
	if (!s) {
		no_scratch(st, WIRE_NET_ACCEPT);
		return;
	}
	r = rec_begin(s, struct wire_net);
	header(&r->h, st, WIRE_NET_ACCEPT);
	r->h.flags = WIRE_F_IOURING;
	r->h.ret = ret;
	r->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	r->type = BPF_CORE_READ(so, type);
	r->proto = BPF_CORE_READ(sk, sk_protocol);
	r->cookie = BPF_CORE_READ(sk, __sk_common.skc_cookie.counter);
	if (r->family == AF_UNIX)
		r->path = unpack(unix_name(s, (__u64)sk));
	else if (r->family == AF_INET || r->family == AF_INET6)
		sock_addrs(r, sk, peer);
	if (peer && r->type == SOCK_STREAM && (r->family == AF_INET || r->family == AF_INET6))
		keep_flow(s, sk, false);
	emit_scratch(s, WIRE_RING_BULK_WAKE);
	scratch_put(s);
}

static __always_inline struct task_state *payload(void)
{
	struct task_state *st = task_state(bpf_get_current_task_btf());

	return st && st->role == ROLE_PAYLOAD ? st : NULL;
}

static __always_inline int completed(struct io_ring_ctx *ctx, struct io_kiocb *req, __u64 user_data,
				     int res)
{
	struct accept_key key = { .ring = (__u64)ctx, .user_data = user_data };
	struct task_state *st = payload();
	struct file *f;
	__u32 slot, *kept;

	if (!st)
		return 0;
	if (req) {
		struct io_accept *a = (void *)req + bpf_core_field_offset(struct io_kiocb, cmd);

		if (BPF_CORE_READ(req, opcode) != IORING_OP_ACCEPT)
			return 0;
		slot = BPF_CORE_READ(a, file_slot);
		bpf_map_delete_elem(&accepting, &key);
	} else {
		kept = bpf_map_lookup_elem(&accepting, &key);
		if (!kept)
			return 0;
		slot = *kept;
	}
	if (!is_told(res))
		return 0;
	if (res < 0) {
		if (req)
			tell_accept(st, BPF_CORE_READ(req, file), res, false);
		return 0;
	}
	if (!slot)
		f = fd_file(bpf_get_current_task_btf(), res);
	else
		f = direct_file(ctx, slot == FILE_INDEX_ALLOC ? (__u32)res : slot - 1);
	tell_accept(st, f, 0, true);
	return 0;
}

SEC("tp_btf/io_uring_complete")
int BPF_PROG(on_uring_cqe, struct io_ring_ctx *ring, void *req, struct io_uring_cqe *cqe)
{
	return completed(ring, req, cqe->user_data, cqe->res);
}

/* To 6.13 or so. */
SEC("tp_btf/io_uring_complete")
int BPF_PROG(on_uring_res, struct io_ring_ctx *ring, void *req, __u64 user_data, int res)
{
	return completed(ring, req, user_data, res);
}

/* ---- handed in ---- */

static __always_inline int handed_in(struct io_kiocb *req)
{
	struct io_accept *a = (void *)req + bpf_core_field_offset(struct io_kiocb, cmd);
	struct accept_key key = {};
	struct task_state *st;
	__u32 slot, flags, fd;

	if (req->opcode != IORING_OP_ACCEPT)
		return 0;
	st = payload();
	if (!st)
		return 0;
	flags = req->flags;
	fd = req->cqe.fd;
	if (flags & REQ_CQE_SKIP) {
		tell_accept(st,
			    flags & REQ_FIXED_FILE ? direct_file(req->ctx, fd)
						   : fd_file(bpf_get_current_task_btf(), fd),
			    -EINPROGRESS, false);
		return 0;
	}
	key.ring = (__u64)req->ctx;
	key.user_data = req->cqe.user_data;
	slot = BPF_CORE_READ(a, file_slot);
	if (bpf_map_update_elem(&accepting, &key, &slot, BPF_ANY))
		count_fail(FAIL_STASH);
	return 0;
}

SEC("tp_btf/io_uring_submit_req")
int BPF_PROG(on_accept_req, struct io_kiocb *req)
{
	return handed_in(req);
}

/* To 6.3 or so. */
SEC("tp_btf/io_uring_submit_sqe")
int BPF_PROG(on_accept_sqe, struct io_kiocb *req)
{
	return handed_in(req);
}
