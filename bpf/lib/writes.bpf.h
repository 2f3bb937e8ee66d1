/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Bytes written, by process and descriptor: told as one record when the descriptor is closed (by close,
 * dup2, close_range, exec or the end of the process). A descriptor that the sandbox opened is known from
 * its file.open, and the record refers to that by id; one that came otherwise (inherited, passed in) is
 * told with its path at its first write. What stays open is told once a second after its first write. */
#ifndef WARDER_BPF_WRITES_H
#define WARDER_BPF_WRITES_H

#include "bpf/lib/path.bpf.h"
#include "bpf/lib/enforce.bpf.h"

#define WRITE_S_IFMT  0170000
#define WRITE_S_IFREG 0100000
#define WRITE_TELL_NS 1000000000ull
#define WRITE_SWEEP   65536   /* descriptors looked at when many are closed at once */
#define WRITE_URING   0x10000 /* in `nr`: by io_uring */
#define WRITE_KEPT    16      /* descriptors below are used again and again: their place is kept */
#define WRITE_FREE    0	      /* a place that is kept */
#define WRITE_TELLING 1

struct write_key {
	__u32 tgid;
	__u32 fd;
};

struct write_state {
	__u64 file; /* struct file *: another one there now = closed; or WRITE_FREE, WRITE_TELLING */
	__u64 id;
	__u64 bytes;
	__u64 first_ts; /* CLOCK_BOOTTIME; 0 = not written yet */
	__u64 ino;
	__u32 dev;
	__u32 mode;
	__u32 count;
	__u32 told; /* the first write was */
};

/* A table that is full loses totals, not acts: counted like a lost record. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct write_key);
	__type(value, struct write_state);
} writes __weak SEC(".maps");

/* Does the process have anything in there? Known at its leader. */
static __always_inline void writes_mark(struct task_struct *t, struct task_state *st)
{
	struct task_state *of = st;

	if (t->pid != t->tgid)
		of = bpf_task_storage_get(&tasks, t->group_leader, 0, 0);
	if (of && !(of->flags & TASK_WRITES))
		__sync_fetch_and_or(&of->flags, TASK_WRITES);
}

static __always_inline bool writes_any(struct task_struct *t, struct task_state *st)
{
	struct task_state *of = st;

	if (t->pid != t->tgid)
		of = bpf_task_storage_get(&tasks, t->group_leader, 0, 0);
	return !of || of->flags & TASK_WRITES;
}

/* file: where the path comes from; 0: it was told before, by id. */
GLOBAL int write_tell(struct scratch *s, struct task_state *st, struct write_state *w, __u64 file,
		      __u64 fd_nr)
{
	__u32 nr = fd_nr >> 32, set;
	struct wire_file *r;

	if (!s || !st || !w)
		return 0;
	r = rec_begin(s, struct wire_file);
	header(&r->h, st, WIRE_FILE_WRITE);
	if (nr & WRITE_URING)
		r->h.flags |= WIRE_F_IOURING;
	r->h.nr = nr;
	r->fd = fd_nr;
	r->op = file ? WIRE_WRITE_FIRST : WIRE_WRITE_TOTAL;
	r->id = w->id;
	r->ino = w->ino;
	r->dev = w->dev;
	r->mode = w->mode;
	r->size = w->bytes;
	r->count = w->count;
	r->first_ts = w->first_ts;
	if (file)
		r->path = rec_file_path(s, (struct file *)file);
	set = enforce_set_of(st);
	if (set)
		enforce_mark(&r->h, enforce_task(set, WIRE_FILE_WRITE), false);
	emit_scratch(s, WIRE_RING_BULK);
	return 0;
}

#define WRITE_TELL(s, st, w, file, fd, nr) \
	write_tell(s, st, w, file, (__u64)(nr) << 32 | (__u32)(fd))

