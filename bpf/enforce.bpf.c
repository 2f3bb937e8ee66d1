/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* What cgroup programs can prevent besides connections: raw sockets, device nodes, sysctls. Attached only
 * where something is to be enforced; what they let pass is told elsewhere. */
#include "bpf/lib/escape.bpf.h"
#include "bpf/lib/enforce.bpf.h"

#define SOCK_RAW     3
#define PROC_SYS     "/proc/sys/"
#define PROC_SYS_LEN 10

/* include/uapi/linux/bpf.h: access in the upper half, type in the lower one */
#define BPF_DEVCG_ACC_MKNOD 1
#define BPF_DEVCG_DEV_BLOCK 1

const volatile __u32 enforce_mode = ENFORCE_MODE_OFF;

/* By the current task in a sandbox; NULL when it is in none. */
static __always_inline struct wire_escape *denied_begin(struct scratch *s, __u32 type)
{
	struct owner o = {};
	struct wire_escape *r;

	if (!owner_of_current(&o))
		return NULL;
	r = rec_begin(s, struct wire_escape);
	header_of_owner(&r->h, &o, WIRE_ESCAPE);
	r->type = type;
	return r;
}

/* One without strings. */
static __always_inline int deny_escape(__u32 type, __u64 a, __u64 b, __u64 c)
{
	int v = enforce_escape(enforce_set_here(), type);
	struct wire_escape *r;
	struct scratch *s;

	if (!enforce_denies(v))
		return 1;
	s = scratch_get();
	if (!s) {
		count_fail(FAIL_SCRATCH);
		return 0;
	}
	r = denied_begin(s, type);
	if (r) {
		r->args[0] = a;
		r->args[1] = b;
		r->args[2] = c;
		enforce_mark_cgroup(&r->h, v);
		emit_scratch(s, WIRE_RING_URGENT);
	}
	scratch_put(s);
	return 0;
}

/* inet and inet6 only: other families never come here. */
SEC("cgroup/sock_create")
int on_sock_create(struct bpf_sock *ctx)
{
	if (ctx->type != SOCK_RAW)
		return 1;
	return deny_escape(WIRE_ESCAPE_SOCKET_FAMILY, ctx->family, ctx->type, ctx->protocol);
}

/* Nodes that reach the machine itself: any disk, and memory and ports by their numbers. */
SEC("cgroup/dev")
int on_device(struct bpf_cgroup_dev_ctx *ctx)
{
	__u32 access = ctx->access_type >> 16, type = ctx->access_type & 0xffff;
	bool raw = type == BPF_DEVCG_DEV_BLOCK ||
		   (ctx->major == 1 && (ctx->minor == 1 || ctx->minor == 2 || ctx->minor == 4));
	__u64 rdev = (__u64)ctx->major << 20 | ctx->minor;

	if (access & BPF_DEVCG_ACC_MKNOD)
		return deny_escape(WIRE_ESCAPE_MKNOD, access, rdev, type);
	return raw ? deny_escape(WIRE_ESCAPE_DEVICE, access, rdev, type) : 1;
}

/* Writes below /proc/sys. */
SEC("cgroup/sysctl")
int on_sysctl(struct bpf_sysctl *ctx)
{
	struct wire_escape *r;
	struct scratch *s;
	long n;
	int v;

	if (!ctx->write)
		return 1;
	v = enforce_escape(enforce_set_here(), WIRE_ESCAPE_KERNEL_FILE);
	if (!enforce_denies(v))
		return 1;
	s = scratch_get();
	if (!s) {
		count_fail(FAIL_SCRATCH);
		return 0;
	}
	r = denied_begin(s, WIRE_ESCAPE_KERNEL_FILE);
	if (r) {
		enforce_mark_cgroup(&r->h, v);
		__builtin_memcpy((char *)r + sizeof(*r), PROC_SYS, PROC_SYS_LEN);
		n = bpf_sysctl_get_name(ctx, (char *)r + sizeof(*r) + PROC_SYS_LEN, WIRE_SUN_PATH,
					0);
		if (n > 0 && n < WIRE_SUN_PATH) {
			r->detail.off = sizeof(*r);
			r->detail.len = PROC_SYS_LEN + n;
			s->len = sizeof(*r) + PROC_SYS_LEN + n + 1;
		}
		emit_scratch(s, WIRE_RING_URGENT);
	}
	scratch_put(s);
	return 0;
}
