// SPDX-License-Identifier: Apache-2.0
#include "userspace/store/crc32c.h"

#include <pthread.h>
#include <string.h>

#define POLY_REFLECTED 0x82f63b78u

static uint32_t table[256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void table_fill(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int k = 0; k < 8; k++)
			c = c & 1 ? c >> 1 ^ POLY_REFLECTED : c >> 1;
		table[i] = c;
	}
}

uint32_t crc32c_portable(const void *p, size_t n)
{
	const unsigned char *b = p;
	uint32_t c = ~0u;

	pthread_once(&table_once, table_fill);
	while (n--)
		c = table[(c ^ *b++) & 255] ^ c >> 8;
	return ~c;
}

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) static uint32_t crc32c_sse42(const void *p, size_t n)
{
	const unsigned char *b = p;
	uint64_t c = ~0u;
	uint64_t v;

	for (; n >= 8; n -= 8, b += 8) {
		memcpy(&v, b, 8);
		c = __builtin_ia32_crc32di(c, v);
	}
	while (n--)
		c = __builtin_ia32_crc32qi((uint32_t)c, *b++);
	return ~(uint32_t)c;
}

uint32_t crc32c(const void *p, size_t n)
{
	return __builtin_cpu_supports("sse4.2") ? crc32c_sse42(p, n) : crc32c_portable(p, n);
}

#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>

uint32_t crc32c(const void *p, size_t n)
{
	const unsigned char *b = p;
	uint32_t c = ~0u;
	uint64_t v;

	for (; n >= 8; n -= 8, b += 8) {
		memcpy(&v, b, 8);
		c = __crc32cd(c, v);
	}
	while (n--)
		c = __crc32cb(c, *b++);
	return ~c;
}

#else

uint32_t crc32c(const void *p, size_t n)
{
	return crc32c_portable(p, n);
}

#endif
