/* SPDX-License-Identifier: Apache-2.0 */
/* Address slots, filled alike for net.* and dns.*. */
#ifndef WARDER_EVENT_NET_H
#define WARDER_EVENT_NET_H

#include "userspace/event/decode_ctx.h"

struct net_endpoints {
	uint64_t cookie;
	uint16_t family;
	uint16_t sport, dport;
	const uint8_t *saddr, *daddr; /* 16 bytes each */
};

void decode_set_endpoints(struct decode_ctx *c, const struct net_endpoints *e);
/* `ip`: the flow's address after unmapping, or NULL. */
void decode_set_family(struct decode_ctx *c, uint16_t family, const struct ip_addr *ip);
/* `type` is SOCK_*, `proto` IPPROTO_*; 0 where unknown. */
void decode_set_proto(struct decode_ctx *c, uint16_t family, uint8_t type, uint8_t proto);

#endif
