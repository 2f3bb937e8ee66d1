/* SPDX-License-Identifier: Apache-2.0 */
/* Merkle tree hash of RFC 6962 section 2.1 over a growing list. Its entries are the values h(i) of the
 * record chain: who shows record i together with h(i-1) and a path proves it without the others. */
#ifndef WARDER_STORE_MERKLE_H
#define WARDER_STORE_MERKLE_H

#include <stdint.h>
#include "userspace/store/chain.h"

#define MERKLE_DEPTH_MAX 63

struct merkle {
	uint64_t n;
	/* Roots of the complete subtrees; [k] has 2^k leaves and is there when bit k of n is set. */
	uint8_t peaks[MERKLE_DEPTH_MAX + 1][STORE_HASH_LEN];
};

int merkle_add(struct merkle *m, struct chain *c, const uint8_t entry[STORE_HASH_LEN]);
/* SHA-256 of nothing for an empty list. */
int merkle_root(const struct merkle *m, struct chain *c, uint8_t ret[STORE_HASH_LEN]);

/* Inner node: SHA-256(01 || left || right); also for trees that are not made of records. */
int merkle_node(struct chain *c, uint8_t ret[STORE_HASH_LEN], const uint8_t left[STORE_HASH_LEN],
		const uint8_t right[STORE_HASH_LEN]);
/* SHA-256(00 || entry). */
int merkle_leaf(struct chain *c, uint8_t ret[STORE_HASH_LEN], const uint8_t *entry, size_t n);

#endif
