/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Files: opened for writing (watched names and raw devices for reading too), renamed, deleted, linked,
 * changed. Called from on_sys_exit for tracked
 * tasks only. The path of an open comes from the file that was opened; of the others only the
 * caller's string exists, and the record says so. */
#include "bpf/lib/path.bpf.h"
#include "bpf/lib/cred.bpf.h"
#include "bpf/lib/enforce.bpf.h"
#include "bpf/lib/watched.bpf.h"
#include "bpf/lib/writes.bpf.h"
#include "bpf/lib/object.bpf.h"
#include "bpf/lib/watchlist.bpf.h"
#include "bpf/lib/made.bpf.h"
#include "bpf/lib/named.bpf.h"
#include "bpf/lib/sysend.bpf.h"

#define O_ACCMODE   00000003
#define O_CREAT	    00000100
#define O_TRUNC	    00001000
#define FMODE_WRITE 0x2
#define ENOENT	    2
#define S_IFMT	    0170000
#define S_IFBLK	    0060000
#define S_IFCHR	    0020000

const volatile __u32 watchlist_mode = 0; /* WATCHLIST_*, set before load */
const volatile __u64 made_seed = 0;

#define NR_OPEN	   2
#define NR_CREAT   85
#define NR_OPENAT2 437

static __always_inline void file_ids(struct wire_file *r, struct file *f)
{
	struct inode *inode = READ(f, f_inode);

	r->ino = READ(inode, i_ino);
	r->dev = READ(inode, i_sb, s_dev);
	r->mode = READ(inode, i_mode);
	if (!READ(inode, i_nlink))
		r->h.flags |= WIRE_F_DELETED;
}

static __always_inline __u32 open_flags(const __u64 *args, __u32 nr)
{
	__u64 how = 0;

	if (nr == NR_OPEN)
		return args[1];
	if (nr == NR_CREAT)
		return O_CREAT | O_TRUNC | 1;
	if (nr != NR_OPENAT2)
		return args[2];
	bpf_probe_read_user(&how, sizeof(how), (void *)args[2]);
	return how;
}

static __always_inline bool is_dev_null(struct file *f)
{
	return (READ(f, f_inode, i_mode) & S_IFMT) == S_IFCHR &&
	       READ(f, f_inode, i_rdev) == (1 << 20 | 3);
}

static __always_inline void escape_file(struct scratch *s, struct task_state *st, __u32 type,
					__u64 uptr)
{
	struct wire_escape *r = escape_begin(s, st, type, s->open.nr, s->open.ret);

	if (s->open.f)
		r->detail = rec_file_path(s, (struct file *)s->open.f);
	else
		r->detail = rec_user_str(s, uptr);
	emit_scratch(s, WIRE_RING_URGENT);
}

/* For an act that is done: only a kill is left. By the object where there is one, else by the name. */
GLOBAL int enforce_file(struct scratch *s, __u32 set, __u32 kind)
{
	union packed_str base = {}, path = {};
	struct wire_file *r;
	int v;

	if (!s)
		return 0;
	v = enforce_task(set, kind);
	r = (struct wire_file *)s->rec;
	base.w = r->base;
	path.w = r->path;
	v = enforce_max(v, enforce_name(s, set, kind, base.v, path.v));
	if (!r->path2.len || kind == WIRE_FILE_ATTR || (kind == WIRE_FILE_LINK && r->op == 2))
		return v;
	base.w = r->base2;
	path.w = r->path2;
	return enforce_max(v, enforce_name(s, set, kind, base.v, path.v));
}

