/* SPDX-License-Identifier: Apache-2.0 */
/* The host's signing key (FORMAT.md section 10): Ed25519, forward-secure.
 *
 * One seed, turned forward by a hash, gives a key pair for each of 2^depth epochs. The public key of
 * the host is the root of the Merkle tree over all epochs' public keys: 32 bytes that never change.
 * Signing uses the current epoch's key; when an epoch is over, its seed is overwritten by the next.
 * Who takes the machine gets the current seed and can sign from now on, but not as an earlier epoch. */
#ifndef WARDER_STORE_KEYS_H
#define WARDER_STORE_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "userspace/base/err.h"
#include "userspace/store/store.h"

#define KEY_LEN		  32
#define KEY_SIG_LEN	  64
#define KEY_DEPTH_MAX	  16
#define KEY_TEXT	  "warder-host-key-1 " /* and 64 hex digits: host.pub, and what `--key F` reads */
#define KEY_EPOCH_SECONDS 600		       /* 2^16 of them: 455 days of use */

struct key_options {
	unsigned depth;	  /* 0 = KEY_DEPTH_MAX */
	uint64_t seconds; /* an epoch's; 0 = KEY_EPOCH_SECONDS */
};

struct key_signature {
	uint32_t epoch, depth;
	uint8_t public_key[KEY_LEN]; /* of the epoch */
	uint8_t path[KEY_DEPTH_MAX][STORE_HASH_LEN];
	uint8_t sig[KEY_SIG_LEN];
};

/* Make the host's key in `dirfd`: host.seed (secret), host.tree, host.pub. About a second for the
 * default depth. -EEXIST when there is one. */
int keys_init(int dirfd, const struct key_options *opt, struct err *err);
/* The public key. -ENOENT when the host has none. */
int keys_public(int dirfd, uint8_t ret[KEY_LEN], struct err *err);
/* A new key; the old one signs it into rotations.log and is erased. */
int keys_rotate(int dirfd, const struct key_options *opt, struct err *err);
/* The keys before it, the first first, out of rotations.log: at most `max`. Returns how many; -E2BIG, -EBADMSG. */
int keys_former(int dirfd, uint8_t ret[][KEY_LEN], size_t max, struct err *err);
/* The current epoch, from 0, and how many there are, for `warder keys show`. */
int keys_epochs(int dirfd, uint32_t *ret_epoch, uint32_t *ret_all, struct err *err);

/* Sign with the current epoch; goes to the next first when it is due (the last one stays until the key
 * is rotated). `real_ns`: now. */
int keys_sign(int dirfd, uint64_t real_ns, const void *msg, size_t n, struct key_signature *ret,
	      struct err *err);
/* Does `host` stand behind it? */
bool key_signature_is_good(const uint8_t host[KEY_LEN], const struct key_signature *s,
			   const void *msg, size_t n);

/* One line as in host.pub. -EINVAL. */
int key_parse(struct str line, uint8_t ret[KEY_LEN]);

#endif
