/* SPDX-License-Identifier: Apache-2.0 */
/* DNS over TCP (RFC 1035 4.2.2, 7766): messages out of the pieces of a stream, each behind two bytes of
 * length. Pieces come as packets do: split anywhere, repeated, out of order. */
#ifndef WARDER_EVENT_DNS_STREAM_H
#define WARDER_EVENT_DNS_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bpf/abi/wire.h"
#include "userspace/base/str.h"

#define DNS_STREAMS_MAX	    32		/* one direction of one connection each */
#define DNS_STREAMS_SANDBOX 8		/* of one sandbox, before it gives up its own */
#define DNS_STREAM_BYTES    (96u << 10) /* the longest message, and a piece: 3 MiB for all */
#define DNS_ISLANDS_MAX	    8		/* pieces that came before what is in front of them */
#define DNS_MESSAGES_MAX    32		/* out of one piece: more is a flood, not questions */

struct dns_island {
	uint32_t at, end; /* in the buffer */
};

struct dns_stream {
	struct wire_dns w; /* of the last piece: whose message it is; kind 0 = free */
	uint64_t age;
	uint32_t next_seq; /* of the byte behind what is complete */
	uint8_t *p;	   /* owned; NULL while nothing waits */
	uint32_t n, room;  /* complete bytes in front; allocated */
	uint32_t taken;	   /* bytes of messages handed out already */
	struct dns_island islands[DNS_ISLANDS_MAX];
	size_t islands_n;
	size_t messages; /* handed out since the last piece */
	bool broken;	 /* no DNS: not looked into any more */
	bool tell;	 /* say so, once a piece */
	bool ending;	 /* hand out what is there, then forget it */
};

struct dns_streams {
	struct dns_stream v[DNS_STREAMS_MAX];
	uint64_t clock;
	uint64_t lost; /* streams that gave way to others before their message was whole */
};

struct dns_message {
	struct wire_dns w;
	const uint8_t *p; /* valid until the next call; NULL with n == 0 */
	size_t n;
	size_t total;	 /* as its length says; more than n: the rest never came */
	const char *bad; /* not DNS: why; static */
};

void dns_streams_done(struct dns_streams *s);
/* 0 or -ENOMEM (the piece is dropped). Then dns_stream_next until it says false. */
int dns_stream_feed(struct dns_streams *s, const struct wire_dns *w, struct str data);
/* The connection ended: what waits will be handed out as cut. */
void dns_stream_close(struct dns_streams *s, uint32_t sandbox, uint64_t cookie);
bool dns_stream_next(struct dns_streams *s, struct dns_message *ret);

#endif