static __always_inline void send_open(struct scratch *s, struct task_state *st, bool compat)
{
	const struct call *c = &calls[s->open.nr & (CALLS_MAX - 1)];
	__u64 uptr = s->args[c->path & 7];
	struct file *f = (struct file *)s->open.f;
	struct wire_file *r;
	__u32 set;

	s->open.id = 0;
	if (f && READ(f, f_mode) & FMODE_WRITE)
		write_open(s, st, (__u64)f, s->open.ret);
	r = rec_begin(s, struct wire_file);
	header(&r->h, st, WIRE_FILE_OPEN);
	if (compat)
		r->h.flags |= WIRE_F_COMPAT;
	r->h.nr = s->open.nr;
	r->h.ret = s->open.ret;
	r->open_flags = s->open.how;
	r->fd = s->open.ret;
	r->id = s->open.id;
	r->op = s->open.listed;
	if (f) {
		/* Somebody else can have put another file there since. */
		if (task_plain(bpf_get_current_task_btf())->files->count.counter > 1)
			r->h.flags |= WIRE_F_TOCTOU;
		file_ids(r, f);
		r->path = rec_file_path(s, f);
		if (s->open.writes && !s->open.steers)
			remember_made(r->ino, r->dev, st->sandbox);
	} else {
		rec_name(s, c->dir < 0 ? AT_FDCWD : s->args[0], uptr, &r->base, &r->path);
	}
	set = enforce_set_of(st);
	if (set && !enforce_acted(s))
		enforce_mark(&r->h,
			     f ? enforce_max(enforce_task(set, WIRE_FILE_OPEN),
					     enforce_path(s, set, WIRE_FILE_OPEN))
			       : enforce_file(s, set, WIRE_FILE_OPEN),
			     false);
	emit_scratch(s, WIRE_RING_BULK);
	if (s->open.steers) /* the type */
		escape_file(s, st, s->open.steers, uptr);
}

/* Reading is ordinary, except of watched names, what the operator lists and raw devices. */
GLOBAL int is_told_open(struct scratch *s)
{
	const struct call *c;
	struct file *f;
	__u64 d, m;
	int class;

	if (!s)
		return 0;
	c = &calls[s->open.nr & (CALLS_MAX - 1)];
	f = (struct file *)s->open.f;
	s->open.listed = 0;
	if (f) {
		s->open.writes = READ(f, f_mode) & FMODE_WRITE || s->open.how & (O_CREAT | O_TRUNC);
		s->open.steers = file_escape((__u64)f, s->open.writes);
		d = LOAD_PTR(f, f_path.dentry);
		m = LOAD_PTR(f, f_path.mnt);
		if (watchlist_mode)
			s->open.listed = watchlist_file(s, d, m);
		return s->open.writes || s->open.steers || s->open.listed ||
		       watched_dentry(d) == WATCHED_FILE;
	}
	s->open.writes = !!(s->open.how & (O_ACCMODE | O_CREAT | O_TRUNC));
	class = watched_string(s, s->args[c->path & 7], WIRE_PATH_MAX);
	s->open.steers = path_escape(s, class,
				     !s->open.writes	    ? FOR_READING
				     : is_told(s->open.ret) ? FOR_WRITING
							    : FOR_WRITING_ABSENT,
				     c->dir < 0 ? AT_FDCWD : s->args[0]);
	if (watchlist_mode & WATCHLIST_PATHS)
		s->open.listed =
			watchlist_name(s, c->dir < 0 ? AT_FDCWD : s->args[0], s->args[c->path & 7]);
	if (s->open.steers || s->open.listed || (s->open.writes && is_told(s->open.ret)))
		return 1;
	return class == WATCHED_FILE;
}

SYSCALL_END(sys_open)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task_state *st = task_own_state(t);
	struct sysctx c = call_of(regs, t);
	struct scratch *s;

	if (!st || st->role != ROLE_PAYLOAD || !(is_told(ret) || ret == -ENOENT))
		return 0;
	cred_check(st, false);
	s = scratch_get();
	if (!s) {
		no_scratch(st, WIRE_FILE_OPEN);
		return 0;
	}
	call_args(s->args, regs, t);
	s->open.nr = c.nr;
	s->open.ret = ret;
	s->open.how = open_flags(s->args, c.nr);
	s->open.f = ret >= 0 ? (__u64)fd_file(t, ret) : 0;
	/* Half of all shell commands throw something away. */
	if (s->open.f && is_dev_null((struct file *)s->open.f))
		goto out;
	if (is_told_open(s))
		send_open(s, st, c.compat);
	pressure(st);
out:
	scratch_put(s);
	return 0;
}

/* What the call carries besides names: it stands behind the path (or the descriptor). */
static __always_inline void file_extra(struct scratch *s, struct wire_file *r, const struct call *c)
{
	int at = (c->path >= 0 ? c->path : c->dir) + 1;
	__u64 v = s->args[at & 7];

	if (c->what == WIRE_FILE_MKDIR || (c->what == WIRE_FILE_ATTR && c->op == 1))
		r->mode = v;
	if (c->what == WIRE_FILE_ATTR && c->op == 2) {
		r->uid = v;
		r->gid = s->args[(at + 1) & 7];
	}
	if (c->what == WIRE_FILE_ATTR && c->op == 4)
		r->size = v;
}

