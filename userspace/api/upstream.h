/* SPDX-License-Identifier: Apache-2.0 */
/* The way from the front to the agent: a pair of sockets for each question, one end of which goes there together with
 * the HTTP client's own socket, by which the agent knows who asks. */
#ifndef WARDER_API_UPSTREAM_H
#define WARDER_API_UPSTREAM_H

#include <stdint.h>
#include <sys/types.h>
#include "userspace/pipeline/agent_frame.h"

struct upstream {
	int fd;				  /* -1: none */
	int http;			  /* the client: when it has gone, so have we */
	char packet[AGENT_FRAME_MAX + 1]; /* a NUL behind it */
};

void upstream_done(struct upstream *u);
/* -EPIPE: there is no agent any more. */
int upstream_ask(struct upstream *u, int channel, int http, const struct agent_request *q);
int upstream_say(struct upstream *u, const struct agent_request *q);
/* The next packet: its bytes. `deadline`: CLOCK_MONOTONIC, 0 = none. -ETIMEDOUT; -ECANCELED: the client has gone;
 * -EPIPE: the agent's side has. */
ssize_t upstream_next(struct upstream *u, uint64_t deadline);
/* Input of a command; waits, and goes on hearing nothing, until it is taken. */
int upstream_input(struct upstream *u, const char *p, size_t n);

/* The agent's end: *ret_client to answer, *ret_peer to ask who it is. 0: there is nothing; -EPIPE: the front has gone;
 * -EPROTO: that was no question. */
int upstream_take(int channel, int *ret_client, int *ret_peer);

#endif
