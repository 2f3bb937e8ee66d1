// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/run_net.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/egress/route.h"
#include "userspace/base/auto.h"
#include "userspace/base/trust.h"
#include "userspace/cli/run_secret.h"

#define CA_MAX	    (256 << 10)
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

/* ---- routes: "NAME=URL,header=NAME:FILE[,header=...][,ca=FILE][,to=IP[:PORT]]" ---- */

/* What a word of it is; value and ca are the files' names until they are read. */
static int take_word(struct sandbox_route *r, char *word, struct err *err)
{
	char *colon;

	if (!strncmp(word, "ca=", 3) && word[3] && !r->ca) {
		r->ca = word + 3;
		return 0;
	}
	if (!strncmp(word, "to=", 3) && word[3] && !r->to) {
		r->to = word + 3;
		return 0;
	}
	if (strncmp(word, "header=", 7) != 0)
		return err_set(err, EINVAL, "'%s' is not header=NAME:FILE, ca=FILE or to=IP[:PORT]",
			       word);
	colon = strchr(word, ':');
	if (!colon || colon == word + 7 || !colon[1])
		return err_set(err, EINVAL, "'%s' is not header=NAME:FILE", word);
	if (r->headers == SANDBOX_ROUTE_HEADERS_MAX)
		return err_set(err, E2BIG, "more than %d headers", SANDBOX_ROUTE_HEADERS_MAX);
	*colon = 0;
	r->header[r->headers].name = word + 7;
	r->header[r->headers++].value = colon + 1;
	return 0;
}

static int parse_route(struct sandbox_route *ret, const char *text, struct err *err)
{
	char *copy = strdup(text), *eq = copy ? strchr(copy, '=') : NULL, *save = NULL, *word;
	struct sandbox_route r = { .name = copy };
	int e = 0;

	if (!copy)
		return err_set(err, ENOMEM, "network: %m");
	if (!eq || eq == copy)
		e = err_set(err, EINVAL, "'%s' is not NAME=https://HOST,header=NAME:FILE", text);
	if (e == 0) {
		*eq = 0;
		r.url = strtok_r(eq + 1, ",", &save);
		if (!r.url)
			e = err_set(err, EINVAL, "'%s' has no upstream", text);
	}
	while (e == 0 && (word = strtok_r(NULL, ",", &save)))
		e = take_word(&r, word, err);
	if (e < 0) {
		free(copy);
		return e;
	}
	*ret = r;
	return 0;
}

int net_check_route(const char *text, struct err *err)
{
	struct sandbox_route route;
	struct egress_policy p;
	struct arena mem;
	int r = parse_route(&route, text, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < route.headers; i++)
		route.header[i].value = NULL; /* a file's name so far */
	egress_policy_init(&p);
	arena_init(&mem, ENTRY_ARENA);
	r = egress_policy_route(&p, &mem, &route, err);
	arena_done(&mem);
	free((char *)route.name);
	return r;
}

int net_read_routes(struct sandbox_spec *spec, struct err *err)
{
	for (size_t i = 0; i < spec->net_routes_n; i++) {
		struct sandbox_route *r = &spec->net_routes[i];
		int e = 0;

		if (r->ca) {
			char *text = NULL;

			e = file_read_trusted(r->ca, CA_MAX, &text, NULL, "route's ca", err);
			r->ca = text;
		}
		for (size_t k = 0; e == 0 && k < r->headers; k++) {
			char *text = NULL;

			e = secret_file(r->header[k].name, r->header[k].value, &text, err);
			r->header[k].value = text;
		}
		if (e < 0)
			return err_wrap(err, e, "option '--net-route': '%s'", r->name);
	}
	return 0;
}

int net_check_route_files(const char *text, struct err *err)
{
	struct sandbox_spec spec = { .net_routes_n = 1 };
	int r = parse_route(&spec.net_routes[0], text, err);

	if (r == 0)
		r = net_read_routes(&spec, err);
	if (r == 0)
		net_forget_routes(&spec);
	return r;
}

void net_forget_routes(struct sandbox_spec *spec)
{
	for (size_t i = 0; i < spec->net_routes_n; i++)
		for (size_t k = 0; k < spec->net_routes[i].headers; k++) {
			char *v = (char *)spec->net_routes[i].header[k].value;

			if (v)
				sodium_memzero(v, strlen(v));
		}
}

int net_apply(struct sandbox_spec *spec, const struct net_args *a, struct err *err)
{
	int r = a->mode ? set_mode(spec, a->mode, err) : 0;

	for (size_t i = 0; i < a->allow.n && r == 0; i++)
		r = add_allowed(spec, a->allow.v[i], err);
	for (size_t i = 0; i < a->services.n; i++)
		spec->net_services[spec->net_services_n++] = a->services.v[i];
	for (size_t i = 0; i < a->routes.n && r == 0; i++) {
		if (spec->net_routes_n == SANDBOX_ROUTES_MAX)
			return err_set(err, E2BIG, "network: more than %d routes",
				       SANDBOX_ROUTES_MAX);
		r = parse_route(&spec->net_routes[spec->net_routes_n++], a->routes.v[i], err);
	}
	spec->net_limits = a->limit;
	spec->net_dns = a->dns;
	return r;
}