/* The names as a hook in front of the act saw them; false: there is only the caller's word. */
static __always_inline bool file_named(struct scratch *s, struct wire_file *r, const struct call *c,
				       __u32 nr)
{
	if (!named_take(s, c->what, nr))
		return false;
	r->path = unpack(rec_named_packed(s, 0));
	if (!r->path.len)
		return false;
	if (c->path2 < 0 || c->what == WIRE_FILE_ATTR)
		return true;
	if (c->what != WIRE_FILE_LINK || c->op != 2)
		r->path2 = unpack(rec_named_packed(s, 1));
	else if (s->named.at[1].len) /* a symlink's text */
		r->path2 = unpack(
			rec_str(s, to_number(s, s->named.at[1].name), NAMED_MAX, STR_KERNEL));
	return r->path2.len;
}

static __always_inline void send_file(struct scratch *s, struct task_struct *t,
				      struct task_state *st, __u32 nr, bool compat, long ret)
{
	const struct call *c = &calls[nr & (CALLS_MAX - 1)];
	struct wire_file *r;
	int dirfd = AT_FDCWD, dirfd2;
	struct file *f;
	bool named;
	__u32 set;

	r = rec_begin(s, struct wire_file);
	header(&r->h, st, c->what);
	if (compat)
		r->h.flags |= WIRE_F_COMPAT;
	r->h.nr = nr;
	r->h.ret = ret;
	r->fd = -1;
	r->op = c->op;
	named = file_named(s, r, c, nr);
	if (named) {
		;
	} else if (c->path >= 0) {
		if (c->dir >= 0)
			dirfd = s->args[c->dir & 7];
		rec_name(s, dirfd, s->args[c->path & 7], &r->base, &r->path);
	} else {
		r->fd = s->args[c->dir & 7];
		f = fd_file(t, r->fd);
		if (f) {
			file_ids(r, f);
			r->path = rec_file_path(s, f);
		}
	}
	file_extra(s, r, c);
	if (c->path2 >= 0 && (!named || c->what == WIRE_FILE_ATTR)) {
		dirfd2 = c->dir2 >= 0 ? (int)s->args[c->dir2 & 7] : AT_FDCWD;
		r->path2 = rec_user_str(s, s->args[c->path2 & 7]);
		if (c->what != WIRE_FILE_ATTR && c->op != 2 && /* attribute name, symlink text */
		    is_relative(s, r->path2))
			r->base2 = r->base.len && dirfd2 == dirfd ? r->base : /* the same bytes */
					   unpack(rec_base_packed(s, dirfd2));
	}
	set = enforce_set_of(st);
	if (set && !enforce_acted(s))
		enforce_mark(&r->h, enforce_file(s, set, c->what), false);
	emit_scratch(s, WIRE_RING_BULK);
}

/* truncate() is a write, of what nobody opened. */
static __always_inline void truncate_escape(struct scratch *s, struct task_state *st,
					    const struct call *c, __u32 nr, long ret)
{
	__u64 uptr = s->args[c->path & 7];

	s->open.steers =
		path_escape(s, watched_string(s, uptr, WIRE_PATH_MAX), FOR_WRITING, AT_FDCWD);
	if (!s->open.steers)
		return;
	s->open.f = 0;
	s->open.nr = nr;
	s->open.ret = ret;
	escape_file(s, st, s->open.steers, uptr);
}

SYSCALL_END(sys_file)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task_state *st = task_own_state(t);
	struct sysctx c = call_of(regs, t);
	const struct call *call;
	struct scratch *s;

	if (!st || st->role != ROLE_PAYLOAD)
		return 0;
	if (!is_told(ret)) {
		named_drop();
		return 0;
	}
	s = scratch_get();
	if (!s) {
		named_drop();
		no_scratch(st, calls[c.nr & (CALLS_MAX - 1)].what);
		return 0;
	}
	call_args(s->args, regs, t);
	send_file(s, t, st, c.nr, c.compat, ret);
	call = &calls[c.nr & (CALLS_MAX - 1)];
	if (call->what == WIRE_FILE_ATTR && call->op == 4 && call->path >= 0)
		truncate_escape(s, st, call, c.nr, ret);
	pressure(st);
	scratch_put(s);
	return 0;
}
