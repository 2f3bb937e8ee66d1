/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WARDER_CAPTURE_SELFTEST_URING_H
#define WARDER_CAPTURE_SELFTEST_URING_H

#include <stdint.h>

/* By io_uring sends a datagram on `socket` to an address, makes a file in `dir` and writes to it. -ENOSYS where the
 * host has none for us. */
int selftest_uring(int dir, const char *name, int socket, const void *to, uint32_t to_len);

#endif
