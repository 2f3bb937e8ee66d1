/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP request, from its head to its answer, on a thread of its own connection. */
#ifndef WARDER_API_CALL_H
#define WARDER_API_CALL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "userspace/api/target.h"
#include "userspace/api/upstream.h"
#include "userspace/base/arena.h"
#include "userspace/base/buf.h"
#include "userspace/base/json.h"

#define CALL_OUT_MAX	 (32u << 20) /* an answer that is sent whole */
#define CALL_ARENA_MAX	 (2u << 20)
#define CALL_HEADERS_MAX 64

struct MHD_Connection;
struct call;

enum call_form {
	FORM_JSON,   /* one object */
	FORM_NDJSON, /* one a line */
	FORM_SSE,    /* server-sent events (WHATWG HTML 9.2) */
	FORM_BYTES,
};

struct call {
	struct MHD_Connection *connection;
	int http, channel;
	uid_t uid;
	pid_t pid;
	uint64_t begun; /* CLOCK_MONOTONIC */
	char *raw;	/* the target as it came */
	const char *method;
	const struct route *route;
	struct api_target target;
	const char *sandbox;   /* what stands for the braces of the route's path */
	enum call_form accept; /* what the client prefers */
	struct arena arena;
	struct upstream up;

	/* the request's body */
	struct buf body;
	uint64_t body_n;
	bool body_bad; /* the rest of it is not looked at */

	/* the answer */
	unsigned status;
	enum call_form form;
	struct buf out; /* of FORM_JSON and errors all; else what is ready */
	size_t out_at;
	const char *allow; /* 405: what is */
	/* More of a stream into `out`: 1; 0 = that was all; -errno: it breaks off. NULL: `out` is all. */
	int (*more)(struct call *c);
	void *state; /* its own, of the arena */
	uint64_t sent;
	bool answered;
	bool whole; /* all of it was given away */
};

/* An error as the answer: {"code","type","message"}. Returns -1. */
int call_fail(struct call *c, unsigned status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* From a negative errno of ours. */
int call_fail_errno(struct call *c, int r, const char *what);
/* From the agent's packet {"error":...}. */
int call_fail_packet(struct call *c, struct str packet);

/* Ask the agent; fails the call. */
int call_ask(struct call *c, const struct agent_request *q);
/* The next packet that is no error; errors and an end fail the call. -1, or its length. */
ssize_t call_next(struct call *c, uint64_t deadline);

/* What a client made of the packet at hand. */
bool call_is_data(const struct call *c, char letter);
struct str call_packet(const struct call *c, size_t n);

/* Begin the answer: 200 and so on with one JSON value, written by the caller through *j. */
void call_json(struct call *c, unsigned status, struct json *j);
/* A query by name; is it "true"? A value that is none fails the call: -1. */
int call_flag(struct call *c, const char *key, bool *ret);
int call_number(struct call *c, const char *key, uint64_t max, uint64_t *ret);

#endif
