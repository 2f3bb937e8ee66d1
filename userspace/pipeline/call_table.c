// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/call_table.h"

#include "bpf/abi/wire.h"

const struct call call_table[CALLS_MAX] = {
#define CALL(name, nr, nr32, slot, what, op, dir, path, dir2, path2) \
	[nr] = { SLOT_##slot, WIRE_##what, op, dir, path, dir2, path2 },
#define CALL64(name, nr, slot, what, op, dir, path, dir2, path2) \
	[nr] = { SLOT_##slot, WIRE_##what, op, dir, path, dir2, path2 },
#include "bpf/abi/calls.def.h"
};
