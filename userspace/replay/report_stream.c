// SPDX-License-Identifier: Apache-2.0
#include "userspace/replay/report_stream.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

int report_stream_begin(struct report_stream *s)
{
	s->z = (z_stream){ 0 };
	s->bytes = 0;
	s->n = 0;
	/* raw deflate with the largest window: what the browser's DecompressionStream takes */
	if (deflateInit2(&s->z, Z_BEST_COMPRESSION, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	s->is_open = true;
	return 0;
}

void report_stream_done(struct report_stream *s)
{
	if (s->is_open)
		deflateEnd(&s->z);
	s->is_open = false;
}

static int write_packed(struct report_stream *s)
{
	sodium_bin2base64(s->text, sizeof(s->text), s->packed, s->n,
			  sodium_base64_VARIANT_ORIGINAL);
	s->n = 0;
	return s->write(s->arg, s->text, strlen(s->text));
}

static int pack(struct report_stream *s, int flush)
{
	int state, r = 0;

	do {
		s->z.next_out = s->packed + s->n;
		s->z.avail_out = (unsigned)(sizeof(s->packed) - s->n);
		state = deflate(&s->z, flush);
		if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR)
			return -EIO;
		s->n = sizeof(s->packed) - s->z.avail_out;
		if (s->n == sizeof(s->packed))
			r = write_packed(s);
	} while (r == 0 && (flush == Z_FINISH ? state != Z_STREAM_END : s->z.avail_in > 0));
	return r;
}

int report_stream_data(struct report_stream *s, struct str data)
{
	int r = 0;

	while (r == 0 && data.n) {
		size_t n = data.n < (1u << 20) ? data.n : 1u << 20;

		s->z.next_in = (unsigned char *)data.p;
		s->z.avail_in = (unsigned)n;
		r = pack(s, Z_NO_FLUSH);
		data.p += n;
		data.n -= n;
		s->bytes += n;
	}
	return r;
}

int report_stream_end(struct report_stream *s)
{
	int r;

	s->z.next_in = NULL;
	s->z.avail_in = 0;
	r = pack(s, Z_FINISH);
	if (r == 0 && s->n)
		r = write_packed(s);
	report_stream_done(s);
	return r;
}
