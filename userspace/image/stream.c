// SPDX-License-Identifier: Apache-2.0
/* Packed bytes in, plain bytes out. Both are hashed here, since a digest is of one and a diff_id of the other; and both are
 * counted, so that a bomb ends while it is small. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/image/internal.h"

static const uint8_t gzip_magic[] = { 0x1f, 0x8b }, zstd_magic[] = { 0x28, 0xb5, 0x2f, 0xfd };
/* What others pack with: told by name, or it would be "not a tar". */
static const struct {
	const char *name;
	const char *magic;
	size_t n;
} others[] = { { "xz",
		 "\xfd"
		 "7zXZ",
		 5 },
	       { "bzip2", "BZh", 3 },
	       { "zip", "PK\x03\x04", 4 },
	       { "lz4", "\x04\x22\x4d\x18", 4 } };

static int fail(struct stream *s, int code, const char *what)
{
	s->failed = err_set(s->err, code, "%s: %s", s->name, what);
	return s->failed;
}

static int fill(struct stream *s)
{
	ssize_t n;

	if (s->in_at)
		memmove(s->in, s->in + s->in_at, s->in_n - s->in_at);
	s->in_n -= s->in_at;
	s->in_at = 0;
	while (!s->eof && s->in_n < STREAM_IN / 2) {
		n = s->read(s->arg, s->in + s->in_n, STREAM_IN - s->in_n, s->err);
		if (n < 0) {
			s->failed = (int)n;
			return (int)n;
		}
		if (n == 0)
			s->eof = true;
		EVP_DigestUpdate(s->packed, s->in + s->in_n, (size_t)n);
		s->in_n += (size_t)n;
		s->packed_n += (uint64_t)n;
	}
	return 0;
}

static bool begins(const struct stream *s, const void *magic, size_t n)
{
	return s->in_n >= n && !memcmp(s->in, magic, n);
}

static int begin(struct stream *s)
{
	int r = fill(s);

	s->begun = true;
	if (r < 0)
		return r;
	if (begins(s, gzip_magic, sizeof(gzip_magic))) {
		s->packing = PACKED_GZIP;
		if (inflateInit2(&s->z, 15 + 16) != Z_OK)
			return fail(s, ENOMEM, "no memory to unpack");
	} else if (begins(s, zstd_magic, sizeof(zstd_magic))) {
		s->packing = PACKED_ZSTD;
		s->zstd = ZSTD_createDStream();
		if (!s->zstd ||
		    ZSTD_isError(ZSTD_DCtx_setParameter(s->zstd, ZSTD_d_windowLogMax, 27)))
			return fail(s, ENOMEM, "no memory to unpack");
	}
	for (size_t i = 0; !s->packing && i < ARRAY_SIZE(others); i++)
		if (begins(s, others[i].magic, others[i].n)) {
			s->failed = err_set(s->err, EBADMSG,
					    "%s: packed by %s: only gzip and zstd are unpacked",
					    s->name, others[i].name);
			return s->failed;
		}
	return 0;
}

int stream_open(struct stream *s, stream_read_fn read, void *arg, const char *name,
		const struct image_limits *limits, struct err *err)
{
	*s = (struct stream){ .read = read,
			      .arg = arg,
			      .name = name,
			      .max = limits->bytes + limits->bytes / 8 +
				     (64u << 20), /* headers, padding */
			      .ratio = limits->ratio,
			      .err = err };
	s->in = malloc(STREAM_IN);
	s->out = malloc(STREAM_OUT);
	s->packed = EVP_MD_CTX_new();
	s->plain = EVP_MD_CTX_new();
	if (!s->in || !s->out || !s->packed || !s->plain ||
	    EVP_DigestInit_ex(s->packed, EVP_sha256(), NULL) != 1 ||
	    EVP_DigestInit_ex(s->plain, EVP_sha256(), NULL) != 1) {
		stream_done(s);
		return err_set(err, ENOMEM, "%s: %m", name);
	}
	return 0;
}

