// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/run_net.h"

#include <string.h>

#include "runtime/egress/policy.h"
#include "userspace/base/auto.h"

#define ENTRY_ARENA (64 << 10)

static int add_allowed(struct sandbox_spec *spec, const char *host, struct err *err)
{
	if (spec->net_allow_n == SANDBOX_NET_MAX)
		return err_set(err, E2BIG, "network: more than %d names", SANDBOX_NET_MAX);
	spec->net_allow[spec->net_allow_n++] = host;
	return 0;
}

/* The words of "a,b:80"; they live as long as the process. */
static int split_allowed(struct sandbox_spec *spec, const char *text, struct err *err)
{
	char *save = NULL, *copy = strdup(text);
	int r = 0;

	if (!copy)
		return err_set(err, ENOMEM, "network: %m");
	for (char *w = strtok_r(copy, ",", &save); w && r == 0; w = strtok_r(NULL, ",", &save))
		r = add_allowed(spec, w, err);
	return r;
}

static int set_mode(struct sandbox_spec *spec, const char *mode, struct err *err)
{
	static const struct {
		const char *word;
		enum sandbox_net net;
	} words[] = {
		{ "none", SANDBOX_NET_NONE },
		{ "host", SANDBOX_NET_HOST },
		{ "open", SANDBOX_NET_OPEN },
		{ "allow", SANDBOX_NET_ALLOW },
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(mode, words[i].word)) {
			spec->net = words[i].net;
			return 0;
		}
	if (strncmp(mode, "allow=", 6) != 0)
		return err_set(err, EINVAL, "'%s' is not none, allow=HOST[:PORT],..., open or host",
			       mode);
	spec->net = SANDBOX_NET_ALLOW;
	return split_allowed(spec, mode + 6, err);
}

int net_check_mode(const char *text, struct err *err)
{
	struct sandbox_spec spec = { 0 };
	int r = set_mode(&spec, text, err);

	for (size_t i = 0; r == 0 && i < spec.net_allow_n; i++)
		r = net_check_allow(spec.net_allow[i], err);
	return r;
}

/* One entry by itself: `fn` is one of egress_policy_*. */
static int check_entry(int (*fn)(struct egress_policy *, struct arena *, const char *,
				 struct err *),
		       const char *text, struct err *err)
{
	struct egress_policy p;
	struct arena mem;
	int r;

	egress_policy_init(&p);
	arena_init(&mem, ENTRY_ARENA);
	r = fn(&p, &mem, text, err);
	arena_done(&mem);
	return r;
}

int net_check_allow(const char *text, struct err *err)
{
	return check_entry(egress_policy_allow, text, err);
}

int net_check_service(const char *text, struct err *err)
{
	return check_entry(egress_policy_service, text, err);
}

int net_check_limit(const char *text, struct err *err)
{
	struct egress_policy p;

	egress_policy_init(&p);
	return egress_policy_limits(&p, text, err);
}

int net_check_dns(const char *text, struct err *err)
{
	struct egress_policy p;

	egress_policy_init(&p);
	return egress_policy_dns(&p, text, err);
}

int net_apply(struct sandbox_spec *spec, const struct net_args *a, struct err *err)
{
	int r = a->mode ? set_mode(spec, a->mode, err) : 0;

	for (size_t i = 0; i < a->allow.n && r == 0; i++)
		r = add_allowed(spec, a->allow.v[i], err);
	for (size_t i = 0; i < a->services.n; i++)
		spec->net_services[spec->net_services_n++] = a->services.v[i];
	spec->net_limits = a->limit;
	spec->net_dns = a->dns;
	return r;
}
