/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks of an event. Kernel records carry CLOCK_BOOTTIME; `time` is made from it with one
 * offset taken when the session starts, so that a clock step cannot reorder a session. */
#ifndef WARDER_BASE_CLOCK_H
#define WARDER_BASE_CLOCK_H

#include <limits.h>
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

/* How long poll may wait, in ms, -1 = for ever: the shorter. */
static inline int clock_sooner_ms(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* Until `at`, rounded up, if that is sooner; UINT64_MAX = never. */
static inline int clock_sooner(int ms, uint64_t now, uint64_t at)
{
	uint64_t left = at > now ? (at - now) / NSEC_PER_MSEC + 1 : 0;

	return at == UINT64_MAX ? ms : clock_sooner_ms(ms, left < INT_MAX ? (int)left : INT_MAX);
}

#define RFC3339_NS_LEN 30 /* 2026-01-31T12:34:56.123456789Z */

/* RFC 3339 in UTC with nanoseconds. Writes RFC3339_NS_LEN characters and a NUL. */
void rfc3339_ns(char out[RFC3339_NS_LEN + 1], uint64_t real_ns);

#endif
