/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Full tier: which directory a name was really looked up in. A hook in front of the act (security_path_*)
 * notes the kernel's own directory and name; the record is made when the call ends. So links and `..` in the
 * caller's string are resolved, and who changes that string meanwhile changes nothing. */
#ifndef WARDER_BPF_NAMED_H
#define WARDER_BPF_NAMED_H

#include "bpf/lib/calls.bpf.h"
#include "bpf/lib/path.bpf.h"

#define NAMED_IO_WORKER 0x00000010 /* PF_IO_WORKER: no call of its own ends */

/* Newest first: what a thread notes is taken when its call ends. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, struct named);
} named __weak SEC(".maps");

/* Who notes, set before load: enum names_mode. 0: nobody, and nothing is looked for. */
extern const volatile __u32 names_mode;

static __always_inline void named_put(struct named_at *to, __u64 dentry, __u64 mnt, __u64 child)
{
	struct dentry *d = (struct dentry *)dentry, *c = (struct dentry *)child;
	__u32 len;

	to->dentry = dentry;
	to->mnt = mnt;
	to->ino = BPF_CORE_READ(d, d_inode, i_ino);
	to->len = 0;
	if (!child)
		return;
	len = BPF_CORE_READ(c, d_name.len);
	barrier_var(len);
	if (len > NAMED_MAX - 1)
		len = NAMED_MAX - 1;
	if (!bpf_probe_read_kernel(to->name, len, BPF_CORE_READ(c, d_name.name)))
		to->len = len;
}

/* Is the current task in a call that will tell of an act of this kind, by a name? */
static __always_inline bool named_wanted(struct task_struct *t, __u32 kind, __u32 *ret_nr)
{
	struct sysctx c = call_of((struct pt_regs *)bpf_task_pt_regs(t), t);
	const struct call *call;

	if (c.nr >= CALLS_MAX || t->flags & NAMED_IO_WORKER)
		return false;
	call = &calls[c.nr & (CALLS_MAX - 1)];
	*ret_nr = c.nr;
	if (call->path < 0)
		return false;
	return call->slot == SLOT_FILE ? call->what == kind
				       : kind == WIRE_FILE_MKNOD && call->slot == SLOT_ESCAPE &&
						 call->what == WIRE_ESCAPE_MKNOD;
}

/* args: directory (or the file itself), mount, child in it (or 0); the same again for a second path.
 * With text: of a symbolic link, instead of the second one. */
GLOBAL int named_note(struct scratch *arg, __u32 kind, __u32 nr, __u64 text)
{
	__u64 tid = bpf_get_current_pid_tgid();
	struct scratch *s;
	struct named *n;
	__u32 index;
	long len;

	if (!arg)
		return 0;
	/* To 6.1 a map's value may not lie in a global function's argument: the buffer is looked up again. */
	index = arg->index;
	s = bpf_map_lookup_elem(&scratches, &index);
	if (!s)
		return 0;
	n = &s->named;
	n->tid = tid;
	n->kind = kind;
	n->nr = nr;
	named_put(&n->at[0], s->args[0], s->args[1], s->args[2]);
	n->at[1].dentry = n->at[1].len = 0;
	if (text) {
		len = bpf_probe_read_kernel_str(n->at[1].name, NAMED_MAX, (void *)text);
		if (len > 0 && len < NAMED_MAX)
			n->at[1].len = len - 1;
	} else if (s->args[3]) {
		named_put(&n->at[1], s->args[3], s->args[4], s->args[5]);
	}
	if (bpf_map_update_elem(&named, &tid, n, BPF_ANY))
		count_fail(FAIL_STASH);
	return 0;
}

/* Noted in vain: not to be taken for the next call's. */
static __always_inline void named_drop(void)
{
	__u64 tid;

	if (!names_mode)
		return;
	tid = bpf_get_current_pid_tgid();
	bpf_map_delete_elem(&named, &tid);
}

/* What was noted in this call, to s->named; false: nothing. */
static __always_inline bool named_take(struct scratch *s, __u32 kind, __u32 nr)
{
	struct named *n;
	__u64 tid;
	bool good;

	if (!names_mode)
		return false;
	tid = bpf_get_current_pid_tgid();
	n = bpf_map_lookup_elem(&named, &tid);
	if (!n)
		return false;
	good = !bpf_probe_read_kernel(&s->named, sizeof(s->named), n) && s->named.tid == tid &&
	       s->named.kind == kind && s->named.nr == nr;
	bpf_map_delete_elem(&named, &tid);
	return good;
}

/* Append a noted path; 0: its directory is another one by now. */
GLOBAL int rec_named_packed(struct scratch *s, __u32 i)
{
	union packed_str p = {};
	struct named_at *at;
	struct dentry *d;
	__u32 off, len;
	__u64 ino;
	char *dst;

	if (!s)
		return 0;
	at = &s->named.at[i & 1];
	d = (struct dentry *)
		    at->dentry; /* a copy: else `at` itself were taken for a kernel structure */
	ino = at->ino;
	if (!d || BPF_CORE_READ(d, d_inode, i_ino) != ino)
		return 0;
	p.v = rec_path_packed(s, at->dentry, at->mnt);
	len = at->len;
	if (!p.w.len || !len)
		return p.v;
	dst = rec_room(s, NAMED_MAX + 1, &off);
	if (!dst) {
		s->flags |= WIRE_F_TRUNC;
		return p.v;
	}
	if (p.w.len > 1) {
		*dst++ = '/';
		p.w.len++;
		s->len++;
	}
	if (bpf_probe_read_kernel(dst, bounded(len, NAMED_MAX - 1), at->name))
		return 0;
	p.w.len += len;
	s->len += len;
	return p.v;
}

#endif
