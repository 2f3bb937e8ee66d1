/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WARDER_CLI_VERIFY_HOST_H
#define WARDER_CLI_VERIFY_HOST_H

#include <stdbool.h>
#include "userspace/store/store.h"

/* `warder verify --host-log`: returns the exit code, 0 intact, 1 not, EXIT_WARDER cannot tell. */
int verify_host_log(const struct verify_options *opt, bool json, bool quiet);

#endif
