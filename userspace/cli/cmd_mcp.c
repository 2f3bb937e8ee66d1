// SPDX-License-Identifier: Apache-2.0
/* The server: lines in, lines out (https://modelcontextprotocol.io/specification, transport stdio). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "exporters/scan.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/base/log.h"
#include "userspace/base/option.h"
#include "userspace/base/version.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/mcp.h"
#include "userspace/cli/util.h"

#define TIMEOUT_DEFAULT_NS (60 * NSEC_PER_SEC)
#define KILL_WAIT_NS	   (5 * NSEC_PER_SEC)
#define REASON_WAIT_NS	   (10 * NSEC_PER_SEC) /* for the word why a sandbox ended */
#define TICK_MS		   50
#define WORDS_MAX	   256

#define RPC_PARSE_ERROR	     (-32700)
#define RPC_INVALID_REQUEST  (-32600)
#define RPC_METHOD_NOT_FOUND (-32601)
#define RPC_INVALID_PARAMS   (-32602)

extern const char mcp_tools[], mcp_tools_end[];

/* Ours first; a client that asks for another one of these gets it. */
static const char *const VERSIONS[] = { "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05" };

struct mcp_args {
	const char *policy, *workspace, *name;
	uint64_t timeout;
	bool no_agent, help;
};

#define AT(member) offsetof(struct mcp_args, member)

static const struct option_def OPTIONS[] = {
	{ "policy", 0, OPT_STR, AT(policy), "NAME|FILE", "of the sandbox, as with warder run" },
	{ "workspace", 'w', OPT_STR, AT(workspace), "DIR",
	  "host directory as /workspace, or name:NAME (default: private, gone at the end)" },
	{ "name", 0, OPT_STR, AT(name), "NAME", "name of the sandbox" },
	{ "timeout", 't', OPT_DURATION, AT(timeout), "TIME",
	  "for a call that does not say how long it may take (default: 60s)" },
	{ "no-agent", 0, OPT_FLAG, AT(no_agent), NULL,
	  "make the sandbox by itself, also when an agent is there; needs root" },
	{ "help", 'h', OPT_FLAG, AT(help), NULL, "this text" },
	{ 0 },
};

static const char PURPOSE[] =
	"Serve the Model Context Protocol on stdin and stdout: run_command, run_python, read_file,\n"
	"write_file and list_files, all in one sandbox that is made at the start, with the policy\n"
	"that you choose here, and ends with the client: what happens in it is watched, judged by\n"
	"rules and recorded like any session. A rule that kills it is told to the client.\n\n"
	"With a warder agent running the agent makes it; else this must be root. What stands\n"
	"behind -- are more options of warder create: mcp --policy strict -- --net allow=pypi.org";

struct server {
	const struct mcp_args *args;
	struct mcp_box box;
	struct mcp_call call[MCP_CALLS_MAX];
	struct buf line;
	bool too_long; /* the rest of a line that is not kept */
	bool initialized, over;
	int signals;
};

/* ---- lines out ---- */

static void send_line(struct server *s, struct buf *out)
{
	buf_addc(out, '\n');
	if (out->failed || fd_write_all(STDOUT_FILENO, out->p, out->n) < 0)
		s->over = true;
}

static void begin(struct json *j, struct buf *out, struct str id)
{
	json_init(j, out);
	json_object_begin(j);
	json_key(j, "jsonrpc");
	json_strz(j, "2.0");
	json_key(j, "id");
	if (id.n)
		json_raw(j, id);
	else
		json_null(j);
}

static void send_error(struct server *s, struct str id, int code, const char *text)
{
	auto_buf struct buf out = { 0 };
	struct json j;

	begin(&j, &out, id);
	json_key(&j, "error");
	json_object_begin(&j);
	json_key(&j, "code");
	json_i64(&j, code);
	json_key(&j, "message");
	json_strz(&j, text);
	json_object_end(&j);
	json_object_end(&j);
	send_line(s, &out);
}

