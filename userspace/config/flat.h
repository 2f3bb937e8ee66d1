/* SPDX-License-Identifier: Apache-2.0 */
/* A YAML file of nested maps, lists and scalars as a flat list of "a.b.c" = "text" with places, so
 * that its owner checks it against a table. No anchors, no tags, no merge keys: what is not plain is
 * an error with line and column. */
#ifndef WARDER_CONFIG_FLAT_H
#define WARDER_CONFIG_FLAT_H

#include <stdbool.h>
#include <stddef.h>
#include "userspace/base/arena.h"
#include "userspace/base/err.h"

#define FLAT_FILE_MAX	 (1024 * 1024)
#define FLAT_ENTRIES_MAX 4096
#define FLAT_DEPTH_MAX	 8
#define FLAT_KEY_MAX	 256

struct flat_entry {
	const char *key;   /* list members repeat the key of their list */
	const char *value; /* no NUL inside */
	int line, col;	   /* of the value, from 1 */
	bool in_list;
};

struct flat_file {
	struct arena arena;
	struct flat_entry *v;
	size_t n;
	char path[4096];
};

/* -errno with "path:line:col: message" in err. Duplicate keys are errors. */
int flat_load(struct flat_file *ret, const char *path, struct err *err);
/* The same of a text; `name` stands in for the path in errors. */
int flat_parse(struct flat_file *ret, const char *name, const char *text, size_t n,
	       struct err *err);
/* Of a key that has one value: -EINVAL with the place when it stands in a list, of which the last one would win. */
int flat_single(const struct flat_file *f, const struct flat_entry *e, struct err *err);
void flat_done(struct flat_file *f);

#endif
