// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/store/bundle.h"

#include "userspace/store/merkle.h"

static struct chain *chain;

static void hex_is(const uint8_t hash[STORE_HASH_LEN], const char *want)
{
	char hex[2 * STORE_HASH_LEN + 1];

	hash_to_hex(hex, hash);
	assert_string_equal(hex, want);
}

/* MTH as RFC 6962 section 2.1 words it. */
static void naive(const uint8_t (*entries)[STORE_HASH_LEN], size_t n, uint8_t out[STORE_HASH_LEN])
{
	uint8_t left[STORE_HASH_LEN], right[STORE_HASH_LEN];
	size_t k = 1;

	if (n == 0) {
		chain_hash(chain, out, NULL, 0, NULL, 0);
		return;
	}
	if (n == 1) {
		merkle_leaf(chain, out, entries[0], STORE_HASH_LEN);
		return;
	}
	while (2 * k < n)
		k *= 2;
	naive(entries, k, left);
	naive(entries + k, n - k, right);
	merkle_node(chain, out, left, right);
}

static void test_known_values(void **state)
{
	struct merkle m = { 0 };
	uint8_t out[STORE_HASH_LEN];

	(void)state;
	assert_int_equal(merkle_root(&m, chain, out), 0);
	hex_is(out, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	/* the test vectors of Certificate Transparency: leaf of nothing, leaf of 00 */
	merkle_leaf(chain, out, NULL, 0);
	hex_is(out, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d");
	merkle_leaf(chain, out, (const uint8_t *)"", 1);
	hex_is(out, "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7");
}

static void test_against_the_definition(void **state)
{
	uint8_t entries[130][STORE_HASH_LEN], want[STORE_HASH_LEN], got[STORE_HASH_LEN];
	struct merkle m = { 0 };

	(void)state;
	for (size_t n = 0; n <= ARRAY_SIZE(entries); n++) {
		naive((const uint8_t(*)[STORE_HASH_LEN])entries, n, want);
		assert_int_equal(merkle_root(&m, chain, got), 0);
		assert_memory_equal(got, want, STORE_HASH_LEN);
		if (n == ARRAY_SIZE(entries))
			break;
		memset(entries[n], (int)n + 1, STORE_HASH_LEN);
		assert_int_equal(merkle_add(&m, chain, entries[n]), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_values),
		cmocka_unit_test(test_against_the_definition),
	};
	int r;

	if (chain_new(&chain) < 0)
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	chain_free(chain);
	return r;
}
