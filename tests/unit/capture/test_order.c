/* SPDX-License-Identifier: Apache-2.0 */
/* Ordering of fake rings: no kernel, the same memory layout. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <linux/bpf.h>
#include "userspace/base/auto.h"
#include "userspace/capture/order.h"

#define RING_SIZE 65536
#define SEEN_MAX  20000
#define US	  1000ull

/* A ring whose kernel side we play: data twice in a row, as the kernel maps it. */
struct fake {
	struct ring r;
	uint8_t *data;
	uint64_t prod, cons;
	size_t size;
};

static uint32_t next_id;

static struct {
	uint64_t ts[SEEN_MAX];
	uint32_t id[SEEN_MAX];
	size_t n;
	int fail_at; /* fn fails at this one; -1 = never */
} seen;

static void fake_init(struct fake *f, size_t size)
{
	memset(f, 0, sizeof(*f));
	f->size = size;
	f->data = calloc(2, size);
	assert_non_null(f->data);
	f->r.data = f->data;
	f->r.size = size;
	f->r.consumer = &f->cons;
	f->r.producer = &f->prod;
}

static void put(struct fake *f, uint64_t at, const void *p, size_t n)
{
	const uint8_t *b = p;

	for (size_t i = 0; i < n; i++) {
		f->data[(at + i) & (f->size - 1)] = b[i];
		f->data[((at + i) & (f->size - 1)) + f->size] = b[i];
	}
}

static uint64_t add_bits(struct fake *f, uint64_t ts, size_t extra, uint32_t bits)
{
	uint8_t buf[4096] = { 0 };
	struct wire_hdr h = { .kind = WIRE_EXIT, .ts = ts, .tgid = next_id++ };
	uint32_t head[2] = { 0 };
	uint64_t at = f->prod;

	h.len = (uint32_t)(sizeof(h) + extra);
	memcpy(buf, &h, sizeof(h));
	memset(buf + sizeof(h), (int)(h.tgid & 0xff), extra);
	head[0] = h.len | bits;
	assert_true(f->prod - f->cons + h.len + 16 <= f->size);
	put(f, at, head, sizeof(head));
	put(f, at + 8, buf, h.len);
	f->prod += (h.len + 8 + 7) & ~7ull;
	return at;
}

static void add(struct fake *f, uint64_t ts)
{
	add_bits(f, ts, ts % 57, 0);
}

static int on_record(void *arg, const void *rec, size_t len)
{
	struct wire_hdr h;

	(void)arg;
	memcpy(&h, rec, sizeof(h));
	assert_int_equal(h.len, len);
	for (size_t i = sizeof(h); i < len; i++)
		assert_int_equal(((const uint8_t *)rec)[i], h.tgid & 0xff);
	if (seen.fail_at >= 0 && seen.n == (size_t)seen.fail_at) {
		seen.fail_at = -1;
		return -EIO;
	}
	assert_true(seen.n < SEEN_MAX);
	seen.ts[seen.n] = h.ts;
	seen.id[seen.n++] = h.tgid;
	return 0;
}

static void assert_sorted(void)
{
	for (size_t i = 1; i < seen.n; i++)
		assert_true(seen.ts[i - 1] <= seen.ts[i]);
}

static void assert_all_ids(uint32_t n)
{
	static uint8_t got[SEEN_MAX];

	memset(got, 0, sizeof(got));
	assert_int_equal(seen.n, n);
	for (size_t i = 0; i < seen.n; i++) {
		assert_int_equal(got[seen.id[i]], 0);
		got[seen.id[i]] = 1;
	}
}

struct state {
	struct order o;
	struct fake f[2];
	struct ring rings[2];
};

static int setup(void **state)
{
	struct state *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	assert_int_equal(order_init(&s->o), 0);
	fake_init(&s->f[0], RING_SIZE);
	fake_init(&s->f[1], RING_SIZE);
	s->rings[0] = s->f[0].r;
	s->rings[1] = s->f[1].r;
	memset(&seen, 0, sizeof(seen));
	seen.fail_at = -1;
	next_id = 0;
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct state *s = *state;

	order_done(&s->o);
	free(s->f[0].data);
	free(s->f[1].data);
	free(s);
	return 0;
}

