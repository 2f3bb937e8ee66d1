/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WARDER_CLI_RULES_BASELINE_H
#define WARDER_CLI_RULES_BASELINE_H

#include <stddef.h>

/* Learn from `n` sessions, write to `output` (NULL = stdout). Returns the exit code. */
int rules_baseline(char *const *sessions, size_t n, const char *output);

#endif
