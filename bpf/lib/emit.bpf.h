/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Putting a record together and sending it. */
#ifndef WARDER_BPF_EMIT_H
#define WARDER_BPF_EMIT_H

#include "bpf/lib/fail.bpf.h"

/* A wake-up costs the producer 25-40 us. A reader in a storm looks by itself before so much has come together
 * (set before load: a part of the ring). */
extern const volatile __u32 wake_bytes;
/* Of the two rings, where there is one set of them (set before load). */
extern const volatile __u32 ring_bytes[2];
/* What need not be acted on within microseconds wakes once in that time. More than the 2 ms after which a reader
 * that gets something looks by itself (CAPTURE_TICK_MS): so in a storm it is the reader's timer, not the producer
 * that pays. */
#define WAKE_EVERY_NS 3000000ull

#define WIRE_RING_BULK_WAKE 0x101 /* to emit_scratch: bulk, with a wake-up */

static __always_inline struct scratch *scratch_get(void)
{
	struct scratch *s;
	__u32 i;

#pragma unroll
	for (i = 0; i < SCRATCHES; i++) {
		__u32 key = i;

		s = bpf_map_lookup_elem(&scratches, &key);
		if (s && __sync_val_compare_and_swap(&s->busy, 0, 1) == 0) {
			s->index = i;
			return s;
		}
	}
	return NULL;
}

static __always_inline void scratch_put(struct scratch *s)
{
	s->busy = 0;
}

enum wake {
	WAKE_QUIET, /* told when the consumer looks, or when much has come together */
	WAKE_SOON,  /* may be acted on: at once, but a storm of them wakes once in WAKE_EVERY_NS */
	WAKE_NOW,
};

/* What of the urgent ring may be acted on. */
static __always_inline enum wake wake_of(__u32 kind)
{
	if (kind == WIRE_FORK || kind == WIRE_EXIT || kind == WIRE_CHUNK)
		return WAKE_QUIET;
	return kind == WIRE_EXEC ? WAKE_SOON : WAKE_NOW;
}

static __always_inline struct sleeper *sleeper_of(__u32 sandbox)
{
	__u32 key = sandbox & (SANDBOXES_MAX - 1), zero = 0;
	void *own;

	if (!shared)
		return bpf_map_lookup_elem(&sleeper, &zero);
	own = bpf_map_lookup_elem(&own_sleepers, &key);
	return own ? bpf_map_lookup_elem(own, &zero) : NULL;
}

/* bpf_ringbuf_query of the ring that this sandbox's records go to; 0 when it has none. */
static __always_inline __u64 ring_ask(__u32 sandbox, __u32 ring, __u32 which)
{
	__u32 key = shared_ring(sandbox, ring);
	void *own;

	if (shared) {
		own = bpf_map_lookup_elem(&rings, &key);
		return own ? bpf_ringbuf_query(own, which) : 0;
	}
	return ring == WIRE_RING_URGENT ? bpf_ringbuf_query(&urgent, which)
					: bpf_ringbuf_query(&bulk, which);
}

/* To wake_flags, beside the ring's number. */
#define WAKE_ACT  2 /* of the bulk ring, may be acted on */
#define WAKE_MUCH 4 /* wake_bytes have come together */

/* Flags for the ring. The consumer says what it wants, then looks whether anything came, records on
 * their way included (cpu_counters.since), and only then sleeps: no wake-up is missed. */
GLOBAL int wake_flags(__u32 sandbox, __u32 how, __u32 kind, __u64 now)
{
	struct sleeper *sl = sleeper_of(sandbox);
	__u32 wants, wake;

	if (!sl)
		return BPF_RB_FORCE_WAKEUP;
	wants = *(volatile __u32 *)&sl->wants;
	if (wants == SLEEPER_NOTHING)
		return BPF_RB_NO_WAKEUP;
	if (wants == SLEEPER_NAP) {
		wake = !(how & 1) ? wake_of(kind) : how & WAKE_ACT ? WAKE_SOON : WAKE_QUIET;
		if (!(how & WAKE_MUCH) &&
		    (wake == WAKE_QUIET ||
		     (wake == WAKE_SOON && now - sl->woken_ns < WAKE_EVERY_NS)))
			return BPF_RB_NO_WAKEUP;
	}
	*(volatile __u32 *)&sl->wants = SLEEPER_NOTHING;
	sl->woken_ns = now;
	return BPF_RB_FORCE_WAKEUP;
}

