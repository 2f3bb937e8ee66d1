// SPDX-License-Identifier: Apache-2.0
#include "userspace/store/chain.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/store/format.h"

struct chain {
	EVP_MD *md; /* fetched once: an implicit fetch a record costs more than the hash */
	EVP_MD_CTX *ctx;
};

int chain_new(struct chain **ret)
{
	auto_chain struct chain *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->md = EVP_MD_fetch(NULL, "SHA256", NULL);
	c->ctx = EVP_MD_CTX_new();
	if (!c->md || !c->ctx)
		return -ENOMEM;
	*ret = take_ptr(c);
	return 0;
}

void chain_free(struct chain *c)
{
	if (!c)
		return;
	EVP_MD_CTX_free(c->ctx);
	EVP_MD_free(c->md);
	free(c);
}

int chain_hash(struct chain *c, uint8_t out[STORE_HASH_LEN], const void *a, size_t an,
	       const void *b, size_t bn)
{
	if (EVP_DigestInit_ex2(c->ctx, c->md, NULL) != 1 ||
	    (an && EVP_DigestUpdate(c->ctx, a, an) != 1) ||
	    (bn && EVP_DigestUpdate(c->ctx, b, bn) != 1) ||
	    EVP_DigestFinal_ex(c->ctx, out, NULL) != 1)
		return -EIO;
	return 0;
}

int chain_start(struct chain *c, uint8_t out[STORE_HASH_LEN], const char *session)
{
	static const char label[] = "warder events 1"; /* hashed with its NUL */
	char name[SESSION_LEN] = { 0 };

	memcpy(name, session, strnlen(session, SESSION_LEN - 1));
	return chain_hash(c, out, label, sizeof(label), name, sizeof(name));
}

int64_t chain_records(struct chain *c, uint8_t head[STORE_HASH_LEN], const uint8_t *raw, size_t n)
{
	int64_t count = 0;
	size_t at = 0;

	while (at < n) {
		uint32_t len;

		if (n - at < 4)
			return -EBADMSG;
		len = get_le32(raw + at);
		if (len == 0 || len > STORE_RECORD_MAX || len > n - at - 4)
			return -EBADMSG;
		if (chain_hash(c, head, head, STORE_HASH_LEN, raw + at, 4 + (size_t)len) < 0)
			return -EIO;
		at += 4 + (size_t)len;
		count++;
	}
	return count;
}

void hash_to_hex(char out[2 * STORE_HASH_LEN + 1], const uint8_t hash[STORE_HASH_LEN])
{
	static const char hex[] = "0123456789abcdef";

	for (size_t i = 0; i < STORE_HASH_LEN; i++) {
		out[2 * i] = hex[hash[i] >> 4];
		out[2 * i + 1] = hex[hash[i] & 15];
	}
	out[2 * STORE_HASH_LEN] = 0;
}
