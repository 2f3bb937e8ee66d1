/* SPDX-License-Identifier: Apache-2.0 */
/* What each of gVisor's processes does on the host once the guest runs: measured with 20221219 and 20240729. */
#ifndef WARDER_CAPTURE_GVISOR_PARTS_H
#define WARDER_CAPTURE_GVISOR_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/abi/maps.h"

/* A bit a system call, by enum gvisor_part. `net`: the sentry has sockets of the host. */
void gvisor_baseline_fill(uint64_t bits[GVISOR_PARTS][GVISOR_WORDS], bool net);

#endif
