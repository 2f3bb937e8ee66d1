/* SPDX-License-Identifier: Apache-2.0 */
/* JSON bodies of requests (RFC 8259), by tables. Members that are not known are refused: what is not understood may have
 * been a restriction. */
#ifndef WARDER_API_BODY_H
#define WARDER_API_BODY_H

#include <stdbool.h>
#include <stdint.h>
#include "userspace/base/arena.h"
#include "userspace/base/err.h"
#include "userspace/base/str.h"

#define API_BODY_MAX  (64 * 1024) /* bytes of a JSON body */
#define API_WORDS_MAX 512	  /* of a list, of a map */

struct api_words {
	const char **v; /* of a map: "K=V" */
	size_t n;
	bool given;
};

struct api_number {
	uint64_t v;
	bool given;
};

/* POST /v1/sandboxes */
struct api_create {
	const char *name, *policy, *tenant, *workspace, *snapshot, *cwd;
	const char *cpus; /* a decimal number, as it is written */
	struct api_number timeout, idle_timeout, memory_mb, disk_mb, pids;
	struct api_words metadata, envs, command;
	const char *net_mode;
	struct api_words net_allow;
	struct api_number internet; /* 0 or 1 */
};

/* POST /v1/sandboxes/{sandboxID}/commands */
struct api_command {
	const char *cmd; /* for a shell, or: */
	struct api_words args;
	const char *cwd, *stdin_text, *encoding;
	struct api_words envs;
	struct api_number timeout, max_output, background;
};

/* POST /v1/sandboxes/{sandboxID}/snapshots */
struct api_snapshot {
	const char *name;
};

/* Strings are of the arena, without NUL. -EBADMSG: err says which member, and what was expected. */
int api_create_parse(struct api_create *ret, struct arena *arena, struct str text, struct err *err);
int api_snapshot_parse(struct api_snapshot *ret, struct arena *arena, struct str text,
		       struct err *err);
int api_command_parse(struct api_command *ret, struct arena *arena, struct str text,
		      struct err *err);

#endif
