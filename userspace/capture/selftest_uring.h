/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WARDER_CAPTURE_SELFTEST_URING_H
#define WARDER_CAPTURE_SELFTEST_URING_H

/* Makes a file in `dir` and writes to it, both by io_uring. -ENOSYS where the host has none for us. */
int selftest_uring(int dir, const char *name);

#endif
