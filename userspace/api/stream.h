/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that come piece by piece: an object each, as a line (NDJSON) or as a server-sent event. */
#ifndef WARDER_API_STREAM_H
#define WARDER_API_STREAM_H

#include "userspace/api/call.h"

/* The start of a character whose rest has not come. */
struct text_carry {
	char held[4];
	size_t n;
};

/* {"type":...; the caller writes on, between the two. */
void stream_begin(struct call *c, const char *type, struct json *j);
void stream_end(struct call *c, struct json *j);

/* "key": the bytes, as text (what is not UTF-8 becomes U+FFFD; a character is not cut in two) or as base64. `last`: no
 * more will come. */
void stream_bytes(struct json *j, const char *key, struct text_carry *t, struct str bytes,
		  bool base64, bool last);
/* {"type","data"} into the answer, unless there is nothing yet. */
void stream_data(struct call *c, const char *type, struct text_carry *t, struct str bytes,
		 bool base64, bool last);
/* {"type":"error"}: of the packet at hand, or of `text`. */
void stream_error(struct call *c, const char *text);

#endif
