/* SPDX-License-Identifier: Apache-2.0 */
/* A policy file sets the options of `warder run`: one row a key, checked as strictly as the command
 * line, which overrides it. */
#ifndef WARDER_CLI_POLICY_H
#define WARDER_CLI_POLICY_H

#include "userspace/base/option.h"
#include "userspace/config/flat.h"

/* Can this be meant? Asked of each value, so that the error names its place. */
typedef int (*policy_check_fn)(const char *option, const char *value, struct err *err);

/* Values keep pointing into `file`. Rule files are relative to the policy's folder. Errors:
 * "path:line:col: message". */
int policy_apply(struct flat_file *file, const struct option_def *defs, void *target,
		 policy_check_fn check, struct err *err);

#endif
