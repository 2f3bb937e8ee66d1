/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Privilege that a task got without any way to get it: what a successful kernel exploit looks like.
 * A snapshot of the credentials is kept with the membership and compared at the calls we look at and
 * at exec. Within one user namespace the permitted set never grows, and user id 0 never comes back
 * once real, effective and saved id are other, but by exec of a privileged file. */
#ifndef WARDER_BPF_CRED_H
#define WARDER_BPF_CRED_H

#include "bpf/lib/escape.bpf.h"

GLOBAL int cred_check(struct task_state *st, bool privileged)
{
	struct task_struct *t = bpf_get_current_task_btf();
	const struct cred *cred = BPF_CORE_READ(t, cred);
	__u64 caps, user_ns;
	__u32 may_root;

	/* Nearly always the same object. In-place changes show at the next exec or setuid. */
	if (!st || (__u64)cred == st->cred)
		return 0;
	caps = cap_bits(&cred->cap_permitted);
	user_ns = (__u64)BPF_CORE_READ(cred, user_ns);
	may_root = !BPF_CORE_READ(cred, uid.val) || !BPF_CORE_READ(cred, euid.val) ||
		   !BPF_CORE_READ(cred, suid.val);
	if (st->cred && !privileged && !st->may_root && st->role == ROLE_PAYLOAD &&
	    user_ns == st->user_ns && (caps & ~st->caps || may_root))
		escape_now(st, WIRE_ESCAPE_CRED_GAIN, may_root, st->caps, caps);
	st->cred = (__u64)cred;
	st->caps = caps;
	st->user_ns = user_ns;
	st->may_root = may_root;
	return 0;
}

#endif
