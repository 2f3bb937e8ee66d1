/* SPDX-License-Identifier: Apache-2.0 */
/* TOML 1.0 as a reader of configuration of others needs it: item by item, nothing is kept. Takes all that is TOML but
 * for these bounds, and some that is not (a name twice, two tables of one name): who reads it judges what it means. */
#ifndef WARDER_BASE_TOML_H
#define WARDER_BASE_TOML_H

#include <stdbool.h>
#include "userspace/base/err.h"
#include "userspace/base/str.h"

#define TOML_DEPTH_MAX 8   /* of arrays and inline tables in one another */
#define TOML_PATH_MAX  256 /* bytes of all names of a key */

enum toml_type {
	TOML_TABLE, /* one begins: [a], [[a]], or an inline one */
	TOML_STRING,
	TOML_BOOL,
	TOML_NUMBER, /* `number` */
	TOML_OTHER,  /* a date: `text` as it stands */
};

struct toml_item {
	struct str
		path; /* names joined by '.': "rules.allowlists.regexes"; a '.' in a name is one, too */
	enum toml_type type;
	bool in_list; /* a value of an array, or a table of one: [[a]] */
	struct str text;
	double number;
	unsigned line;
};

/* Negative: it ends there, with that. Texts are valid until it returns. */
typedef int (*toml_fn)(void *arg, const struct toml_item *item, struct err *err);

/* `name` is for errors: "name:line: ...". -EINVAL: no TOML; -E2BIG: a bound; or what `fn` returned. */
int toml_read(const char *name, struct str text, toml_fn fn, void *arg, struct err *err);

#endif