static void send_result(struct server *s, struct str id, struct str result)
{
	auto_buf struct buf out = { 0 };
	struct json j;

	begin(&j, &out, id);
	json_key(&j, "result");
	json_raw(&j, result);
	json_object_end(&j);
	send_line(s, &out);
}

/* ---- requests ---- */

static void initialize(struct server *s, const struct rpc_message *m, struct arena *arena)
{
	auto_buf struct buf out = { 0 };
	const char *asked = NULL, *version = VERSIONS[0];
	struct err err = { 0 };
	struct json j;

	if (!m->params.n || rpc_text(m->params, "protocolVersion", arena, &asked, &err) != 1) {
		send_error(s, m->id, RPC_INVALID_PARAMS, "'protocolVersion' is needed");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(VERSIONS); i++)
		if (!strcmp(VERSIONS[i], asked))
			version = VERSIONS[i];
	json_init(&j, &out);
	json_object_begin(&j);
	json_key(&j, "protocolVersion");
	json_strz(&j, version);
	json_key(&j, "capabilities");
	json_raw(&j, STR("{\"tools\":{}}"));
	json_key(&j, "serverInfo");
	json_raw(
		&j,
		STR("{\"name\":\"warder\",\"title\":\"Warder sandbox\",\"version\":\"" WARDER_VERSION
		    "\"}"));
	json_key(&j, "instructions");
	json_strz(
		&j,
		"All tools work in one sandbox, which lasts as long as this connection. It is watched: an "
		"act that breaks a rule ends it, and the answer says so.");
	json_object_end(&j);
	s->initialized = true;
	send_result(s, m->id, (struct str){ out.p, out.n });
}

/* The table lies in a file, on more than one line. */
static void list_tools(struct server *s, struct str id)
{
	auto_buf struct buf out = { 0 };

	buf_addz(&out, "{\"tools\":");
	for (const char *p = mcp_tools; p < mcp_tools_end; p++)
		if (*p != '\n')
			buf_addc(&out, *p);
	buf_addc(&out, '}');
	send_result(s, id, (struct str){ out.p, out.n });
}

static struct mcp_call *find_call(struct server *s, struct str id)
{
	for (int i = 0; i < MCP_CALLS_MAX; i++)
		if (s->call[i].used && str_eqz(id, s->call[i].id))
			return &s->call[i];
	return NULL;
}

static void call_tool(struct server *s, const struct rpc_message *m, struct arena *arena)
{
	struct str arguments = { 0 };
	struct mcp_call *k = NULL;
	const char *name = NULL;
	struct err err = { 0 };

	for (int i = 0; i < MCP_CALLS_MAX && !k; i++)
		k = s->call[i].used ? NULL : &s->call[i];
	if (!m->params.n || rpc_text(m->params, "name", arena, &name, &err) != 1)
		send_error(s, m->id, RPC_INVALID_PARAMS, "'name' of a tool is needed");
	else if (rpc_member(m->params, "arguments", &arguments) && *arguments.p != '{')
		send_error(s, m->id, RPC_INVALID_PARAMS, "'arguments': expected an object");
	else if (find_call(s, m->id))
		send_error(s, m->id, RPC_INVALID_REQUEST, "a request with this id is under way");
	else if (!k)
		send_error(s, m->id, RPC_INVALID_REQUEST, "too many calls are under way");
	else if (call_init(k, name, m->id, arguments,
			   s->args->timeout ? s->args->timeout : TIMEOUT_DEFAULT_NS, &err) < 0)
		send_error(s, m->id, RPC_INVALID_PARAMS, err_text(&err));
}

/* It gets no answer any more. */
static void cancel(struct server *s, const struct rpc_message *m)
{
	struct mcp_call *k;
	struct str id;

	if (!m->params.n || !rpc_member(m->params, "requestId", &id))
		return;
	k = find_call(s, id);
	if (!k)
		return;
	call_kill(k);
	call_done(k);
}

