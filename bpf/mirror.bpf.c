/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* What a gVisor guest does, as the host's kernel sees it. Under ptrace a call of the guest ends as one of its stub: it was
 * not carried out (PTRACE_SYSEMU), but the registers hold its number, arguments and result, and the stub's memory is the
 * guest's. And whatever a guest changes in a file system of the host is done for it by the gofer, on every platform.
 *
 * Not seen: programs that are started (the stub is another one then), calls at whose end a signal is handled, names
 * that lie in pages which no instruction of the guest has touched (the gofer knows them). Under systrap no calls.
 * A sentry in the guest's hands writes the registers, too: what it cannot hide is what the gofer does.
 *
 * Loaded for such sandboxes only: a tracepoint on each system call of the host costs all of it 20 ns. */
#include "bpf/lib/gvisor.bpf.h"
#include "bpf/lib/calls.bpf.h"
#include "bpf/lib/path.bpf.h"

#define NR_CONNECT   42
#define NR_SENDTO    44
#define NR_SENDMSG   46
#define NR_SENDMMSG  307
#define MMSG_MAX     2	/* of one call: glibc's resolver sends two */
#define SOCKADDR     28 /* struct sockaddr_in6 */
#define DNS_HEADER   12
#define DNS_MAX	     512
#define SYSCALL_INSN 0x050f

const volatile bool mirror_stubs = false; /* the platform is ptrace */

static __always_inline struct wire_str guest_str(struct scratch *s, __u64 ptr)
{
	return unpack(rec_str(s, ptr, WIRE_PATH_MAX, STR_GUEST));
}

/* At most `max` bytes of user memory. */
GLOBAL int mirror_bytes(struct scratch *s, __u64 ptr, __u32 n)
{
	union packed_str p = {};
	__u32 off;
	char *dst;

	if (!s || !n)
		return 0;
	dst = rec_room(s, WIRE_PATH_MAX, &off);
	if (!dst)
		return 0;
	if (n > DNS_MAX)
		n = DNS_MAX;
	if (bpf_probe_read_user(dst, n, (void *)ptr))
		return 0;
	p.w.off = off;
	p.w.len = n;
	s->len = off + n;
	return p.v;
}

static __always_inline struct wire_mirror *mirror_begin(struct scratch *s, struct task_state *st)
{
	struct wire_mirror *r = rec_begin(s, struct wire_mirror);

	header(&r->h, st, WIRE_MIRROR);
	r->h.nr = s->call.nr;
	r->h.ret = s->call.ret;
	r->h.flags = gvisor_flags(st);
	__builtin_memcpy(r->args, s->args, sizeof(r->args));
	return r;
}

/* A question, not an answer, and one of them. */
static __always_inline bool is_question(__u64 data, __u64 n)
{
	__u8 h[DNS_HEADER] = {};

	if (n <= DNS_HEADER || bpf_probe_read_user(h, sizeof(h), (void *)data))
		return false;
	return !(h[2] & 0xf8) && !h[4] && h[5] == 1 && !h[6] && !h[7] && !h[8] && !h[9];
}

struct mirror_msg {
	__u64 addr, data, n;
	__u32 addr_n;
};

/* struct user_msghdr, and the first piece of what it sends. */
static __always_inline bool read_msg(struct mirror_msg *m, __u64 uptr)
{
	__u64 h[4] = {}, iov[2] = {};

	if (bpf_probe_read_user(h, sizeof(h), (void *)uptr))
		return false;
	m->addr = h[0];
	m->addr_n = (__u32)h[1];
	if (h[3] && !bpf_probe_read_user(iov, sizeof(iov), (void *)h[2])) {
		m->data = iov[0];
		m->n = iov[1];
	}
	return true;
}

/* One message. Streams send often and to nobody in particular: only what has an address, or asks for a name, is told. */
GLOBAL int mirror_send(struct scratch *s, struct task_state *st, __u32 i)
{
	struct mirror_msg m = {};
	struct wire_mirror *r;
	__u32 n;

	if (!s || !st)
		return 0;
	if (s->call.nr == NR_SENDTO) {
		m.data = s->args[1];
		m.n = s->args[2];
		m.addr = s->args[4];
		m.addr_n = (__u32)s->args[5];
	} else if (!read_msg(&m, s->args[1] + i * 64)) {
		return 0;
	}
	if (!m.addr)
		m.addr_n = 0;
	if (m.addr_n > SOCKADDR)
		m.addr_n = SOCKADDR;
	n = is_question(m.data, m.n) ? m.n : 0;
	if (!m.addr_n && !n)
		return 0;
	if (n > DNS_MAX)
		n = DNS_MAX;
	r = mirror_begin(s, st);
	r->index = i;
	r->total = m.n;
	r->addr = unpack(mirror_bytes(s, m.addr, m.addr_n));
	r->data = unpack(mirror_bytes(s, m.data, n));
	emit_scratch(s, WIRE_RING_BULK);
	return 0;
}

