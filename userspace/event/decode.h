/* SPDX-License-Identifier: Apache-2.0 */
/* Wire record -> event. Trusts nothing in the record: size, id and every inner length are checked. */
#ifndef WARDER_EVENT_DECODE_H
#define WARDER_EVENT_DECODE_H

#include "userspace/event/event.h"

struct decoder;

struct decode_stats {
	uint64_t records;
	uint64_t bad_size;    /* shorter than its kind, or len beyond the bytes given */
	uint64_t bad_kind;    /* unknown id: skipped */
	uint64_t bad_string;  /* a wire_str outside the record */
	uint64_t chunks_lost; /* argv pieces missing or given up */
	uint64_t dns_lost;    /* beginnings of DNS messages over TCP that were given up */
};

/* Keeps argv pieces until their exec comes: at most 64 execs, 4 MiB. */
int decoder_new(struct decoder **ret);
void decoder_free(struct decoder *d);

/* 1: *ev is filled (strings in `arena`, copied); 0: nothing to emit (a chunk, or skipped and counted).
 * -ENOMEM when the arena's limit is reached (an arena of 4 MiB holds every record). `rec` need not be
 * aligned. */
int decoder_feed(struct decoder *d, const void *rec, size_t len, struct arena *arena,
		 struct event *ev);
/* A piece of a TCP stream can complete several DNS messages, the end of one leave a part: call it after
 * each record, the arena reset, until it says 0. Results as decoder_feed. */
int decoder_more(struct decoder *d, struct arena *arena, struct event *ev);
const struct decode_stats *decoder_stats(const struct decoder *d);

/* DNS message (RFC 1035, 6891) -> dns.* slots. Never fails: what cannot be parsed is said in
 * dns.malformed. `total` > `n`: it was cut. */
void dns_decode(struct event *ev, const uint8_t *p, size_t n, size_t total);

#endif