/* The descriptor is closed. Of two that find out at once only one tells; nobody takes the place meanwhile. */
static __always_inline void write_end(struct scratch *s, struct task_state *st,
				      const struct write_key *key, struct write_state *w, bool ends)
{
	__u64 file = w->file;

	if (file > WRITE_TELLING &&
	    __sync_val_compare_and_swap(&w->file, file, WRITE_TELLING) == file) {
		if (w->count)
			WRITE_TELL(s, st, w, 0, key->fd, WIRE_NR_NONE);
		__sync_val_compare_and_swap(&w->file, WRITE_TELLING, WRITE_FREE);
	}
	if (ends || key->fd >= WRITE_KEPT)
		bpf_map_delete_elem(&writes, key);
}

static __always_inline bool write_fill(struct write_state *w, struct file *f)
{
	struct inode *inode = READ(f, f_inode);
	struct counters *c = counters_get();

	w->mode = READ(inode, i_mode);
	if ((w->mode & WRITE_S_IFMT) != WRITE_S_IFREG || !c)
		return false;
	w->file = (__u64)f;
	w->ino = READ(inode, i_ino);
	w->dev = READ(inode, i_sb, s_dev);
	w->id = (__u64)bpf_get_smp_processor_id() << 48 |
		(__sync_fetch_and_add(&cpu_counters(c)->exec_id, 1) + 1);
	return true;
}

/* w: what is under the key now, or NULL. */
static __always_inline bool write_keep(struct task_struct *t, struct task_state *st,
				       const struct write_key *key, const struct write_state *fresh,
				       struct write_state *w)
{
	if (w && key->fd < WRITE_KEPT && w->file == WRITE_FREE) {
		w->id = fresh->id;
		w->bytes = fresh->bytes;
		w->first_ts = fresh->first_ts;
		w->ino = fresh->ino;
		w->dev = fresh->dev;
		w->mode = fresh->mode;
		w->count = fresh->count;
		w->told = fresh->told;
		*(volatile __u64 *)&w->file = fresh->file;
		return true;
	}
	if (bpf_map_update_elem(&writes, key, fresh, BPF_ANY)) {
		count_fail(FAIL_STASH);
		count_drop(st->sandbox, WIRE_FILE_WRITE, bpf_ktime_get_boot_ns());
		return false;
	}
	writes_mark(t, st);
	return true;
}

/* A file was opened for writing. Its id goes to s->open.id, 0 = its writes are not counted. */
GLOBAL int write_open(struct scratch *s, struct task_state *st, __u64 file, __u32 fd)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct write_key key = { .tgid = t->tgid, .fd = fd };
	struct write_state fresh = {}, *w = NULL;

	if (!s || !st)
		return 0;
	s->open.id = 0;
	if (writes_any(t, st)) {
		w = bpf_map_lookup_elem(&writes, &key);
		if (w) /* its close was not seen */
			write_end(s, st, &key, w, false);
	}
	if (write_fill(&fresh, (struct file *)file) && write_keep(t, st, &key, &fresh, w))
		s->open.id = fresh.id;
	return 0;
}

/* Not known before: told at once. False: it is no regular file. */
static __always_inline bool write_new(struct task_struct *t, struct task_state *st,
				      const struct write_key *key, struct write_state *w,
				      struct file *f, __u64 n, __u32 nr)
{
	struct write_state fresh = {};
	struct scratch *s;

	if (!write_fill(&fresh, f))
		return false;
	fresh.bytes = n;
	fresh.count = 1;
	fresh.told = 1;
	fresh.first_ts = bpf_ktime_get_boot_ns();
	if (!write_keep(t, st, key, &fresh, w))
		return true;
	w = bpf_map_lookup_elem(&writes, key);
	s = scratch_get();
	if (!s) {
		no_scratch(st, WIRE_FILE_WRITE);
		return true;
	}
	if (w)
		WRITE_TELL(s, st, w, (__u64)f, key->fd, nr);
	scratch_put(s);
	return true;
}

