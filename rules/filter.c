// SPDX-License-Identifier: Apache-2.0
/* A bare condition: a rule set of one rule. */
#include "rules/internal.h"

struct rule_filter {
	struct ruleset *rs;
};

static const char filter_name[] = "filter";

int rule_filter_new(struct rule_filter **ret, struct str text, struct err *err)
{
	struct rule_filter *f = calloc(1, sizeof(*f));
	static const struct source made = { .name = filter_name };
	static const struct ynode nowhere = { .src = &made, .line = 1, .col = 1 };
	struct rule *r;
	int k = -ENOMEM;

	if (!f || ruleset_new(&f->rs, NULL, NULL) < 0)
		goto out;
	f->rs->is_filter = true;
	r = rs_alloc(f->rs, sizeof(*r));
	if (!r || rs_grow(f->rs, &f->rs->rule, &f->rs->rule_cap, 0, sizeof(*f->rs->rule)) < 0)
		goto out;
	*r = (struct rule){ .info = { .name = filter_name, .file = filter_name, .line = 1 },
			    .node = &nowhere,
			    .enabled = true,
			    .rs = f->rs };
	r->cond.s = rs_dup(f->rs, text);
	r->cond.made = &made;
	if (!r->cond.s.p)
		goto out;
	f->rs->rule[f->rs->rule_n++] = r;
	k = ruleset_compile(f->rs, err);
	if (k < 0) {
		rule_filter_free(f);
		return k;
	}
	*ret = f;
	return 0;
out:
	rule_filter_free(f);
	return err_set(err, ENOMEM, "filter: out of memory");
}

void rule_filter_free(struct rule_filter *f)
{
	if (!f)
		return;
	ruleset_free(f->rs);
	free(f);
}

bool rule_filter_match(const struct rule_filter *f, const struct event *ev)
{
	struct rule_matches m;

	return ruleset_eval(f->rs, ev, &m) > 0;
}
