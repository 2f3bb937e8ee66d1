/* SPDX-License-Identifier: Apache-2.0 */
/* The options of `warder run` about the network. */
#ifndef WARDER_CLI_RUN_NET_H
#define WARDER_CLI_RUN_NET_H

#include "runtime/sandbox.h"
#include "userspace/base/option.h"

struct net_args {
	const char *mode; /* NULL = none */
	struct option_list allow, services;
	const char *limit, *dns;
};

int net_check_mode(const char *text, struct err *err);
int net_check_allow(const char *text, struct err *err);
int net_check_service(const char *text, struct err *err);
int net_check_limit(const char *text, struct err *err);
int net_check_dns(const char *text, struct err *err);

/* Strings of `a` live on in the spec. */
int net_apply(struct sandbox_spec *spec, const struct net_args *a, struct err *err);

#endif
