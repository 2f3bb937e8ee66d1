/* SPDX-License-Identifier: Apache-2.0 */
/* The options of `warder run` about the network. */
#ifndef WARDER_CLI_RUN_NET_H
#define WARDER_CLI_RUN_NET_H

#include "runtime/sandbox.h"
#include "userspace/base/option.h"

struct net_args {
	const char *mode; /* NULL = none */
	struct option_list allow, services, routes;
	const char *limit, *dns;
};

int net_check_mode(const char *text, struct err *err);
int net_check_allow(const char *text, struct err *err);
int net_check_service(const char *text, struct err *err);
/* "NAME=URL,header=NAME:FILE..."; looks at no file. */
int net_check_route(const char *text, struct err *err);
int net_check_limit(const char *text, struct err *err);
int net_check_dns(const char *text, struct err *err);

/* The same, and its files. */
int net_check_route_files(const char *text, struct err *err);
/* Reads the files of values into the spec; they live as long as the process, unless forgotten. */
int net_read_routes(struct sandbox_spec *spec, struct err *err);
void net_forget_routes(struct sandbox_spec *spec);
/* Strings of `a` live on in the spec; values of routes are named, not read. */
int net_apply(struct sandbox_spec *spec, const struct net_args *a, struct err *err);

#endif
