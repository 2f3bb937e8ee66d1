// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "userspace/api/inside.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/option.h"
#include "userspace/cli/mcp.h"
#include "userspace/cli/util.h"

#define FILE_WAIT_NS (60 * NSEC_PER_SEC)
#define EXIT_TIMEOUT 124
#define EXIT_OURS    125
#define ARENA_MAX    (8 * MCP_LINE_MAX)

static const struct {
	const char *name;
	size_t needs; /* a text of the arguments; SIZE_MAX: none */
} TOOLS[] = {
	[TOOL_COMMAND] = { "run_command", offsetof(struct rpc_arguments, command) },
	[TOOL_PYTHON] = { "run_python", offsetof(struct rpc_arguments, code) },
	[TOOL_READ] = { "read_file", offsetof(struct rpc_arguments, path) },
	[TOOL_WRITE] = { "write_file", offsetof(struct rpc_arguments, path) },
	[TOOL_LIST] = { "list_files", SIZE_MAX },
};

static bool is_run(enum mcp_tool t)
{
	return t == TOOL_COMMAND || t == TOOL_PYTHON;
}

/* ---- what it is given ---- */

static int check_arguments(const struct mcp_call *k, struct err *err)
{
	const struct rpc_arguments *a = &k->args;
	const char *const *needed = (const char *const *)((const char *)a + TOOLS[k->tool].needs);
	bool run = is_run(k->tool);

	if (TOOLS[k->tool].needs != SIZE_MAX && (!*needed || !**needed))
		return err_set(err, EINVAL, "%s needs '%s'", TOOLS[k->tool].name,
			       k->tool == TOOL_COMMAND	? "command"
			       : k->tool == TOOL_PYTHON ? "code"
							: "path");
	if (k->tool == TOOL_WRITE && !a->content)
		return err_set(err, EINVAL, "write_file needs 'content'");
	if ((a->command && k->tool != TOOL_COMMAND) || (a->code && k->tool != TOOL_PYTHON) ||
	    (a->path && run) || (a->content && k->tool != TOOL_WRITE) ||
	    ((a->cwd || a->timeout) && !run))
		return err_set(err, EINVAL, "an argument that is not for %s", TOOLS[k->tool].name);
	return 0;
}

int call_init(struct mcp_call *k, const char *tool, struct str id, struct str arguments,
	      uint64_t timeout_ns, struct err *err)
{
	int i = 0, r;

	while (i < TOOLS_N && strcmp(TOOLS[i].name, tool))
		i++;
	if (i == TOOLS_N)
		return err_set(err, EINVAL, "unknown tool '%.80s'", tool);
	*k = (struct mcp_call){ .fd = -1, .used = true, .tool = (enum mcp_tool)i };
	memcpy(k->id, id.p, id.n);
	arena_init(&k->arena, ARENA_MAX);
	buf_init(&k->input, MCP_LINE_MAX);
	r = rpc_arguments_parse(&k->args, &k->arena, arguments, err);
	if (r == 0)
		r = check_arguments(k, err);
	if (r < 0) {
		call_done(k);
		return r;
	}
	if (k->args.timeout)
		timeout_ns = k->args.timeout * NSEC_PER_SEC;
	k->timeout_ns = is_run(k->tool) ? timeout_ns : FILE_WAIT_NS;
	return 0;
}

void call_done(struct mcp_call *k)
{
	if (k->fd >= 0)
		close(k->fd);
	arena_done(&k->arena);
	buf_done(&k->input);
	for (int i = 0; i < 2; i++) {
		buf_done(&k->out[i].head);
		buf_done(&k->out[i].tail);
	}
	*k = (struct mcp_call){ .fd = -1 };
}

static void fail(struct mcp_call *k, const char *why)
{
	k->over = true;
	k->ended = clock_ns(CLOCK_MONOTONIC);
	k->code = EXIT_OURS;
	snprintf(k->reason, sizeof(k->reason), "not_started");
	snprintf(k->why, sizeof(k->why), "%s", why);
}

/* ---- to the sandbox ---- */

static const char *path_of(struct mcp_call *k)
{
	const char *path = k->args.path && *k->args.path ? k->args.path : ".";

	path = *path == '/' ? path : arena_printf(&k->arena, "./%s", path).p;
	return path ? path : ".";
}

