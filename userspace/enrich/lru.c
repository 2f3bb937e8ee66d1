// SPDX-License-Identifier: Apache-2.0
#include "userspace/enrich/lru.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SLAB_BYTES  4096
#define BUCKETS_MIN 16

struct lru_slab {
	struct lru_slab *next;
	char entries[] __attribute__((aligned(16)));
};

void lru_init(struct lru *t, size_t entry_size, size_t max,
	      void (*drop)(void *ctx, struct lru_node *node), void *ctx)
{
	*t = (struct lru){
		.entry_size = (entry_size + 15) & ~(size_t)15,
		.max = max ? max : 1,
		.drop = drop,
		.ctx = ctx,
	};
}

void lru_done(struct lru *t)
{
	while (t->newest)
		lru_remove(t, t->newest);
	while (t->slabs) {
		struct lru_slab *next = t->slabs->next;

		free(t->slabs);
		t->slabs = next;
	}
	free(t->buckets);
	*t = (struct lru){ 0 };
}

static struct lru_node **bucket_of(const struct lru *t, uint64_t hash)
{
	return &t->buckets[hash & (t->buckets_n - 1)];
}

struct lru_node *lru_find(const struct lru *t, const struct lru_key *key)
{
	struct lru_node *node = t->buckets_n ? *bucket_of(t, key->hash) : NULL;

	while (node && (node->key.a != key->a || node->key.b != key->b))
		node = node->chain;
	return node;
}

static void list_unlink(struct lru *t, struct lru_node *node)
{
	if (node->newer)
		node->newer->older = node->older;
	else
		t->newest = node->older;
	if (node->older)
		node->older->newer = node->newer;
	else
		t->oldest = node->newer;
}

static void list_push(struct lru *t, struct lru_node *node)
{
	node->newer = NULL;
	node->older = t->newest;
	if (t->newest)
		t->newest->newer = node;
	else
		t->oldest = node;
	t->newest = node;
}

void lru_touch(struct lru *t, struct lru_node *node)
{
	if (t->newest == node)
		return;
	list_unlink(t, node);
	list_push(t, node);
}

void lru_remove(struct lru *t, struct lru_node *node)
{
	struct lru_node **at = bucket_of(t, node->key.hash);

	while (*at != node)
		at = &(*at)->chain;
	*at = node->chain;
	list_unlink(t, node);
	if (t->drop)
		t->drop(t->ctx, node);
	node->chain = t->free;
	t->free = node;
	t->n--;
}

void lru_evict(struct lru *t)
{
	if (!t->oldest)
		return;
	t->evicted++;
	lru_remove(t, t->oldest);
}

/* Twice the buckets once there are as many entries. Failure only makes chains longer. */
static bool grow_buckets(struct lru *t)
{
	size_t n = t->buckets_n ? t->buckets_n * 2 : BUCKETS_MIN;
	struct lru_node **buckets = calloc(n, sizeof(struct lru_node *));

	if (!buckets)
		return t->buckets_n > 0;
	free(t->buckets);
	t->buckets = buckets;
	t->buckets_n = n;
	for (struct lru_node *node = t->newest; node; node = node->older) {
		struct lru_node **at = bucket_of(t, node->key.hash);

		node->chain = *at;
		*at = node;
	}
	return true;
}

static bool grow_slabs(struct lru *t)
{
	size_t count = SLAB_BYTES / t->entry_size;
	struct lru_slab *slab;

	if (count < 8)
		count = 8;
	slab = malloc(sizeof(*slab) + count * t->entry_size);
	if (!slab)
		return false;
	slab->next = t->slabs;
	t->slabs = slab;
	for (size_t i = 0; i < count; i++) {
		struct lru_node *node = (void *)(slab->entries + i * t->entry_size);

		node->chain = t->free;
		t->free = node;
	}
	return true;
}

struct lru_node *lru_add(struct lru *t, const struct lru_key *key)
{
	struct lru_node *node, **at;

	if (t->n >= t->max)
		lru_evict(t);
	if (t->n >= t->buckets_n && !grow_buckets(t))
		return NULL;
	if (!t->free && !grow_slabs(t))
		return NULL;
	node = t->free;
	t->free = node->chain;
	memset(node, 0, t->entry_size);
	node->key = *key;
	at = bucket_of(t, key->hash);
	node->chain = *at;
	*at = node;
	list_push(t, node);
	t->n++;
	return node;
}
