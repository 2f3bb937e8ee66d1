/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of the kernel's `metadata` map, for sources that are not the kernel. */
#ifndef WARDER_CAPTURE_METADATA_H
#define WARDER_CAPTURE_METADATA_H

#include <stdbool.h>
#include <stdint.h>

/* Is a cloud's metadata service at this address? In network order; IPv4: its four bytes, then zeros. */
bool metadata_has(const uint8_t addr[16]);

#endif
