// SPDX-License-Identifier: Apache-2.0
/* dns.*: the packet's addresses here, the message in dns.c. */
#include <netinet/in.h>
#include <string.h>

#include "userspace/event/net.h"

void decode_dns(struct decode_ctx *c)
{
	const struct wire_dns w = DECODE_FIXED(c, wire_dns);
	struct net_endpoints e = {
		.cookie = w.cookie,
		.family = w.family,
		.sport = w.sport,
		.dport = w.dport,
		.saddr = w.saddr,
		.daddr = w.daddr,
	};
	struct str data = decode_bytes(c, w.data);

	decode_set_endpoints(c, &e);
	decode_set_proto(c, w.family, 0, w.proto);
	dns_decode(c->ev, (const uint8_t *)data.p, data.n, w.total, w.proto == IPPROTO_TCP);
}