enum admit {
	ADMIT_OFF = -1,
	ADMIT_FULL = -2,
	ADMIT_RATE = -3,
	ADMIT_MUCH = 1 /* there are wake_bytes by now */
};

static __always_inline __u32 guard_bucket(__u32 kind)
{
	if (kind < GUARD_KINDS) {
		barrier_var(kind); /* the verifier is shown the bound at the index itself */
		return kind & (GUARD_KINDS - 1);
	}
	return kind == WIRE_MIRROR ? GUARD_MIRROR : GUARD_CHUNK;
}

/* Does this record go beyond the sandbox's rate? Asked only while a ring is more than half full: so a flood
 * is cut to its rate, and the other half stays free for those that are quiet. Two CPUs may both take the
 * last token; that makes it no less of a bound. */
static __always_inline bool guard_stops(struct guard *g, __u32 kind, __u32 len)
{
	__u64 now = bpf_ktime_get_boot_ns(), *at = &g->full_at[guard_bucket(kind)], full = *at;

	if (full < now)
		full = now;
	if (full - now > (__u64)GUARD_BURST * GUARD_NS_PER_BYTE)
		return true;
	*at = full + (__u64)len * GUARD_NS_PER_BYTE;
	return false;
}

static __always_inline __u64 ring_size(__u32 sandbox, __u32 ring)
{
	return shared ? ring_ask(sandbox, ring, BPF_RB_RING_SIZE) : ring_bytes[ring & 1];
}

static __always_inline __u64 ring_used(__u32 sandbox, __u32 ring)
{
	return ring_ask(sandbox, ring, BPF_RB_AVAIL_DATA);
}

static __always_inline __u64 *crowd_of(__u32 sandbox, __u32 ring)
{
	__u32 key = shared ? shared_ring(sandbox, ring) : ring;

	return bpf_map_lookup_elem(&crowds, &key);
}

/* Whose is what fills a ring from its half on: for who is to be killed for it. */
static __always_inline void guard_count(struct guard *g, __u32 sandbox, __u32 ring, __u32 len)
{
	struct guard_share *mine = &g->shares[ring & 1];
	__u64 *crowd = crowd_of(sandbox, ring), turn, was;

	if (!crowd)
		return;
	was = *crowd;
	if (ring_ask(sandbox, ring, BPF_RB_CONS_POS) >= was >> CROWD_TURN)
		__sync_val_compare_and_swap(crowd, was,
					    ring_ask(sandbox, ring, BPF_RB_PROD_POS) << CROWD_TURN);
	turn = *crowd >> CROWD_TURN;
	was = mine->turn;
	if (was != turn && __sync_val_compare_and_swap(&mine->turn, was, turn) == was) {
		mine->bytes = 0;
		__sync_fetch_and_add(crowd, 1);
	}
	__sync_fetch_and_add(&mine->bytes, len + 8 /* BPF_RINGBUF_HDR_SZ */);
}

/* Did this sandbox take its fair share of a quarter of the ring, beyond what was there when it was half full? Asked when
 * three quarters are taken: of those who did it one always has, and all others together find room in the last
 * quarter. So it does not fill up, however many they are, and who only comes by is not killed. */
static __always_inline bool guard_filled(const struct guard *g, __u32 sandbox, __u32 ring)
{
	const struct guard_share *mine = &g->shares[ring & 1];
	__u64 *crowd = crowd_of(sandbox, ring);

	return crowd && *crowd >> CROWD_TURN == mine->turn &&
	       mine->bytes * (*crowd & CROWD_MASK) >= ring_size(sandbox, ring) / 4;
}

/* May the record go out into a ring that is half full? scarce: what is left is for escapes. 0 = yes. */
GLOBAL int emit_crowded(__u32 ring, __u32 sandbox, __u32 kind, __u32 len, bool scarce)
{
	__u32 key = sandbox & (SANDBOXES_MAX - 1);
	struct guard *g = bpf_map_lookup_elem(&guards, &key);

	if (!g)
		return ADMIT_FULL;
	if (g->policy == PRESSURE_DROP && guard_stops(g, kind, len))
		return ADMIT_RATE;
	guard_count(g, sandbox, ring, len);
	return scarce && kind != WIRE_ESCAPE && kind != WIRE_OOM ? ADMIT_FULL : 0;
}