/* One more write to a file that is known. */
static __always_inline void write_add(struct task_state *st, const struct write_key *key,
				      struct write_state *w, __u64 n, __u32 nr)
{
	struct scratch *s;
	__u64 now;

	__sync_fetch_and_add(&w->bytes, n);
	__sync_fetch_and_add(&w->count, 1);
	if (w->told)
		return;
	now = bpf_ktime_get_boot_ns();
	if (!w->first_ts)
		w->first_ts = now;
	if (now - w->first_ts < WRITE_TELL_NS)
		return;
	w->told = 1;
	s = scratch_get();
	if (!s) {
		no_scratch(st, WIRE_FILE_WRITE);
		return;
	}
	WRITE_TELL(s, st, w, w->file, key->fd, nr);
	scratch_put(s);
}

/* `n` bytes went into what is behind `fd`. 1: it is no regular file. */
GLOBAL int written(struct task_state *st, __u32 fd, __u64 n, __u32 nr)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct write_key key = { .tgid = t->tgid, .fd = fd };
	struct write_state *w = bpf_map_lookup_elem(&writes, &key);
	struct file *f = fd_file(t, fd);
	struct scratch *s;

	if (!st || !f)
		return 0;
	if (w && w->file == (__u64)f) {
		write_add(st, &key, w, n, nr);
		return 0;
	}
	if (w) {
		s = scratch_get();
		if (s) {
			write_end(s, st, &key, w, false);
			scratch_put(s);
		}
	}
	return !write_new(t, st, &key, w, f, n, nr);
}

/* `fd` may have been closed, or may be a copy of `from` now (-1: of none). */
GLOBAL int write_closed(struct task_state *st, __u32 fd, int from)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct write_key key = { .tgid = t->tgid, .fd = fd };
	struct write_state *w = bpf_map_lookup_elem(&writes, &key), copy = {};
	struct file *f = fd_file(t, fd);
	struct scratch *s;

	if (!st || (w && w->file == (__u64)f))
		return 0;
	if (w) {
		s = scratch_get();
		if (!s) {
			no_scratch(st, WIRE_FILE_WRITE);
			return 0;
		}
		write_end(s, st, &key, w, false);
		scratch_put(s);
	}
	if (from < 0 || !f)
		return 0;
	key.fd = from;
	w = bpf_map_lookup_elem(&writes, &key);
	if (!w || w->file != (__u64)f)
		return 0;
	copy.file = w->file;
	copy.id = w->id;
	copy.ino = w->ino;
	copy.dev = w->dev;
	copy.mode = w->mode;
	key.fd = fd;
	write_keep(t, st, &key, &copy, NULL);
	return 0;
}

struct sweep_ctx {
	struct scratch *s;
	struct task_state *st;
	__u32 first, last;
	__u32 all; /* the process ends */
	__u32 tgid;
};

static long sweep_step(__u32 i, struct sweep_ctx *x)
{
	struct write_key key = { .tgid = x->tgid, .fd = x->first + i };
	struct write_state *w;

	if (key.fd > x->last)
		return 1;
	w = bpf_map_lookup_elem(&writes, &key);
	if (!w || (!x->all && w->file == (__u64)fd_file(bpf_get_current_task_btf(), key.fd)))
		return 0;
	write_end(x->s, x->st, &key, w, x->all);
	return 0;
}

/* Many descriptors may have been closed. */
static __always_inline void writes_sweep(struct scratch *s, struct task_state *st, __u32 first,
					 __u32 last, bool all)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct sweep_ctx x = {
		.s = s, .st = st, .first = first, .last = last, .all = all, .tgid = t->tgid
	};
	__u32 max = BPF_CORE_READ(t, files, fdt, max_fds);

	if (!max)
		max = WRITE_SWEEP;
	if (x.last >= max)
		x.last = max - 1;
	bpf_loop(WRITE_SWEEP, sweep_step, &x, 0);
}

#endif
