/* SPDX-License-Identifier: Apache-2.0 */
/* How a run ended, for who sits at the terminal. */
#ifndef WARDER_CLI_RUN_PRINT_H
#define WARDER_CLI_RUN_PRINT_H

#include "userspace/pipeline/run.h"

/* Why it ended, and the closing line. */
void run_print_closing(const struct run_result *res);
/* What the operator must know even with --quiet. */
void run_print_troubles(const struct run_result *res);

#endif
