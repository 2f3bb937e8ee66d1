/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks of an event. Kernel records carry CLOCK_BOOTTIME; `time` is made from it with one
 * offset taken when the session starts, so that a clock step cannot reorder a session. */
#ifndef WARDER_BASE_CLOCK_H
#define WARDER_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NSEC_PER_SEC  1000000000ull
#define NSEC_PER_MSEC 1000000ull
#define NSEC_PER_USEC 1000ull

static inline uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static inline uint64_t clock_boot_ns(void)
{
	return clock_ns(CLOCK_BOOTTIME);
}

static inline uint64_t clock_real_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

#define RFC3339_NS_LEN 30 /* 2026-01-31T12:34:56.123456789Z */

/* RFC 3339 in UTC with nanoseconds. Writes RFC3339_NS_LEN characters and a NUL. */
void rfc3339_ns(char out[RFC3339_NS_LEN + 1], uint64_t real_ns);

#endif
