// SPDX-License-Identifier: Apache-2.0
#include "runtime/egress/range.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"

#define V4(a, b, c, d)                     \
	{                                  \
		4,                         \
		{                          \
			(a), (b), (c), (d) \
		}                          \
	}
#define V6(...)                     \
	{                           \
		6,                  \
		{                   \
			__VA_ARGS__ \
		}                   \
	}

/* IANA's special-purpose registries, and what clouds put at fixed addresses. The first that fits names it. */
const struct egress_range egress_ranges[] = {
	{ V4(169, 254, 169, 254), 32, "metadata" },
	{ V4(169, 254, 170, 2), 32, "metadata" },
	{ V4(100, 100, 100, 200), 32, "metadata" },
	{ V4(168, 63, 129, 16), 32, "metadata" },
	{ V4(192, 0, 0, 192), 32, "metadata" },
	{ V4(0, 0, 0, 0), 8, "reserved" },
	{ V4(10, 0, 0, 0), 8, "private" },
	{ V4(100, 64, 0, 0), 10, "private" },
	{ V4(127, 0, 0, 0), 8, "loopback" },
	{ V4(169, 254, 0, 0), 16, "link_local" },
	{ V4(172, 16, 0, 0), 12, "private" },
	{ V4(192, 0, 0, 0), 24, "reserved" },
	{ V4(192, 0, 2, 0), 24, "reserved" },
	{ V4(192, 88, 99, 0), 24, "reserved" },
	{ V4(192, 168, 0, 0), 16, "private" },
	{ V4(198, 18, 0, 0), 15, "reserved" },
	{ V4(198, 51, 100, 0), 24, "reserved" },
	{ V4(203, 0, 113, 0), 24, "reserved" },
	{ V4(224, 0, 0, 0), 4, "multicast" },
	{ V4(240, 0, 0, 0), 4, "reserved" },
	{ V6(0xfd, 0, 0x0e, 0xc2), 32, "metadata" },
	{ V6(0xfd, 0x20, 0, 0xce), 32, "metadata" },
	{ V6(0xfc), 7, "private" },
	{ V6(0xfe, 0x80), 10, "link_local" },
	{ V6(0xfe, 0xc0), 10, "private" },
	{ V6(0xff), 8, "multicast" },
	{ V6(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1), 128, "loopback" },
	{ V6(0), 3, "reserved" }, /* 0000::/3, 4000::/2, 8000::/1: outside of 2000::/3 */
	{ V6(0x40), 2, "reserved" },
	{ V6(0x80), 1, "reserved" },
	{ V6(0x20, 0x01, 0, 0), 32, "tunnel" }, /* Teredo */
	{ V6(0x20, 0x01), 23, "reserved" },	/* IETF: benchmarks, ORCHID and the like */
	{ V6(0x20, 0x01, 0x0d, 0xb8), 32, "reserved" },
	{ V6(0x20, 0x02), 16, "tunnel" }, /* 6to4: any IPv4 address in it */
	{ V6(0x3f, 0xff), 20, "reserved" },
};
const size_t egress_ranges_n = ARRAY_SIZE(egress_ranges);

static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
static const uint8_t nat64[12] = { 0x00, 0x64, 0xff, 0x9b };

bool egress_addr_in(const struct egress_addr *a, const struct egress_range *r)
{
	size_t whole = r->bits / 8;
	uint8_t mask = (uint8_t)(0xff00 >> (r->bits % 8));

	if (a->family != r->base.family || memcmp(a->b, r->base.b, whole) != 0)
		return false;
	return r->bits % 8 == 0 || ((a->b[whole] ^ r->base.b[whole]) & mask) == 0;
}

/* The address that packets end up at. */
static struct egress_addr inner(const struct egress_addr *a)
{
	struct egress_addr v4 = { .family = 4 };

	if (a->family != 6 ||
	    (memcmp(a->b, mapped, sizeof(mapped)) != 0 && memcmp(a->b, nat64, sizeof(nat64)) != 0))
		return *a;
	memcpy(v4.b, a->b + 12, 4);
	return v4;
}

