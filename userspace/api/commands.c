// SPDX-License-Identifier: Apache-2.0
/* A command in a sandbox: its output as it comes, or all of it at the end. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/scan.h"
#include "userspace/api/body.h"
#include "userspace/api/route.h"
#include "userspace/api/stream.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/option.h"

#define TIMEOUT_DEFAULT 60 /* s, as in E2B */
#define TIMEOUT_MAX	(7 * 86400)
#define KILL_WAIT_NS	(5 * NSEC_PER_SEC)
#define OUTPUT_DEFAULT	(1u << 20)
#define OUTPUT_MAX	(8u << 20)
#define EXIT_TIMEOUT	124
#define EXIT_OURS	125

struct command {
	bool base64, killed, over;
	ssize_t held; /* a packet that was looked at and is still to be taken; 0 */
	uint64_t deadline;
	struct text_carry carry[2];
	/* sent whole: */
	struct buf *whole; /* two */
	uint64_t max, bytes[2];
	/* how it ended */
	int code, signal;
	char reason[32], error[512];
	bool sandbox_ended;
};

static const char *const STREAMS[] = { "stdout", "stderr" };

/* ---- what the agent says of it ---- */

static void note_exit(struct command *k, struct str packet)
{
	char word[64];
	uint64_t n = EXIT_OURS;

	k->over = true;
	parse_u64(scan_text(packet, "exit", word, sizeof(word)), &n);
	k->code = (int)MIN(n, 255ull);
	n = 0;
	parse_u64(scan_text(packet, "signal", word, sizeof(word)), &n);
	k->signal = (int)MIN(n, 64ull);
	scan_text(packet, "reason", k->reason, sizeof(k->reason));
	k->sandbox_ended = *k->reason;
	if (k->killed && !k->sandbox_ended) {
		k->code = EXIT_TIMEOUT;
		snprintf(k->reason, sizeof(k->reason), "timeout");
	} else if (!*k->reason) {
		snprintf(k->reason, sizeof(k->reason), k->signal ? "signal" : "exit");
	}
}

/* A command that could not be started has a result, too: 126, 127. False: it is none of that kind. */
static bool note_error(struct command *k, struct str packet)
{
	char word[16];
	uint64_t code = 0;

	if (*scan_text(packet, "errno", word, sizeof(word)) ||
	    parse_u64(scan_text(packet, "code", word, sizeof(word)), &code) < 0 ||
	    (code != 126 && code != 127))
		return false;
	k->over = true;
	k->code = (int)code;
	scan_text(packet, "error", k->error, sizeof(k->error));
	snprintf(k->reason, sizeof(k->reason), "not_started");
	return true;
}

/* The next packet, and the time limit. -errno as upstream_next. */
static ssize_t next(struct call *c, struct command *k)
{
	ssize_t n = k->held ? k->held : upstream_next(&c->up, k->deadline);

	k->held = 0;
	while (n == -ETIMEDOUT && !k->killed) {
		k->killed = true;
		upstream_say(&c->up,
			     &(struct agent_request){ .op = AGENT_SIGNAL, .signal = SIGKILL });
		k->deadline = clock_ns(CLOCK_MONOTONIC) + KILL_WAIT_NS;
		n = upstream_next(&c->up, k->deadline);
	}
	if (n != -ETIMEDOUT)
		return n;
	/* A killed one whose output somebody else holds open, who left its process group. */
	k->over = true;
	k->code = EXIT_TIMEOUT;
	snprintf(k->reason, sizeof(k->reason), "timeout");
	upstream_done(&c->up);
	return 0;
}

static void put_end(struct json *j, const struct command *k)
{
	json_key(j, "exitCode");
	json_i64(j, k->code);
	json_key(j, "reason");
	json_strz(j, k->reason);
	if (k->signal) {
		json_key(j, "signal");
		json_i64(j, k->signal);
	}
	if (k->sandbox_ended) {
		json_key(j, "sandboxEnded");
		json_bool(j, true);
	}
	if (*k->error) {
		json_key(j, "error");
		json_strz(j, k->error);
	}
}

/* ---- as it comes ---- */

static int more(struct call *c)
{
	struct command *k = c->state;
	ssize_t n = k->over ? 0 : next(c, k);
	struct str p, v;
	struct json j;

	if (n < 0) {
		stream_error(c, "the agent, or the sandbox's keeper, has gone away");
		return n == -ECANCELED ? -ECANCELED : 0;
	}
	p = call_packet(c, (size_t)n);
	if (n && (call_is_data(c, 'o') || call_is_data(c, 'e'))) {
		int i = call_is_data(c, 'e');

		stream_data(c, STREAMS[i], &k->carry[i], (struct str){ p.p + 1, p.n - 1 },
			    k->base64, false);
		return 1;
	}
	if (n && scan_find(p, "error", &v)) {
		stream_error(c, NULL);
		return 0;
	}
	if (n && !scan_find(p, "exit", &v))
		return 1;
	if (n)
		note_exit(k, p);
	for (int i = 0; i < 2; i++)
		stream_data(c, STREAMS[i], &k->carry[i], (struct str){ 0 }, k->base64, true);
	stream_begin(c, "end", &j);
	put_end(&j, k);
	stream_end(c, &j);
	return 0;
}

static int begin_stream(struct call *c, struct command *k)
{
	struct json j;

	c->status = 200;
	c->form = c->accept == FORM_SSE ? FORM_SSE : FORM_NDJSON;
	c->state = k;
	stream_begin(c, "start", &j);
	stream_end(c, &j);
	c->more = more;
	return 0;
}

/* ---- at the end ---- */

