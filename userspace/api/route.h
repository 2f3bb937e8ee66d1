/* SPDX-License-Identifier: Apache-2.0 */
/* What can be asked: a row each. openapi.json has the same rows, and a test compares the two. */
#ifndef WARDER_API_ROUTE_H
#define WARDER_API_ROUTE_H

#include "userspace/api/call.h"

enum route_body {
	BODY_NONE,
	BODY_JSON, /* whole, at most API_BODY_MAX */
	BODY_RAW,  /* as it comes, by `data` */
};

struct route {
	const char *method, *path; /* "{...}": any one part */
	enum route_body body;
	const char *query[8]; /* names that it knows */
	/* The answer, when the request is whole. -1: it is an error. */
	int (*answer)(struct call *c);
	/* BODY_RAW: before the first byte, and each piece. -1: the rest is not wanted. */
	int (*begin)(struct call *c);
	int (*data)(struct call *c, const char *p, size_t n);
};

extern const struct route api_routes[];
extern const size_t api_routes_n;

/* By method and c->target; fills route and sandbox, or fails the call with 404 or 405. */
int route_find(struct call *c);

/* sandboxes.c */
int answer_create(struct call *c);
int answer_list(struct call *c);
int answer_get(struct call *c);
int answer_remove(struct call *c);
int answer_pause(struct call *c);
int answer_resume(struct call *c);
/* snapshots.c */
int answer_snapshot(struct call *c);
int answer_snapshots(struct call *c);
int answer_forget(struct call *c);
/* commands.c */
int answer_command(struct call *c);
/* files.c */
int answer_read(struct call *c);
int begin_write(struct call *c);
int data_write(struct call *c, const char *p, size_t n);
int answer_write(struct call *c);
int answer_unlink(struct call *c);
int answer_mkdir(struct call *c);
int answer_entries(struct call *c);
int answer_stat(struct call *c);
/* follow.c */
int answer_logs(struct call *c);
int answer_events(struct call *c);
/* route.c */
int answer_version(struct call *c);
int answer_openapi(struct call *c);

#endif