static ssize_t inflate_some(struct stream *s)
{
	int r;

	s->z.next_in = s->in + s->in_at;
	s->z.avail_in = (uInt)(s->in_n - s->in_at);
	s->z.next_out = s->out;
	s->z.avail_out = STREAM_OUT;
	r = inflate(&s->z, Z_NO_FLUSH);
	s->in_at = s->in_n - s->z.avail_in;
	if (r == Z_STREAM_END) {
		/* Another member may follow; anything else behind it is not part of the stream. */
		s->ended = true;
		if (inflateReset(&s->z) != Z_OK)
			return fail(s, EBADMSG, "gzip cannot go on");
	} else if (r != Z_OK && r != Z_BUF_ERROR) {
		return fail(s, EBADMSG, "damaged gzip data");
	} else if (STREAM_OUT - s->z.avail_out || r == Z_OK) {
		s->ended = false;
	}
	return STREAM_OUT - s->z.avail_out;
}

static ssize_t unzstd_some(struct stream *s)
{
	ZSTD_inBuffer in = { s->in + s->in_at, s->in_n - s->in_at, 0 };
	ZSTD_outBuffer out = { s->out, STREAM_OUT, 0 };
	size_t r = ZSTD_decompressStream(s->zstd, &out, &in);

	if (ZSTD_isError(r))
		return fail(s, EBADMSG, "damaged zstd data");
	s->in_at += in.pos;
	s->ended = r == 0;
	return (ssize_t)out.pos;
}

static ssize_t some(struct stream *s)
{
	ssize_t n = 0;
	int r;

	for (;;) {
		r = fill(s);
		if (r < 0)
			return r;
		if (s->packing == PACKED_NOT) {
			n = (ssize_t)MIN(s->in_n - s->in_at, (size_t)STREAM_OUT);
			memcpy(s->out, s->in + s->in_at, (size_t)n);
			s->in_at += (size_t)n;
			return n;
		}
		if (s->in_at == s->in_n && s->eof && s->ended)
			return 0;
		n = s->packing == PACKED_GZIP ? inflate_some(s) : unzstd_some(s);
		if (n)
			return n;
		if (s->in_at == s->in_n && s->eof && !s->ended)
			return fail(s, EBADMSG, "the packed data ends too soon");
	}
}

ssize_t stream_next(struct stream *s, const void **ret)
{
	ssize_t n;

	if (s->failed)
		return s->failed;
	if (!s->begun && begin(s) < 0)
		return s->failed;
	n = some(s);
	if (n <= 0)
		return n;
	EVP_DigestUpdate(s->plain, s->out, (size_t)n);
	s->plain_n += (uint64_t)n;
	if (s->plain_n > s->max)
		return fail(s, EFBIG, "unpacks to more than may be (--max-size)");
	if (s->packing && s->plain_n > IMAGE_RATIO_FROM && s->plain_n / s->ratio > s->packed_n)
		return fail(s, EFBIG, "unpacks to so much more than it is that it is a bomb");
	*ret = s->out;
	return n;
}

int stream_finish(struct stream *s, uint8_t packed[HASH_LEN], uint8_t plain[HASH_LEN])
{
	const void *p;
	ssize_t n;

	while ((n = stream_next(s, &p)) > 0)
		;
	if (n < 0)
		return (int)n;
	if (EVP_DigestFinal_ex(s->packed, packed, NULL) != 1 ||
	    EVP_DigestFinal_ex(s->plain, plain, NULL) != 1)
		return fail(s, EIO, "cannot be hashed");
	return 0;
}

void stream_done(struct stream *s)
{
	if (s->packing == PACKED_GZIP)
		inflateEnd(&s->z);
	ZSTD_freeDStream(s->zstd);
	EVP_MD_CTX_free(s->packed);
	EVP_MD_CTX_free(s->plain);
	free(s->in);
	free(s->out);
	*s = (struct stream){ 0 };
}
