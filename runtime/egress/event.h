/* SPDX-License-Identifier: Apache-2.0 */
/* What the helper tells: each decision about a name or a connection, one datagram each. It reads hostile bytes, so
 * whoever takes these checks every member. */
#ifndef WARDER_RUNTIME_EGRESS_EVENT_H
#define WARDER_RUNTIME_EGRESS_EVENT_H

#include "runtime/egress/range.h"

#define EGRESS_TEXT 256

enum egress_event_type {
	EGRESS_DNS = 1, /* answered; `data` is the answer */
	EGRESS_CONNECT,
	EGRESS_CLOSE,
	EGRESS_REQUEST, /* of a route: method, status; `data` is the path */
	EGRESS_OVER,	/* the last one: the helper ends as it should */
};

struct egress_event {
	uint32_t type;
	int32_t error; /* errno; EACCES: refused, `reason` says why */
	uint64_t ts;   /* CLOCK_BOOTTIME */
	uint64_t cookie;
	uint64_t bytes_out, bytes_in;
	struct egress_addr src, dst; /* src: the sandbox's own end; dst: who was dialled */
	uint16_t sport, dport;
	uint32_t count; /* of the same sort that were not told, and this one; 0 = 1 */
	uint16_t udp;	/* DNS: by UDP */
	uint16_t data_n;
	uint16_t status; /* 0: there was no answer */
	char method[14];
	char name[EGRESS_TEXT];	 /* as the sandbox asked for it */
	char asked[EGRESS_TEXT]; /* what it asked for afterwards, when that is another one */
	char reason[32];
	uint8_t data[512];
};

#endif
