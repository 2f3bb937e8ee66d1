/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* What a task does through io_uring, which no system call hook sees. Told when it is handed in: the
 * names are the kernel's copies by then and nobody can change them; the result is not known yet, so
 * ret is -EINPROGRESS. Fires in the submitter or in its SQPOLL thread, which inherited the membership.
 * Connects are told by the cgroup programs (net.bpf.c), accepts when they complete (accept.bpf.c). Two tracepoints did this job in turn; the one
 * that the kernel has is loaded. */
#include "bpf/lib/path.bpf.h"
#include "bpf/lib/watched.bpf.h"
#include "bpf/lib/writes.bpf.h"
#include "bpf/lib/escape.bpf.h"
#include "bpf/lib/object.bpf.h"
#include "bpf/lib/watchlist.bpf.h"
#include "bpf/lib/limited.bpf.h"

#define O_ACCMODE   00000003
#define O_CREAT	    00000100
#define O_TRUNC	    00001000
#define EINPROGRESS 115
#define FMODE_WRITE 0x2

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

/* Hard and symbolic; of the latter the old path is a text. */
static __always_inline void uring_link(struct scratch *s, struct task_state *st, void *cmd,
				       __u32 op)
{
	struct wire_file *r = uring_begin(s, st, WIRE_FILE_LINK);
	struct io_link *u = cmd;

	r->op = op;
	r->path = uring_name(s, u, newpath, BPF_CORE_READ(u, new_dfd), &r->base);
	r->path2 = uring_name(s, u, oldpath, BPF_CORE_READ(u, old_dfd), &r->base2);
	if (op == 2)
		r->base2.len = 0;
	emit_scratch(s, WIRE_RING_BULK);
}

/* Attributes of an open file; its number is the request's until it is done. */
static __always_inline void uring_attr(struct scratch *s, struct task_state *st,
				       struct io_kiocb *req, void *cmd, bool length)
{
	struct wire_file *r = uring_begin(s, st, WIRE_FILE_ATTR);
	struct io_ftrunc *tr = cmd;
	struct io_xattr *xa = cmd;
	struct inode *inode;
	struct file *f;

	r->op = length ? 4 : 3;
	r->fd = BPF_CORE_READ(req, cqe.fd);
	f = fd_file(bpf_get_current_task_btf(), r->fd);
	if (f) {
		inode = BPF_CORE_READ(f, f_inode);
		r->ino = BPF_CORE_READ(inode, i_ino);
		r->dev = BPF_CORE_READ(inode, i_sb, s_dev);
		r->mode = BPF_CORE_READ(inode, i_mode);
		r->path = rec_file_path(s, f);
	}
	if (length && bpf_core_field_exists(tr->len))
		r->size = BPF_CORE_READ(tr, len);
	if (!length && bpf_core_field_exists(xa->ctx.kname))
		r->path2 = rec_kernel_str(s, BPF_CORE_READ(xa, ctx.kname), 256);
	emit_scratch(s, WIRE_RING_BULK);
}

static __always_inline void uring_setxattr(struct scratch *s, struct task_state *st, void *cmd)
{
	struct wire_file *r = uring_begin(s, st, WIRE_FILE_ATTR);
	struct io_xattr *xa = cmd;

	r->op = 3;
	r->path = uring_name(s, xa, filename, AT_FDCWD, &r->base);
	if (bpf_core_field_exists(xa->ctx.kname))
		r->path2 = rec_kernel_str(s, BPF_CORE_READ(xa, ctx.kname), 256);
	emit_scratch(s, WIRE_RING_BULK);
}

/* Numbers of the interface (include/uapi/linux/io_uring.h); older kernels' types do not have them all. */
enum {
	UR_WRITEV = 2,
	OP_WRITE_FIXED = 5,
	UR_FALLOCATE = 17,
	UR_OPENAT = 18,
	UR_CLOSE = 19,
	UR_WRITE = 23,
	UR_OPENAT2 = 28,
	UR_SPLICE = 30,
	UR_RENAMEAT = 35,
	UR_UNLINKAT = 36,
	UR_MKDIRAT = 37,
	UR_SYMLINKAT = 38,
	UR_LINKAT = 39,
	UR_FSETXATTR = 41,
	UR_SETXATTR = 42,
	UR_FTRUNCATE = 55,
};

