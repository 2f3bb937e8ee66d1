// SPDX-License-Identifier: Apache-2.0
/* Values of options of a run, checked before anything is begun. */
#include "userspace/cli/run_args.h"

#include <stddef.h>
#include <string.h>

#include "runtime/backend.h"
#include "userspace/cli/policy.h"
#include "userspace/cli/run_secret.h"
#include "userspace/pipeline/run.h"
#include "userspace/pipeline/store_guard.h"

#define RING_MIN (64 << 10)
#define RING_MAX (256 << 20)

#define AT(member) offsetof(struct run_args, member)

static int check_backend(const char *text, struct err *err)
{
	return backend_find(text, err) ? 0 : -EINVAL;
}

static int check_bind(const char *text, struct err *err)
{
	const char *colon = strchr(text, ':'), *target = colon ? colon + 1 : text;

	if (!*text || colon == text || target[0] != '/')
		return err_set(err, EINVAL, "'%s' is not PATH or PATH:/ABSOLUTE", text);
	return 0;
}

static int check_env(const char *text, struct err *err)
{
	const char *eq = strchr(text, '=');

	return eq && eq != text ? 0 : err_set(err, EINVAL, "'%s' is not NAME=VALUE", text);
}

static int check_watch_env(const char *text, struct err *err)
{
	return *text && !strchr(text, '=') ? 0 : err_set(err, EINVAL, "'%s' is not a name", text);
}

static int check_watch(const char *text, struct err *err)
{
	return watchlist_check(text, err);
}

int run_check_watches(const struct option_list *paths, struct err *err)
{
	if (paths->n > WATCHLIST_MAX)
		return err_set(err, E2BIG, "option '--watch': more than %d", WATCHLIST_MAX);
	return 0;
}

int run_parse_sign(const char *text, enum run_sign *ret, struct err *err)
{
	if (!text || !strcmp(text, "auto"))
		*ret = RUN_SIGN_IF_KEY;
	else if (!strcmp(text, "always"))
		*ret = RUN_SIGN_ALWAYS;
	else if (!strcmp(text, "never"))
		*ret = RUN_SIGN_NEVER;
	else
		return err_set(err, EINVAL, "'%s' is not auto, always or never", text);
	return 0;
}

static int check_sign(const char *text, struct err *err)
{
	enum run_sign sign;

	return run_parse_sign(text, &sign, err);
}

int run_parse_full(const char *text, uint32_t *ret, struct err *err)
{
	static const char *const words[] = {
		[FULL_CONTINUE] = "continue", [FULL_PAUSE] = "pause", [FULL_KILL] = "kill"
	};

	for (size_t i = 0; text && i < ARRAY_SIZE(words); i++)
		if (!strcmp(text, words[i])) {
			*ret = (uint32_t)i;
			return 0;
		}
	return text ? err_set(err, EINVAL, "'%s' is not continue, pause or kill", text) : 0;
}

static int check_full(const char *text, struct err *err)
{
	uint32_t what;

	return run_parse_full(text, &what, err);
}

int run_parse_pressure(const char *text, uint32_t *ret, struct err *err)
{
	static const char *const words[] = {
		[PRESSURE_DROP] = "drop", [PRESSURE_STOP] = "stop", [PRESSURE_KILL] = "kill"
	};

	for (size_t i = 0; text && i < ARRAY_SIZE(words); i++)
		if (!strcmp(text, words[i])) {
			*ret = (uint32_t)i;
			return 0;
		}
	return text ? err_set(err, EINVAL, "'%s' is not drop, stop or kill", text) : 0;
}

static int check_pressure(const char *text, struct err *err)
{
	uint32_t what;

	return run_parse_pressure(text, &what, err);
}

int run_check_rings(const struct run_args *a, struct err *err)
{
	const uint64_t rings[] = { a->urgent_ring, a->bulk_ring };

	for (size_t i = 0; i < ARRAY_SIZE(rings); i++)
		if (rings[i] &&
		    (rings[i] < RING_MIN || rings[i] > RING_MAX || rings[i] & (rings[i] - 1)))
			return err_set(err, EINVAL,
				       "option '--%s-ring': a power of two from 64K to 256M",
				       i ? "bulk" : "urgent");
	return 0;
}

static int check_hold_default(const char *text, struct err *err)
{
	return !strcmp(text, "deny") || !strcmp(text, "approve")
		       ? 0
		       : err_set(err, EINVAL, "'%s' is not deny or approve", text);
}

struct hold_policy run_hold_policy_of(const struct run_args *a)
{
	return (struct hold_policy){
		.timeout_ns = a->hold_timeout,
		.freeze_timeout_ns = a->freeze_timeout,
		.approve = a->hold_default && !strcmp(a->hold_default, "approve"),
	};
}

/* Values that can be judged by themselves: where they stand in a policy, its error names the line. */
static const struct value_check {
	const char *option;
	size_t at;
	bool list;
	int (*fn)(const char *value, struct err *err);
} CHECKS[] = {
	{ "backend", AT(backend), false, check_backend },
	{ "net", AT(network.mode), false, net_check_mode },
	{ "net-allow", AT(network.allow), true, net_check_allow },
	{ "net-service", AT(network.services), true, net_check_service },
	{ "net-route", AT(network.routes), true, net_check_route },
	{ "net-limit", AT(network.limit), false, net_check_limit },
	{ "net-dns", AT(network.dns), false, net_check_dns },
	{ "root", AT(root.root), false, root_check },
	{ "user", AT(root.user), false, user_check },
	{ "ro", AT(ro), true, check_bind },
	{ "rw", AT(rw), true, check_bind },
	{ "env", AT(env), true, check_env },
	{ "secret", AT(secrets), true, secret_check },
	{ "watch", AT(watch), true, check_watch },
	{ "watch-env", AT(watch_env), true, check_watch_env },
	{ "sign", AT(sign), false, check_sign },
	{ "when-full", AT(when_full), false, check_full },
	{ "on-pressure", AT(on_pressure), false, check_pressure },
	{ "hold-default", AT(hold_default), false, check_hold_default },
};

int run_check_value(const char *option, const char *value, struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(CHECKS); i++) {
		int r = strcmp(CHECKS[i].option, option) ? 0 : CHECKS[i].fn(value, err);

		if (r < 0)
			return err_wrap(err, r, "option '--%s'", option);
	}
	return 0;
}

int run_check_values(const struct run_args *a, struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(CHECKS); i++) {
		const void *at = (const char *)a + CHECKS[i].at;
		const struct option_list one = { { CHECKS[i].list ? NULL : *(char *const *)at },
						 1 };
		const struct option_list *v = CHECKS[i].list ? at : &one;

		for (size_t k = 0; k < v->n; k++) {
			int r = v->v[k] ? run_check_value(CHECKS[i].option, v->v[k], err) : 0;

			if (r < 0)
				return r;
		}
	}
	return 0;
}
