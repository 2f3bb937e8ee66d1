/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps what a session's output or terminal showed (userspace/store/terminal.h). Its own thread in the
 * engine: records come in over a SOCK_SEQPACKET socket, one a packet, pass the filter, and are written and
 * synced apart from the events, which only learn what is on disk. */
#ifndef WARDER_PIPELINE_RECORDER_H
#define WARDER_PIPELINE_RECORDER_H

#include "userspace/store/terminal.h"

#define RECORDER_LIMIT_DEFAULT (16ull << 20) /* bytes of each stream */
#define RECORDER_LIMIT_MAX     (1ull << 30)

/* Where secrets are taken out: bytes pass here before they are hashed or written. */
#define RECORDER_CHANNELS (TERMINAL_STREAMS + 1)
#define RECORDER_TYPED \
	TERMINAL_STREAMS /* the channel of what is typed; others are streams of output */

struct output_filter {
	/* Appends to `out` what may be kept of `in` so far; may hold bytes back for later. 0 or -errno:
	 * then nothing of `in` is kept. */
	int (*feed)(void *arg, int channel, struct str in, struct buf *out);
	/* It was silent for a while: what of it can do without what follows. */
	int (*idle)(void *arg, int channel, struct buf *out);
	/* What is still held back: the stream has ended. */
	int (*flush)(void *arg, int channel, struct buf *out);
	/* How many secrets were taken out so far. */
	uint64_t (*places)(void *arg);
	void *arg;
};

struct recorder_options {
	int fd;	       /* our end of the socket; closed by the recorder */
	int bundle_fd; /* borrowed */
	const char *session;
	uint64_t limit; /* bytes kept of each stream: first and last half; 0 = default */
	const struct output_filter *filter; /* NULL = none; borrowed */
};

struct recorder;

int recorder_start(struct recorder **ret, const struct recorder_options *opt, struct err *err);
void recorder_free(struct recorder *r);
/* Readable when there is a mark to tell. */
int recorder_fd(const struct recorder *r);
/* What is on disk and was not told. False: nothing. */
bool recorder_mark(struct recorder *r, struct terminal_mark *ret);
/* That mark is in the events' chain now. */
void recorder_told(struct recorder *r, const struct terminal_mark *mark);
/* Of the last attempt to write: 0 or -errno. */
int recorder_error(struct recorder *r);
/* Nobody writes to the socket any more: take what is left. 1: there is a recording, *ret is its end; 0:
 * there is none; -errno: its end could not be written. *ret_lost: bytes that could not be written. One mark may
 * be left to tell. */
int recorder_finish(struct recorder *r, struct terminal_end *ret, uint64_t *ret_lost);

#endif
