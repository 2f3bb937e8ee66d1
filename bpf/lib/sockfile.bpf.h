/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Sockets that a descriptor stands for, for the programs that know who acts. */
#ifndef WARDER_BPF_SOCKFILE_H
#define WARDER_BPF_SOCKFILE_H

#include "bpf/lib/path.bpf.h"
#include "bpf/lib/sock.bpf.h"

#define S_IFMT	 0170000
#define S_IFSOCK 0140000

static __always_inline struct socket *file_socket(struct file *f)
{
	__u16 mode = READ(f, f_inode, i_mode);

	if ((mode & S_IFMT) != S_IFSOCK)
		return NULL;
	return (struct socket *)LOAD_PTR(f, private_data);
}

/* Address of a unix socket as the kernel keeps it: a resolved path, or the abstract name. */
GLOBAL int unix_name(struct scratch *s, __u64 sock)
{
	struct unix_sock *u = (struct unix_sock *)sock;
	struct dentry *d = BPF_CORE_READ(u, path.dentry);
	struct unix_address *a;
	union packed_str p = {};
	__u32 off, n;
	char *dst;

	if (!s)
		return 0;
	if (d)
		return rec_path_packed(s, (__u64)d, (__u64)BPF_CORE_READ(u, path.mnt));
	a = BPF_CORE_READ(u, addr);
	n = a ? BPF_CORE_READ(a, len) : 0;
	if (n <= 2)
		return 0;
	n -= 2;
	dst = rec_room(s, WIRE_SUN_PATH, &off);
	if (!dst)
		return 0;
	barrier_var(n);
	if (n > WIRE_SUN_PATH)
		n = WIRE_SUN_PATH;
	if (bpf_probe_read_kernel(dst, n,
				  (char *)a + bpf_core_field_offset(struct unix_address, name) + 2))
		return 0;
	p.w.off = off;
	p.w.len = n;
	s->len = off + n;
	return p.v;
}

/* Remember a connection for its end. False: it was told already. */
static __always_inline bool keep_flow(struct scratch *arg, struct sock *sk, bool again)
{
	__u32 index = arg->index;
	struct scratch *s =
		bpf_map_lookup_elem(&scratches, &index); /* to 6.1 no value is in `arg` */
	struct flow *f, *was;
	__u64 key;

	if (!s)
		return true;
	f = (struct flow *)s->rec; /* what is behind the record is free */
	key = flow_key(f->r.cookie, (__u64)sk);
	was = again ? bpf_map_lookup_elem(&flows, &key) : NULL;
	if (was && was->r.h.ret == 0)
		return false;
	f->sk = (__u64)sk;
	/* Made outside, and closed already: nothing would come to take it out. */
	if (READ(sk, __sk_common.skc_state) == TCP_CLOSE &&
	    !cgroup_sandbox((__u64)BPF_CORE_READ(sk, sk_cgrp_data.cgroup)))
		flow_lost(f->r.h.sandbox, false);
	else
		flow_keep(&key, f);
	return true;
}

#endif