static int drain(struct state *s, uint64_t now, bool flush, size_t *more)
{
	return order_drain(&s->o, s->rings, 2, flush ? UINT64_MAX : now - ORDER_WINDOW_NS,
			   on_record, NULL, more);
}

static void two_rings_come_out_in_time(void **state)
{
	struct state *s = *state;
	size_t more;

	add(&s->f[1], 10 * US);
	add(&s->f[1], 30 * US);
	add(&s->f[0], 20 * US);
	add(&s->f[0], 40 * US);
	assert_int_equal(drain(s, 10000 * US, false, &more), 4);
	assert_int_equal(more, 0);
	assert_sorted();
	assert_all_ids(4);
	assert_int_equal(s->f[0].cons, s->f[0].prod);
	assert_int_equal(s->f[1].cons, s->f[1].prod);
}

static void equal_times_keep_their_order(void **state)
{
	struct state *s = *state;
	size_t more;

	for (int i = 0; i < 100; i++)
		add(&s->f[0], 500 * US);
	drain(s, 10000 * US, false, &more);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(seen.id[i], i);
}

static void young_records_stay_in_the_ring(void **state)
{
	struct state *s = *state;
	size_t more;
	uint64_t pos;

	add(&s->f[0], 100 * US);
	pos = s->f[0].prod;
	add(&s->f[0], 900 * US);
	assert_int_equal(drain(s, 1000 * US, false, &more), 1);
	assert_true(more > 0);
	assert_int_equal(s->f[0].cons, pos);
	assert_int_equal(s->o.held_n, 0);
	add(&s->f[1], 800 * US); /* the older one that was on its way */
	assert_int_equal(drain(s, 2000 * US, false, &more), 2);
	assert_sorted();
	assert_int_equal(s->o.late, 0);
}

static void a_young_one_in_front_is_copied(void **state)
{
	struct state *s = *state;
	size_t more;

	add_bits(&s->f[0], 900 * US, 40, 0);
	add(&s->f[0], 100 * US);
	assert_int_equal(drain(s, 1000 * US, false, &more), 1);
	assert_int_equal(s->o.held_n, 1);
	assert_int_equal(more, 1);
	assert_int_equal(s->f[0].cons, s->f[0].prod);
	memset(s->f[0].data, 0xee, 2 * RING_SIZE); /* the kernel may write there now */
	assert_int_equal(drain(s, 1001 * US, false, &more), 0);
	assert_int_equal(more, 1);
	assert_int_equal(drain(s, 2000 * US, false, &more), 1);
	assert_int_equal(more, 0);
	assert_sorted();
	assert_all_ids(2);
}

static void unfinished_record_stops_its_ring_only(void **state)
{
	struct state *s = *state;
	size_t more;
	uint64_t at = add_bits(&s->f[0], 100 * US, 0, BPF_RINGBUF_BUSY_BIT);
	uint32_t done = sizeof(struct wire_hdr);

	add(&s->f[0], 110 * US);
	add(&s->f[1], 120 * US);
	assert_int_equal(drain(s, 10000 * US, false, &more), 1);
	assert_true(more > 0);
	put(&s->f[0], at, &done, sizeof(done));
	assert_int_equal(drain(s, 10000 * US, false, &more), 2);
	assert_int_equal(s->o.late, 2);
	assert_all_ids(3);
}

static void given_up_records_are_skipped(void **state)
{
	struct state *s = *state;
	size_t more;

	add_bits(&s->f[0], 1 * US, 8, BPF_RINGBUF_DISCARD_BIT);
	add(&s->f[0], 2 * US);
	add_bits(&s->f[0], 3 * US, 8, BPF_RINGBUF_DISCARD_BIT);
	assert_int_equal(drain(s, 10000 * US, false, &more), 1);
	assert_int_equal(more, 0);
	assert_int_equal(s->f[0].cons, s->f[0].prod);
}

