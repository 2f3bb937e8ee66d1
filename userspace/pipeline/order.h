/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator, or the clock, decides about a session. */
#ifndef WARDER_PIPELINE_ORDER_H
#define WARDER_PIPELINE_ORDER_H

#include "userspace/pipeline/session.h"

struct order {
	enum pipeline_order what;
	uint32_t id;
	const char *who; /* NULL: nobody, the time was over */
	char *reply;
	size_t reply_n;
	const char *rule_set;
};

/* See pipeline_order. */
int order_carry_out(struct session *s, const struct order *o, struct arena *arena,
		    struct buf *json);
/* Questions and freezes whose time is over. */
void order_expire(struct session *s, uint64_t now, const char *rule_set, struct arena *arena,
		  struct buf *json);

#endif
