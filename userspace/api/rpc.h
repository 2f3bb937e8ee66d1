/* SPDX-License-Identifier: Apache-2.0 */
/* JSON-RPC 2.0 messages, a line each, as the Model Context Protocol sends them over stdio. */
#ifndef WARDER_API_RPC_H
#define WARDER_API_RPC_H

#include <stdbool.h>
#include <stdint.h>
#include "userspace/base/arena.h"
#include "userspace/base/err.h"
#include "userspace/base/str.h"

#define RPC_DEPTH_MAX 64
#define RPC_ID_MAX    256

struct rpc_message {
	struct str id;	    /* as it is written: a text or a whole number; n = 0: a notification */
	const char *method; /* NULL: it is an answer, and to no question of ours */
	struct str params;  /* as written: an object; n = 0: none */
};

/* Is it one JSON value (RFC 8259), in UTF-8, no deeper than RPC_DEPTH_MAX? */
bool rpc_is_json(struct str text);
/* Strings are of the arena, spans of the text. -EBADMSG: it is no JSON; -EINVAL: no message (ret->id is good if there
 * was one). */
int rpc_parse(struct rpc_message *ret, struct arena *arena, struct str text, struct err *err);
/* A member of an object that is JSON: 1 and its text, without NUL; 0: it is not there; -EINVAL: it is none. */
int rpc_text(struct str object, const char *key, struct arena *arena, const char **ret,
	     struct err *err);
/* The span of a member; false: it is not there. */
bool rpc_member(struct str object, const char *key, struct str *ret);

/* What tools are given. */
struct rpc_arguments {
	const char *command, *code, *path, *content, *cwd;
	uint64_t timeout; /* s; 0 = not given */
};
/* -EINVAL: err names the member. */
int rpc_arguments_parse(struct rpc_arguments *ret, struct arena *arena, struct str object,
			struct err *err);

#endif
