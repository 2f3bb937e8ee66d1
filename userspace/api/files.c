// SPDX-License-Identifier: Apache-2.0
/* Files of a sandbox, by commands that run inside, as its payload: paths are resolved there, with its rights, and what a
 * link points at is its own affair. What it answers can be a lie, but only about itself. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "exporters/scan.h"
#include "userspace/api/inside.h"
#include "userspace/api/route.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/option.h"

#define WAIT_NS	      (60 * NSEC_PER_SEC) /* for what is no stream */
#define ENTRIES_MAX   10000
#define ENTRIES_BYTES (4u << 20)
#define DEPTH_MAX     16
#define NOTE_MAX      256
#define UPLOAD_MAX    (4ull << 30)

/* ---- a command inside ---- */

struct inside {
	struct buf out;
	char note[NOTE_MAX]; /* what it said of its trouble */
	size_t note_n;
	bool cut; /* there was more */
};

/* Where a path is relative, the sandbox's working directory stands before it; never an option. */
static int path_of(struct call *c, const char **ret)
{
	const char *path = api_target_query(&c->target, "path");

	if (!path || !*path)
		return call_fail(c, 400, "query 'path' is needed");
	if (strlen(path) > 4000)
		return call_fail(c, 400, "query 'path': more than 4000 bytes");
	*ret = *path == '/' ? path : arena_printf(&c->arena, "./%s", path).p;
	return *ret ? 0 : call_fail(c, 500, "out of memory");
}

static int ask(struct call *c, const char *script, const char *path, const char *more)
{
	const char *argv[] = { "sh", "-c", script, "sh", path, more, NULL };
	const struct agent_request q = {
		.op = AGENT_EXEC, .sandbox = c->sandbox, .argv = argv, .argc = more ? 6 : 5
	};

	return call_ask(c, &q);
}

static void note(struct inside *in, struct str s)
{
	size_t n = MIN(s.n, NOTE_MAX - 1 - in->note_n);

	memcpy(in->note + in->note_n, s.p, n);
	in->note[in->note_n += n] = 0;
}

/* How it ended, as an error unless it is 0. */
static int judge(struct call *c, struct inside *in, struct str packet)
{
	const char *path = api_target_query(&c->target, "path");
	char word[32];
	uint64_t code = 1;

	parse_u64(scan_text(packet, "exit", word, sizeof(word)), &code);
	if (*scan_text(packet, "reason", word, sizeof(word)))
		return call_fail(c, 409, "the sandbox has ended: %s", word);
	in->note[strcspn(in->note, "\n")] = 0;
	switch (code) {
	case 0:
		return 0;
	case INSIDE_NOT_THERE:
		return call_fail(c, 404, "'%s' %s", path, inside_problem(code));
	case INSIDE_DENIED:
		return call_fail(c, 403, "'%s' %s", path, inside_problem(code));
	case INSIDE_IS_DIR:
	case INSIDE_NOT_DIR:
	case INSIDE_NO_FILE:
		return call_fail(c, 409, "'%s' %s", path, inside_problem(code));
	default:
		if (strstr(in->note, "No space left") || strstr(in->note, "quota exceeded"))
			return call_fail(c, 507, "%s", in->note);
		if (strstr(in->note, "ermission denied") || strstr(in->note, "Read-only"))
			return call_fail(c, 403, "%s", in->note);
		return call_fail(c, 422, "%s",
				 *in->note ? in->note : "a command in the sandbox failed");
	}
}

/* To its end; -1: the call has failed. */
static int gather(struct call *c, struct inside *in, size_t max)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + WAIT_NS;

	buf_init(&in->out, max + AGENT_FRAME_MAX);
	for (;;) {
		ssize_t n = call_next(c, deadline);
		struct str p, v;

		if (n < 0)
			return -1;
		p = call_packet(c, (size_t)n);
		if (call_is_data(c, 'e')) {
			note(in, (struct str){ p.p + 1, p.n - 1 });
		} else if (call_is_data(c, 'o') && in->out.n < max) {
			buf_add(&in->out, p.p + 1, p.n - 1);
		} else if (call_is_data(c, 'o')) {
			in->cut = true;
			upstream_done(&c->up); /* the command ends by its SIGPIPE */
			return 0;
		} else if (scan_find(p, "exit", &v)) {
			return judge(c, in, p);
		}
	}
}

static int run(struct call *c, struct inside *in, const char *script, const char *more, size_t max)
{
	const char *path;

	if (path_of(c, &path) < 0 || ask(c, script, path, more) < 0)
		return -1;
	if (upstream_input(&c->up, NULL, 0) < 0)
		return call_fail_errno(c, -EPIPE, "the sandbox");
	return gather(c, in, max);
}

/* ---- one file's bytes ---- */

