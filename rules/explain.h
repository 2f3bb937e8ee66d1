/* SPDX-License-Identifier: Apache-2.0 */
/* What a rule will do on a host, in words. */
#ifndef WARDER_RULES_EXPLAIN_H
#define WARDER_RULES_EXPLAIN_H

#include "rules/push.h"

struct explain_host {
	const struct push_means *means;
	const struct push_plan *plan; /* made with them */
	uint64_t kill_p50_ns,
		kill_max_ns; /* from an act to the sandbox empty, as measured; 0 = not */
};

/* Lines `word: text`: kinds, fields, cost, where it is decided, what that guarantees. */
int rule_explain(const struct rule_info *r, const struct explain_host *h, struct buf *out);

#endif
