/* SPDX-License-Identifier: Apache-2.0 */
/* How many records may be on their way to the brokers. As few as the rate allows: each one is a dozen scattered
 * allocations in librdkafka, and once they outgrow the caches a record costs twice the CPU (3.6 us with 1,000 in
 * flight, 7.6 us with 10,000). As many as a slow or distant broker needs: with a round trip of 50 ms a thousand
 * would be 20,000 records a second. */
#ifndef WARDER_EXPORTERS_KAFKA_WINDOW_H
#define WARDER_EXPORTERS_KAFKA_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WINDOW_MIN	 1000
#define WINDOW_MAX	 8000
#define WINDOW_PERIOD_NS 250000000ull	/* one measurement */
#define WINDOW_REST_NS	 10000000000ull /* until it tries another size again */

struct kafka_window {
	size_t size;
	enum { WINDOW_STAYS, WINDOW_GROWN, WINDOW_SHRUNK } trial;
	uint64_t since;	   /* CLOCK_MONOTONIC ns; start of the measurement, 0 = none */
	uint64_t acked;	   /* records acknowledged since */
	uint64_t rate;	   /* records/s before the trial */
	uint64_t next_try; /* ns */
	bool down_next;	   /* try a smaller one next time */
};

void kafka_window_init(struct kafka_window *w);
/* Records were acknowledged. `limited`: since the last call there was more to send than the window let through;
 * else the rate says nothing about its size. */
void kafka_window_acked(struct kafka_window *w, uint64_t now, uint64_t n, bool limited);

#endif