static void flush_hands_out_the_youngest(void **state)
{
	struct state *s = *state;
	size_t more;

	add(&s->f[0], 999999 * US);
	add(&s->f[1], 5 * US);
	assert_int_equal(drain(s, 10 * US, true, &more), 2);
	assert_int_equal(more, 0);
	assert_sorted();
}

static void failure_keeps_the_rest(void **state)
{
	struct state *s = *state;
	size_t more;

	for (int i = 0; i < 10; i++)
		add(&s->f[i & 1], (uint64_t)(i + 1) * US);
	seen.fail_at = 4;
	assert_int_equal(drain(s, 10000 * US, false, &more), -EIO);
	assert_int_equal(seen.n, 4);
	assert_int_equal(drain(s, 10000 * US, false, &more), 5);
	assert_sorted();
}

static void too_short_records_are_counted(void **state)
{
	struct state *s = *state;
	uint32_t head[2] = { 8, 0 };
	size_t more;

	put(&s->f[0], 0, head, sizeof(head));
	s->f[0].prod = 16;
	add(&s->f[0], 7 * US);
	assert_int_equal(drain(s, 10000 * US, false, &more), 1);
	assert_int_equal(s->o.bad, 1);
}

/* Random load: clocks of two CPUs that race, rings that wrap, calls at odd times. */
static void random_load(void **state)
{
	struct state *s = *state;
	uint64_t now = 10000 * US, given = 0;
	unsigned int seed = 12345;
	size_t more;

	while (next_id < 15000) {
		int burst = rand_r(&seed) % 60;

		for (int i = 0; i < burst; i++) {
			struct fake *f = &s->f[rand_r(&seed) & 1];

			now += (uint64_t)rand_r(&seed) % (20 * US);
			if (f->prod - f->cons < RING_SIZE / 2)
				add(f, now - (uint64_t)rand_r(&seed) % (400 * US));
		}
		given += (uint64_t)drain(s, now, false, &more);
		assert_true(s->o.held_n <= ORDER_HELD_MAX);
	}
	given += (uint64_t)drain(s, now, true, &more);
	assert_int_equal(more, 0);
	assert_int_equal(given, next_id);
	assert_all_ids(next_id);
	assert_sorted();
	assert_int_equal(s->o.late, 0);
	assert_int_equal(s->o.records, next_id);
}

static void more_than_a_batch(void **state)
{
	struct state *s = *state;
	static struct fake big;
	size_t more;

	fake_init(&big, 1 << 21);
	s->rings[0] = big.r;
	for (int i = 0; i < 3 * ORDER_BATCH; i++)
		add_bits(&big, (uint64_t)(i + 1) * US, 0, 0);
	add(&s->f[1], 7000 * US);
	assert_int_equal(drain(s, 1000000 * US, false, &more), 3 * ORDER_BATCH + 1);
	assert_sorted();
	assert_all_ids(3 * ORDER_BATCH + 1);
	/* A whole batch of one instant must not block. */
	memset(&seen, 0, sizeof(seen));
	seen.fail_at = -1;
	for (int i = 0; i < 2 * ORDER_BATCH; i++)
		add_bits(&big, 990000 * US, 0, 0);
	assert_int_equal(drain(s, 1000000 * US, false, &more), 2 * ORDER_BATCH);
	free(big.data);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(two_rings_come_out_in_time),
		T(equal_times_keep_their_order),
		T(young_records_stay_in_the_ring),
		T(a_young_one_in_front_is_copied),
		T(unfinished_record_stops_its_ring_only),
		T(given_up_records_are_skipped),
		T(flush_hands_out_the_youngest),
		T(failure_keeps_the_rest),
		T(too_short_records_are_counted),
		T(random_load),
		T(more_than_a_batch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
