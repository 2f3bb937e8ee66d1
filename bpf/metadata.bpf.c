/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Addresses at which clouds hand out the credentials of the machine itself. Asked for before the act, with the
 * kernel's copy of the address, so io_uring and v4-mapped addresses are no way around; which they are is user
 * space's (capture/metadata.c). Programs of their own: with those of net.bpf.c the stack would not do. Fires
 * for each connect and unconnected datagram of a sandbox. Misses sockets made outside of it: passed.bpf.c. */
#include "bpf/lib/emit.bpf.h"
#include "bpf/lib/task.bpf.h"

#define AF_INET	      2
#define AF_INET6      10
#define TELL_EVERY_NS 1000000000ull
#define SEEN_DATAGRAM 0x100 /* beside enum wire_limit in limit_key.type */
#define ntohs(x)      __builtin_bswap16(x)

/* First bytes of those addresses: nearly all others go no further. Set before load. */
const volatile __u32 metadata_first[8];

static __always_inline bool may_be_one(const struct metadata_key *key)
{
	__u8 first = key->addr[0];

	return metadata_first[first >> 5] >> (first & 31) & 1;
}

/* A connect is told each time, datagrams once a second. */
static __always_inline bool is_turn(__u32 sandbox, bool datagram)
{
	struct limit_key key = { .sandbox = sandbox, .type = SEEN_DATAGRAM };
	struct limit_seen now = {}, *seen;

	if (!datagram)
		return true;
	now.told_ts = bpf_ktime_get_boot_ns();
	seen = bpf_map_lookup_elem(&limits_seen, &key);
	if (seen && now.told_ts - seen->told_ts < TELL_EVERY_NS)
		return false;
	bpf_map_update_elem(&limits_seen, &key, &now, BPF_ANY);
	return true;
}

static __always_inline int check(struct metadata_key *key, __u16 family, __u16 port, bool datagram)
{
	struct wire_escape *r;
	struct owner o = {};
	struct scratch *s;

	if (family == AF_INET6 && key->addr[0] == 0 && (__u32)key->addr[1] == 0xffff0000) {
		key->addr[0] = key->addr[1] >> 32;
		key->addr[1] = 0;
		family = AF_INET;
	}
	if (!may_be_one(key) || !bpf_map_lookup_elem(&metadata, key) || !owner_of_current(&o) ||
	    !is_turn(o.sandbox, datagram))
		return 1;
	s = scratch_get();
	if (!s) {
		count_fail(FAIL_SCRATCH);
		count_drop(o.sandbox, WIRE_ESCAPE, bpf_ktime_get_boot_ns());
		return 1;
	}
	r = rec_begin(s, struct wire_escape);
	header_of_owner(&r->h, &o, WIRE_ESCAPE);
	r->type = WIRE_ESCAPE_METADATA;
	r->args[0] = key->addr[0];
	r->args[1] = key->addr[1];
	r->args[2] = port;
	r->args[3] = family;
	emit_scratch(s, WIRE_RING_URGENT);
	scratch_put(s);
	return 1;
}

static __always_inline int check4(struct bpf_sock_addr *ctx, bool datagram)
{
	struct metadata_key key = { .addr = { ctx->user_ip4 } };

	return check(&key, AF_INET, ntohs((__u16)ctx->user_port), datagram);
}

static __always_inline int check6(struct bpf_sock_addr *ctx, bool datagram)
{
	struct metadata_key key;
	__u32 w[4] = { ctx->user_ip6[0], ctx->user_ip6[1], ctx->user_ip6[2], ctx->user_ip6[3] };

	key.addr[0] = (__u64)w[1] << 32 | w[0];
	key.addr[1] = (__u64)w[3] << 32 | w[2];
	return check(&key, AF_INET6, ntohs((__u16)ctx->user_port), datagram);
}

SEC("cgroup/connect4")
int on_metadata_connect4(struct bpf_sock_addr *ctx)
{
	return check4(ctx, false);
}

SEC("cgroup/connect6")
int on_metadata_connect6(struct bpf_sock_addr *ctx)
{
	return check6(ctx, false);
}

SEC("cgroup/sendmsg4")
int on_metadata_sendmsg4(struct bpf_sock_addr *ctx)
{
	return check4(ctx, true);
}

SEC("cgroup/sendmsg6")
int on_metadata_sendmsg6(struct bpf_sock_addr *ctx)
{
	return check6(ctx, true);
}