/* A call of the guest. */
GLOBAL int mirror_call(struct scratch *s, struct task_state *st)
{
	const struct call *c;
	struct wire_mirror *r;

	if (!s || !st)
		return 0;
	c = &calls[s->call.nr & (CALLS_MAX - 1)];
	r = mirror_begin(s, st);
	if (c->slot == SLOT_FILE || c->slot == SLOT_OPEN) {
		if (c->path >= 0)
			r->path = guest_str(s, s->args[c->path & 7]);
		if (c->path2 >= 0 && c->what != WIRE_FILE_ATTR)
			r->path2 = guest_str(s, s->args[c->path2 & 7]);
	}
	emit_scratch(s, WIRE_RING_BULK);
	return 0;
}

/* A file that the gofer changed: one name in a directory that it holds, or what it holds. */
GLOBAL int mirror_gofer(struct scratch *s, struct task_state *st)
{
	const struct call *c;
	struct wire_mirror *r;
	struct file *f;

	if (!s || !st)
		return 0;
	c = &calls[s->call.nr & (CALLS_MAX - 1)];
	r = mirror_begin(s, st);
	if (c->path >= 0) {
		r->path = guest_str(s, s->args[c->path & 7]);
		if (c->dir >= 0)
			r->base = unpack(rec_base_packed(s, (int)s->args[c->dir & 7]));
	} else if (c->dir >= 0) {
		f = fd_file(bpf_get_current_task_btf(), s->args[c->dir & 7]);
		if (f)
			r->path = rec_file_path(s, f);
	}
	if (c->path2 >= 0 && c->what != WIRE_FILE_ATTR) {
		r->path2 = guest_str(s, s->args[c->path2 & 7]);
		if (c->dir2 >= 0)
			r->base2 = unpack(rec_base_packed(s, (int)s->args[c->dir2 & 7]));
	}
	emit_scratch(s, WIRE_RING_BULK);
	return 0;
}

/* Is it the end of a call that the guest made? Not of one that a signal's handler is entered from. */
static __always_inline bool is_call_of_guest(struct task_struct *t, struct pt_regs *regs)
{
	__u16 insn = 0;

	return t->ptrace && !bpf_probe_read_user(&insn, sizeof(insn), (void *)(regs->ip - 2)) &&
	       insn == SYSCALL_INSN;
}

static __always_inline bool is_wanted(__u32 slot, __u32 nr, long ret)
{
	switch (slot) {
	case SLOT_FILE:
		return is_told(ret);
	case SLOT_OPEN:
		return ret >= 0;
	case SLOT_NET:
		return nr == NR_CONNECT && (!ret || ret == -115 /* EINPROGRESS */);
	case SLOT_SEND:
		return ret >= 0 || ret == -1 || ret == -13;
	}
	return false;
}

/* Each system call of the host that ends; of others than gVisor's processes it costs one look-up. */
SEC("tp_btf/sys_exit")
int on_mirror(__u64 *ctx)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task_state *st = task_own_state(t);
	struct pt_regs *regs = (struct pt_regs *)ctx[0];
	__u64 nr = regs->orig_ax;
	long ret = (long)ctx[1];
	struct scratch *s;
	__u32 slot, i;

	if (!st || st->part < GVISOR_GOFER || nr >= CALLS_MAX)
		return 0;
	slot = calls[nr].slot;
	if (st->part == GVISOR_GOFER) {
		if (slot != SLOT_FILE || ret < 0)
			return 0;
	} else if (st->part != GVISOR_STUB || !mirror_stubs || !is_wanted(slot, nr, ret) ||
		   !is_call_of_guest(t, regs)) {
		return 0;
	}
	s = scratch_get();
	if (!s) {
		no_scratch(st, WIRE_MIRROR);
		return 0;
	}
	call_args(s->args, regs, t);
	s->call.nr = nr;
	s->call.ret = ret;
	if (st->part == GVISOR_GOFER) {
		mirror_gofer(s, st);
	} else if (slot != SLOT_SEND) {
		mirror_call(s, st);
	} else {
		mirror_send(s, st, 0);
		for (i = 1; i < MMSG_MAX && nr == NR_SENDMMSG && i < ret; i++)
			mirror_send(s, st, i);
	}
	scratch_put(s);
	return 0;
}
