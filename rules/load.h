/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the loader: scalars, keys and overrides of one YAML item. */
#ifndef WARDER_RULES_LOAD_H
#define WARDER_RULES_LOAD_H

#include "rules/internal.h"

/* How a key of an item changes what was there. */
enum key_mode { KEY_SET, KEY_APPEND };

struct key_def {
	const char *name;
	bool can_append;  /* override: append */
	bool can_replace; /* override: replace */
};

struct item {
	const struct ynode *node;
	struct str name;
	const struct key_def *keys;
	size_t keys_n;
	bool append; /* deprecated `append: true` */
	bool overrides;
	uint64_t append_keys, replace_keys; /* bits by keys[] */
};

bool load_scalar(struct ruleset *rs, const struct ynode *n, const char *key, struct str *ret);
bool load_bool(struct ruleset *rs, const struct ynode *n, const char *key, bool *ret);
/* A list of scalars, copied. False when it was an error. */
bool load_strings(struct ruleset *rs, const struct ynode *n, const char *key, struct str **ret,
		  size_t *ret_n);
/* Name, keys, append and override of an item. `kind` is "list", "macro" or "rule". */
bool item_open(struct ruleset *rs, const struct ynode *node, const char *kind,
	       const struct key_def *keys, size_t keys_n, struct item *ret);
/* Does the item's key apply, and how? */
bool item_mode(const struct item *it, const char *key, enum key_mode *ret);
/* Does the item change an existing one? */
bool item_changes(const struct item *it);

void load_rule(struct ruleset *rs, const struct ynode *node);
/* The keys that a rule can have, by number; NULL behind the last one. */
const char *load_rule_key(size_t i);
/* Can `override` append to it, or replace it? */
bool load_rule_key_takes(size_t i, bool append);
/* exception.c: entries of an `exceptions` key; a name seen before gets more values. */
void exceptions_add(struct ruleset *rs, struct rule *r, const struct ynode *n);

#endif
