// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "userspace/enrich/lru.h"

struct entry {
	struct lru_node node;
	uint64_t value;
};

static struct lru_key key(uint64_t k)
{
	return (struct lru_key){ k, ~k, k * 0x9e3779b97f4a7c15 };
}

/* Everything in one bucket: chains must still be right. */
static struct lru_key colliding(uint64_t k)
{
	return (struct lru_key){ k, 0, 7 };
}

static unsigned dropped;
static uint64_t dropped_sum;

static void on_drop(void *ctx, struct lru_node *node)
{
	(void)ctx;
	dropped++;
	dropped_sum += ((struct entry *)node)->value;
}

static void add(struct lru *t, struct lru_key k, uint64_t value)
{
	struct entry *e = (struct entry *)lru_add(t, &k);

	assert_non_null(e);
	assert_int_equal(e->value, 0);
	e->value = value;
}

static uint64_t get(struct lru *t, struct lru_key k)
{
	struct entry *e = (struct entry *)lru_find(t, &k);

	return e ? e->value : 0;
}

static void the_unused_go_first(void **state)
{
	struct lru_key one = key(1);
	struct lru t;

	(void)state;
	dropped = 0;
	dropped_sum = 0;
	lru_init(&t, sizeof(struct entry), 3, on_drop, NULL);
	assert_null(lru_find(&t, &one));
	add(&t, key(1), 1);
	add(&t, key(2), 2);
	add(&t, key(3), 3);
	lru_touch(&t, lru_find(&t, &one));
	add(&t, key(4), 4);
	assert_int_equal(get(&t, key(1)), 1);
	assert_int_equal(get(&t, key(2)), 0);
	assert_int_equal(get(&t, key(3)), 3);
	assert_int_equal(get(&t, key(4)), 4);
	assert_int_equal(t.n, 3);
	assert_int_equal(t.evicted, 1);
	assert_int_equal(dropped_sum, 2);
	lru_done(&t);
	assert_int_equal(dropped, 4);
}

static void keys_with_one_hash_are_told_apart(void **state)
{
	struct lru t;
	struct lru_key k;

	(void)state;
	lru_init(&t, sizeof(struct entry), 100, NULL, NULL);
	for (uint64_t i = 1; i <= 100; i++)
		add(&t, colliding(i), i);
	for (uint64_t i = 1; i <= 100; i += 3) {
		k = colliding(i);
		lru_remove(&t, lru_find(&t, &k));
	}
	for (uint64_t i = 1; i <= 100; i++)
		assert_int_equal(get(&t, colliding(i)), i % 3 == 1 ? 0 : i);
	lru_done(&t);
}

/* Many more keys than room: never more than the maximum, always the newest. */
static void a_flood_changes_nothing_but_the_counter(void **state)
{
	struct lru t;
	size_t buckets;

	(void)state;
	lru_init(&t, sizeof(struct entry), 1000, NULL, NULL);
	for (uint64_t i = 1; i <= 1000; i++)
		add(&t, key(i), i);
	buckets = t.buckets_n;
	for (uint64_t i = 1001; i <= 100000; i++)
		add(&t, key(i), i);
	assert_int_equal(t.n, 1000);
	assert_int_equal(t.evicted, 99000);
	assert_int_equal(t.buckets_n, buckets);
	for (uint64_t i = 1; i <= 100000; i++)
		assert_int_equal(get(&t, key(i)), i > 99000 ? i : 0);
	lru_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_unused_go_first),
		cmocka_unit_test(keys_with_one_hash_are_told_apart),
		cmocka_unit_test(a_flood_changes_nothing_but_the_counter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
