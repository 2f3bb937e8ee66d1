/* SPDX-License-Identifier: Apache-2.0 */
/* The same for bytes that come in pieces: output, a terminal. What may be a part of a secret whose rest has not come
 * is held back: the last line, at most REDACT_HELD_MAX bytes. Colours inside of a secret do not hide it,
 * nor does a slip of the keys that was rubbed out. */
#ifndef WARDER_REDACT_STREAM_H
#define WARDER_REDACT_STREAM_H

#include "userspace/redact/redact.h"

#define REDACT_HELD_MAX	 4096
#define REDACT_BLOCK_MAX (64 * 1024) /* of a private key's text */

struct redact_stream;

/* One thread at a time. */
int redact_stream_new(struct redact_stream **ret, const struct redactor *r);
void redact_stream_free(struct redact_stream *s);
DEFINE_AUTO(redact_stream, redact_stream_free)

/* Appends to `out` what may be kept so far. 0 or -ENOMEM: then nothing of `in` is kept. */
int redact_stream_feed(struct redact_stream *s, struct str in, struct buf *out);
/* Nothing has come for a while: tells more of what is held, but nothing that could still become a secret. */
int redact_stream_idle(struct redact_stream *s, struct buf *out);
/* The end: all that is held. */
int redact_stream_end(struct redact_stream *s, struct buf *out);
/* Something is held back. */
bool redact_stream_holds(const struct redact_stream *s);
/* Its marks, for redact_counts. */
struct redact *redact_stream_redact(struct redact_stream *s);

#endif
