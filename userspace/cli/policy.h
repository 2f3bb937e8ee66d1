/* SPDX-License-Identifier: Apache-2.0 */
/* A policy file sets the options of `warder run`: one row a key, checked as strictly as the command
 * line, which overrides it. */
#ifndef WARDER_CLI_POLICY_H
#define WARDER_CLI_POLICY_H

#include "userspace/base/option.h"
#include "userspace/config/flat.h"

/* Values keep pointing into `file`. Errors: "path:line:col: message". */
int policy_apply(const struct flat_file *file, const struct option_def *defs, void *target,
		 struct err *err);

#endif
