/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table that cannot grow past its maximum: adding to a full one drops the entry that was not
 * used for longest. Entries come from slabs, so a table in its steady state allocates nothing.
 * Keys are 16 bytes; the caller hashes them with a secret key, so nobody can aim for one bucket. */
#ifndef WARDER_ENRICH_LRU_H
#define WARDER_ENRICH_LRU_H

#include <stddef.h>
#include <stdint.h>

struct lru_key {
	uint64_t a, b;
	uint64_t hash;
};

/* First member of every entry. */
struct lru_node {
	struct lru_key key;
	struct lru_node *chain;
	struct lru_node *newer, *older;
};

struct lru_slab;

struct lru {
	struct lru_node **buckets;
	size_t buckets_n; /* power of two, 0 before the first entry */
	size_t n, max;
	size_t entry_size;
	struct lru_node *newest, *oldest;
	struct lru_node *free;
	struct lru_slab *slabs;
	uint64_t evicted;
	void (*drop)(void *ctx, struct lru_node *node); /* before an entry goes; may be NULL */
	void *ctx;
};

void lru_init(struct lru *t, size_t entry_size, size_t max,
	      void (*drop)(void *ctx, struct lru_node *node), void *ctx);
void lru_done(struct lru *t);

/* NULL when absent. Does not count as use. */
struct lru_node *lru_find(const struct lru *t, const struct lru_key *key);
/* Counts as use. */
void lru_touch(struct lru *t, struct lru_node *node);
/* A new entry, zero behind its node. The key must not be there yet. NULL: out of memory. */
struct lru_node *lru_add(struct lru *t, const struct lru_key *key);
void lru_remove(struct lru *t, struct lru_node *node);
/* Drop the oldest entry and count it. */
void lru_evict(struct lru *t);

#endif