static int more_read(struct call *c)
{
	for (;;) {
		ssize_t n = upstream_next(&c->up, 0);
		struct str p = { c->up.packet, n > 0 ? (size_t)n : 0 };
		char code[16];

		if (n < 0)
			return (int)n;
		if (call_is_data(c, 'o')) {
			buf_add(&c->out, p.p + 1, p.n - 1);
			if (p.n > 1)
				return 1;
			continue;
		}
		if (*p.p != '{')
			continue;
		scan_text(p, "exit", code, sizeof(code));
		if (*code)
			return strcmp(code, "0") ? -EIO : 0;
	}
}

int answer_read(struct call *c)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + WAIT_NS;
	struct inside in = { 0 };
	const char *path;

	if (path_of(c, &path) < 0 || ask(c, inside_read, path, NULL) < 0)
		return -1;
	upstream_input(&c->up, NULL, 0);
	for (;;) {
		ssize_t n = call_next(c, deadline);
		struct str p, v;

		if (n < 0)
			return -1;
		p = call_packet(c, (size_t)n);
		if (call_is_data(c, 'e')) {
			note(&in, (struct str){ p.p + 1, p.n - 1 });
		} else if (call_is_data(c, 'o') && n > 1) {
			buf_add(&c->out, p.p + 2, p.n - 2);
			break;
		} else if (scan_find(p, "exit", &v)) {
			if (judge(c, &in, p) == 0)
				call_fail(c, 500, "the sandbox's shell did not do as it was told");
			return -1;
		}
	}
	c->status = 200;
	c->form = FORM_BYTES;
	c->more = more_read;
	return 0;
}

int begin_write(struct call *c)
{
	const char *mode = api_target_query(&c->target, "mode"), *path;

	if (mode && (strlen(mode) > 4 || strspn(mode, "01234567") != strlen(mode) || !*mode))
		return call_fail(c, 400, "query 'mode': expected octal digits, like 755");
	if (path_of(c, &path) < 0)
		return -1;
	return ask(c, inside_write, path, mode ? mode : "");
}

int data_write(struct call *c, const char *p, size_t n)
{
	if (c->body_n > UPLOAD_MAX)
		return call_fail(c, 413, "more than %llu bytes", (unsigned long long)UPLOAD_MAX);
	while (n) {
		int r = upstream_input(&c->up, p, n);

		if (r < 0) /* why, the answer tells: what it said comes first */
			return -1;
		p += r;
		n -= (size_t)r;
	}
	return 0;
}

int answer_write(struct call *c)
{
	struct inside in = { 0 };
	struct json j;
	int r;

	if (!c->body_bad)
		upstream_input(&c->up, NULL, 0);
	r = gather(c, &in, NOTE_MAX);
	buf_done(&in.out);
	if (r < 0)
		return -1;
	call_json(c, 201, &j);
	json_object_begin(&j);
	json_key(&j, "path");
	json_strz(&j, api_target_query(&c->target, "path"));
	json_key(&j, "size");
	json_u64(&j, c->body_n);
	json_object_end(&j);
	return 0;
}

int answer_unlink(struct call *c)
{
	struct inside in = { 0 };
	int r = run(c, &in, inside_unlink, NULL, NOTE_MAX);

	buf_done(&in.out);
	if (r == 0)
		c->status = 204;
	return r;
}

int answer_mkdir(struct call *c)
{
	struct inside in = { 0 };
	int r = run(c, &in, inside_mkdir, NULL, NOTE_MAX);
	bool made = in.out.n && in.out.p[0] == '1';
	struct json j;

	buf_done(&in.out);
	if (r < 0)
		return r;
	call_json(c, made ? 201 : 200, &j);
	json_object_begin(&j);
	json_key(&j, "created");
	json_bool(&j, made);
	json_object_end(&j);
	return 0;
}

/* ---- what is there ---- */

int answer_entries(struct call *c)
{
	struct inside in = { 0 };
	uint64_t depth = 1;
	bool cut;
	char text[24];
	struct json j;

	if (call_number(c, "depth", DEPTH_MAX, &depth) < 0)
		return -1;
	if (!depth)
		return call_fail(c, 400, "query 'depth': at least 1");
	snprintf(text, sizeof(text), "%" PRIu64, depth);
	if (run(c, &in, inside_list, text, ENTRIES_BYTES) < 0) {
		buf_done(&in.out);
		return -1;
	}
	call_json(c, 200, &j);
	json_object_begin(&j);
	json_key(&j, "entries");
	json_array_begin(&j);
	cut = inside_entries(&j, (struct str){ in.out.p, in.out.n }, ENTRIES_MAX);
	json_array_end(&j);
	json_key(&j, "truncated");
	json_bool(&j, in.cut || cut);
	json_object_end(&j);
	buf_done(&in.out);
	return 0;
}

int answer_stat(struct call *c)
{
	struct inside in = { 0 };
	struct json j;
	int r = run(c, &in, inside_stat, NULL, ENTRIES_BYTES);

	if (r == 0) {
		call_json(c, 200, &j);
		if (inside_entries(&j, (struct str){ in.out.p, in.out.n }, 1) || !c->out.n)
			r = call_fail(c, 500, "the sandbox's find did not do as it was told");
	}
	buf_done(&in.out);
	return r;
}