static void take(struct command *k, int i, struct str s)
{
	size_t room = k->max - MIN(k->whole[i].n, k->max);

	k->bytes[i] += s.n;
	buf_add(&k->whole[i], s.p, MIN(s.n, room));
}

static int put_result(struct call *c, struct command *k)
{
	static const char *const bytes[] = { "stdoutBytes", "stderrBytes" };
	static const char *const cut[] = { "stdoutTruncated", "stderrTruncated" };
	struct json j;

	call_json(c, 200, &j);
	json_object_begin(&j);
	put_end(&j, k);
	for (int i = 0; i < 2; i++) {
		stream_bytes(&j, STREAMS[i], &k->carry[i],
			     (struct str){ k->whole[i].p, k->whole[i].n }, k->base64, true);
		json_key(&j, bytes[i]);
		json_u64(&j, k->bytes[i]);
		json_key(&j, cut[i]);
		json_bool(&j, k->bytes[i] > k->whole[i].n);
	}
	json_key(&j, "encoding");
	json_strz(&j, k->base64 ? "base64" : "utf-8");
	json_object_end(&j);
	return 0;
}

static int gather(struct call *c, struct command *k)
{
	while (!k->over) {
		ssize_t n = next(c, k);
		struct str p, v;

		if (n < 0)
			return call_fail_errno(c, (int)n, "the command");
		p = call_packet(c, (size_t)n);
		if (!n)
			break;
		if (call_is_data(c, 'o') || call_is_data(c, 'e'))
			take(k, call_is_data(c, 'e'), (struct str){ p.p + 1, p.n - 1 });
		else if (scan_find(p, "error", &v))
			return call_fail_packet(c, p);
		else if (scan_find(p, "exit", &v))
			note_exit(k, p);
	}
	return put_result(c, k);
}

/* ---- the start ---- */

static int let_go(struct call *c)
{
	struct json j;
	struct str v;
	ssize_t n;

	if (upstream_say(&c->up, &(struct agent_request){ .op = AGENT_DETACH }) < 0)
		return call_fail_errno(c, -EPIPE, "the command");
	do {
		n = call_next(c, 0);
		if (n < 0)
			return -1;
	} while (c->up.packet[0] != '{' || (!scan_find(call_packet(c, (size_t)n), "detached", &v) &&
					    !scan_find(call_packet(c, (size_t)n), "exit", &v)));
	call_json(c, 202, &j);
	json_object_begin(&j);
	json_key(&j, "background");
	json_bool(&j, true);
	json_object_end(&j);
	return 0;
}

/* 1: it runs; 0: it could not, and k says so. */
static int await_start(struct call *c, struct command *k)
{
	ssize_t n = next(c, k);
	struct str p, v;

	if (n < 0)
		return call_fail_errno(c, (int)n, "the command");
	p = call_packet(c, (size_t)n);
	if (n && scan_find(p, "error", &v))
		return note_error(k, p) ? 0 : call_fail_packet(c, p);
	if (n && !scan_find(p, "started", &v))
		k->held = n; /* its output was faster than the word of its start */
	return n > 0;
}

static int run(struct call *c, struct command *k, const struct api_command *body, bool stream)
{
	const char *shell[] = { "sh", "-c", body->cmd, NULL };
	struct agent_request q = { .op = AGENT_EXEC, .sandbox = c->sandbox, .cwd = body->cwd };
	size_t n = body->stdin_text ? strlen(body->stdin_text) : 0, at = 0;
	int r = 0;

	q.argv = body->cmd ? shell : body->args.v;
	q.argc = body->cmd ? 3 : body->args.n;
	q.env = body->envs.v;
	q.env_n = body->envs.n;
	if (call_ask(c, &q) < 0)
		return -1;
	/* A background command's input is its end, like that of the others. */
	while (r >= 0 && at < n) {
		r = upstream_input(&c->up, body->stdin_text + at, n - at);
		at += r > 0 ? (size_t)r : 0;
	}
	if (r >= 0)
		r = upstream_input(&c->up, NULL, 0);
	r = await_start(c, k);
	if (r < 0)
		return -1;
	if (r > 0 && body->background.v)
		return let_go(c);
	return stream ? begin_stream(c, k) : gather(c, k);
}

int answer_command(struct call *c)
{
	struct command *k = arena_zalloc(&c->arena, sizeof(*k));
	struct buf whole[2] = { { 0 }, { 0 } };
	struct api_command body;
	struct err err = { 0 };
	uint64_t seconds;
	bool stream;
	int r;

	if (call_flag(c, "stream", &stream) < 0)
		return -1;
	if (!k ||
	    api_command_parse(&body, &c->arena, (struct str){ c->body.p, c->body.n }, &err) < 0)
		return call_fail(c, 400, "%s", err_text(&err));
	seconds = body.timeout.given ? body.timeout.v : TIMEOUT_DEFAULT;
	if (seconds > TIMEOUT_MAX)
		return call_fail(c, 400, "body: 'timeout': more than %d seconds", TIMEOUT_MAX);
	k->max = body.max_output.given ? body.max_output.v : OUTPUT_DEFAULT;
	if (k->max > OUTPUT_MAX)
		return call_fail(c, 400, "body: 'maxOutput': more than %u bytes: take the stream",
				 OUTPUT_MAX);
	k->base64 = body.encoding && !strcmp(body.encoding, "base64");
	k->deadline = seconds && !body.background.v
			      ? clock_ns(CLOCK_MONOTONIC) + seconds * NSEC_PER_SEC
			      : 0;
	k->whole = whole;
	r = run(c, k, &body, stream || c->accept == FORM_NDJSON || c->accept == FORM_SSE);
	k->whole = NULL;
	buf_done(&whole[0]);
	buf_done(&whole[1]);
	return r;
}
