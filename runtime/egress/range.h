/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses that nobody on the internet has: private, link-local, metadata services, multicast and the forms in
 * which one address hides in another. A name that resolves to one of them is an attack or a mistake. */
#ifndef WARDER_RUNTIME_EGRESS_RANGE_H
#define WARDER_RUNTIME_EGRESS_RANGE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Text of an address with its port: "[v6]:65535". */
#define EGRESS_TEXT_MAX (INET6_ADDRSTRLEN + 8)

struct egress_addr {
	uint8_t family; /* 4, 6; 0 = none */
	uint8_t b[16];	/* network order; the first 4 of IPv4 */
};

struct egress_range {
	struct egress_addr base;
	uint8_t bits;
	const char *what; /* "private", "metadata" ... */
};

/* For who needs them as a list (the kernel's wall). Of IPv6 they are those outside of 2000::/3, too. */
extern const struct egress_range egress_ranges[];
extern const size_t egress_ranges_n;

/* Why it must not be dialled; NULL: it may. An IPv4 address in an IPv6 one (::ffff:, 64:ff9b::) counts as itself. */
const char *egress_range_of(const struct egress_addr *a);
bool egress_addr_in(const struct egress_addr *a, const struct egress_range *r);

/* "1.2.3.4", "::1". False: it is none. */
bool egress_addr_parse(struct egress_addr *ret, const char *text);
/* "1.2.3.4:80", "[::1]:80"; with `port` 0 the port may be left out and stays 0. */
bool egress_addr_port_parse(struct egress_addr *ret, uint16_t *ret_port, const char *text,
			    bool need_port);
const char *egress_addr_text(const struct egress_addr *a, uint16_t port, char out[EGRESS_TEXT_MAX]);

/* To and from the kernel's. An IPv4-mapped address comes out as IPv4. */
socklen_t egress_addr_to_sock(const struct egress_addr *a, uint16_t port,
			      struct sockaddr_storage *ret);
bool egress_addr_from_sock(struct egress_addr *ret, uint16_t *ret_port,
			   const struct sockaddr_storage *s);

#endif
