// SPDX-License-Identifier: Apache-2.0
#include "runtime/egress/kernel.h"

#include <arpa/inet.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "userspace/base/auto.h"

#define INSNS_MAX 512
#define DENY	  0
#define ALLOW	  1

struct code {
	struct bpf_insn v[INSNS_MAX];
	size_t n;
	bool full;
};

static int sys_bpf(int cmd, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

static size_t emit(struct code *c, uint8_t op, uint8_t dst, uint8_t src, int16_t off, uint32_t imm)
{
	if (c->n == INSNS_MAX) {
		c->full = true;
		return 0;
	}
	c->v[c->n] = (struct bpf_insn){
		.code = op, .dst_reg = dst, .src_reg = src, .off = off, .imm = (int32_t)imm
	};
	return c->n++;
}

static void load32(struct code *c, uint8_t dst, uint8_t src, size_t off)
{
	emit(c, BPF_LDX | BPF_MEM | BPF_W, dst, src, (int16_t)off, 0);
}

static void leave(struct code *c, uint32_t verdict)
{
	emit(c, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, verdict);
	emit(c, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

/* A jump over what comes next, its end not known yet. */
static size_t skip_unless(struct code *c, uint8_t reg, uint32_t value)
{
	return emit(c, BPF_JMP32 | BPF_JNE | BPF_K, reg, 0, 0, value);
}

static void lands_here(struct code *c, size_t jump)
{
	c->v[jump].off = (int16_t)(c->n - jump - 1);
}

/* if ((reg & mask) == value) return verdict; uses R5 */
static void rule(struct code *c, uint8_t reg, uint32_t mask, uint32_t value, uint32_t verdict)
{
	size_t jump;

	emit(c, BPF_ALU | BPF_MOV | BPF_X, BPF_REG_5, reg, 0, 0);
	emit(c, BPF_ALU | BPF_AND | BPF_K, BPF_REG_5, 0, 0, mask);
	jump = skip_unless(c, BPF_REG_5, value);
	leave(c, verdict);
	lands_here(c, jump);
}

/* ---- steering ---- */

static int make_map(int listener)
{
	union bpf_attr attr = { .map_type = BPF_MAP_TYPE_SOCKMAP,
				.key_size = sizeof(uint32_t),
				.value_size = sizeof(uint64_t),
				.max_entries = 1 };
	uint64_t value = (uint64_t)listener;
	uint32_t key = 0;
	auto_close int fd = sys_bpf(BPF_MAP_CREATE, &attr);

	if (fd < 0)
		return -errno;
	attr = (union bpf_attr){ .map_fd = (uint32_t)fd,
				 .key = (uintptr_t)&key,
				 .value = (uintptr_t)&value };
	if (sys_bpf(BPF_MAP_UPDATE_ELEM, &attr) < 0)
		return -errno;
	return take_fd(fd);
}

/* Loopback, and what is not TCP, is looked up as ever. */
static void steer_filter(struct code *c)
{
	const uint8_t ctx = BPF_REG_6;
	size_t v6, v4, w0, w1, w2;

	load32(c, BPF_REG_2, ctx, offsetof(struct bpf_sk_lookup, protocol));
	emit(c, BPF_JMP32 | BPF_JEQ | BPF_K, BPF_REG_2, 0, 2, IPPROTO_TCP);
	leave(c, SK_PASS);
	load32(c, BPF_REG_2, ctx, offsetof(struct bpf_sk_lookup, family));
	v4 = skip_unless(c, BPF_REG_2, AF_INET);
	load32(c, BPF_REG_2, ctx, offsetof(struct bpf_sk_lookup, local_ip4));
	rule(c, BPF_REG_2, htonl(0xff000000), htonl(0x7f000000), SK_PASS);
	lands_here(c, v4);
	load32(c, BPF_REG_2, ctx, offsetof(struct bpf_sk_lookup, family));
	v6 = skip_unless(c, BPF_REG_2, AF_INET6);
	load32(c, BPF_REG_2, ctx, offsetof(struct bpf_sk_lookup, local_ip6[0]));
	w0 = skip_unless(c, BPF_REG_2, 0);
	load32(c, BPF_REG_2, ctx, offsetof(struct bpf_sk_lookup, local_ip6[1]));
	w1 = skip_unless(c, BPF_REG_2, 0);
	load32(c, BPF_REG_2, ctx, offsetof(struct bpf_sk_lookup, local_ip6[2]));
	w2 = skip_unless(c, BPF_REG_2, 0);
	load32(c, BPF_REG_2, ctx, offsetof(struct bpf_sk_lookup, local_ip6[3]));
	rule(c, BPF_REG_2, 0xffffffff, htonl(1), SK_PASS);
	lands_here(c, v6);
	lands_here(c, w0);
	lands_here(c, w1);
	lands_here(c, w2);
}

static void steer_ports(struct code *c, const struct egress_policy *p)
{
	uint16_t ports[EGRESS_PORTS_MAX];
	size_t n = egress_policy_ports(p, ports);

	if (p->open)
		return;
	load32(c, BPF_REG_2, BPF_REG_6, offsetof(struct bpf_sk_lookup, local_port));
	for (size_t i = 0; i < n; i++) /* over the rest of these, and over the refusal */
		emit(c, BPF_JMP32 | BPF_JEQ | BPF_K, BPF_REG_2, 0, (int16_t)(n - i - 1 + 2),
		     ports[i]);
	leave(c, SK_DROP);
}

static void steer_assign(struct code *c, int map)
{
	emit(c, BPF_ST | BPF_MEM | BPF_W, BPF_REG_10, 0, -4, 0);
	emit(c, BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, (uint32_t)map);
	emit(c, 0, 0, 0, 0, 0);
	emit(c, BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_2, BPF_REG_10, 0, 0);
	emit(c, BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_2, 0, 0, (uint32_t)-4);
	emit(c, BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem);
	emit(c, BPF_JMP | BPF_JNE | BPF_K, BPF_REG_0, 0, 2, 0);
	leave(c, SK_DROP);
	emit(c, BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_7, BPF_REG_0, 0, 0);
	emit(c, BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_1, BPF_REG_6, 0, 0);
	emit(c, BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_2, BPF_REG_7, 0, 0);
	emit(c, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_3, 0, 0, 0);
	emit(c, BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_sk_assign);
	emit(c, BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_1, BPF_REG_7, 0, 0);
	emit(c, BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_sk_release);
	leave(c, SK_PASS);
}

static int load(const struct code *c, uint32_t type, uint32_t attach)
{
	union bpf_attr attr = { .prog_type = type,
				.expected_attach_type = attach,
				.insn_cnt = (uint32_t)c->n,
				.insns = (uintptr_t)c->v,
				.license = (uintptr_t) "Apache-2.0" };
	int fd;

	if (c->full)
		return -E2BIG;
	memcpy(attr.prog_name, "warder_egress", sizeof("warder_egress"));
	fd = sys_bpf(BPF_PROG_LOAD, &attr);
	return fd < 0 ? -errno : fd;
}

static int attach(int prog, int target, uint32_t type)
{
	union bpf_attr attr = { .link_create = { .prog_fd = (uint32_t)prog,
						 .target_fd = (uint32_t)target,
						 .attach_type = type } };
	int fd = sys_bpf(BPF_LINK_CREATE, &attr);

	return fd < 0 ? -errno : fd;
}

int egress_steer(int netns, int listener, const struct egress_policy *p, struct err *err)
{
	auto_close int map = make_map(listener), prog = -1;
	struct code c = { .n = 0 };
	int r;

	if (map < 0)
		return err_set(err, -map, "network: map of sockets: %m");
	emit(&c, BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_6, BPF_REG_1, 0, 0);
	steer_filter(&c);
	steer_ports(&c, p);
	steer_assign(&c, map);
	prog = load(&c, BPF_PROG_TYPE_SK_LOOKUP, BPF_SK_LOOKUP);
	if (prog < 0)
		return err_set(err, -prog, "network: program that leads connections out: %m");
	r = attach(prog, netns, BPF_SK_LOOKUP);
	return r < 0 ? err_set(err, -r, "network: leading connections out: %m") : r;
}

/* ---- the wall ---- */

static uint32_t mask_of(unsigned bits)
{
	return bits ? htonl(0xffffffffu << (32 - bits)) : 0;
}

static uint32_t word_of(const struct egress_addr *a)
{
	uint32_t v;

	memcpy(&v, a->b, sizeof(v));
	return v;
}

/* The IPv4 address in `reg`; always leaves. */
static void wall_v4(struct code *c, uint8_t reg, const struct egress_policy *p)
{
	rule(c, reg, 0xffffffff, 0, ALLOW); /* this host */
	rule(c, reg, htonl(0xff000000), htonl(0x7f000000), ALLOW);
	if (p)
		rule(c, reg, mask_of(EGRESS_FAKE_BITS), htonl(EGRESS_FAKE_BASE), ALLOW);
	if (!p || !p->open) {
		leave(c, DENY);
		return;
	}
	for (size_t i = 0; i < egress_ranges_n; i++)
		if (egress_ranges[i].base.family == 4)
			rule(c, reg, mask_of(egress_ranges[i].bits),
			     word_of(&egress_ranges[i].base), DENY);
	leave(c, ALLOW);
}

/* `reg`, `reg` + 1 and `reg` + 2 are the words in front. */
static void wall_v6(struct code *c, const struct egress_policy *p)
{
	const size_t at = offsetof(struct bpf_sock_addr, user_ip6);
	size_t w0, w1, w2;

	load32(c, BPF_REG_2, BPF_REG_1, at);
	load32(c, BPF_REG_3, BPF_REG_1, at + 4);
	load32(c, BPF_REG_4, BPF_REG_1, at + 8);
	load32(c, BPF_REG_6, BPF_REG_1, at + 12);
	w0 = skip_unless(c, BPF_REG_2, 0);
	w1 = skip_unless(c, BPF_REG_3, 0);
	w2 = skip_unless(c, BPF_REG_4, 0);
	rule(c, BPF_REG_6, 0xffffffff, htonl(1), ALLOW);
	rule(c, BPF_REG_6, 0xffffffff, 0, ALLOW);
	lands_here(c, w2);
	w2 = skip_unless(c, BPF_REG_4, htonl(0xffff));
	wall_v4(c, BPF_REG_6, p); /* ::ffff:a.b.c.d */
	lands_here(c, w0);
	lands_here(c, w1);
	lands_here(c, w2);
	if (!p || !p->open) {
		leave(c, DENY);
		return;
	}
	w0 = skip_unless(c, BPF_REG_2, htonl(0x0064ff9b));
	w1 = skip_unless(c, BPF_REG_3, 0);
	w2 = skip_unless(c, BPF_REG_4, 0);
	wall_v4(c, BPF_REG_6, p); /* NAT64 */
	lands_here(c, w0);
	lands_here(c, w1);
	lands_here(c, w2);
	/* Those longer than a word lie in 0000::/3, which is there as a whole. */
	for (size_t i = 0; i < egress_ranges_n; i++)
		if (egress_ranges[i].base.family == 6 && egress_ranges[i].bits <= 32)
			rule(c, BPF_REG_2, mask_of(egress_ranges[i].bits),
			     word_of(&egress_ranges[i].base), DENY);
	leave(c, ALLOW);
}

int egress_wall(int cgroup, const struct egress_policy *p, int ret_fds[EGRESS_WALLS],
		struct err *err)
{
	static const uint32_t types[EGRESS_WALLS] = { BPF_CGROUP_INET4_CONNECT,
						      BPF_CGROUP_UDP4_SENDMSG,
						      BPF_CGROUP_INET6_CONNECT,
						      BPF_CGROUP_UDP6_SENDMSG };

	for (size_t i = 0; i < EGRESS_WALLS; i++)
		ret_fds[i] = -1;
	for (size_t i = 0; i < EGRESS_WALLS; i++) {
		struct code c = { .n = 0 };
		auto_close int prog = -1;

		if (i < 2) {
			load32(&c, BPF_REG_2, BPF_REG_1, offsetof(struct bpf_sock_addr, user_ip4));
			wall_v4(&c, BPF_REG_2, p);
		} else {
			wall_v6(&c, p);
		}
		prog = load(&c, BPF_PROG_TYPE_CGROUP_SOCK_ADDR, types[i]);
		ret_fds[i] = prog < 0 ? prog : attach(prog, cgroup, types[i]);
		if (ret_fds[i] < 0) {
			int r = err_set(err, -ret_fds[i], "network: wall around the sandbox: %m");

			for (size_t k = 0; k < i; k++)
				close(take_fd(ret_fds[k]));
			ret_fds[i] = -1;
			return r;
		}
	}
	return 0;
}
