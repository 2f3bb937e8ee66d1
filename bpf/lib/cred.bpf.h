/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Privilege that a task got without any way to get it, and places it has no business in: what a successful
 * escape looks like, however it was done. Credentials, namespaces and root are kept with the membership and
 * compared at the calls we look at and at exec. Within one user namespace the permitted set never grows, and
 * a user id that is none of real, effective and saved one never comes without CAP_SETUID, but by exec of a
 * privileged file. A child inherits what its parent had, so a new namespace made by clone shows too. */
#ifndef WARDER_BPF_CRED_H
#define WARDER_BPF_CRED_H

#include "bpf/lib/escape.bpf.h"

#define CAP_SETUID_BIT 7

/* 1 when `v` is not 0, of 32 bits, without a branch: the verifier follows each combination of those, which
 * made the two functions below the most of what it looked at. */
static __always_inline __u64 not_zero(__u64 v)
{
	barrier_var(v); /* or clang makes a branch of it */
	return -v >> 63;
}

/* The three ids and both sets that count; on no stack, callers share 512 bytes. */
static __always_inline __u32 cred_gained(struct task_state *st, __u64 caps, const __u32 *uids)
{
	__u64 more = caps & ~st->caps, may_set = st->caps >> CAP_SETUID_BIT & 1, other, is_user;
	__u32 gain = not_zero(more >> 32 | (__u32)more) * GAIN_CAPS;
	int i;

#pragma unroll
	for (i = 0; i < 3; i++) {
		other = not_zero(uids[i] ^ st->uids[0]) & not_zero(uids[i] ^ st->uids[1]) &
			not_zero(uids[i] ^ st->uids[2]) & ~may_set;
		is_user = not_zero(uids[i]);
		gain |= other * (is_user * GAIN_UID + (1 - is_user) * GAIN_ROOT);
		barrier_var(gain); /* one after the other: less on the stack */
	}
	return gain;
}

GLOBAL int cred_compare(struct task_state *st, bool privileged)
{
	struct task_struct *t = task_plain(bpf_get_current_task_btf());
	const struct cred *cred = t->cred;
	__u64 permitted, caps, user_ns;
	__u32 uids[3], may_root, ns, gain = 0;

	if (!st)
		return 0;
	permitted = cap_bits(&cred->cap_permitted);
	caps = permitted | cap_bits(&cred->cap_effective);
	user_ns = (__u64)cred->user_ns;
	uids[0] = cred->uid.val;
	uids[1] = cred->euid.val;
	uids[2] = cred->suid.val;
	may_root = !uids[0] || !uids[1] || !uids[2];
	ns = cred->user_ns->ns.inum;
	if (st->cred && !privileged && st->role == ROLE_PAYLOAD && user_ns == st->user_ns &&
	    !st->may_root)
		gain = cred_gained(st, caps, uids);
	if (gain & ~GAIN_UID)
		escape_now(st, WIRE_ESCAPE_CRED_GAIN, gain, st->caps, caps);
	else if (gain)
		escape_now(st, WIRE_ESCAPE_CRED_GAIN, gain, st->uids[1], uids[1]);
	if (st->cred && st->role == ROLE_PAYLOAD && user_ns != st->user_ns)
		escape_now(st, WIRE_ESCAPE_NS_CHANGE, 0x10000000, st->ns[NS_USER], ns);
	st->cred = (__u64)cred;
	st->caps = permitted;
	st->user_ns = user_ns;
	st->ns[NS_USER] = ns;
	st->uids[0] = uids[0];
	st->uids[1] = uids[1];
	st->uids[2] = uids[2];
	st->may_root = may_root;
	return 0;
}

#define NS_NOW_MNT    p->mnt_ns->ns.inum
#define NS_NOW_CGROUP p->cgroup_ns->ns.inum
#define NS_NOW_UTS    p->uts_ns->ns.inum
#define NS_NOW_IPC    p->ipc_ns->ns.inum
#define NS_NOW_PID    p->pid_ns_for_children->ns.inum
#define NS_NOW_NET    p->net_ns->ns.inum
#define NS_NOW_TIME   p->time_ns->ns.inum
#define NS_NOW_USER   st->ns[NS_USER] /* cred_compare's */

/* What changed; `was` and `is` of the first. One after the other: together they do not fit the stack. */
#define NS_COMPARE(name, flag)                       \
	now = NS_NOW_##name;                         \
	differs = not_zero(st->ns[NS_##name] ^ now); \
	first = differs & ~any;                      \
	was |= first * st->ns[NS_##name];            \
	is |= first * now;                           \
	any |= differs;                              \
	changed |= differs * flag;                   \
	st->ns[NS_##name] = now;                     \
	barrier_var(was);                            \
	barrier_var(is);                             \
	barrier_var(any);                            \
	barrier_var(changed);

/* Another nsproxy or root object: is it another place? */
GLOBAL int place_compare(struct task_state *st)
{
	struct task_struct *t = task_plain(bpf_get_current_task_btf());
	struct nsproxy *p = t->nsproxy;
	__u32 was = 0, is = 0, changed = 0, now;
	__u64 differs, first, any = 0;
	bool known, other;
	__u64 root, root_mnt, ino;

	if (!st || !p) /* on its way out */
		return 0;
	known = st->nsproxy != 0;
	NS_LIST(NS_COMPARE)
	root = (__u64)t->fs->root.dentry;
	root_mnt = (__u64)t->fs->root.mnt;
	ino = t->fs->root.dentry->d_inode->i_ino;
	/* The same directory on another mount is what a copied mount namespace gives everybody. */
	other = root != st->root || (root_mnt != st->root_mnt && !(changed & 0x00020000));
	if (known && st->role == ROLE_PAYLOAD) {
		if (changed)
			escape_now(st, WIRE_ESCAPE_NS_CHANGE, changed, was, is);
		if (other)
			escape_now(st, WIRE_ESCAPE_ROOT_CHANGE, 0, st->root_ino, ino);
	}
	st->nsproxy = (__u64)p;
	st->root = root;
	st->root_mnt = root_mnt;
	st->root_ino = ino;
	return 0;
}

/* Nearly always the same objects: then only the values that an exploit would overwrite in place. */
static __always_inline void cred_check(struct task_state *st, bool privileged)
{
	struct task_struct *t = task_plain(bpf_get_current_task_btf());
	const struct cred *cred = t->cred;
	struct fs_struct *fs = t->fs;

	if ((__u64)cred != st->cred || cap_bits(&cred->cap_effective) & ~st->caps ||
	    cred->euid.val != st->uids[1])
		cred_compare(st, privileged);
	if ((__u64)t->nsproxy != st->nsproxy || (__u64)fs->root.dentry != st->root ||
	    (__u64)fs->root.mnt != st->root_mnt)
		place_compare(st);
}

#endif