static void take_message(struct server *s, struct str text)
{
	struct rpc_message m;
	struct err err = { 0 };
	struct arena arena;
	int r;

	arena_init(&arena, 8 * MCP_LINE_MAX);
	r = rpc_parse(&m, &arena, text, &err);
	if (r < 0)
		send_error(s, m.id, r == -EBADMSG ? RPC_PARSE_ERROR : RPC_INVALID_REQUEST,
			   err_text(&err));
	else if (!m.method)
		; /* an answer, to nothing */
	else if (!m.id.n && !strcmp(m.method, "notifications/cancelled"))
		cancel(s, &m);
	else if (!m.id.n)
		; /* initialized, and what others may tell */
	else if (!strcmp(m.method, "initialize"))
		initialize(s, &m, &arena);
	else if (!strcmp(m.method, "ping"))
		send_result(s, m.id, STR("{}"));
	else if (!s->initialized)
		send_error(s, m.id, RPC_INVALID_REQUEST, "initialize comes first");
	else if (!strcmp(m.method, "tools/list"))
		list_tools(s, m.id);
	else if (!strcmp(m.method, "tools/call"))
		call_tool(s, &m, &arena);
	else
		send_error(s, m.id, RPC_METHOD_NOT_FOUND, "unknown method");
	arena_done(&arena);
}

/* A batch, which older versions have: one after the other. */
static void take_line(struct server *s, struct str line)
{
	struct scan scan;
	struct str part;
	bool any = false;

	while (line.n && strchr(" \t\r", line.p[line.n - 1]))
		line.n--;
	if (!line.n)
		return;
	if (*line.p != '[' || !rpc_is_json(line)) {
		take_message(s, line);
		return;
	}
	scan = scan_of(line);
	while (scan_element(&scan, &part)) {
		any = true;
		take_message(s, part);
	}
	if (!any)
		send_error(s, (struct str){ 0 }, RPC_INVALID_REQUEST, "an empty batch");
}

/* ---- lines in ---- */

static void take_bytes(struct server *s, const char *p, size_t n)
{
	while (n) {
		const char *end = memchr(p, '\n', n);
		size_t len = end ? (size_t)(end - p) : n;

		if (!s->too_long && buf_add(&s->line, p, len) < 0) {
			s->too_long = true;
			send_error(s, (struct str){ 0 }, RPC_INVALID_REQUEST,
				   "a line of more than 1 MiB");
		}
		if (end && !s->too_long)
			take_line(s, (struct str){ s->line.p, s->line.n });
		if (end) {
			buf_reset(&s->line);
			s->too_long = false;
		}
		p += len + (end ? 1 : 0);
		n -= len + (end ? 1 : 0);
	}
}

static void read_input(struct server *s)
{
	char piece[65536];
	ssize_t n = read(STDIN_FILENO, piece, sizeof(piece));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0)
		s->over = true;
	else
		take_bytes(s, piece, (size_t)n);
}

/* ---- calls ---- */

static void answer(struct server *s, struct mcp_call *k)
{
	auto_buf struct buf out = { 0 };
	struct json j;

	json_init(&j, &out);
	call_result(k, &s->box, &j);
	if (out.failed)
		send_error(s, str_from(k->id), RPC_INVALID_REQUEST, "the result is too long");
	else
		send_result(s, str_from(k->id), (struct str){ out.p, out.n });
	call_done(k);
}

static void look_at_call(struct server *s, struct mcp_call *k, uint64_t now)
{
	if (!k->begun && s->box.state == BOX_RUNS)
		call_begin(k, &s->box);
	if (!k->begun && s->box.state == BOX_ENDED) {
		k->over = k->begun = k->sandbox_ended = true;
		k->code = EXIT_WARDER;
	}
	if (k->begun && !k->over && !k->killed && now >= k->deadline) {
		call_kill(k);
		k->deadline = now + KILL_WAIT_NS;
	} else if (k->begun && !k->over &&
		   now >= k->deadline) { /* its output is held open by somebody else */
		k->over = true;
		k->code = 124;
		snprintf(k->reason, sizeof(k->reason), "timeout");
	}
	if (k->over &&
	    (!k->sandbox_ended || s->box.state == BOX_ENDED || now - k->ended > REASON_WAIT_NS))
		answer(s, k);
}

