/* SPDX-License-Identifier: Apache-2.0 */
/* Old sessions under new rules: what would fire now that did not, and the other way round. */
#ifndef WARDER_PIPELINE_REJUDGE_H
#define WARDER_PIPELINE_REJUDGE_H

#include "rules/rule.h"
#include "userspace/store/store.h"

#define REJUDGE_ALERTS_MAX (1u << 20) /* recorded alerts that are kept to compare */

struct rejudge_change {
	bool added;   /* fires now, did not then; false: fired then, does not now */
	uint64_t seq; /* of the event */
	const char *rule;
	const struct event *ev; /* NULL when !added and the event is not at hand */
};

struct rejudge_counts {
	uint64_t events, same, added, removed;
	uint64_t
		redacted; /* of the events: something of them was taken out, and is not judged again */
};

typedef void (*rejudge_fn)(void *arg, const struct rejudge_change *c);

/* Judge the session in `dirfd` again by `rs` (compiled, with ruleset_allow_state) and tell each difference
 * to the recorded alerts, in the order of the events. -E2BIG: more than REJUDGE_ALERTS_MAX alerts. */
int rejudge_session(int dirfd, const struct ruleset *rs, rejudge_fn fn, void *arg,
		    struct rejudge_counts *ret, struct err *err);

#endif
