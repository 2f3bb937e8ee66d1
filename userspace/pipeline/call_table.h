/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of bpf/abi/calls.def.h by the number of their call: what the kernel's side works by. */
#ifndef WARDER_PIPELINE_CALL_TABLE_H
#define WARDER_PIPELINE_CALL_TABLE_H

#include <stdint.h>

#include "bpf/abi/calls.h"

struct call {
	uint8_t slot, what, op; /* slot 0: there is no such row */
	int8_t dir, path, dir2, path2;
};

extern const struct call call_table[CALLS_MAX];

#endif