static __always_inline int submitted(struct io_kiocb *req)
{
	struct task_state *st = task_state(bpf_get_current_task_btf());
	void *cmd = (void *)req + bpf_core_field_offset(struct io_kiocb, cmd);
	__u8 op = req->opcode;
	struct scratch *s;

	if (!st || st->role != ROLE_PAYLOAD)
		return 0;
	if (op != UR_OPENAT && op != UR_OPENAT2 && op != UR_FTRUNCATE &&
	    (op < UR_RENAMEAT || op > UR_SETXATTR || op == UR_LINKAT + 1))
		return 0;
	s = scratch_get();
	if (!s) {
		no_scratch(st, WIRE_FILE_OPEN);
		return 0;
	}
	if (op == UR_UNLINKAT)
		uring_unlink(s, st, cmd);
	else if (op == UR_RENAMEAT)
		uring_rename(s, st, cmd);
	else if (op == UR_MKDIRAT)
		uring_mkdir(s, st, cmd);
	else if (op == UR_SYMLINKAT || op == UR_LINKAT)
		uring_link(s, st, cmd, op == UR_LINKAT ? 1 : 2);
	else if (op == UR_FTRUNCATE || op == UR_FSETXATTR)
		uring_attr(s, st, req, cmd, op == UR_FTRUNCATE);
	else if (op == UR_SETXATTR)
		uring_setxattr(s, st, cmd);
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

struct find_ctx {
	__u64 file;
	__u32 max;
	__s32 fd;
};

static long find_step(__u32 i, struct find_ctx *x)
{
	if (i >= x->max)
		return 1;
	if ((__u64)fd_file(bpf_get_current_task_btf(), i) != x->file)
		return 0;
	x->fd = i;
	return 1;
}

/* The request no longer knows its descriptor when it is done (and a registered file need not have
 * one): searched for. */
static __always_inline int fd_of(struct task_struct *t, __u64 file)
{
	struct find_ctx x = { .file = file, .fd = -1 };

	x.max = BPF_CORE_READ(t, files, fdt, max_fds);
	bpf_loop(1024, find_step, &x, 0);
	return x.fd;
}

/* An open is done, into a descriptor. For writing it was told when it was handed in; for reading only now
 * is it known what was reached. */
static __always_inline void uring_opened(struct task_state *st, struct file *f, int fd)
{
	struct scratch *s = scratch_get();
	struct wire_escape *e;
	struct wire_file *r;
	bool writes;
	__u64 d, m;

	if (!s) {
		no_scratch(st, WIRE_FILE_OPEN);
		return;
	}
	writes = BPF_CORE_READ(f, f_mode) & FMODE_WRITE;
	d = (__u64)BPF_CORE_READ(f, f_path.dentry);
	m = (__u64)BPF_CORE_READ(f, f_path.mnt);
	s->open.steers = file_escape((__u64)f, writes);
	s->open.listed = 0;
	if (!writes && watchlist_mode)
		s->open.listed = watchlist_file(s, d, m);
	if (!writes && (s->open.steers || s->open.listed || watched_dentry(d) == WATCHED_FILE)) {
		r = uring_begin(s, st, WIRE_FILE_OPEN);
		r->h.ret = r->fd = fd;
		r->op = s->open.listed;
		r->open_flags = BPF_CORE_READ(f, f_flags);
		r->ino = BPF_CORE_READ(f, f_inode, i_ino);
		r->dev = BPF_CORE_READ(f, f_inode, i_sb, s_dev);
		r->mode = BPF_CORE_READ(f, f_inode, i_mode);
		r->path = unpack(rec_path_packed(s, d, m));
		emit_scratch(s, WIRE_RING_BULK);
	}
	if (s->open.steers) {
		e = escape_begin(s, st, s->open.steers, WIRE_NR_NONE, fd);
		e->h.flags |= WIRE_F_IOURING;
		__builtin_memset(e->args, 0, sizeof(e->args));
		e->detail = unpack(rec_path_packed(s, d, m));
		emit_scratch(s, WIRE_RING_URGENT);
	}
	scratch_put(s);
}

GLOBAL int uring_limit_send(struct scratch *s, struct task_state *st, __u32 type_count, int res,
			    __u64 file)
{
	struct wire_limit_hit *r;

	if (!s || !st)
		return 0;
	r = rec_begin(s, struct wire_limit_hit);
	header(&r->h, st, WIRE_LIMIT);
	r->h.flags = WIRE_F_IOURING;
	r->h.ret = res;
	r->type = type_count & 0xff;
	r->count = type_count >> 8;
	limit_fill(s, r, bpf_get_current_task_btf(), (struct file *)file);
	emit_scratch(s, WIRE_RING_URGENT);
	return 0;
}

/* A request failed because a limit was hit. */
static __always_inline void uring_limited(struct task_state *st, struct io_kiocb *req, __u8 op,
					  int res)
{
	__u32 type = limit_of(WIRE_NR_NONE, res), count;
	struct scratch *s;
	__u64 f = 0;

	count = type ? limit_turn(st->sandbox, type) : 0;
	if (!count)
		return;
	s = scratch_get();
	if (!s) {
		no_scratch(st, WIRE_LIMIT);
		return;
	}
	if (op == UR_WRITE || op == UR_WRITEV || op == OP_WRITE_FIXED || op == UR_FALLOCATE ||
	    op == UR_SPLICE)
		f = (__u64)BPF_CORE_READ(req, file);
	uring_limit_send(s, st, type | count << 8, res, f);
	scratch_put(s);
}

/* A request is done, in its task or in a worker of the same process. Of writes the bytes count, of
 * closes the descriptor. */
SEC("tp_btf/io_uring_complete")
int BPF_PROG(on_uring_done, void *ring, void *request)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task_state *st = task_state(t);
	struct io_kiocb *req = request;
	struct write_state w = {};
	struct io_close *cl;
	struct scratch *s;
	struct file *f;
	__u8 op = 0;
	int res, fd;

	if (!st || st->role != ROLE_PAYLOAD || !req)
		return 0;
	bpf_core_read(&op, sizeof(op), &req->opcode);
	res = BPF_CORE_READ(req, cqe.res);
	if (res < 0) {
		uring_limited(st, req, op, res);
		if (op != UR_CLOSE)
			return 0;
	}
	if (op == UR_CLOSE) {
		cl = (void *)req + bpf_core_field_offset(struct io_kiocb, cmd);
		write_closed(st, BPF_CORE_READ(cl, fd), -1);
		return 0;
	}
	if (op == UR_OPENAT || op == UR_OPENAT2) {
		f = res >= 0 ? fd_file(t, res) : NULL;
		if (f &&
		    !BPF_CORE_READ((struct io_open *)((void *)req +
						      bpf_core_field_offset(struct io_kiocb, cmd)),
				   file_slot))
			uring_opened(st, f, res);
		return 0;
	}
	if (res <= 0 ||
	    (op != UR_WRITE && op != UR_WRITEV && op != OP_WRITE_FIXED && op != UR_SPLICE))
		return 0;
	f = BPF_CORE_READ(req, file);
	if (!f)
		return 0;
	fd = fd_of(t, (__u64)f);
	if (fd >= 0) {
		written(st, fd, res, WIRE_NR_NONE | WRITE_URING);
		return 0;
	}
	/* A registered file without a descriptor: each write by itself. */
	if (!write_fill(&w, f))
		return 0;
	w.bytes = res;
	w.count = 1;
	w.first_ts = bpf_ktime_get_boot_ns();
	s = scratch_get();
	if (!s) {
		no_scratch(st, WIRE_FILE_WRITE);
		return 0;
	}
	WRITE_TELL(s, st, &w, (__u64)f, -1, WIRE_NR_NONE | WRITE_URING);
	scratch_put(s);
	return 0;
}
