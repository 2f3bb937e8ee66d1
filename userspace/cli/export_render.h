/* SPDX-License-Identifier: Apache-2.0 */
/* `warder export --format`: the events of a session as lines in a format of a SIEM. */
#ifndef WARDER_CLI_EXPORT_RENDER_H
#define WARDER_CLI_EXPORT_RENDER_H

#include "userspace/base/err.h"

struct export_render {
	const char *format, *ocsf_version, *filter, *output; /* NULL = not given */
};

/* Returns the exit code; what went wrong was logged. */
int export_render(const struct export_render *opt, const char *word, int bundle, struct err *err);

#endif
