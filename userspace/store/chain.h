/* SPDX-License-Identifier: Apache-2.0 */
/* The two SHA-256 chains of a journal (FORMAT.md section 2). */
#ifndef WARDER_STORE_CHAIN_H
#define WARDER_STORE_CHAIN_H

#include <stddef.h>
#include <stdint.h>
#include "userspace/base/auto.h"
#include "userspace/store/store.h"

struct chain; /* a hasher; holds no position */
struct merkle;

int chain_new(struct chain **ret);
void chain_free(struct chain *c);
DEFINE_AUTO(chain, chain_free)
#define auto_chain AUTO(chain)

/* SHA-256(a || b); parts of length 0 may be NULL. 0 or -EIO when OpenSSL fails. */
int chain_hash(struct chain *c, uint8_t out[STORE_HASH_LEN], const void *a, size_t an,
	       const void *b, size_t bn);

/* h_0 of a session: bound to its name, not to how it is cut into segments. */
int chain_start(struct chain *c, uint8_t out[STORE_HASH_LEN], const char *session);
/* The same of its terminal's recording. */
int chain_start_tty(struct chain *c, uint8_t out[STORE_HASH_LEN], const char *session);

/* Run the record chain over the uncompressed records of a frame: `head` in and out. Each new h also
 * goes into `tree`, when there is one. Returns the number of records, -EBADMSG when the lengths inside
 * do not fit, -EIO; `head` and `tree` are then of no use. */
int64_t chain_records(struct chain *c, uint8_t head[STORE_HASH_LEN], struct merkle *tree,
		      const uint8_t *raw, size_t n);

void hash_to_hex(char out[2 * STORE_HASH_LEN + 1], const uint8_t hash[STORE_HASH_LEN]);

#endif