/* May the record go out? 0 and ADMIT_MUCH = yes. */
GLOBAL int emit_admit(__u32 ring, __u32 sandbox, __u32 kind, __u32 len)
{
	__u32 key = sandbox & (SANDBOXES_MAX - 1);
	struct guard *g = bpf_map_lookup_elem(&guards, &key);
	__u32 as = kind == WIRE_CHUNK ? WIRE_EXEC : kind;
	__u64 used, size;
	int r;

	if (!g)
		return ADMIT_FULL;
	if (is_former(g, sandbox))
		return ADMIT_OFF;
	if (as < GUARD_KINDS && g->off >> as & 1)
		return ADMIT_OFF;
	used = ring_used(sandbox, ring);
	size = ring_size(sandbox, ring);
	if (used >= size / 8 * GUARD_FROM) {
		r = emit_crowded(ring, sandbox, kind, len,
				 ring == WIRE_RING_URGENT && used >= size / 8 * RESERVE_FROM);
		if (r)
			return r;
	}
	return used >= wake_bytes ? ADMIT_MUCH : 0;
}

/* A ring is three quarters full, and by this sandbox's policy who fills it is killed, or stopped, which harms nobody,
 * so there it is whoever makes a record. */
static __always_inline bool guard_presses(const struct guard *g, __u32 sandbox, __u32 ring)
{
	__u64 size = ring_size(sandbox, ring);

	return size && ring_used(sandbox, ring) >= size / 8 * PRESSURE_AT &&
	       (g->policy == PRESSURE_STOP || guard_filled(g, sandbox, ring));
}

/* By programs that may send signals, when the current task is the producer. The last quarter of a ring has room for
 * what other tasks have under way. */
GLOBAL int pressure(struct task_state *st)
{
	struct guard *g;
	__u64 start, *times;
	__u32 key, tgid;

	if (!st || st->role != ROLE_PAYLOAD)
		return 0;
	key = st->sandbox & (SANDBOXES_MAX - 1);
	g = bpf_map_lookup_elem(&guards, &key);
	if (!g || g->policy == PRESSURE_DROP || is_former(g, st->sandbox))
		return 0;
	if (!guard_presses(g, st->sandbox, WIRE_RING_BULK) &&
	    !guard_presses(g, st->sandbox, WIRE_RING_URGENT))
		return 0;
	if (bpf_send_signal(g->policy == PRESSURE_STOP ? 19 : 9)) {
		count_fail(FAIL_SIGNAL);
		return 0;
	}
	/* After the signal: who resumes finds only what is stopped already. */
	if (g->policy == PRESSURE_STOP) {
		tgid = bpf_get_current_pid_tgid() >> 32;
		start = st->start;
		bpf_map_update_elem(&stopped, &tgid, &start, BPF_ANY);
	}
	times = bpf_map_lookup_elem(&pressed, &key);
	if (times)
		__sync_fetch_and_add(times, 1);
	return 0;
}

/* Say the bound of `len` again where it is used: across the calls before, clang spills it to the stack
 * and 6.1's verifier forgets it. `max` 0: len is a constant. */
static __always_inline __u32 bounded(__u32 len, __u32 max)
{
	if (!max)
		return len;
	barrier_var(len);
	return len > max ? max : len;
}

/* Send `len` bytes at `rec`, where `max` lie (0: len is a constant). The sequence counts the lost ones
 * too. act: of the bulk ring, may be acted on. The time is taken here, as late as can be: what stands in
 * a ring is in order but for races between CPUs, and `since` tells the reader of those. */
