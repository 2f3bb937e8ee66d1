/* SPDX-License-Identifier: Apache-2.0 */
/* How fast this host kills: tried by `warder doctor --measure`, told by `warder rules explain`. */
#ifndef WARDER_CLI_MEASURED_H
#define WARDER_CLI_MEASURED_H

#include <stdbool.h>
#include <stdint.h>
#include "userspace/base/err.h"

/* From an act to its sandbox seen empty, in ns, of kills decided in user space. False: not measured on this
 * kernel. */
bool measured_load(uint64_t *ret_p50_ns, uint64_t *ret_max_ns);
/* Root: run a few sandboxes that a rule kills, and keep the figures. */
int measured_make(uint64_t *ret_p50_ns, uint64_t *ret_max_ns, struct err *err);
/* Can the kernel refuse acts here (full tier)? Needs root for a true answer. */
bool host_prevents(void);

#endif
