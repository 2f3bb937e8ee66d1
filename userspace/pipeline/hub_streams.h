/* SPDX-License-Identifier: Apache-2.0 */
/* The hub's tables: commands, who reads them, and what waits between the two. */
#ifndef WARDER_PIPELINE_HUB_STREAMS_H
#define WARDER_PIPELINE_HUB_STREAMS_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include "runtime/sandbox.h"
#include "userspace/base/arena.h"
#include "userspace/base/buf.h"
#include "userspace/pipeline/agent_frame.h"
#include "userspace/pipeline/hub.h"

#define HUB_STREAMS_MAX (1 + SANDBOX_EXECS_MAX)
#define HUB_QUEUE_MAX	(512 * 1024)  /* of one client; more: it is dropped */
#define HUB_RING_MAX	(64 * 1024)   /* of the first command, for who attaches */
#define HUB_INPUT_MAX	(1024 * 1024) /* typed and not yet taken */
#define HUB_TICK_MS	50
#define HUB_STUCK_NS	(5 * NSEC_PER_SEC)
#define HUB_LAST_NS	(10 * NSEC_PER_SEC) /* after the sandbox's end */
#define HUB_RULE_NS \
	(3 * NSEC_PER_SEC) /* from a process that a rule killed to the end of its sandbox */
#define EXIT_OURS 125

struct hub_client;

struct hub_stream {
	bool used, tty, in_eof, in_closed;
	uint32_t id; /* 0 = the first command */
	int in, out, err;
	struct hub_client *owner; /* reads at its own pace; NULL: nobody has to */
	uint64_t done, heard;	  /* CLOCK_MONOTONIC: it ended, its last output; 0 = it runs */
	int code, signal;
	bool asked; /* a client sent it a signal */
	struct buf input;
};

struct hub_client {
	int fd; /* -1 = free */
	struct hub_stream *stream;
	bool leaving;	  /* once the queue is empty */
	struct buf queue; /* packets behind their lengths */
};

struct hub {
	int keeper, listen;
	bool let_go, attachable;
	struct hub_stream stream[HUB_STREAMS_MAX];
	struct hub_client client[HUB_CLIENTS_MAX];
	uint32_t last_id;
	int told_clients;
	uint64_t finished;
	char result[64];
	struct buf ring, text;
	struct arena arena;
	struct hub_msg msg;
	char packet[AGENT_FRAME_MAX];
};

struct hub_poll {
	struct pollfd fds[2 + 3 * HUB_STREAMS_MAX + HUB_CLIENTS_MAX];
	nfds_t n;
	int client[HUB_CLIENTS_MAX]; /* index in fds; -1 */
};

void hub_stream_first(struct hub *h, int in, int out, int err, bool tty);
struct hub_stream *hub_stream_add(struct hub *h);
struct hub_stream *hub_stream_find(struct hub *h, uint32_t id);
/* `which`: 0, 1, 2 */
void hub_stream_open(struct hub_stream *s, int which, int fd);
void hub_stream_free(struct hub_stream *s);
void hub_stream_input(struct hub_stream *s, const char *p, size_t n);
/* Pass on what there is in both directions, without waiting. */
void hub_stream_pump(struct hub *h, struct hub_stream *s);
/* Done, and nothing more is to come? */
bool hub_stream_is_dry(const struct hub_stream *s, uint64_t now);

void hub_client_queue(struct hub_client *c, const void *p, size_t n);
void hub_client_data(struct hub_client *c, char letter, const char *p, size_t n);
/* False: it has gone, or is to go. */
bool hub_client_flush(struct hub_client *c);

void hub_poll_set(struct hub *h, struct hub_poll *p);

#endif
