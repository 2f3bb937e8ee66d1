/* SPDX-License-Identifier: Apache-2.0 */
/* Named upstream routes: the sandbox speaks plain HTTP/1.1 to http://NAME/, and a process of its own, without privilege,
 * asks the one upstream of that name by verified TLS with a header that the sandbox never sees. The helper,
 * which reads all other bytes of the sandbox, only hands over connections. */
#ifndef WARDER_RUNTIME_EGRESS_ROUTE_H
#define WARDER_RUNTIME_EGRESS_ROUTE_H

#include "runtime/egress/egress.h"

#define ROUTE_HEADER_MAX 64   /* of a name */
#define ROUTE_PATH_MAX	 8192 /* of a request's target */
#define ROUTE_BODY_MAX	 (32u << 20)
#define ROUTE_QUEUE_MAX	 (256u << 10) /* of an answer, on its way in */
#define ROUTE_HEADERS	 100

/* "NAME=https://HOST[:PORT][/PREFIX]" into a row and a route; header, value and ca are the caller's. */
int egress_policy_route(struct egress_policy *p, struct arena *mem, const struct sandbox_route *r,
			struct err *err);

/* Forked before the helper. *ret_sock: where connections are handed to, for the helper. */
struct routes;
int routes_start(struct routes **ret, int *ret_sock, const struct egress_options *opt,
		 struct err *err);
/* Nothing more comes: its last events are told, then it ends. NULL is fine. */
void routes_free(struct routes *r);
/* What they add, out of this process's copy. */
void routes_forget(const struct egress_policy *p);
/* The helper: this connection is for that route. -errno. */
int route_hand_over(int sock, uint8_t route, int conn);

/* ---- route_text.c: what is passed on ---- */

/* A request's target: origin form (RFC 9112 3.2.1), printable, and none that could leave `prefix`. */
bool route_target_is_good(const char *target, const char *prefix);
/* Is `host` the route's, with or without its port? */
bool route_host_is(const char *host, const char *name);
/* May a header be passed on, either way: a token, not hop-by-hop (RFC 9110 7.6.1), not named by `connection` (the
 * value of Connection, NULL = none), and not ours to say? */
bool route_header_passes(const char *name, const char *connection);
/* No control characters but tabs. */
bool route_value_is_good(const char *value);
const char *route_method(const char *method);

#endif
