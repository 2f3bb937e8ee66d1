// SPDX-License-Identifier: Apache-2.0
/* Which fields the rules look at: what costs something to learn is learned only when somebody asks. */
#include "rules/state.h"

static bool access_uses(const struct access *a, struct str prefix)
{
	return a && str_starts(str_from(a->row->name), prefix);
}

static bool pred_uses(const struct pred *p, struct str prefix)
{
	if (p->type == P_ATOM)
		return access_uses(p->atom->a, prefix) || access_uses(p->atom->rhs, prefix);
	for (size_t i = 0; i < p->n; i++)
		if (pred_uses(p->kid[i], prefix))
			return true;
	return false;
}

static bool rule_uses(const struct rule *r, struct str prefix)
{
	bool uses = pred_uses(r->pred, prefix);

	for (size_t i = 0; r->st && !uses && i < r->st->steps_n; i++)
		uses = pred_uses(r->st->step[i], prefix);
	return uses || (r->st && access_uses(r->st->of, prefix));
}

bool ruleset_uses(const struct ruleset *rs, const char *prefix)
{
	for (size_t i = 0; rs->compiled && i < rs->rule_n; i++) {
		const struct rule *r = rs->rule[i];

		if ((r->info.state == RULE_LOADED || r->info.state == RULE_DEGRADED) && r->pred &&
		    rule_uses(r, str_from(prefix)))
			return true;
	}
	return false;
}
