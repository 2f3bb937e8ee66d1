/* SPDX-License-Identifier: Apache-2.0 */
/* Originals of what was redacted, sealed for whoever holds a secret key that is not on this host: libsodium's
 * crypto_box_seal (X25519, XSalsa20-Poly1305). They lie in frames of their own in the bundle, which nothing that
 * shows records reads; FORMAT.md section 15 has them byte by byte. Each different original is kept once, up to
 * limits; what was not kept is counted. */
#ifndef WARDER_REDACT_ESCROW_H
#define WARDER_REDACT_ESCROW_H

#include <stdint.h>
#include "userspace/base/auto.h"
#include "userspace/base/buf.h"
#include "userspace/base/err.h"
#include "userspace/base/str.h"

#define ESCROW_KEY_LEN	    32
#define ESCROW_PUBLIC_LINE  "warder-escrow-key-1 "
#define ESCROW_SECRET_LINE  "warder-escrow-secret-1 "
#define ESCROW_ENTRIES_MAX  4096	/* of a session */
#define ESCROW_BYTES_MAX    (4u << 20)	/* of a session, sealed */
#define ESCROW_ORIGINAL_MAX (64u << 10) /* longer ones are not kept */
#define ESCROW_PAYLOAD_MAX  (256u << 10)
#define ESCROW_PAD	    64 /* so that a length tells little */

struct redact_escrow;

int redact_escrow_new(struct redact_escrow **ret, const uint8_t public_key[ESCROW_KEY_LEN]);
void redact_escrow_free(struct redact_escrow *e);
DEFINE_AUTO(redact_escrow, redact_escrow_free)

/* From any thread. `tag`: REDACT_TAG_LEN bytes, as in the mark of `rule`. */
void redact_escrow_take(struct redact_escrow *e, const char *rule, const uint8_t *tag,
			struct str original);
/* The next payload of a frame, at most ESCROW_PAYLOAD_MAX, in place of what `out` holds. 1; 0: nothing waits;
 * -ENOMEM: it goes on waiting. */
int redact_escrow_next(struct redact_escrow *e, struct buf *out);

/* That payload could not be written: its originals are not kept after all. */
void redact_escrow_lost(struct redact_escrow *e, struct str payload);

struct redact_escrow_counts {
	uint64_t kept, not_kept;
	const uint8_t *public_key;
};
void redact_escrow_counts(struct redact_escrow *e, struct redact_escrow_counts *ret);

/* ---- the other side ---- */

struct redact_original {
	struct str rule, tag, text;
};

struct escrow_reader {
	struct str left;
	uint32_t entries;
	const uint8_t *public_key;
};

/* A frame's payload, which may say anything. -EBADMSG. It must outlive the reader. */
int escrow_reader_init(struct escrow_reader *r, struct str payload);
/* The next one, opened into `room`. 1; 0: no more; -EBADMSG: cut or malformed; -EKEYREJECTED: sealed for
 * another key. */
int escrow_reader_next(struct escrow_reader *r, const uint8_t secret[ESCROW_KEY_LEN],
		       struct buf *room, struct redact_original *ret);

/* The key in a file's text, one line that begins with `line`. -EBADMSG. */
int escrow_key_parse(uint8_t ret[ESCROW_KEY_LEN], const char *line, struct str text);
/* Can anything be sealed for it? Not all 32 bytes are a key. */
bool escrow_key_works(const uint8_t public_key[ESCROW_KEY_LEN]);
/* A new pair. -EIO. */
int escrow_keys_make(uint8_t ret_public[ESCROW_KEY_LEN], uint8_t ret_secret[ESCROW_KEY_LEN]);
int escrow_public_of(uint8_t ret[ESCROW_KEY_LEN], const uint8_t secret[ESCROW_KEY_LEN]);

#endif