void call_begin(struct mcp_call *k, const struct mcp_box *b)
{
	const char *script = k->tool == TOOL_READ    ? inside_read
			     : k->tool == TOOL_WRITE ? inside_write
						     : inside_list;
	const char *command[] = { "sh", "-c", k->args.command };
	const char *python[] = { "python3", "-" };
	const char *file[] = {
		"sh", "-c", script, "sh", path_of(k), k->tool == TOOL_LIST ? "1" : ""
	};
	struct agent_request q = { .op = AGENT_EXEC, .sandbox = b->session, .cwd = k->args.cwd };
	auto_buf struct buf text = { 0 };
	struct err err = { 0 };
	int r;

	k->begun = true;
	k->deadline = clock_ns(CLOCK_MONOTONIC) + k->timeout_ns;
	q.argv = k->tool == TOOL_COMMAND ? command : k->tool == TOOL_PYTHON ? python : file;
	q.argc = k->tool == TOOL_COMMAND ? 3 : k->tool == TOOL_PYTHON ? 2 : 6;
	if (k->tool == TOOL_PYTHON)
		buf_addz(&k->input, k->args.code);
	if (k->tool == TOOL_WRITE)
		buf_addz(&k->input, k->args.content);
	if (agent_request_print(&text, &q) < 0) {
		fail(k, "the command is too long: write it to a file");
		return;
	}
	r = box_reach(&k->fd, b->alone, &err);
	if (r == 0)
		r = agent_send(k->fd, text.p, text.n, -1, 0);
	if (r < 0 && r != -EPIPE)
		fail(k, err.code ? err_text(&err) : strerror(-r));
	else
		call_feed(k);
}

/* As much of its input as is taken now, then its end. */
void call_feed(struct mcp_call *k)
{
	char packet[1 + AGENT_DATA_MAX];
	size_t at = 0;
	int r = 0;

	while (k->fd >= 0 && !k->input_done && r == 0) {
		size_t n = MIN(k->input.n - at, (size_t)AGENT_DATA_MAX);

		packet[0] = 'i';
		if (n)
			memcpy(packet + 1, k->input.p + at, n);
		r = agent_send(k->fd, packet, 1 + n, -1, MSG_DONTWAIT);
		if (r == 0) {
			at += n;
			k->input_done = !n;
		}
	}
	buf_consume(&k->input, at);
	if (r < 0 && r != -EAGAIN)
		k->input_done = true; /* nobody takes it; why, comes */
}

void call_kill(struct mcp_call *k)
{
	const struct agent_request q = { .op = AGENT_SIGNAL, .signal = SIGKILL };
	auto_buf struct buf text = { 0 };

	if (k->fd >= 0 && agent_request_print(&text, &q) == 0)
		agent_send(k->fd, text.p, text.n, -1, MSG_DONTWAIT);
	k->killed = true;
}

/* ---- from the sandbox ---- */

static void clip_add(struct mcp_clip *c, const char *p, size_t n, size_t half)
{
	size_t first = MIN(n, half - MIN(c->head.n, half));

	c->bytes += n;
	buf_add(&c->head, p, first);
	p += first;
	n -= first;
	if (n > half) {
		p += n - half;
		n = half;
	}
	if (c->tail.n + n > half)
		buf_consume(&c->tail, c->tail.n + n - half);
	buf_add(&c->tail, p, n);
}

static void take_end(struct mcp_call *k, struct str p)
{
	char word[64];
	uint64_t n = EXIT_OURS;

	k->over = true;
	k->ended = clock_ns(CLOCK_MONOTONIC);
	parse_u64(cli_member(p, "exit", word, sizeof(word)), &n);
	k->code = (int)MIN(n, 255ull);
	n = 0;
	parse_u64(cli_member(p, "signal", word, sizeof(word)), &n);
	k->signal = (int)MIN(n, 64ull);
	cli_member(p, "reason", k->reason, sizeof(k->reason));
	k->sandbox_ended = *k->reason;
	if (!k->sandbox_ended && k->killed) {
		k->code = EXIT_TIMEOUT;
		snprintf(k->reason, sizeof(k->reason), "timeout");
	} else if (!k->sandbox_ended) {
		snprintf(k->reason, sizeof(k->reason), k->signal ? "signal" : "exit");
	}
}

static void take_error(struct mcp_call *k, struct str p)
{
	char word[512];
	uint64_t n = EXIT_OURS;

	fail(k, cli_member(p, "error", word, sizeof(word)));
	parse_u64(cli_member(p, "code", word, sizeof(word)), &n);
	k->code = (int)MIN(n, 255ull);
	/* No sandbox of this name, or it is just ending: that is told when it is known why. */
	cli_member(p, "errno", word, sizeof(word));
	k->sandbox_ended =
		!strcmp(word, "ENOENT") || !strcmp(word, "ESRCH") || strstr(k->why, "keeper died");
}

