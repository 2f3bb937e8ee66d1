/* SPDX-License-Identifier: Apache-2.0 */
/* A line of the host log, taken apart. */
#ifndef WARDER_STORE_HOSTLOG_LINE_H
#define WARDER_STORE_HOSTLOG_LINE_H

#include "userspace/base/buf.h"
#include "userspace/store/hostlog.h"

struct hostlog_parts {
	struct hostlog_line line;
	struct str body; /* what the hash is about */
	uint8_t prev[STORE_HASH_LEN], hash[STORE_HASH_LEN];
	struct key_signature sig; /* when line.is_signed */
};

/* A line as hostlog_append writes it, members in this order and no other; without its newline. -EBADMSG. */
int hostlog_parse(struct str text, struct hostlog_parts *ret);
/* `hash`: of the entry before, in; of the entry with this body, out. -EIO. */
int hostlog_hash(uint8_t hash[STORE_HASH_LEN], struct str body);
/* A signature as one word (base64), and back. -EBADMSG. */
void hostlog_sig_text(struct buf *out, const struct key_signature *s);
int hostlog_sig_parse(struct str text, struct key_signature *ret);
/* The member "sig", comma in front. */
void hostlog_write_sig(struct buf *out, const struct key_signature *s);

#endif
