/* SPDX-License-Identifier: Apache-2.0 */
/* Where a sentry tells what its guest does: the receiving end of gVisor's seccheck "remote" sink, in the engine. One
 * listening socket and one connection a sandbox, so who says something is known by the connection, never by what is in
 * it. A thread of its own takes packets off the socket, whose buffer holds some 270 of them, and puts them unread into
 * a large ring; when that is full it leaves them where they are, and the guest waits.
 *
 * The other end may be in the hands of what it guards: whatever it does is counted, and costs no more than the ring. */
#ifndef WARDER_RUNTIME_GVISOR_SINK_H
#define WARDER_RUNTIME_GVISOR_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "userspace/base/err.h"
#include "userspace/base/str.h"

#define GVISOR_RING_DEFAULT (8u << 20)
/* Connections beyond the first one are closed at once; after so many of them nobody listens any more. */
#define GVISOR_STRANGERS_MAX 64
#define GVISOR_HANDSHAKE_MS  5000
#define GVISOR_BACKLOG	     16
/* So much at once in the socket, with what the kernel adds to each packet, is half of the smallest buffer that a host
 * gives: below it nothing is lost. */
#define GVISOR_FULL_BYTES  65536
#define GVISOR_FULL_PACKET 768
#define GVISOR_FULL_NS	   30000000000ull

enum gvisor_sink_state {
	GVISOR_SINK_WAITING, /* nobody has connected */
	GVISOR_SINK_GREETED, /* connected, and has not said hello yet */
	GVISOR_SINK_OPEN,
	GVISOR_SINK_CLOSED, /* its end is closed, or it did not keep to the rules */
};

/* What the engine tells the root part, over the pair of struct gvisor_guest. */
enum gvisor_news_what {
	GVISOR_NEWS_OPEN = 1, /* connected and greeted; who it was */
	GVISOR_NEWS_STARTED,  /* the container's start was told */
	GVISOR_NEWS_ENDED,    /* process 1 of the guest; how */
	GVISOR_NEWS_CLOSED,   /* and all that came was read */
};

struct gvisor_news {
	uint32_t what;
	int32_t pid; /* OPEN: who connected (SO_PEERCRED) */
	uint32_t uid;
	uint32_t status; /* ENDED: as wait(2) has it */
};

struct gvisor_sink_options {
	int listen_fd; /* closed by the sink */
	int news_fd;   /* the same; -1 = nobody is told */
	size_t ring;   /* bytes, a power of two; 0 = GVISOR_RING_DEFAULT */
	/* Last component of the control group that who connects must be in; NULL = it is not looked at. */
	const char *cgroup;
	int handshake_ms; /* 0 = GVISOR_HANDSHAKE_MS */
};

/* All but `state` only grow. */
struct gvisor_sink_stats {
	enum gvisor_sink_state state;
	uint64_t packets, bytes;
	uint64_t strangers; /* connections that were refused: one too many, or of somebody else */
	uint64_t bad_hello; /* no handshake in time, or another version */
	uint64_t oversize;  /* packets beyond SECCHECK_PACKET_MAX, dropped */
	uint64_t full;	    /* how often the ring was full, and the guest had to wait */
};

struct gvisor_sink;

int gvisor_sink_start(struct gvisor_sink **ret, const struct gvisor_sink_options *opt,
		      struct err *err);
void gvisor_sink_free(struct gvisor_sink *s);
/* Readable when there is a packet, or when something of the stats changed; -1 without a sink. */
int gvisor_sink_fd(const struct gvisor_sink *s);

struct gvisor_packet {
	struct str bytes; /* until the next call */
	uint64_t boot_ns; /* CLOCK_BOOTTIME when it was taken off the socket */
	/* The answer to gvisor_sink_ask, and no packet: every one that was sent before boot_ns came before this. */
	bool is_answer;
	bool was_full; /* lately the socket may have been, so that packets were lost */
};

/* An answer is wanted: struct gvisor_packet. */
void gvisor_sink_ask(struct gvisor_sink *s);
/* Once it is closed. */
bool gvisor_sink_was_full(const struct gvisor_sink *s);

/* The next packet. False: none is there, and gvisor_sink_fd will be readable when one is. */
bool gvisor_sink_next(struct gvisor_sink *s, struct gvisor_packet *ret);
void gvisor_sink_stats(const struct gvisor_sink *s, struct gvisor_sink_stats *ret);
/* To the root part. */
void gvisor_sink_tell(const struct gvisor_sink *s, enum gvisor_news_what what, uint32_t status);

#endif
