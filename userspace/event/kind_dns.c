// SPDX-License-Identifier: Apache-2.0
/* dns.*: the packet's addresses here, the message in dns.c. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "userspace/event/net.h"

void decode_dns_message(struct decode_ctx *c, const struct dns_message *m)
{
	struct net_endpoints e = {
		.cookie = m->w.cookie,
		.family = m->w.family,
		.sport = m->w.sport,
		.dport = m->w.dport,
		.saddr = m->w.saddr,
		.daddr = m->w.daddr,
	};

	decode_set_endpoints(c, &e);
	decode_set_proto(c, m->w.family, 0, m->w.proto);
	if (m->bad)
		event_set_strz(c->ev, F_DNS_MALFORMED, m->bad);
	else
		dns_decode(c->ev, m->p, m->n, m->total);
}

void decode_dns(struct decode_ctx *c)
{
	struct dns_message m = { .w = DECODE_FIXED(c, wire_dns) };
	struct str data = decode_bytes(c, m.w.data);

	m.p = (const uint8_t *)data.p;
	m.n = data.n;
	m.total = m.w.total;
	if (m.w.h.vantage == WIRE_V_RUNTIME) /* an answer of ours: was the name refused? */
		event_set_strz(c->ev, F_OUTCOME, m.w.h.ret == -EACCES ? "denied" : "success");
	decode_dns_message(c, &m);
}
