/* SPDX-License-Identifier: Apache-2.0 */
/* A small JSON text as a tree in an arena: for files of others (image manifests, seccomp profiles), whose mistakes are
 * told by line and column. As strict as json_read.h: no key twice, UTF-8 checked, and no NUL in a key or a text;
 * numbers stay texts. */
#ifndef WARDER_EVENT_JSON_TREE_H
#define WARDER_EVENT_JSON_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include "userspace/base/arena.h"
#include "userspace/base/err.h"
#include "userspace/base/str.h"

#define JSON_TREE_DEPTH	  32
#define JSON_TREE_NODES	  (1u << 18)
#define JSON_TREE_MEMBERS 1024 /* of one object: each key is compared with those before it */

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json_node {
	enum json_type type;
	bool truth;
	uint32_t at, end;	 /* offsets in the text: of it, and of what is behind it */
	size_t n;		 /* children */
	struct str key;		 /* of a member of an object */
	struct str text;	 /* a string's, unescaped; a number as it is written */
	struct json_node *first; /* child */
	struct json_node *next;	 /* of the same parent */
};

/* One value and nothing behind it. -EBADMSG with "name:line:col: message"; -ENOMEM. Strings are in the arena. */
int json_tree_parse(struct json_node **ret, struct arena *mem, const char *name, struct str text,
		    struct err *err);
/* NULL when it is no object, or has no such member. */
const struct json_node *json_member(const struct json_node *node, const char *key);
/* The same, but null is as good as absent. */
const struct json_node *json_given(const struct json_node *node, const char *key);
/* The member's text; STR("") when it is absent. False: it is something else. */
bool json_text_of(const struct json_node *node, const char *key, struct str *ret);
/* A whole number within the type. */
bool json_u64_of(const struct json_node *number, uint64_t *ret);
bool json_i64_of(const struct json_node *number, int64_t *ret);
/* From 1 on, in bytes. */
void json_line_col(struct str text, size_t at, unsigned *ret_line, unsigned *ret_col);
extern const char *const json_type_names[];

#endif