void call_hear(struct mcp_call *k)
{
	const size_t half = is_run(k->tool) ? MCP_CLIP_HALF : MCP_FILE_MAX + 1;
	char packet[AGENT_FRAME_MAX + 1], word[8];

	for (int turns = 0; turns < 16 && !k->over; turns++) {
		ssize_t n = agent_recv(k->fd, packet, NULL, MSG_DONTWAIT);

		if (n == -EAGAIN)
			return;
		if (n <= 0) {
			fail(k, "the agent, or the sandbox's keeper, has gone away");
			k->sandbox_ended = true;
			return;
		}
		packet[n] = 0;
		if (packet[0] == 'o' || packet[0] == 'e') {
			clip_add(&k->out[packet[0] == 'e'], packet + 1, (size_t)n - 1, half);
			if (k->tool == TOOL_READ && k->out[0].bytes > MCP_FILE_MAX + 1) {
				k->over = true; /* the rest is not wanted */
				k->ended = clock_ns(CLOCK_MONOTONIC);
			}
		} else if (*cli_member((struct str){ packet, (size_t)n }, "error", word,
				       sizeof(word))) {
			take_error(k, (struct str){ packet, (size_t)n });
		} else if (*cli_member((struct str){ packet, (size_t)n }, "exit", word,
				       sizeof(word))) {
			take_end(k, (struct str){ packet, (size_t)n });
		}
	}
}

/* ---- the result ---- */

/* The whole stream, or its two ends with a word between them. */
static void join(struct buf *out, const struct mcp_clip *c)
{
	uint64_t left = c->bytes - c->head.n - c->tail.n;

	buf_add(out, c->head.p, c->head.n);
	if (left)
		buf_printf(out, "\n[... %" PRIu64 " bytes left out ...]\n", left);
	buf_add(out, c->tail.p, c->tail.n);
}

static void put_text(struct json *j, struct str text)
{
	json_key(j, "content");
	json_array_begin(j);
	json_object_begin(j);
	json_key(j, "type");
	json_strz(j, "text");
	json_key(j, "text");
	json_str(j, text);
	json_object_end(j);
	json_array_end(j);
}

static void put_error(struct json *j, bool is_error)
{
	json_key(j, "isError");
	json_bool(j, is_error);
}

static void put_run(struct mcp_call *k, struct json *j)
{
	static const char *const names[2][3] = { { "stdout", "stdoutBytes", "stdoutTruncated" },
						 { "stderr", "stderrBytes", "stderrTruncated" } };
	struct buf part[2] = { { 0 }, { 0 } };
	auto_buf struct buf text = { 0 };

	join(&part[0], &k->out[0]);
	join(&part[1], &k->out[1]);
	buf_add(&text, part[0].p, part[0].n);
	if (part[1].n) {
		buf_printf(&text, "%s[stderr]\n", text.n && text.p[text.n - 1] != '\n' ? "\n" : "");
		buf_add(&text, part[1].p, part[1].n);
	}
	if (k->code || k->sandbox_ended)
		buf_printf(&text, "%s[exit code %d: %s%s%s]",
			   text.n && text.p[text.n - 1] != '\n' ? "\n" : "", k->code,
			   k->sandbox_ended ? "the sandbox has ended: " : "", k->reason,
			   *k->why ? ": " : "");
	if (k->code || k->sandbox_ended) {
		text.n--;
		buf_printf(&text, "%s]", k->why);
	}
	put_text(j, (struct str){ text.p ? text.p : "", text.n });
	json_key(j, "structuredContent");
	json_object_begin(j);
	json_key(j, "exitCode");
	json_i64(j, k->code);
	json_key(j, "reason");
	json_strz(j, k->reason);
	if (k->sandbox_ended) {
		json_key(j, "sandboxEnded");
		json_bool(j, true);
	}
	if (*k->why) {
		json_key(j, "why");
		json_strz(j, k->why);
	}
	for (int i = 0; i < 2; i++) {
		json_key(j, names[i][0]);
		json_str(j, (struct str){ part[i].p ? part[i].p : "", part[i].n });
		json_key(j, names[i][1]);
		json_u64(j, k->out[i].bytes);
		json_key(j, names[i][2]);
		json_bool(j, k->out[i].bytes > k->out[i].head.n + k->out[i].tail.n);
	}
	json_object_end(j);
	put_error(j, k->code != 0 || k->sandbox_ended);
	buf_done(&part[0]);
	buf_done(&part[1]);
}

