/* SPDX-License-Identifier: Apache-2.0 */
/* Push-down: what of a rule set the kernel can decide by itself. The kernel knows kind, escape type, path,
 * address and port; a condition is evaluated with these known and everything else unknown, for each range
 * of values that the rules tell apart. Where it is true whatever the rest is, the kernel decides; exceptions
 * and negations need no care of their own. What is left stays with user space.
 *
 * Many rules share the kernel's tables, where the longest prefix alone counts. So it is asked of all rules
 * together, for each range, and the strictest answer (kill, then deny) of the first rule is written down. */
#ifndef WARDER_RULES_PUSH_H
#define WARDER_RULES_PUSH_H

#include "rules/rule.h"
#include "userspace/event/enforce_entry.h"

/* What a tier can do. Kinds as ENFORCE_KIND bits, escapes as bits by type. */
struct push_means {
	const char *tier;
	uint64_t kill; /* kinds: killed before the call returns */
	uint64_t deny; /* kinds: prevented */
	uint64_t deny_escapes;
	uint64_t deny_some; /* escapes: some ways to do it are prevented, others are not */
};

/* The portable tier, and the full one (fmod_ret). */
const struct push_means *push_means(bool full);

/* How far the kernel got with one rule. */
struct push_result {
	uint64_t whole;	  /* kinds (ENFORCE_KIND) that it decides in every case */
	uint64_t part;	  /* and in some */
	uint64_t escapes; /* types that it decides by an entry */
	bool taken;	  /* it takes part at all */
	bool complete;	  /* nothing is left to user space */
	char why[200];	  /* not complete: what is left, and why */
};

struct push_plan {
	struct enforce_entry *v; /* id: 1 + position of the rule in the set */
	size_t n;
	uint64_t kinds; /* that any entry covers */
	struct push_result *rule;
	size_t rules_n;
	const struct ruleset *rs;
	struct arena arena; /* of the paths in v */
};

/* For a compiled set, and a sandbox (NULL: any; see `for`). Alerts have no entries, rules that remember
 * neither. What is too much for the tables is left to user space. */
int ruleset_push(struct push_plan **ret, const struct ruleset *rs,
		 const struct rule_session *session, const struct push_means *m, struct err *err);
void push_plan_free(struct push_plan *p);

/* -ENOTSUP: a rule that is to deny something cannot do so by these means in every case, and its author did
 * not settle for a kill (deny_fallback: kill). err says which, and why. */
int push_check_deny(const struct push_plan *p, const struct push_means *m, struct err *err);
/* The same of the rule at `at` alone. */
int push_check_deny_of(const struct push_plan *p, size_t at, const struct push_means *m,
		       struct err *err);

#endif
