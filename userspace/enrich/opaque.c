// SPDX-License-Identifier: Apache-2.0
/* Resolvers that are asked where nobody can read along: the names learned from DNS answers stay
 * incomplete from there on, and an event should say so. */
#include <string.h>
#include <strings.h>

#include "userspace/base/auto.h"
#include "userspace/enrich/sandbox.h"

#define PORT_HTTPS 443

static const char *const names[] = {
#define DOH_NAME(name) name,
#include "userspace/enrich/opaque.def.h"
};

static const char *const addresses[] = {
#define DOH_IP(address) address,
#include "userspace/enrich/opaque.def.h"
};

static const struct {
	uint16_t port;
	const char *tcp, *udp;
} ports[] = {
#define OPAQUE_PORT(port, tcp, udp) { port, tcp, udp },
#include "userspace/enrich/opaque.def.h"
};

static struct ip_addr known[ARRAY_SIZE(addresses)]; /* the same, parsed */

void opaque_init(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++)
		ip_addr_parse(str_from(addresses[i]), &known[i]);
}

/* The name itself, or one below it. */
static bool is_below(struct str name, const char *zone)
{
	size_t n = strlen(zone);

	return name.n >= n && !strncasecmp(name.p + name.n - n, zone, n) &&
	       (name.n == n || name.p[name.n - n - 1] == '.');
}

static bool is_doh(const struct ip_addr *ip, struct str name)
{
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!memcmp(&known[i], ip, sizeof(*ip)))
			return true;
	for (size_t i = 0; name.n && i < ARRAY_SIZE(names); i++)
		if (is_below(name, names[i]))
			return true;
	return false;
}

void opaque_apply(struct event *ev)
{
	uint64_t port = event_u64(ev, F_NET_DST_PORT);
	bool tcp = str_eqz(event_str(ev, F_NET_PROTO), "tcp");
	const char *what;

	if (!event_has(ev, F_NET_DST_IP) || (!tcp && !str_eqz(event_str(ev, F_NET_PROTO), "udp")))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(ports); i++) {
		if (ports[i].port != port)
			continue;
		what = tcp ? ports[i].tcp : ports[i].udp;
		if (what)
			event_set_strz(ev, F_NET_OPAQUE, what);
		return;
	}
	if (port == PORT_HTTPS && is_doh(&ev->v[F_NET_DST_IP].ip, event_str(ev, F_NET_DST_NAME)))
		event_set_strz(ev, F_NET_OPAQUE, "doh");
}