static void put_problem(struct mcp_call *k, struct json *j)
{
	const char *path = k->args.path ? k->args.path : ".",
		   *known = inside_problem((uint64_t)k->code);
	auto_buf struct buf text = { 0 };

	if (k->sandbox_ended)
		buf_printf(&text, "the sandbox has ended: %s%s%s", k->reason, *k->why ? ": " : "",
			   k->why);
	else if (*k->why)
		buf_printf(&text, "%s", k->why);
	else if (known)
		buf_printf(&text, "'%s' %s", path, known);
	else if (k->killed)
		buf_printf(&text, "'%s': no answer in time", path);
	else
		buf_printf(&text, "'%s': %.*s", path, (int)k->out[1].head.n,
			   k->out[1].head.n ? k->out[1].head.p : "a command in the sandbox failed");
	put_text(j, (struct str){ text.p, text.n });
	put_error(j, true);
}

static void put_read(struct mcp_call *k, struct json *j)
{
	/* Behind the '+' that says that it is there. */
	struct str s = { k->out[0].head.p + 1, MIN(k->out[0].head.n - 1, (size_t)MCP_FILE_MAX) };
	bool cut = k->out[0].bytes > MCP_FILE_MAX + 1, text;

	for (int i = 0; cut && i < 3 && s.n && !utf8_is_valid(s); i++)
		s.n--; /* a character that was cut in two */
	text = utf8_is_valid(s);
	if (cut && !text)
		s.n = MCP_FILE_MAX;
	put_text(j, text ? s : STR("(not text: base64 in structuredContent)"));
	json_key(j, "structuredContent");
	json_object_begin(j);
	json_key(j, "path");
	json_strz(j, k->args.path);
	json_key(j, "encoding");
	json_strz(j, text ? "utf-8" : "base64");
	json_key(j, "content");
	if (text)
		json_str(j, s);
	else
		json_base64(j, s);
	json_key(j, "truncated");
	json_bool(j, cut);
	json_object_end(j);
	put_error(j, false);
}

static void put_write(struct mcp_call *k, struct json *j)
{
	put_text(j, STR("written"));
	json_key(j, "structuredContent");
	json_object_begin(j);
	json_key(j, "path");
	json_strz(j, k->args.path);
	json_key(j, "size");
	json_u64(j, strlen(k->args.content));
	json_object_end(j);
	put_error(j, false);
}

static void put_list(struct mcp_call *k, struct json *j)
{
	struct str s = { k->out[0].head.p ? k->out[0].head.p : "", k->out[0].head.n };
	auto_buf struct buf entries = { 0 }, all = { 0 };
	struct json e, o;
	bool cut;

	json_init(&e, &entries);
	json_array_begin(&e);
	cut = inside_entries(&e, s, MCP_LIST_MAX) || k->out[0].bytes > k->out[0].head.n;
	json_array_end(&e);
	json_init(&o, &all);
	json_object_begin(&o);
	json_key(&o, "path");
	json_strz(&o, k->args.path ? k->args.path : ".");
	json_key(&o, "entries");
	json_raw(&o, (struct str){ entries.p, entries.n });
	json_key(&o, "truncated");
	json_bool(&o, cut);
	json_object_end(&o);
	put_text(j, (struct str){ all.p, all.n });
	json_key(j, "structuredContent");
	json_raw(j, (struct str){ all.p, all.n });
	put_error(j, false);
}

void call_result(struct mcp_call *k, const struct mcp_box *b, struct json *j)
{
	if (k->sandbox_ended && b->state == BOX_ENDED) {
		snprintf(k->reason, sizeof(k->reason), "%s", b->reason);
		snprintf(k->why, sizeof(k->why), "%s", b->why);
	}
	json_object_begin(j);
	if (is_run(k->tool))
		put_run(k, j);
	else if (k->sandbox_ended || k->code || *k->why ||
		 (k->tool == TOOL_READ && !k->out[0].head.n))
		put_problem(k, j);
	else if (k->tool == TOOL_READ)
		put_read(k, j);
	else if (k->tool == TOOL_WRITE)
		put_write(k, j);
	else
		put_list(k, j);
	json_object_end(j);
}