const char *egress_range_of(const struct egress_addr *a)
{
	struct egress_addr in = inner(a);

	if (in.family != 4 && in.family != 6)
		return "reserved";
	for (size_t i = 0; i < egress_ranges_n; i++)
		if (egress_addr_in(&in, &egress_ranges[i]))
			return egress_ranges[i].what;
	return NULL;
}

bool egress_addr_parse(struct egress_addr *ret, const char *text)
{
	struct egress_addr a = { 0 };

	if (inet_pton(AF_INET, text, a.b) == 1)
		a.family = 4;
	else if (inet_pton(AF_INET6, text, a.b) == 1)
		a.family = 6;
	else
		return false;
	*ret = a;
	return true;
}

static bool port_parse(const char *text, uint16_t *ret)
{
	unsigned long v = 0;

	if (!*text || strlen(text) > 5)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		v = v * 10 + (unsigned long)(*text - '0');
	}
	if (v == 0 || v > 65535)
		return false;
	*ret = (uint16_t)v;
	return true;
}

bool egress_addr_port_parse(struct egress_addr *ret, uint16_t *ret_port, const char *text,
			    bool need_port)
{
	char host[INET6_ADDRSTRLEN + 2];
	struct egress_addr a;
	const char *port = NULL;
	uint16_t p = 0;
	size_t n;

	if (text[0] == '[') {
		const char *end = strchr(++text, ']');

		if (!end || (end[1] && end[1] != ':'))
			return false;
		n = (size_t)(end - text);
		port = end[1] ? end + 2 : NULL;
	} else {
		const char *colon = strchr(text, ':');

		if (colon && strchr(colon + 1, ':')) /* IPv6 without a port */
			colon = NULL;
		n = colon ? (size_t)(colon - text) : strlen(text);
		port = colon ? colon + 1 : NULL;
	}
	if (n >= sizeof(host) || (need_port && !port))
		return false;
	memcpy(host, text, n);
	host[n] = 0;
	if (!egress_addr_parse(&a, host) || (port && !port_parse(port, &p)))
		return false;
	*ret = a;
	*ret_port = p;
	return true;
}

const char *egress_addr_text(const struct egress_addr *a, uint16_t port, char out[EGRESS_TEXT_MAX])
{
	char text[INET6_ADDRSTRLEN] = "?";

	inet_ntop(a->family == 4 ? AF_INET : AF_INET6, a->b, text, sizeof(text));
	if (!port)
		snprintf(out, EGRESS_TEXT_MAX, "%s", text);
	else
		snprintf(out, EGRESS_TEXT_MAX, a->family == 4 ? "%s:%u" : "[%s]:%u", text, port);
	return out;
}

socklen_t egress_addr_to_sock(const struct egress_addr *a, uint16_t port,
			      struct sockaddr_storage *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (a->family == 4) {
		struct sockaddr_in *in = (struct sockaddr_in *)ret;

		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, a->b, 4);
		return sizeof(*in);
	} else {
		struct sockaddr_in6 *in = (struct sockaddr_in6 *)ret;

		in->sin6_family = AF_INET6;
		in->sin6_port = htons(port);
		memcpy(&in->sin6_addr, a->b, 16);
		return sizeof(*in);
	}
}

bool egress_addr_from_sock(struct egress_addr *ret, uint16_t *ret_port,
			   const struct sockaddr_storage *s)
{
	struct egress_addr a = { 0 };

	if (s->ss_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)s;

		a.family = 4;
		memcpy(a.b, &in->sin_addr, 4);
		*ret_port = ntohs(in->sin_port);
	} else if (s->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)s;

		a.family = 6;
		memcpy(a.b, &in->sin6_addr, 16);
		if (!memcmp(a.b, mapped, sizeof(mapped)))
			a = inner(&a);
		*ret_port = ntohs(in->sin6_port);
	} else {
		return false;
	}
	*ret = a;
	return true;
}
