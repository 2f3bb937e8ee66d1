/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Names worth telling even when only read or sought: credentials, sockets of container engines. The
 * last component decides, some only together with their directory; the record has the whole path and
 * rules judge that. The names are user space's (capture/watched.c). */
#ifndef WARDER_BPF_WATCHED_H
#define WARDER_BPF_WATCHED_H

#include "bpf/lib/emit.bpf.h"

#define WATCHED_TAIL 96 /* bytes of a path looked at from its end */

static __always_inline __u32 watched_name(const struct watched_key *k)
{
	__u32 *v = bpf_map_lookup_elem(&watched, k);

	return v ? *v : 0;
}

static __always_inline void dentry_key(struct watched_key *k, struct dentry *d)
{
	__u32 len = READ(d, d_name.len);

	if (len < WATCHED_NAME_MAX)
		bpf_probe_read_kernel(k->name, len, READ(d, d_name.name));
}

/* Class of an opened file or a reached socket; 0 = ordinary. */
GLOBAL int watched_dentry(__u64 dentry)
{
	struct dentry *d = (struct dentry *)dentry;
	struct watched_key k = {}, dir = {};
	__u32 class;

	dentry_key(&k, d);
	class = watched_name(&k);
	if (class != WATCHED_WITH_DIR)
		return class;
	dentry_key(&dir, READ(d, d_parent));
	return watched_name(&dir) == WATCHED_DIR ? WATCHED_FILE : 0;
}

struct tail_ctx {
	struct scratch *s;
};

/* One character towards the front; at a slash a component is complete. */
static long tail_step(__u32 i, struct tail_ctx *x)
{
	struct scratch *s = x->s;
	struct watched_key k = {};
	__u32 len, at = s->tail.at, class;
	char c = 0;

	if (at > 0)
		c = s->path[(at - 1) & (WIRE_PATH_MAX - 1)];
	if (at > 0 && c != '/') {
		s->tail.at = at - 1;
		return 0;
	}
	len = s->tail.end - at;
	if (len < WATCHED_NAME_MAX)
		bpf_probe_read_kernel(k.name, len, s->path + (at & (WIRE_PATH_MAX - 1)));
	class = watched_name(&k);
	if (s->tail.class == WATCHED_WITH_DIR) {
		s->tail.class = class == WATCHED_DIR ? WATCHED_FILE : 0;
		return 1;
	}
	s->tail.class = class;
	if (class != WATCHED_WITH_DIR || at == 0)
		return 1;
	s->tail.end = at - 1;
	s->tail.at = at - 1;
	return 0;
}

/* Class of a path that only the caller's string names. Overwrites s->path. */
GLOBAL int watched_string(struct scratch *s, __u64 uptr, __u32 max)
{
	struct tail_ctx x = { .s = s };
	long n;

	if (!s)
		return 0;
	if (max > WIRE_PATH_MAX)
		max = WIRE_PATH_MAX;
	n = bpf_probe_read_user_str(s->path, max, (void *)uptr);
	if (n <= 1)
		return 0;
	s->tail.at = n - 1;
	s->tail.end = n - 1;
	s->tail.class = 0;
	bpf_loop(WATCHED_TAIL, tail_step, &x, 0);
	return s->tail.class == WATCHED_WITH_DIR ? 0 : s->tail.class;
}

#endif
