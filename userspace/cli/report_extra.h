/* SPDX-License-Identifier: Apache-2.0 */
/* What a report shows besides the events: the terminal, and texts of files. */
#ifndef WARDER_CLI_REPORT_EXTRA_H
#define WARDER_CLI_REPORT_EXTRA_H

#include "userspace/base/err.h"
#include "userspace/replay/report.h"

bool report_extra_has_terminal(int bundle);
/* Damage there is told in *damage, if nothing is in it yet. 0, or what a report's function said. */
int report_extra(int bundle, struct report *report, struct err *damage, struct err *err);

#endif
