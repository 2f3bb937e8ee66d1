/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox may reach: names and ports, as the operator wrote them, and how much of it. Data; changes
 * nothing. */
#ifndef WARDER_RUNTIME_EGRESS_POLICY_H
#define WARDER_RUNTIME_EGRESS_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/egress/range.h"
#include "runtime/sandbox.h"
#include "userspace/base/arena.h"
#include "userspace/base/err.h"
#include "userspace/base/json.h"

#define EGRESS_ROWS_MAX	 256
#define EGRESS_PORTS_MAX 32  /* different ones in all rows: each is an instruction in the kernel */
#define EGRESS_NAME_MAX	 253 /* RFC 1035 2.3.4, as text without the final dot */
#define EGRESS_LABEL_MAX 63

/* How the first bytes have to prove that they are for the name they were dialled for. */
enum egress_check {
	EGRESS_OPAQUE, /* not at all */
	EGRESS_TLS,    /* the server name of the ClientHello */
	EGRESS_HTTP,   /* the Host of each request */
	EGRESS_CHECK_COUNT
};

extern const char *const egress_check_names[EGRESS_CHECK_COUNT];

/* One name with one port. */
struct egress_row {
	const char *name; /* lower case, no final dot; a wildcard without its "*." */
	uint16_t port;
	uint8_t check; /* enum egress_check */
	bool wildcard; /* all names below, not `name` itself */
	bool service;  /* goes to `to`, whatever range that is in, and is not resolved */
	struct egress_addr to;
	uint16_t to_port;
	uint8_t route; /* number of one, from 1; 0 = none */
};

/* Where a row with one leads. Strings are the plan's, or the spec's. */
struct egress_route {
	const char *name, *origin /* https://HOST[:PORT] */, *host, *prefix /* "" or /... */;
	uint16_t port;
	const struct sandbox_route *spec;
};
#define EGRESS_ROUTES_MAX 8

/* Caps of one sandbox. */
struct egress_limits {
	uint32_t connections; /* at once */
	uint32_t rate;	      /* new ones a second; twice as many in a burst */
	uint32_t dns;	      /* queries a second; five times as many in a burst */
	uint32_t idle_s;      /* without a byte either way */
	uint64_t bytes;	      /* of all connections, both ways */
};

#define EGRESS_CONNECTIONS_MAX 1024
#define EGRESS_RATE_MAX	       10000
#define EGRESS_BYTES_MAX       ((uint64_t)1 << 50)
#define EGRESS_IDLE_MAX	       86400

struct egress_policy {
	bool open; /* any name and address but those of egress_range; rows are services */
	struct egress_row rows[EGRESS_ROWS_MAX];
	size_t rows_n;
	struct egress_route routes[EGRESS_ROUTES_MAX];
	size_t routes_n;
	struct egress_limits limits;
	struct egress_addr dns; /* resolver to ask; family 0 = those of the host */
	uint16_t dns_port;
};

void egress_policy_init(struct egress_policy *p);
/* A name in lower case for a row; NULL and err when it is none. */
const char *egress_policy_name(struct arena *mem, const char *name, struct err *err);
int egress_policy_add(struct egress_policy *p, const struct egress_row *row, const char *text,
		      struct err *err);

/* "HOST[:PORT[/tls|http|opaque]]", HOST perhaps "*.NAME". Without a port: 443 by TLS and 80 by HTTP, which is also
 * how these ports are checked when they are named; others are opaque. -EINVAL, -E2BIG, -ENOMEM. */
int egress_policy_allow(struct egress_policy *p, struct arena *mem, const char *text,
			struct err *err);
/* "NAME[:PORT]=IP:PORT": a service that is reached on purpose, also on a private or the host's own address. */
int egress_policy_service(struct egress_policy *p, struct arena *mem, const char *text,
			  struct err *err);
/* "key=N,...": connections, rate, dns, idle (seconds), bytes (with K, M, G). */
int egress_policy_limits(struct egress_policy *p, const char *text, struct err *err);
/* "IP[:PORT]" */
int egress_policy_dns(struct egress_policy *p, const char *text, struct err *err);

/* A host name: letters, digits, - and _ in labels; *ret_n without a final dot. The last label is no number, so
 * that no address passes for a name. */
bool egress_name_is_valid(const char *name, size_t n, size_t *ret_n);
/* May this name be asked for? `name` in lower case, `n` bytes. */
bool egress_policy_has_name(const struct egress_policy *p, const char *name, size_t n);
/* The row that lets `name` have this port; an exact name goes before a wildcard, a longer wildcard before a
 * shorter one. NULL: none. */
const struct egress_row *egress_policy_find(const struct egress_policy *p, const char *name,
					    uint16_t port);
/* Different ports of all rows, at most EGRESS_PORTS_MAX. */
size_t egress_policy_ports(const struct egress_policy *p, uint16_t ports[EGRESS_PORTS_MAX]);

/* As a member "egress" of the plan's JSON. */
void egress_policy_json(const struct egress_policy *p, struct json *j);

#endif
