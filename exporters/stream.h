/* SPDX-License-Identifier: Apache-2.0 */
/* A connection out that never blocks: TCP, TLS over TCP, UDP, or a unix socket. Names are resolved in the
 * background, lost connections come back with growing pauses. */
#ifndef WARDER_EXPORTERS_STREAM_H
#define WARDER_EXPORTERS_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "userspace/base/err.h"

#define STREAM_RETRY_MIN_NS 100000000ull
#define STREAM_RETRY_MAX_NS 10000000000ull
/* Connecting and the TLS handshake must end within this. */
#define STREAM_CONNECT_NS 20000000000ull
/* The kernel gives a peer up that acknowledges nothing for so long. */
#define STREAM_DEAD_MS 30000
/* Who says more than this, and twice what was said to him, talks without end. */
#define STREAM_HEARD_MAX (64 * 1024)

/* STREAM_JOURNALD: journald's own protocol, over a unix datagram socket. */
enum stream_kind { STREAM_TCP, STREAM_TLS, STREAM_UDP, STREAM_UNIX, STREAM_JOURNALD };

struct stream_options {
	enum stream_kind kind;
	const char *host; /* or the path of a unix socket */
	const char *port;
	/* TLS; NULL = none */
	const char *ca, *cert, *key;
	bool insecure; /* do not verify the other side */
};

struct stream;

/* "tcp://host:port", "tls://[::1]:6514", "udp://host", "unix:/path" (or "unix:///path"). Writes host and
 * port into `text`'s memory. */
int stream_parse(struct stream_options *ret, char *text, const char *default_port, struct err *err);
/* Reads the key files, connects later. -EINVAL etc. when they are unusable. */
int stream_new(struct stream **ret, const struct stream_options *opt, struct err *err);
void stream_free(struct stream *s);

/* Go on connecting, notice what the other side did. Returns true when data can be written. A connection
 * that is lost shows as false at least once: what was not confirmed in it is lost with it. */
bool stream_drive(struct stream *s);
/* The other side works: the next lost connection is tried again soon. */
void stream_works(struct stream *s);
/* Bytes taken; 0 = not now; -errno: for datagrams -EMSGSIZE, else the connection is gone. */
ssize_t stream_write(struct stream *s, const void *p, size_t n);
/* The same for a datagram that is larger than the socket takes: in a sealed memory file, as journald has
 * it. Returns n or what stream_write does. */
ssize_t stream_write_file(struct stream *s, const void *p, size_t n);
/* Bytes on the wire so far in this connection, and how many of them the other side's kernel has
 * acknowledged (datagrams: all). */
uint64_t stream_written(const struct stream *s);
uint64_t stream_confirmed(const struct stream *s);

/* What poll(2) should wait for, and after how many ms to call stream_drive anyway (0 = no need). */
int stream_fd(const struct stream *s, short *ret_events);
int stream_retry_ms(const struct stream *s);
/* Why there is no connection; "" when there is. */
const char *stream_text(const struct stream *s);
bool stream_is_datagram(const struct stream *s);
enum stream_kind stream_kind(const struct stream *s);

#endif
