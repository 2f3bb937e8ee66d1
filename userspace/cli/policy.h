/* SPDX-License-Identifier: Apache-2.0 */
/* A policy file sets the options of `warder run`: one row a key, checked as strictly as the command
 * line, which overrides it. */
#ifndef WARDER_CLI_POLICY_H
#define WARDER_CLI_POLICY_H

#include <limits.h>
#include <stdbool.h>

#include "userspace/base/buf.h"
#include "userspace/base/option.h"
#include "userspace/base/str.h"
#include "userspace/config/flat.h"

#define POLICY_NAME_MAX 64

/* The policies that come with warder. */
struct shipped_policy {
	const char *name, *text;
	uint64_t n;
};
size_t policies_shipped(const struct shipped_policy **ret);
/* What the first line of a policy's text says: "# NAME: words"; empty when it says nothing. */
struct str policy_about(struct str text);

/* NAME.yaml of <config>/policies, by name. */
struct own_policies {
	struct own_policy {
		char name[POLICY_NAME_MAX + 1], path[PATH_MAX], about[256];
		bool shadowed; /* a shipped one has its name, and is what --policy NAME means */
	} * v;
	size_t n;
};
int policies_own(struct own_policies *ret, struct err *err);
void policies_own_done(struct own_policies *p);
/* One of them by its name, else NAME.yaml of <config>/policies, else a file. */
int policy_open(struct flat_file *ret, const char *word, struct err *err);
/* Is it shipped, or one of <config>/policies? */
bool policy_is_installed(const char *word);
/* The same as text, for a person. */
int policy_text(struct buf *ret, const char *word, struct err *err);

/* Can this be meant? Asked of each value, so that the error names its place. */
typedef int (*policy_check_fn)(const char *option, const char *value, struct err *err);

/* Values keep pointing into `file`. Rule files are relative to the policy's folder. Errors:
 * "path:line:col: message". */
int policy_apply(struct flat_file *file, const struct option_def *defs, void *target,
		 policy_check_fn check, struct err *err);

#endif
