/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* One function per difference between kernels. */
#ifndef WARDER_BPF_COMPAT_H
#define WARDER_BPF_COMPAT_H

#include "bpf/lib/maps.bpf.h"

/* 6.3 (f122a08b197d) turned kernel_cap_t from two u32 into one u64: the same eight bytes. */
static __always_inline __u64 cap_bits(const void *cap)
{
	__u64 v = 0;

	bpf_probe_read_kernel(&v, sizeof(v), cap);
	return v;
}

/* Parent in the hierarchy; NULL at the root. `self` is the cgroup's own css, so it leads back. The
 * ancestor array changed its type in 6.1 (7f203bc89eb6); the parent link never did. */
static __always_inline struct cgroup *cgroup_up(struct cgroup *cg)
{
	struct cgroup_subsys_state *css = BPF_CORE_READ(cg, self.parent);

	if (!css)
		return NULL;
	return (struct cgroup *)((char *)css - bpf_core_field_offset(struct cgroup, self));
}

/* 6.2 (f1a7941243c1) turned rss_stat from atomics into per-CPU counters; `count` of those lags a
 * little behind, which is good enough for a record. */
struct mm_rss_stat___old {
	atomic_long_t count[4];
} __attribute__((preserve_access_index));

struct mm_struct___old {
	struct mm_rss_stat___old rss_stat;
} __attribute__((preserve_access_index));

static __always_inline __u64 mm_pages(struct mm_struct *mm, int member)
{
	struct mm_struct___old *old = (void *)mm;
	__s64 n;

	if (bpf_core_field_exists(old->rss_stat.count))
		n = BPF_CORE_READ(old, rss_stat.count[member].counter);
	else
		n = BPF_CORE_READ(mm, rss_stat[member].count);
	return n > 0 ? n : 0;
}

#endif
