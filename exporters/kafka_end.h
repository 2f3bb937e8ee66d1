/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a producer. rd_kafka_destroy waits for the library's threads, and one that asks a dead name server
 * stays there for many seconds: nobody waits for that, neither the other sinks nor the end of a session. */
#ifndef WARDER_EXPORTERS_KAFKA_END_H
#define WARDER_EXPORTERS_KAFKA_END_H

#include <librdkafka/rdkafka.h>

/* How long we wait for it: in the middle of work, and when the sink is closed. */
#define KAFKA_END_MS	   50
#define KAFKA_END_CLOSE_MS 500
/* Producers of this process whose end is still going on. */
#define KAFKA_ENDING_MAX 64

struct kafka_sink;
struct kafka_link; /* the way from a producer to its sink, which may be gone first */

/* NULL: out of memory, or too many producers have not ended. */
struct kafka_link *kafka_link_new(struct kafka_sink *s);
void kafka_link_free(struct kafka_link *l);
/* NULL once it was cut. Any thread. */
struct kafka_sink *kafka_link_sink(struct kafka_link *l);
void kafka_link_cut(struct kafka_link *l);
/* Destroys the producer and its link, in the background when that takes longer than `wait_ms`. */
void kafka_end(rd_kafka_t *rk, struct kafka_link *l, int wait_ms);

#endif
