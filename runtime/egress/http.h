/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of an HTTP/1 connection (RFC 9112), followed so far that the Host of each one can be checked. What
 * two readers could understand differently is refused, not guessed. */
#ifndef WARDER_RUNTIME_EGRESS_HTTP_H
#define WARDER_RUNTIME_EGRESS_HTTP_H

#include <sys/types.h>

#include "runtime/egress/policy.h"

#define EGRESS_HEAD_MAX 16384 /* request line and header fields */

enum egress_http_state {
	HTTP_HEAD,
	HTTP_BODY,	 /* `left` bytes */
	HTTP_CHUNK_SIZE, /* the line with a chunk's size */
	HTTP_CHUNK_DATA,
	HTTP_CHUNK_END, /* CR LF behind the data */
	HTTP_TRAILER,
};

struct egress_http {
	enum egress_http_state state;
	uint64_t left;
	uint32_t line;	  /* bytes of the line so far */
	uint32_t trailer; /* bytes of all trailers so far */
	bool digits;	  /* still in the number of a chunk's size */
	bool cr;
	uint64_t requests;
	char asked[EGRESS_NAME_MAX + 1]; /* of a request that was refused: the name it is for */
};

/* How many of these `n` bytes of the client may go on to the server: all in order, each byte once. 0: a head is not
 * complete; give it again with more behind. At most EGRESS_HEAD_MAX bytes of a head are waited for. -EBADMSG: *why
 * is "host" (for another name), "http" (not understood the same by everybody), "upgrade" (it would become
 * something else), "connect" (a tunnel). */
ssize_t egress_http_feed(struct egress_http *h, const uint8_t *p, size_t n, const char *name,
			 uint16_t port, const char **why);

#endif
