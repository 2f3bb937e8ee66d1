/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Files that a sandbox made or opened for writing: an exec of one is a dropped binary. What is known of each
 * is a mark of 64 bits, and a set of seven marks is one cache line; the oldest of a full set is forgotten. With
 * 8,192 sets the last 16,384 files are there with a chance of 99.5 % each. (The kernel's LRU hash of as many took
 * 0.4 us for a new file, six times what this does.) The seed is drawn anew at each start, so nobody in a sandbox
 * can look for inodes that share a set or a mark. */
#ifndef WARDER_BPF_MADE_H
#define WARDER_BPF_MADE_H

#include "bpf/lib/maps.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MADE_SETS);
	__type(key, __u32);
	__type(value, struct made_set);
} made __weak SEC(".maps");

extern const volatile __u64 made_seed; /* set before load */
extern const volatile bool shared;

static __always_inline __u64 made_mark(__u64 ino, __u32 dev, __u32 sandbox)
{
	__u64 h = (ino ^ made_seed) * 0x9e3779b97f4a7c15ull;

	h = (h ^ h >> 32 ^ ((__u64)dev << 32 | sandbox)) * 0xff51afd7ed558ccdull;
	h = (h ^ h >> 29 ^ made_seed) * 0xc4ceb9fe1a85ec53ull;
	h ^= h >> 32;
	return h ? h : 1;
}

static __always_inline struct made_set *made_set_of(__u64 mark, __u32 sandbox)
{
	__u32 key = mark & (MADE_SETS - 1);

	if (shared)
		key = (sandbox & (MADE_PARTS - 1)) * MADE_SETS_SHARED |
		      (mark & (MADE_SETS_SHARED - 1));
	return bpf_map_lookup_elem(&made, &key);
}

static __always_inline bool made_in(const struct made_set *set, __u64 mark)
{
	bool found = false;

#pragma unroll
	for (int i = 0; i < MADE_WAYS; i++)
		found |= set->marks[i] == mark;
	return found;
}

static __always_inline bool is_made(__u64 ino, __u32 dev, __u32 sandbox)
{
	__u64 mark = made_mark(ino, dev, sandbox);
	struct made_set *set = made_set_of(mark, sandbox);

	return set && made_in(set, mark);
}

/* Two CPUs that remember the same file at once both do: that costs a place, no file. */
static __always_inline void remember_made(__u64 ino, __u32 dev, __u32 sandbox)
{
	__u64 mark = made_mark(ino, dev, sandbox), at;
	struct made_set *set = made_set_of(mark, sandbox);

	if (!set || made_in(set, mark))
		return;
	at = __sync_fetch_and_add(&set->n, 1) % MADE_WAYS;
	barrier_var(at); /* 6.1's verifier knows no bounds of a remainder */
	if (at < MADE_WAYS)
		set->marks[at] = mark;
}

#endif
