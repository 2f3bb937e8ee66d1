/* SPDX-License-Identifier: Apache-2.0 */
/* A page's bytes as they are, and data that is deflated and base64 coded on its way: nothing of it is kept. */
#ifndef WARDER_REPLAY_REPORT_STREAM_H
#define WARDER_REPLAY_REPORT_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <zlib.h>
#include "userspace/base/str.h"

#define REPORT_STREAM_CHUNK (48 * 1024) /* a multiple of 3: base64 without padding inside */

struct report_stream {
	int (*write)(void *arg, const void *p, size_t n);
	void *arg;
	z_stream z;
	bool is_open;
	uint64_t bytes; /* of data, not deflated */
	size_t n;	/* in `packed` */
	unsigned char packed[REPORT_STREAM_CHUNK];
	char text[REPORT_STREAM_CHUNK / 3 * 4 + 1];
};

static inline int report_stream_text(struct report_stream *s, const void *p, size_t n)
{
	return s->write(s->arg, p, n);
}

/* 0 or -ENOMEM. */
int report_stream_begin(struct report_stream *s);
/* 0, -EIO, or what `write` said. */
int report_stream_data(struct report_stream *s, struct str data);
int report_stream_end(struct report_stream *s);
void report_stream_done(struct report_stream *s);

#endif
