/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of a run: read by who may read the files, compiled by whoever judges by them. Start and
 * reload go the same way. */
#ifndef WARDER_PIPELINE_RULE_FILES_H
#define WARDER_PIPELINE_RULE_FILES_H

#include "rules/rule.h"

#define RULE_TEXTS_MAX ((size_t)64 << 20) /* bytes of all files of a set */
#define RULE_DIR_MAX   1024		  /* rule files of one directory */

struct rule_files {
	bool builtin; /* the default packs come first */
	bool trusted; /* only files that nobody but root and the caller can change (trust.h) */
	const char *const
		*path; /* files, or directories of *.yaml and *.yml (at least one), in this order */
	size_t n;
	unsigned actions; /* bits for ruleset_allow_actions; 0 = as ruleset_new */
};

/* Names and contents, as one block for rule_texts_compile. err names the file. */
int rule_texts_read(struct buf *out, const struct rule_files *files, struct err *err);
/* A compiled set that may count and order. -EINVAL: an error in the rules, `fn` heard all, err the first
 * one; or no block of rule_texts_read. */
int rule_texts_compile(struct ruleset **ret, struct str texts, unsigned actions, rule_diag_fn fn,
		       void *arg, struct err *err);

#endif
