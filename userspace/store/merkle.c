// SPDX-License-Identifier: Apache-2.0
#include "userspace/store/merkle.h"

#include <errno.h>
#include <string.h>

int merkle_leaf(struct chain *c, uint8_t ret[STORE_HASH_LEN], const uint8_t *entry, size_t n)
{
	static const uint8_t prefix = 0;

	return chain_hash(c, ret, &prefix, 1, entry, n);
}

int merkle_node(struct chain *c, uint8_t ret[STORE_HASH_LEN], const uint8_t left[STORE_HASH_LEN],
		const uint8_t right[STORE_HASH_LEN])
{
	uint8_t both[1 + 2 * STORE_HASH_LEN];

	both[0] = 1;
	memcpy(both + 1, left, STORE_HASH_LEN);
	memcpy(both + 1 + STORE_HASH_LEN, right, STORE_HASH_LEN);
	return chain_hash(c, ret, both, sizeof(both), NULL, 0);
}

int merkle_add(struct merkle *m, struct chain *c, const uint8_t entry[STORE_HASH_LEN])
{
	uint8_t node[STORE_HASH_LEN];
	unsigned k = 0;
	int r;

	if (m->n >> MERKLE_DEPTH_MAX)
		return -EOVERFLOW;
	r = merkle_leaf(c, node, entry, STORE_HASH_LEN);
	for (; r == 0 && m->n >> k & 1; k++)
		r = merkle_node(c, node, m->peaks[k], node);
	if (r < 0)
		return r;
	memcpy(m->peaks[k], node, STORE_HASH_LEN);
	m->n++;
	return 0;
}

int merkle_root(const struct merkle *m, struct chain *c, uint8_t ret[STORE_HASH_LEN])
{
	uint8_t node[STORE_HASH_LEN];
	bool first = true;
	int r = 0;

	if (m->n == 0)
		return chain_hash(c, ret, NULL, 0, NULL, 0);
	/* the last, incomplete part is the right child of all that come before it */
	for (unsigned k = 0; r == 0 && k <= MERKLE_DEPTH_MAX; k++) {
		if (!(m->n >> k & 1))
			continue;
		if (first)
			memcpy(node, m->peaks[k], STORE_HASH_LEN);
		else
			r = merkle_node(c, node, m->peaks[k], node);
		first = false;
	}
	if (r < 0)
		return r;
	memcpy(ret, node, STORE_HASH_LEN);
	return 0;
}
