/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Nothing fails silently: failed helpers by site, lost records by sandbox and kind. */
#ifndef WARDER_BPF_FAIL_H
#define WARDER_BPF_FAIL_H

#include "bpf/lib/maps.bpf.h"

extern const volatile bool shared; /* set before load */

static __always_inline struct counters *counters_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&counters, &zero);
}

/* Those of the session that this sandbox belongs to. `key`: room for a key; stack is short. */
static __always_inline struct counters *counters_of(__u32 sandbox, __u32 *key)
{
	void *own;

	*key = 0;
	if (!shared)
		return bpf_map_lookup_elem(&counters, key);
	*key = sandbox & (SANDBOXES_MAX - 1);
	own = bpf_map_lookup_elem(&own_counters, key);
	*key = 0;
	return own ? bpf_map_lookup_elem(own, key) : NULL;
}

static __always_inline struct cpu_counters *cpu_counters(struct counters *c)
{
	return &c->cpu[bpf_get_smp_processor_id() & (COUNTER_CPUS - 1)];
}

GLOBAL int count_fail(__u32 site)
{
	struct counters *c = counters_get();

	if (c && site < FAIL_SITE_COUNT)
		__sync_fetch_and_add(&cpu_counters(c)->fails[site], 1);
	return 0;
}

/* Tasks and sockets may outlive their session, whose rings and counters are gone; at its place is another's, or none. */
static __always_inline bool is_former(const struct guard *g, __u32 sandbox)
{
	return shared && g->sandbox != sandbox;
}

struct drop_ctx {
	struct counters *c;
	__u64 key, other;
	__u64 ts;
	__u32 hash;
	__u32 pad;
};

static long drop_probe(__u32 i, struct drop_ctx *x)
{
	struct drop_row *row = &x->c->drops[(x->hash + i) & (DROP_ROWS - 1)];
	__u64 was = row->key, key = i < DROP_PROBES ? x->key : x->other;

	if (!was)
		was = __sync_val_compare_and_swap(&row->key, 0, key);
	if (was && was != key)
		return 0;
	__sync_val_compare_and_swap(&row->first_ts, 0, x->ts);
	row->last_ts = x->ts;
	__sync_fetch_and_add(&row->count, 1);
	return 1;
}

/* A record that could not be delivered; `kind` may carry DROP_RATE. With all rows of a (sandbox, kind)
 * taken it goes to (0, kind): the kinds are few, so that row always finds room. */
GLOBAL int count_drop(__u32 sandbox, __u32 kind, __u64 ts)
{
	struct drop_ctx x = { .ts = ts };
	struct guard *g;

	x.pad = sandbox & (SANDBOXES_MAX - 1);
	g = bpf_map_lookup_elem(&guards, &x.pad);
	if (!g || is_former(g, sandbox))
		return 0;
	x.c = counters_of(sandbox, &x.pad);
	if (!x.c)
		return 0;
	if (!(kind & DROP_RATE))
		kind |= DROP_FULL;
	x.key = drop_key(sandbox, kind);
	x.hash = (sandbox * 0x9e3779b1u) + kind;
	x.other = drop_key(0, kind);
	bpf_loop(DROP_PROBES + DROP_ROWS, drop_probe, &x, 0);
	return 0;
}

#endif
