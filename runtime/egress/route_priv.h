/* SPDX-License-Identifier: Apache-2.0 */
/* The process of the routes, from within. */
#ifndef WARDER_RUNTIME_EGRESS_ROUTE_PRIV_H
#define WARDER_RUNTIME_EGRESS_ROUTE_PRIV_H

#include <stdatomic.h>

#include "runtime/egress/event.h"
#include "runtime/egress/route.h"
#include "runtime/egress/route_lib.h"

struct route_server {
	const struct egress_policy *policy;
	int events, control, life;
	atomic_bool over;    /* the sandbox is: nobody waits any longer */
	atomic_ullong bytes; /* of all requests, both ways */
	struct MHD_Daemon *daemon[EGRESS_ROUTES_MAX];
};

struct route_of {
	struct route_server *server;
	const struct egress_route *route;
};

/* route_request.c: callbacks of libmicrohttpd, one thread a connection. `cls` is a struct route_of. */
void *route_on_target(void *cls, const char *target, struct MHD_Connection *c);
enum MHD_Result route_on_request(void *cls, struct MHD_Connection *c, const char *url,
				 const char *method, const char *version, const char *data,
				 size_t *data_n, void **request);
void route_on_done(void *cls, struct MHD_Connection *c, void **request,
		   enum MHD_RequestTerminationCode how);

#endif
