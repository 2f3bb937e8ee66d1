/* SPDX-License-Identifier: Apache-2.0 */
/* Segment files as bytes, FORMAT.md sections 3 to 5. Little endian, fixed sizes, no padding that is
 * not written down; encode and decode only, no I/O. */
#ifndef WARDER_STORE_FORMAT_H
#define WARDER_STORE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "userspace/store/store.h"

#define FORMAT_VERSION 1

#define SEGMENT_MAGIC	   "WARDSEG\n"
#define SEGMENT_HEADER_LEN 192
#define SEGMENT_NUMBER_MAX 9999
#define SEGMENT_NAME_LEN   15 /* events.0001.seg */
#define SESSION_LEN	   64 /* in the header, NUL padded: at most 63 characters */

#define FRAME_MAGIC	 "WFRM"
#define FRAME_HEADER_LEN 128
/* A frame holds at most STORE_FRAME_RAW_MAX, or one single larger record. */
#define FRAME_RAW_LIMIT (4 + STORE_RECORD_MAX)

#define SEAL_MAGIC    "WARDSEAL"
#define SEAL_LEN      160
#define MANIFEST_NAME "manifest.json"
#define MANIFEST_MAX  (4 * 1024 * 1024)

enum segment_kind {
	SEGMENT_EVENTS = 1,
	SEGMENT_TTY = 2, /* terminal.h */
};

struct segment_header {
	uint32_t kind, number;
	uint64_t first_seq;
	uint64_t created_ns; /* real time */
	char session[SESSION_LEN];
	uint8_t prev[STORE_HASH_LEN]; /* frame chain at the end of the segment before; else zero */
	uint8_t head[STORE_HASH_LEN]; /* record chain before this segment's first record */
};

enum frame_type {
	FRAME_DATA = 1,
	FRAME_SEAL = 2,
	FRAME_SKIP = 0x80, /* types from here on carry no records; who does not know them skips */
	FRAME_ESCROW = FRAME_SKIP, /* FORMAT.md section 15 */
};

enum frame_codec { CODEC_STORED = 0, CODEC_ZSTD = 1 };

struct frame_header {
	uint8_t type, codec;
	uint64_t first_seq;
	uint32_t n; /* records */
	uint32_t raw_len, comp_len;
	uint32_t payload_crc;
	uint64_t real_ns, boot_ns;    /* when the frame was closed */
	uint8_t prev[STORE_HASH_LEN]; /* frame chain before this frame */
	uint8_t head[STORE_HASH_LEN]; /* record chain behind this frame's last record */
};

struct seal {
	uint64_t records, frames, gaps;
	uint64_t bytes; /* of all segment files together, this frame included */
	uint64_t sealed_ns;
	uint32_t segments;
	uint32_t redactions; /* of all records together; no more than UINT32_MAX */
	uint64_t manifest_len;
	uint8_t manifest_hash[STORE_HASH_LEN];
	uint8_t root[STORE_HASH_LEN]; /* RFC 6962, when signed; else zero */
	uint8_t tty[STORE_HASH_LEN];  /* frame chain behind the terminal's last frame; zero: none */
};

/* "events.0001.seg" for number 1..SEGMENT_NUMBER_MAX. */
void segment_name(char out[SEGMENT_NAME_LEN + 1], unsigned number);
/* The same, or "tty.0001.seg". */
void segment_kind_name(char out[SEGMENT_NAME_LEN + 1], enum segment_kind kind, unsigned number);
/* How many places of a record were redacted, as it says itself right behind its kind; 0 = it does not. */
uint32_t record_redactions(struct str rec);
/* Up to UINT32_MAX, and not over it. */
uint32_t redactions_add(uint32_t a, uint32_t b);
/* Over the records of a frame that is good: u32 length, bytes. */
uint32_t frame_redactions(const uint8_t *raw, size_t n);
/* 1..63 of [0-9A-Za-z._-]: needs no escape in JSON, text or a terminal. */
bool session_is_valid(const char *session);

void segment_header_encode(uint8_t out[SEGMENT_HEADER_LEN], const struct segment_header *h);
void frame_header_encode(uint8_t out[FRAME_HEADER_LEN], const struct frame_header *h);
void seal_encode(uint8_t out[SEAL_LEN], const struct seal *s);

/* NULL when good; else what is wrong, for a person. *ret is only set when good. */
const char *segment_header_decode(struct segment_header *ret, const uint8_t *p);
const char *frame_header_decode(struct frame_header *ret, const uint8_t *p);
const char *seal_decode(struct seal *ret, const uint8_t *p);

static inline uint32_t get_le32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline void put_le32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
	p[2] = (uint8_t)(v >> 16);
	p[3] = (uint8_t)(v >> 24);
}

static inline uint64_t get_le64(const uint8_t *p)
{
	return get_le32(p) | (uint64_t)get_le32(p + 4) << 32;
}

static inline void put_le64(uint8_t *p, uint64_t v)
{
	put_le32(p, (uint32_t)v);
	put_le32(p + 4, (uint32_t)(v >> 32));
}

#endif
