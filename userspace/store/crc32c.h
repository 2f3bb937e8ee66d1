/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C (Castagnoli, RFC 3720 appendix B.4): finds torn and rotten bytes before anything is
 * decompressed. It is no protection against a person; the hashes are. */
#ifndef WARDER_STORE_CRC32C_H
#define WARDER_STORE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(const void *p, size_t n);
/* The one without CPU instructions; for the test that both agree. */
uint32_t crc32c_portable(const void *p, size_t n);

#endif
