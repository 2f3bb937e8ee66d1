/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the kernel's `watched` map, for sources that are not the kernel. */
#ifndef WARDER_CAPTURE_WATCHED_H
#define WARDER_CAPTURE_WATCHED_H

#include <stdint.h>

#include "bpf/abi/maps.h"
#include "userspace/base/str.h"

/* Class of an absolute path by its last component, of some together with their directory; 0 = ordinary. Of a
 * WATCHED_WITH_DIR in its directory: WATCHED_FILE. */
uint32_t watched_class_of(struct str path);

#endif
