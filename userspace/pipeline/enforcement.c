// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/enforcement.h"

#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/capture/enforce.h"

#define FAMILIES_MAX 32

DEFINE_AUTO(push_plan, push_plan_free)

int enforcement_is_wanted(const struct ruleset *rs, const struct rule_session *s, bool *ret,
			  struct err *err)
{
	AUTO(push_plan) struct push_plan *plan = NULL;
	int r;

	*ret = false;
	if (!rs)
		return 0;
	r = ruleset_push(&plan, rs, s, push_means(true), err);
	if (r < 0)
		return r;
	*ret = plan->n > 0;
	for (size_t i = 0; i < plan->rules_n; i++) /* or it is found that it cannot be had */
		*ret |= plan->rule[i].taken && ruleset_get(rs, i)->action == RULE_ACT_DENY;
	return 0;
}

const struct push_means *enforcement_means(const struct capture *c)
{
	struct capture_family_state rows[FAMILIES_MAX];
	size_t n = capture_families(c, rows, FAMILIES_MAX);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(rows[i].name, "prevent"))
			return push_means(rows[i].ok && !strcmp(rows[i].tier, "full"));
	return push_means(false);
}

int enforcement_check(const struct capture *c, const struct ruleset *rs,
		      const struct rule_session *s, struct err *err)
{
	for (size_t i = 0; i < ruleset_count(rs); i++) {
		const struct rule_info *r = ruleset_get(rs, i);

		if (r->action == RULE_ACT_DENY && !r->dry_run && !r->deny_fallback &&
		    (r->state == RULE_LOADED || r->state == RULE_DEGRADED) && rule_applies(r, s))
			return err_set(
				err, ENOTSUP,
				"%s:%d: rule '%s': 'action: deny' cannot be added while it "
				"runs (%s tier): no rule of the start needed the hooks for it",
				r->file, r->line, r->name, enforcement_means(c)->tier);
	}
	return 0;
}

int enforcement_load(struct capture *c, const struct ruleset *rs, const struct rule_session *s,
		     struct err *err)
{
	const struct push_means *m = enforcement_means(c);
	AUTO(push_plan) struct push_plan *plan = NULL;
	int r;

	r = ruleset_push(&plan, rs, s, m, err);
	if (r == 0)
		r = push_check_deny(plan, m, err);
	if (r < 0)
		return r;
	if (plan->n)
		return capture_enforce_load(c, ENFORCEMENT_SET, plan->v, plan->n, err);
	r = capture_enforce_clear(c, ENFORCEMENT_SET);
	return r == -ENOENT ? 0 : r;
}
