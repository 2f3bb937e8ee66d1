// SPDX-License-Identifier: Apache-2.0
#include "userspace/store/format.h"

#include <stdio.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/store/crc32c.h"

/* Offsets; FORMAT.md is the text to these. */
enum {
	SH_VERSION = 8,
	SH_LEN = 10,
	SH_KIND = 12,
	SH_NUMBER = 16,
	SH_ZERO1 = 20,
	SH_FIRST_SEQ = 24,
	SH_CREATED = 32,
	SH_SESSION = 40,
	SH_PREV = 104,
	SH_HEAD = 136,
	SH_ZERO2 = 168,
	SH_CRC = 188,

	FH_TYPE = 4,
	FH_CODEC = 5,
	FH_LEN = 6,
	FH_FIRST_SEQ = 8,
	FH_N = 16,
	FH_RAW = 20,
	FH_COMP = 24,
	FH_PAYLOAD_CRC = 28,
	FH_REAL = 32,
	FH_BOOT = 40,
	FH_PREV = 48,
	FH_HEAD = 80,
	FH_ZERO = 112,
	FH_CRC = 124,

	SL_RECORDS = 8,
	SL_FRAMES = 16,
	SL_GAPS = 24,
	SL_BYTES = 32,
	SL_SEALED = 40,
	SL_SEGMENTS = 48,
	SL_REDACTIONS = 52,
	SL_MANIFEST_LEN = 56,
	SL_MANIFEST_HASH = 64,
	SL_ROOT = 96,
	SL_TTY = 128,
};

_Static_assert(SH_CRC + 4 == SEGMENT_HEADER_LEN, "segment header");
_Static_assert(SH_SESSION + SESSION_LEN == SH_PREV, "session in the segment header");
_Static_assert(FH_CRC + 4 == FRAME_HEADER_LEN, "frame header");
_Static_assert(SL_TTY + STORE_HASH_LEN == SEAL_LEN, "seal");

static bool is_zero(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i])
			return false;
	return true;
}

void segment_kind_name(char out[SEGMENT_NAME_LEN + 1], enum segment_kind kind, unsigned number)
{
	snprintf(out, SEGMENT_NAME_LEN + 1, "%s.%04u.seg", kind == SEGMENT_TTY ? "tty" : "events",
		 number % (SEGMENT_NUMBER_MAX + 1));
}

void segment_name(char out[SEGMENT_NAME_LEN + 1], unsigned number)
{
	segment_kind_name(out, SEGMENT_EVENTS, number);
}

