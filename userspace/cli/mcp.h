/* SPDX-License-Identifier: Apache-2.0 */
/* `warder mcp`: tools of the Model Context Protocol, over stdio, in one sandbox that lives as long as the server. */
#ifndef WARDER_CLI_MCP_H
#define WARDER_CLI_MCP_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include "userspace/api/rpc.h"
#include "userspace/base/buf.h"
#include "userspace/base/json.h"
#include "userspace/pipeline/agent_frame.h"

#define MCP_CALLS_MAX 32
#define MCP_LINE_MAX  (1 << 20)
#define MCP_CLIP_HALF (32 * 1024) /* of each stream the first and the last so many bytes */
#define MCP_FILE_MAX  (256 * 1024)
#define MCP_LIST_MAX  1000

/* ---- mcp_box.c: the sandbox ---- */

enum box_state { BOX_MADE, BOX_RUNS, BOX_ENDED };

struct mcp_box {
	int fd; /* it ends with this connection; -1 */
	enum box_state state;
	bool alone; /* without an agent */
	char session[32];
	char reason[32]; /* of its end */
	char why[512];	 /* the last line that it said */
};

/* A connection to the agent, or to a process that does what it would do. */
int box_reach(int *ret_fd, bool alone, struct err *err);
/* Ask for it; it is there when its state says so. `words`: as of warder create. */
int box_make(struct mcp_box *b, const char *const *words, size_t n, struct err *err);
/* Its connection is readable. */
void box_hear(struct mcp_box *b);
/* End it, and wait until it is gone. */
void box_end(struct mcp_box *b);

/* ---- mcp_call.c: one use of a tool ---- */

enum mcp_tool { TOOL_COMMAND, TOOL_PYTHON, TOOL_READ, TOOL_WRITE, TOOL_LIST, TOOLS_N };

struct mcp_clip {
	struct buf head, tail;
	uint64_t bytes;
};

struct mcp_call {
	int fd; /* -1: its sandbox is not there yet, or it is over */
	bool used, begun, over, killed, input_done;
	enum mcp_tool tool;
	char id[RPC_ID_MAX + 1];
	struct arena arena;
	struct rpc_arguments args;
	struct buf input;
	struct mcp_clip out[2];
	uint64_t timeout_ns;	  /* from its begin */
	uint64_t deadline, ended; /* CLOCK_MONOTONIC */
	int code, signal;
	char reason[32], why[512];
	bool sandbox_ended;
};

/* -EINVAL: its arguments are wrong. */
int call_init(struct mcp_call *k, const char *tool, struct str id, struct str arguments,
	      uint64_t timeout_ns, struct err *err);
void call_done(struct mcp_call *k);
/* In a box that runs. */
void call_begin(struct mcp_call *k, const struct mcp_box *b);
void call_hear(struct mcp_call *k);
void call_feed(struct mcp_call *k);
void call_kill(struct mcp_call *k);
/* {"content":...}: what the client gets. `b`: tells why a sandbox ended. */
void call_result(struct mcp_call *k, const struct mcp_box *b, struct json *j);

#endif