static void loop(struct server *s)
{
	while (!s->over) {
		struct pollfd fds[3 + MCP_CALLS_MAX];
		bool any = false;

		fds[0] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
		fds[1] = (struct pollfd){ .fd = s->box.fd, .events = POLLIN };
		fds[2] = (struct pollfd){ .fd = s->signals, .events = POLLIN };
		for (int i = 0; i < MCP_CALLS_MAX; i++) {
			struct mcp_call *k = &s->call[i];

			any |= k->used;
			fds[3 + i] = (struct pollfd){
				.fd = k->used && !k->over ? k->fd : -1,
				.events = (short)(POLLIN | (k->input_done ? 0 : POLLOUT)),
			};
		}
		if (poll(fds, ARRAY_SIZE(fds), any ? TICK_MS : -1) < 0 && errno != EINTR)
			break;
		if (fds[1].revents)
			box_hear(&s->box);
		for (int i = 0; i < MCP_CALLS_MAX; i++) {
			struct mcp_call *k = &s->call[i];

			if (fds[3 + i].revents & POLLOUT)
				call_feed(k);
			if (fds[3 + i].revents & (POLLIN | POLLHUP | POLLERR))
				call_hear(k);
			if (k->used)
				look_at_call(s, k, clock_ns(CLOCK_MONOTONIC));
		}
		if (fds[2].revents)
			s->over = true;
		else if (fds[0].revents)
			read_input(s);
	}
}

/* ---- the command ---- */

static int make_box(struct server *s, int argc, char **argv, struct err *err)
{
	const char *words[WORDS_MAX];
	size_t n = 0;
	const struct {
		const char *option, *value;
	} own[] = { { "--policy", s->args->policy },
		    { "--workspace", s->args->workspace },
		    { "--name", s->args->name } };

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (own[i].value) {
			words[n++] = own[i].option;
			words[n++] = own[i].value;
		}
	for (int i = 0; i < argc; i++) {
		if (n == WORDS_MAX)
			return err_set(err, E2BIG, "more than %d words", WORDS_MAX);
		if (!strcmp(argv[i], "--"))
			return err_set(err, EINVAL, "the sandbox begins without a command");
		words[n++] = argv[i];
	}
	return box_make(&s->box, words, n, err);
}

static int serve(const struct mcp_args *args, int argc, char **argv, struct err *err)
{
	static struct server s;
	sigset_t set;
	int r;

	s.args = args;
	s.box = (struct mcp_box){ .fd = -1, .alone = args->no_agent };
	buf_init(&s.line, MCP_LINE_MAX);
	for (int i = 0; i < MCP_CALLS_MAX; i++)
		s.call[i].fd = -1;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s.signals < 0)
		return err_set(err, errno, "signals: %m");
	r = make_box(&s, argc, argv, err);
	if (r == 0)
		loop(&s);
	for (int i = 0; i < MCP_CALLS_MAX; i++)
		if (s.call[i].used)
			call_done(&s.call[i]);
	box_end(&s.box);
	buf_done(&s.line);
	close(s.signals);
	return r;
}

int cmd_mcp(int argc, char **argv)
{
	struct mcp_args args = { 0 };
	struct err err = { 0 };
	int rest;

	if (options_parse(OPTIONS, &args, argc, argv, &rest, &err) < 0)
		return cli_bad_usage("mcp", &err);
	if (args.help) {
		cli_usage("mcp [OPTIONS] [-- CREATE-OPTION...]", PURPOSE, OPTIONS);
		return 0;
	}
	if (rest < argc && strcmp(argv[rest], "--") && strcmp(argv[rest - 1], "--")) {
		err_set(&err, EINVAL,
			"'%s': it takes options only; those of create stand behind --", argv[rest]);
		return cli_bad_usage("mcp", &err);
	}
	return serve(&args, argc - rest, argv + rest, &err) < 0 ? cli_fail(&err) : 0;
}
