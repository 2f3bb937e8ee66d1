/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock (kernel: Documentation/userspace-api/landlock.rst). The layer that stays if a mount is
 * wrong. Numbers are written out, since headers older than the running kernel are the normal case. */
#ifndef WARDER_RUNTIME_LANDLOCK_H
#define WARDER_RUNTIME_LANDLOCK_H

#include <stdint.h>

/* ABI of the running kernel; 0 = absent or switched off. */
int landlock_abi(void);

#endif
