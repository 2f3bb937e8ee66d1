/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder's state: argv pieces that wait for their exec record, DNS streams, and the counters. */
#ifndef WARDER_EVENT_DECODER_H
#define WARDER_EVENT_DECODER_H

#include "userspace/event/decode.h"
#include "userspace/event/dns_stream.h"

#define PENDING_EXECS_MAX  64
#define PENDING_BYTES_MAX  (4u << 20)
#define PENDING_CHUNKS_MAX 64 /* of one exec */

struct chunk {
	uint32_t offset;
	uint32_t n;
	uint32_t what; /* enum wire_chunk_what */
	char *data;    /* owned */
};

struct pending_exec {
	uint64_t exec_id; /* 0 = free slot */
	uint64_t age;	  /* value of the decoder's clock at the last piece */
	struct chunk chunks[PENDING_CHUNKS_MAX];
	size_t chunks_n;
};

struct decoder {
	struct decode_stats stats;
	struct pending_exec pending[PENDING_EXECS_MAX];
	size_t pending_bytes;
	uint64_t clock;
	struct dns_streams dns;
	bool more; /* dns may have messages to hand out */
};

/* A WIRE_CHUNK of `len` bytes, header checked. Always 0, or -ENOMEM. */
int decoder_keep_chunk(struct decoder *d, const void *rec, size_t len);

#endif
