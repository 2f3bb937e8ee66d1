/* SPDX-License-Identifier: Apache-2.0 */
/* From rules to the kernel's tables. The root part does it, with rules out of the operator's files: nothing
 * that comes from a sandbox or from the engine goes this way. */
#ifndef WARDER_PIPELINE_ENFORCEMENT_H
#define WARDER_PIPELINE_ENFORCEMENT_H

#include "rules/push.h"
#include "userspace/capture/capture.h"

#define ENFORCEMENT_SET 1 /* a run has one sandbox, and its own maps */

/* Does any rule ask for something that the kernel would decide by its tables, on some tier? Then probes have
 * to be loaded for it (capture_options.enforce). */
int enforcement_is_wanted(const struct ruleset *rs, const struct rule_session *s, bool *ret,
			  struct err *err);
/* What the loaded probes can do. */
const struct push_means *enforcement_means(const struct capture *c);
/* For probes that were loaded without enforcement: -ENOTSUP when a rule is to deny something. */
int enforcement_check(const struct capture *c, const struct ruleset *rs,
		      const struct rule_session *s, struct err *err);
/* Make the rules' part the whole of what the kernel decides. -ENOTSUP: a rule is to deny what cannot be
 * denied here. On failure what was loaded stays. */
int enforcement_load(struct capture *c, const struct ruleset *rs, const struct rule_session *s,
		     struct err *err);

#endif