static __always_inline long emit_wake(void *rec, __u32 len, __u32 max, __u32 ring, bool act)
{
	struct wire_hdr *h = rec;
	__u32 key;
	struct counters *c = counters_of(h->sandbox, &key);
	struct cpu_counters *cpu;
	void *own;
	__u64 since, now, flags;
	long r = -1;
	int admit;

	if (!c)
		return -1;
	admit = emit_admit(ring, h->sandbox, h->kind, len);
	if (admit == ADMIT_OFF)
		return 0;
	cpu = cpu_counters(c);
	since = __sync_val_compare_and_swap(&cpu->since, 0, SINCE_UNKNOWN);
	now = bpf_ktime_get_boot_ns();
	if (!since)
		*(volatile __u64 *)&cpu->since = now;
	h->len = len;
	h->ring = ring;
	h->ts = now;
	h->cpu = bpf_get_smp_processor_id();
	h->seq = __sync_fetch_and_add(&cpu->seq[ring & 1], 1) + 1;
	if (admit >= 0) {
		flags = wake_flags(h->sandbox,
				   ring | (act ? WAKE_ACT : 0) |
					   (admit == ADMIT_MUCH ? WAKE_MUCH : 0),
				   h->kind, now);
		if (shared) {
			key = shared_ring(h->sandbox, ring);
			own = bpf_map_lookup_elem(&rings, &key);
			if (own)
				r = bpf_ringbuf_output(own, rec, bounded(len, max), flags);
		} else if (ring == WIRE_RING_BULK)
			r = bpf_ringbuf_output(&bulk, rec, bounded(len, max), flags);
		else
			r = bpf_ringbuf_output(&urgent, rec, bounded(len, max), flags);
	}
	if (!since) /* else: interrupted within another record, which is older */
		*(volatile __u64 *)&cpu->since = 0;
	if (r < 0) {
		__sync_fetch_and_add(&cpu->lost[ring & 1], 1);
		count_drop(h->sandbox, h->kind | (admit == ADMIT_RATE ? DROP_RATE : 0), now);
	}
	return r;
}

static __always_inline long emit(void *rec, __u32 len, enum wire_ring ring)
{
	return emit_wake(rec, len, 0, ring, false);
}

/* Send what was put together in a scratch buffer. */
GLOBAL int emit_scratch(struct scratch *s, __u32 ring)
{
	__u32 len;

	if (!s)
		return 0;
	((struct wire_hdr *)s->rec)->flags |= s->flags;
	len = s->len;
	if (len > REC_SIZE)
		len = REC_SIZE;
	return emit_wake(s->rec, len, REC_SIZE, ring & 1, ring >> 8);
}

/* Room for `max` more bytes behind the record, or NULL. */
static __always_inline void *rec_room(struct scratch *s, __u32 max, __u32 *ret_off)
{
	__u32 off = s->len;

	if (off > REC_SIZE - max)
		return NULL;
	*ret_off = off;
	return s->rec + off;
}

#define rec_begin(s, type)                                   \
	({                                                   \
		__builtin_memset((s)->rec, 0, sizeof(type)); \
		(s)->len = sizeof(type);                     \
		(s)->flags = 0;                              \
		(type *)(s)->rec;                            \
	})

/* A wire_str as the number that a global function can return. */
union packed_str {
	struct wire_str w;
	int v;
};

static __always_inline struct wire_str unpack(int v)
{
	union packed_str p = { .v = v };

	return p.w;
}

enum str_from {
	STR_KERNEL,
	STR_USER,  /* what the caller said, not what the kernel used: other threads can change it */
	STR_GUEST, /* of a gVisor guest: that a page is not there is nothing to be counted here */
};

/* Append a NUL-terminated string of at most `max` bytes. */
GLOBAL int rec_str(struct scratch *s, __u64 ptr, __u32 max, __u32 from)
{
	union packed_str p = {};
	__u32 off;
	char *dst;
	long n;

	if (!s || max > WIRE_PATH_MAX)
		return 0;
	dst = rec_room(s, WIRE_PATH_MAX, &off);
	if (!dst) {
		s->flags |= WIRE_F_TRUNC;
		return 0;
	}
	if (from == STR_KERNEL)
		n = bpf_probe_read_kernel_str(dst, max, (void *)ptr);
	else
		n = bpf_probe_read_user_str(dst, max, (void *)ptr);
	if (n <= 0) { /* a bad pointer, or a page that is being moved just now */
		s->flags |= WIRE_F_READ_FAULT;
		if (from != STR_GUEST)
			count_fail(FAIL_READ_USER);
		return 0;
	}
	if (from == STR_USER)
		s->flags |= WIRE_F_TOCTOU;
	if (n == max)
		s->flags |= WIRE_F_TRUNC;
	p.w.off = off;
	p.w.len = n - 1;
	s->len = off + n;
	return p.v;
}

static __always_inline struct wire_str rec_user_str(struct scratch *s, __u64 uptr)
{
	return unpack(rec_str(s, uptr, WIRE_PATH_MAX, STR_USER));
}

static __always_inline struct wire_str rec_kernel_str(struct scratch *s, const void *p, __u32 max)
{
	return unpack(rec_str(s, (__u64)p, max, STR_KERNEL));
}

#endif
