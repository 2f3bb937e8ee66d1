/* SPDX-License-Identifier: Apache-2.0 */
/* Walking, hashing, and the list of what was found. */
#ifndef WARDER_WORKSPACE_TREE_H
#define WARDER_WORKSPACE_TREE_H

#include <time.h>
#include "userspace/base/arena.h"
#include "userspace/base/str.h"
#include "userspace/workspace/workspace.h"

#define HASH_LEN 32

struct entry {
	struct str path;   /* below its place; "" is the place itself, a file */
	struct str target; /* of a symbolic link */
	struct str text;   /* kept; only in a snapshot */
	uint64_t size, ino;
	int64_t mtime, ctime; /* ns */
	uint32_t mode;
	uint16_t place;
	bool has_hash;
	uint8_t hash[HASH_LEN];
};

struct tree {
	const struct workspace_place *places;
	size_t places_n;
	const struct workspace_limits *limits;
	uint64_t end; /* CLOCK_MONOTONIC */
	struct arena mem;
	struct entry **v;
	size_t n, room;
	uint64_t looked, hashed, texts, skipped;
	const char *why[WORKSPACE_WHY_MAX];
	size_t why_n;
	char *buffer; /* for reading */
};

int tree_init(struct tree *t, const struct workspace_place *places, size_t n,
	      const struct workspace_limits *limits);
void tree_done(struct tree *t);
/* Something was left out: `count` of it, `word` says for what. */
void tree_skip(struct tree *t, uint64_t count, const char *word);
bool tree_is_late(const struct tree *t);
struct entry *tree_add(struct tree *t);
/* All places; sorted by place and path. -ENOMEM. */
int tree_walk(struct tree *t);
int entry_compare(const struct entry *a, const struct entry *b);

/* Hash of a regular file, and with `ret_text` its bytes when they are a text that may be kept. NULL, or why there
 * is none: "size", "budget", "time", "unreadable". */
const char *tree_hash(struct tree *t, struct entry *e, struct str *ret_text);
/* Nothing is at its path any more. */
bool tree_is_gone(struct tree *t, const struct entry *e);
/* Open for reading if it is a regular file; -1. */
int tree_open_regular(const struct tree *t, const struct entry *e);
/* When it was made, ns since 1970; 0 = not known. */
uint64_t tree_birth(struct tree *t, const struct entry *e);

#endif
