// SPDX-License-Identifier: Apache-2.0
/* What a sandbox's commands wrote, and its events: from the record, while it grows. */
#include <string.h>

#include "exporters/scan.h"
#include "userspace/api/route.h"
#include "userspace/api/stream.h"
#include "userspace/base/auto.h"

struct follow {
	struct text_carry carry[2];
	bool base64;
	bool in_line; /* server-sent events: one is begun */
};

/* The next packet: its length; 0 = the end; -ECANCELED. */
static ssize_t next(struct call *c)
{
	ssize_t n = upstream_next(&c->up, 0);
	struct str v;

	if (n == -ECANCELED)
		return n;
	if (n < 0 ||
	    (c->up.packet[0] == '{' && scan_find(call_packet(c, (size_t)n), "error", &v))) {
		stream_error(c, n < 0 ? "the agent has gone away" : NULL);
		return 0;
	}
	return c->up.packet[0] == '{' ? 0 : n;
}

/* What is wrong from the start is an error, not a stream. */
static int begin(struct call *c, const struct agent_request *q, struct follow *f,
		 int (*more)(struct call *c))
{
	if (!f)
		return call_fail(c, 500, "out of memory");
	if (call_ask(c, q) < 0)
		return -1;
	if (call_next(c, 0) < 0) /* {"opened":true} */
		return -1;
	c->status = 200;
	c->form = c->accept == FORM_SSE ? FORM_SSE : FORM_NDJSON;
	c->state = f;
	c->more = more;
	return 0;
}

static int more_logs(struct call *c)
{
	static const char *const names[] = { "stdout", "stderr" };
	struct follow *f = c->state;
	ssize_t n = next(c);

	if (n > 0) {
		int i = call_is_data(c, 'e');

		stream_data(c, names[i], &f->carry[i],
			    (struct str){ c->up.packet + 1, (size_t)n - 1 }, f->base64, false);
		return 1;
	}
	for (int i = 0; n == 0 && i < 2; i++)
		stream_data(c, names[i], &f->carry[i], (struct str){ 0 }, f->base64, true);
	return (int)n;
}

/* Lines, in pieces as they come. */
static int more_events(struct call *c)
{
	struct follow *f = c->state;
	ssize_t n = next(c);
	struct str s = { c->up.packet + 1, n > 0 ? (size_t)n - 1 : 0 };

	if (n > 0 && c->form == FORM_NDJSON)
		buf_add(&c->out, s.p, s.n);
	while (n > 0 && c->form == FORM_SSE && s.n) {
		const char *end = memchr(s.p, '\n', s.n);
		size_t len = end ? (size_t)(end - s.p) : s.n;

		if (!f->in_line)
			buf_addz(&c->out, "event: event\ndata: ");
		buf_add(&c->out, s.p, len);
		f->in_line = !end;
		if (end)
			buf_addz(&c->out, "\n\n");
		s.p += len + (end ? 1 : 0);
		s.n -= len + (end ? 1 : 0);
	}
	return n > 0 ? 1 : (int)n;
}

int answer_logs(struct call *c)
{
	struct follow *f = arena_zalloc(&c->arena, sizeof(*f));
	struct agent_request q = { .op = AGENT_LOGS, .sandbox = c->sandbox };
	const char *encoding = api_target_query(&c->target, "encoding");

	if (encoding && strcmp(encoding, "utf-8") && strcmp(encoding, "base64"))
		return call_fail(c, 400, "query 'encoding': expected utf-8 or base64");
	if (f && encoding)
		f->base64 = !strcmp(encoding, "base64");
	if (call_flag(c, "follow", &q.follow) < 0)
		return -1;
	return begin(c, &q, f, more_logs);
}

int answer_events(struct call *c)
{
	struct follow *f = arena_zalloc(&c->arena, sizeof(*f));
	struct agent_request q = { .op = AGENT_EVENTS, .sandbox = c->sandbox };

	q.filter = api_target_query(&c->target, "filter");
	if (call_flag(c, "follow", &q.follow) < 0)
		return -1;
	return begin(c, &q, f, more_events);
}