bool session_is_valid(const char *s)
{
	size_t n = s ? strnlen(s, SESSION_LEN) : 0;

	return n > 0 && n < SESSION_LEN &&
	       strspn(s, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._-") == n;
}

#define KIND_WITHIN 256 /* where in a record its kind stands */

uint32_t record_redactions(struct str rec)
{
	static const char kind[] = "\"kind\":\"", word[] = "\",\"redactions\":";
	size_t n = MIN(rec.n, (size_t)KIND_WITHIN), digits = 0;
	const char *p = memmem(rec.p, n, kind, sizeof(kind) - 1), *end = rec.p + n;
	uint32_t v = 0;

	if (!p)
		return 0;
	p += sizeof(kind) - 1;
	p = memchr(p, '"', (size_t)(end - p));
	if (!p || (size_t)(end - p) < sizeof(word) - 1 || memcmp(p, word, sizeof(word) - 1) != 0)
		return 0;
	for (p += sizeof(word) - 1; p < end && *p >= '0' && *p <= '9' && digits < 9; p++, digits++)
		v = v * 10 + (uint32_t)(*p - '0');
	return v;
}

uint32_t redactions_add(uint32_t a, uint32_t b)
{
	return a + b < a ? UINT32_MAX : a + b;
}

uint32_t frame_redactions(const uint8_t *raw, size_t n)
{
	uint32_t sum = 0;

	for (size_t at = 0; n - at >= 4;) {
		uint32_t len = get_le32(raw + at);

		if (len > n - at - 4)
			break;
		sum = redactions_add(
			sum, record_redactions((struct str){ (const char *)raw + at + 4, len }));
		at += 4 + (size_t)len;
	}
	return sum;
}

void segment_header_encode(uint8_t out[SEGMENT_HEADER_LEN], const struct segment_header *h)
{
	memset(out, 0, SEGMENT_HEADER_LEN);
	memcpy(out, SEGMENT_MAGIC, 8);
	out[SH_VERSION] = FORMAT_VERSION;
	out[SH_LEN] = SEGMENT_HEADER_LEN;
	put_le32(out + SH_KIND, h->kind);
	put_le32(out + SH_NUMBER, h->number);
	put_le64(out + SH_FIRST_SEQ, h->first_seq);
	put_le64(out + SH_CREATED, h->created_ns);
	memcpy(out + SH_SESSION, h->session, strnlen(h->session, SESSION_LEN - 1));
	memcpy(out + SH_PREV, h->prev, STORE_HASH_LEN);
	memcpy(out + SH_HEAD, h->head, STORE_HASH_LEN);
	put_le32(out + SH_CRC, crc32c(out, SH_CRC));
}

const char *segment_header_decode(struct segment_header *ret, const uint8_t *p)
{
	struct segment_header h = { 0 };
	size_t n;

	if (memcmp(p, SEGMENT_MAGIC, 8) != 0)
		return "the file does not start like a segment";
	if (get_le32(p + SH_CRC) != crc32c(p, SH_CRC))
		return "the segment header's checksum is wrong";
	if (p[SH_VERSION] != FORMAT_VERSION || p[SH_VERSION + 1] != 0)
		return "the segment's format version is unknown";
	if (p[SH_LEN] != SEGMENT_HEADER_LEN || p[SH_LEN + 1] != 0 || !is_zero(p + SH_ZERO1, 4) ||
	    !is_zero(p + SH_ZERO2, SH_CRC - SH_ZERO2))
		return "reserved bytes of the segment header are not zero";
	h.kind = get_le32(p + SH_KIND);
	h.number = get_le32(p + SH_NUMBER);
	h.first_seq = get_le64(p + SH_FIRST_SEQ);
	h.created_ns = get_le64(p + SH_CREATED);
	memcpy(h.session, p + SH_SESSION, SESSION_LEN);
	memcpy(h.prev, p + SH_PREV, STORE_HASH_LEN);
	memcpy(h.head, p + SH_HEAD, STORE_HASH_LEN);
	if (h.session[SESSION_LEN - 1] != 0 || !session_is_valid(h.session))
		return "the segment header's session name is malformed";
	n = strlen(h.session);
	if (!is_zero(p + SH_SESSION + n, SESSION_LEN - n))
		return "the segment header's session name is malformed";
	if (h.kind != SEGMENT_EVENTS && h.kind != SEGMENT_TTY)
		return "the segment is of another kind";
	if (h.number < 1 || h.number > SEGMENT_NUMBER_MAX || h.first_seq < 1)
		return "the segment header's numbers are out of range";
	*ret = h;
	return NULL;
}

void frame_header_encode(uint8_t out[FRAME_HEADER_LEN], const struct frame_header *h)
{
	memset(out, 0, FRAME_HEADER_LEN);
	memcpy(out, FRAME_MAGIC, 4);
	out[FH_TYPE] = h->type;
	out[FH_CODEC] = h->codec;
	out[FH_LEN] = FRAME_HEADER_LEN;
	put_le64(out + FH_FIRST_SEQ, h->first_seq);
	put_le32(out + FH_N, h->n);
	put_le32(out + FH_RAW, h->raw_len);
	put_le32(out + FH_COMP, h->comp_len);
	put_le32(out + FH_PAYLOAD_CRC, h->payload_crc);
	put_le64(out + FH_REAL, h->real_ns);
	put_le64(out + FH_BOOT, h->boot_ns);
	memcpy(out + FH_PREV, h->prev, STORE_HASH_LEN);
	memcpy(out + FH_HEAD, h->head, STORE_HASH_LEN);
	put_le32(out + FH_CRC, crc32c(out, FH_CRC));
}

/* Lengths are judged here, before anybody allocates or reads by them. */
static const char *frame_lengths(const struct frame_header *h)
{
	static const char bad[] = "the frame header's lengths are out of range";

	if (h->raw_len > FRAME_RAW_LIMIT || h->comp_len > h->raw_len || h->comp_len == 0)
		return bad;
	if (h->codec == CODEC_STORED ? h->comp_len != h->raw_len : h->comp_len == h->raw_len)
		return bad;
	if (h->type == FRAME_DATA) {
		/* a record is 4 bytes of length and at least one byte */
		if (h->n < 1 || (uint64_t)h->n * 5 > h->raw_len)
			return bad;
		if (h->raw_len > STORE_FRAME_RAW_MAX && h->n != 1)
			return bad;
	} else if (h->n != 0) {
		return "a frame without records claims to have some";
	}
	if (h->type == FRAME_SEAL && (h->codec != CODEC_STORED || h->raw_len != SEAL_LEN))
		return "the seal has the wrong length";
	return NULL;
}

const char *frame_header_decode(struct frame_header *ret, const uint8_t *p)
{
	struct frame_header h = { 0 };
	const char *why;

	if (memcmp(p, FRAME_MAGIC, 4) != 0)
		return "no frame begins here";
	if (get_le32(p + FH_CRC) != crc32c(p, FH_CRC))
		return "the frame header's checksum is wrong";
	if (p[FH_LEN] != FRAME_HEADER_LEN || p[FH_LEN + 1] != 0 ||
	    !is_zero(p + FH_ZERO, FH_CRC - FH_ZERO))
		return "reserved bytes of the frame header are not zero";
	h.type = p[FH_TYPE];
	h.codec = p[FH_CODEC];
	h.first_seq = get_le64(p + FH_FIRST_SEQ);
	h.n = get_le32(p + FH_N);
	h.raw_len = get_le32(p + FH_RAW);
	h.comp_len = get_le32(p + FH_COMP);
	h.payload_crc = get_le32(p + FH_PAYLOAD_CRC);
	h.real_ns = get_le64(p + FH_REAL);
	h.boot_ns = get_le64(p + FH_BOOT);
	memcpy(h.prev, p + FH_PREV, STORE_HASH_LEN);
	memcpy(h.head, p + FH_HEAD, STORE_HASH_LEN);
	if (h.type != FRAME_DATA && h.type != FRAME_SEAL && h.type < FRAME_SKIP)
		return "the frame's type is unknown";
	if (h.codec != CODEC_STORED && h.codec != CODEC_ZSTD)
		return "the frame's codec is unknown";
	why = frame_lengths(&h);
	if (why)
		return why;
	*ret = h;
	return NULL;
}

void seal_encode(uint8_t out[SEAL_LEN], const struct seal *s)
{
	memset(out, 0, SEAL_LEN);
	memcpy(out, SEAL_MAGIC, 8);
	put_le64(out + SL_RECORDS, s->records);
	put_le64(out + SL_FRAMES, s->frames);
	put_le64(out + SL_GAPS, s->gaps);
	put_le64(out + SL_BYTES, s->bytes);
	put_le64(out + SL_SEALED, s->sealed_ns);
	put_le32(out + SL_SEGMENTS, s->segments);
	put_le32(out + SL_REDACTIONS, s->redactions);
	put_le64(out + SL_MANIFEST_LEN, s->manifest_len);
	memcpy(out + SL_MANIFEST_HASH, s->manifest_hash, STORE_HASH_LEN);
	memcpy(out + SL_ROOT, s->root, STORE_HASH_LEN);
	memcpy(out + SL_TTY, s->tty, STORE_HASH_LEN);
}

const char *seal_decode(struct seal *ret, const uint8_t *p)
{
	struct seal s = { 0 };

	if (memcmp(p, SEAL_MAGIC, 8) != 0)
		return "the seal does not start like one";
	s.records = get_le64(p + SL_RECORDS);
	s.frames = get_le64(p + SL_FRAMES);
	s.gaps = get_le64(p + SL_GAPS);
	s.bytes = get_le64(p + SL_BYTES);
	s.sealed_ns = get_le64(p + SL_SEALED);
	s.segments = get_le32(p + SL_SEGMENTS);
	s.redactions = get_le32(p + SL_REDACTIONS);
	s.manifest_len = get_le64(p + SL_MANIFEST_LEN);
	memcpy(s.manifest_hash, p + SL_MANIFEST_HASH, STORE_HASH_LEN);
	memcpy(s.root, p + SL_ROOT, STORE_HASH_LEN);
	memcpy(s.tty, p + SL_TTY, STORE_HASH_LEN);
	if (s.manifest_len > MANIFEST_MAX)
		return "the seal's numbers are out of range";
	*ret = s;
	return NULL;
}
