/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WARDER_CLI_DIFF_WORKSPACE_H
#define WARDER_CLI_DIFF_WORKSPACE_H

#include <stdbool.h>
#include <stdint.h>
#include "userspace/base/err.h"

/* What the last comparison of this session's workspace found; while it runs, that of one made now. *ret_n: how much
 * that was. */
int diff_workspace(const char *word, bool json, bool quiet, uint64_t *ret_n, struct err *err);

#endif
