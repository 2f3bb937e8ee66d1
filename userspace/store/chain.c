// SPDX-License-Identifier: Apache-2.0
#define OPENSSL_SUPPRESS_DEPRECATED /* why: below */
#include "userspace/store/chain.h"

#include <errno.h>
#include <openssl/opensslv.h>
#include <stdlib.h>
#include <string.h>

/* Up to three hashes a record, most of them short: the one-shot calls of OpenSSL 3 spend less on set-up
 * than its EVP ones (110 of 540 ns a 500-byte record, measured). Both use the CPU's SHA instructions. */
#if OPENSSL_VERSION_MAJOR < 4
#include <openssl/sha.h>
#else
#include <openssl/evp.h>
#endif

#include "userspace/store/format.h"
#include "userspace/store/merkle.h"

#if OPENSSL_VERSION_MAJOR < 4

struct chain {
	SHA256_CTX ctx;
};

static int set_up(struct chain *c)
{
	return SHA256_Init(&c->ctx) == 1 ? 0 : -EIO;
}

void chain_free(struct chain *c)
{
	free(c);
}

int chain_hash(struct chain *c, uint8_t out[STORE_HASH_LEN], const void *a, size_t an,
	       const void *b, size_t bn)
{
	if (SHA256_Init(&c->ctx) != 1 || (an && SHA256_Update(&c->ctx, a, an) != 1) ||
	    (bn && SHA256_Update(&c->ctx, b, bn) != 1) || SHA256_Final(out, &c->ctx) != 1)
		return -EIO;
	return 0;
}

#else

struct chain {
	EVP_MD *md; /* fetched once: an implicit fetch a record costs more than the hash */
	EVP_MD_CTX *ctx;
};

static int set_up(struct chain *c)
{
	c->md = EVP_MD_fetch(NULL, "SHA256", NULL);
	c->ctx = EVP_MD_CTX_new();
	return c->md && c->ctx ? 0 : -ENOMEM;
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

#endif

int chain_new(struct chain **ret)
{
	auto_chain struct chain *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	r = set_up(c);
	if (r < 0)
		return r;
	*ret = take_ptr(c);
	return 0;
}

/* The label is hashed with its NUL. */
static int start(struct chain *c, uint8_t out[STORE_HASH_LEN], const char *label,
		 const char *session)
{
	char name[SESSION_LEN] = { 0 };

	memcpy(name, session, strnlen(session, SESSION_LEN - 1));
	return chain_hash(c, out, label, strlen(label) + 1, name, sizeof(name));
}

int chain_start(struct chain *c, uint8_t out[STORE_HASH_LEN], const char *session)
{
	return start(c, out, "warder events 1", session);
}

int chain_start_tty(struct chain *c, uint8_t out[STORE_HASH_LEN], const char *session)
{
	return start(c, out, "warder terminal 1", session);
}

int64_t chain_records(struct chain *c, uint8_t head[STORE_HASH_LEN], struct merkle *tree,
		      const uint8_t *raw, size_t n)
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
		if (tree && merkle_add(tree, c, head) < 0)
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
