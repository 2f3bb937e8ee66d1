/* SPDX-License-Identifier: Apache-2.0 */
/* What `warder run` judges by. */
#ifndef WARDER_CLI_RUN_RULES_H
#define WARDER_CLI_RUN_RULES_H

#include "userspace/base/buf.h"
#include "userspace/base/option.h"
#include "userspace/enrich/baseline.h"
#include "userspace/pipeline/rule_files.h"

struct run_rules {
	struct rule_files files; /* where to look again while it runs */
	struct buf texts;
	struct ruleset *set;
	struct baseline *baseline;
};

/* Files and directories in their order, after the packs that come with warder when `builtin`. `baseline` may be
 * NULL. What is wrong has been printed when it fails. */
int run_rules_load(struct run_rules *ret, const struct option_list *paths, bool builtin,
		   const char *baseline);
void run_rules_done(struct run_rules *r);
/* Compile those that come with warder; the next run_rules_load of these very texts, in this process or one that was
 * forked from it, has no more to do. */
void run_rules_ahead(void);

#endif
