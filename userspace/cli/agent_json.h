/* SPDX-License-Identifier: Apache-2.0 */
/* --json of what speaks with an agent: one object a line on stdout.
 *	{"type":"stdout"|"stderr","data":...}	text as UTF-8; a piece that is none: "encoding":"base64"
 *	{"type":"error","message":...}		why it was not done
 *	{"type":"exit","code":N}		the last one: what this process exits with, too */
#ifndef WARDER_CLI_AGENT_JSON_H
#define WARDER_CLI_AGENT_JSON_H

#include <stdbool.h>
#include "userspace/base/str.h"

struct agent_json {
	/* Of each stream, the start of a character whose rest has not come. */
	struct {
		char held[4];
		size_t n;
	} carry[2];
};

/* -errno: nobody reads. */
int agent_json_data(struct agent_json *a, bool is_stderr, struct str bytes);
void agent_json_error(struct agent_json *a, const char *text);
/* What was held back, then the end. */
void agent_json_exit(struct agent_json *a, int code);

#endif
