/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Full tier, kernels with kprobe.multi: one link on all hooks in front of acts on names. It only notes what the
 * act is about; who makes no such call pays nothing. Fires once for each (twice for what renames over links). */
#include "bpf/lib/named.bpf.h"

const volatile __u32 names_mode = NAMES_NOBODY; /* set before load */

static const __u32 name_kinds[NAME_HOOK_COUNT] = {
	[NAME_HOOK_MKNOD] = WIRE_FILE_MKNOD,   [NAME_HOOK_MKDIR] = WIRE_FILE_MKDIR,
	[NAME_HOOK_UNLINK] = WIRE_FILE_DELETE, [NAME_HOOK_RMDIR] = WIRE_FILE_DELETE,
	[NAME_HOOK_SYMLINK] = WIRE_FILE_LINK,  [NAME_HOOK_LINK] = WIRE_FILE_LINK,
	[NAME_HOOK_RENAME] = WIRE_FILE_RENAME, [NAME_HOOK_CHMOD] = WIRE_FILE_ATTR,
	[NAME_HOOK_CHOWN] = WIRE_FILE_ATTR,    [NAME_HOOK_TRUNCATE] = WIRE_FILE_ATTR,
};

/* To args[at...]: directory, mount, name in it. */
static __always_inline void name_in(struct scratch *s, __u32 at, __u64 dir, __u64 child)
{
	struct path *p = (struct path *)dir;

	s->args[at] = (__u64)BPF_CORE_READ(p, dentry);
	s->args[at + 1] = (__u64)BPF_CORE_READ(p, mnt);
	s->args[at + 2] = child;
}

SEC("kprobe.multi")
int on_name(struct pt_regs *ctx)
{
	__u64 a = PT_REGS_PARM1(ctx), b = PT_REGS_PARM2(ctx), c = PT_REGS_PARM3(ctx),
	      d = PT_REGS_PARM4(ctx), hook = bpf_get_attach_cookie(ctx);
	struct task_struct *t = bpf_get_current_task_btf();
	struct task_state *st = task_own_state(t);
	struct scratch *s;
	__u32 nr = 0, kind;

	if (!st || st->role != ROLE_PAYLOAD || hook >= NAME_HOOK_COUNT)
		return 0;
	kind = name_kinds[hook];
	if (!named_wanted(t, kind, &nr))
		return 0;
	s = scratch_get();
	if (!s)
		return 0; /* then it is the caller's word, and the record says so */
	s->args[3] = 0;
	if (hook == NAME_HOOK_LINK) {
		name_in(s, 0, b, c);
		s->args[3] = a;
		s->args[4] = s->args[1]; /* both lie on one mount */
		s->args[5] = 0;
	} else if (kind == WIRE_FILE_ATTR) {
		name_in(s, 0, a, 0);
	} else {
		name_in(s, 0, a, b);
		if (hook == NAME_HOOK_RENAME)
			name_in(s, 3, c, d);
	}
	named_note(s, kind, nr, hook == NAME_HOOK_SYMLINK ? c : 0);
	scratch_put(s);
	return 0;
}
