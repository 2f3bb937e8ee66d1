/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.json (FORMAT.md section 6): written when a journal is created and, for good, when it is
 * sealed. The seal in the last segment holds its hash. */
#ifndef WARDER_STORE_MANIFEST_H
#define WARDER_STORE_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>
#include "userspace/base/buf.h"
#include "userspace/base/str.h"
#include "userspace/store/format.h"
#include "userspace/store/terminal.h"

struct manifest_segment {
	uint64_t first_seq, records, frames, bytes;
	uint8_t end[STORE_HASH_LEN]; /* frame chain behind its last data frame */
};

struct manifest {
	const char *session, *tool;
	uint64_t created_ns, sealed_ns;
	bool sealed;
	const uint8_t *host_key; /* that signs; NULL = none */
	/* the rest only when sealed */
	uint64_t records, frames, gaps, bytes, redactions;
	uint8_t head[STORE_HASH_LEN];
	const struct manifest_segment *segments;
	unsigned n_segments;
	const uint8_t *root;		     /* RFC 6962, when signed */
	const struct terminal_end *terminal; /* NULL = none */
	struct str summary;		     /* JSON object, or empty */
};

/* -EMSGSIZE past MANIFEST_MAX, -EINVAL when the summary is no JSON object. */
int manifest_write(struct buf *out, const struct manifest *m);

/* What is read back: the members that verify compares. */
struct manifest_info {
	bool sealed;
	char session[SESSION_LEN];
	uint64_t records, frames, gaps, bytes, segments;
	uint64_t redactions;		  /* 0 when it says nothing of them */
	uint64_t tty_bytes, tty_segments; /* 0 when it tells of no terminal */
	char head[2 * STORE_HASH_LEN + 1];
};

/* One pass, no recursion, no allocation. -EBADMSG when it is not such a manifest. */
int manifest_parse(struct str text, struct manifest_info *ret);

/* The file's bytes. -ENOENT; -EFBIG past MANIFEST_MAX; -EMEDIUMTYPE, -ELOOP when no regular file. */
int manifest_load(int dirfd, struct buf *ret);

#endif
