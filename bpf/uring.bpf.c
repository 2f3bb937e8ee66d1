/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* What a task does through io_uring, which no system call hook sees. Told when it is handed in: the
 * names are the kernel's copies by then and nobody can change them; the result is not known yet, so
 * ret is -EINPROGRESS. Fires in the submitter or in its SQPOLL thread, which inherited the membership.
 * Connects are told by the cgroup programs (net.bpf.c). Two tracepoints did this job in turn; the one
 * that the kernel has is loaded. */
#include "bpf/lib/path.bpf.h"
#include "bpf/lib/watched.bpf.h"

#define O_ACCMODE   00000003
#define O_CREAT	    00000100
#define O_TRUNC	    00001000
#define EINPROGRESS 115

/* A name that io_uring's prep step copied from the caller. */
static __always_inline struct wire_str rec_filename(struct scratch *s, struct filename *fn,
						    int dirfd, struct wire_str *base)
{
	struct wire_str w = rec_kernel_str(s, BPF_CORE_READ(fn, name), WIRE_PATH_MAX);
	char first = 0;

	if (!w.len)
		return w;
	bpf_probe_read_kernel(&first, 1, s->rec + (w.off & 0x3fff));
	if (first != '/')
		*base = unpack(rec_base_packed(s, dirfd));
	return w;
}

static __always_inline struct wire_file *uring_begin(struct scratch *s, struct task_state *st,
						     __u16 kind)
{
	struct wire_file *r = rec_begin(s, struct wire_file);

	header(&r->h, st, kind);
	r->h.flags = WIRE_F_IOURING;
	r->h.ret = -EINPROGRESS;
	r->fd = -1;
	return r;
}

/* 7.3 keeps names in another shape: then the event comes without its path, and says so. */
#define uring_name(s, cmd, field, dirfd, base)                                        \
	({                                                                            \
		struct wire_str w_ = {};                                              \
		if (bpf_core_field_exists((cmd)->field))                              \
			w_ = rec_filename(s, BPF_CORE_READ(cmd, field), dirfd, base); \
		else                                                                  \
			(s)->flags |= WIRE_F_READ_FAULT;                              \
		w_;                                                                   \
	})

static __always_inline void uring_open(struct scratch *s, struct task_state *st, void *cmd)
{
	struct io_open *o = cmd;
	struct wire_file *r;
	__u32 how = BPF_CORE_READ(o, how.flags);

	if (!(how & (O_ACCMODE | O_CREAT | O_TRUNC)))
		return;
	r = uring_begin(s, st, WIRE_FILE_OPEN);
	r->open_flags = how;
	r->mode = BPF_CORE_READ(o, how.mode);
	r->path = uring_name(s, o, filename, BPF_CORE_READ(o, dfd), &r->base);
	emit_scratch(s, WIRE_RING_BULK);
}

static __always_inline void uring_unlink(struct scratch *s, struct task_state *st, void *cmd)
{
	struct wire_file *r = uring_begin(s, st, WIRE_FILE_DELETE);
	struct io_unlink *u = cmd;

	r->path = uring_name(s, u, filename, BPF_CORE_READ(u, dfd), &r->base);
	emit_scratch(s, WIRE_RING_BULK);
}

static __always_inline void uring_mkdir(struct scratch *s, struct task_state *st, void *cmd)
{
	struct wire_file *r = uring_begin(s, st, WIRE_FILE_MKDIR);
	struct io_mkdir *u = cmd;

	r->mode = BPF_CORE_READ(u, mode);
	r->path = uring_name(s, u, filename, BPF_CORE_READ(u, dfd), &r->base);
	emit_scratch(s, WIRE_RING_BULK);
}

static __always_inline void uring_rename(struct scratch *s, struct task_state *st, void *cmd)
{
	struct wire_file *r = uring_begin(s, st, WIRE_FILE_RENAME);
	struct io_rename *u = cmd;

	r->path = uring_name(s, u, oldpath, BPF_CORE_READ(u, old_dfd), &r->base);
	r->path2 = uring_name(s, u, newpath, BPF_CORE_READ(u, new_dfd), &r->base2);
	emit_scratch(s, WIRE_RING_BULK);
}

static __always_inline int submitted(struct io_kiocb *req)
{
	struct task_state *st = task_state(bpf_get_current_task_btf());
	void *cmd = (void *)req + bpf_core_field_offset(struct io_kiocb, cmd);
	__u8 op = req->opcode;
	struct scratch *s;

	if (!st || st->role != ROLE_PAYLOAD)
		return 0;
	if (op != IORING_OP_OPENAT && op != IORING_OP_OPENAT2 && op != IORING_OP_UNLINKAT &&
	    op != IORING_OP_RENAMEAT && op != IORING_OP_MKDIRAT)
		return 0;
	s = scratch_get();
	if (!s) {
		no_scratch(st, WIRE_FILE_OPEN);
		return 0;
	}
	if (op == IORING_OP_UNLINKAT)
		uring_unlink(s, st, cmd);
	else if (op == IORING_OP_RENAMEAT)
		uring_rename(s, st, cmd);
	else if (op == IORING_OP_MKDIRAT)
		uring_mkdir(s, st, cmd);
	else
		uring_open(s, st, cmd);
	pressure(st);
	scratch_put(s);
	return 0;
}

SEC("tp_btf/io_uring_submit_req")
int BPF_PROG(on_uring_req, struct io_kiocb *req)
{
	return submitted(req);
}

/* To 6.3 or so. */
SEC("tp_btf/io_uring_submit_sqe")
int BPF_PROG(on_uring_sqe, struct io_kiocb *req)
{
	return submitted(req);
}
