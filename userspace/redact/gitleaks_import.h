/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the import of gitleaks' rules: a rule of its file, and lists of exceptions, while they are read. */
#ifndef WARDER_REDACT_GITLEAKS_IMPORT_H
#define WARDER_REDACT_GITLEAKS_IMPORT_H

#include "userspace/base/json.h"
#include "userspace/base/toml.h"
#include "userspace/redact/gitleaks.h"
#include "userspace/redact/internal.h"

#define LISTS_MAX 64 /* lists of exceptions of one rule, or of all */
#define ID_MAX	  (REDACT_NAME_MAX - (sizeof(GITLEAKS_PREFIX) - 1))

/* One list of exceptions, as patterns that are looked for in the secret. */
struct allow {
	struct buf patterns; /* u32 length, pattern; words are quoted */
	bool has_places;     /* names of files or commits: a record has none */
	bool is_and;	     /* only where all of its parts are met */
	bool is_of_match;    /* looked for in more than the secret */
	bool is_limited;     /* targetRules: of some rules only */
	bool has_bad;	     /* one that is no pattern of PCRE2 */
	bool is_strange; /* a key or condition that is not known: what it would mean is not known either */
};

struct allows {
	struct allow v[LISTS_MAX];
	size_t n;
	bool too_many;
};

struct import {
	struct buf *yaml;
	gitleaks_note_fn note;
	void *arg;
	struct gitleaks_result *result;
	bool globals; /* first time: only what is for all rules */

	bool in_rule, has_regex, has_path;
	char id[ID_MAX + 1];
	struct buf about, regex, keywords; /* keywords: JSON strings, with commas */
	size_t keywords_n;
	struct buf one, nots;
	const char *wrong; /* with one of its values */
	bool no_disabled;  /* was told */
	unsigned seen;	   /* keys of RULE_KEYS */
	char first[256];   /* why the first that was left out was */
	double entropy, group;
	struct allows own, all;
};

/* ---- gitleaks.c ---- */
/* A note on the rule that is being read, or on what is for all. */
void gitleaks_tell(struct import *m, const char *text, bool out);
void gitleaks_tell_unknown(struct import *m, struct str key);

/* ---- gitleaks_allow.c ---- */
struct allow *allows_new_list(struct allows *a);
void allows_reset(struct allows *a);
/* A member of the last list of `of`. -ENOMEM. */
int allows_item(struct import *m, struct allows *of, struct str key, const struct toml_item *it);
/* What of it cannot be carried. */
void allows_tell(struct import *m, const struct allow *a);
/* m->nots: the exceptions of this rule and of all as a JSON list of patterns. */
void allows_make_nots(struct import *m);

/* ---- gitleaks_rule.c ---- */
int gitleaks_rule_begin(struct import *m);
/* Appends it to m->yaml, or tells why not. -ENOMEM. */
int gitleaks_rule_end(struct import *m);
int gitleaks_rule_item(struct import *m, struct str key, const struct toml_item *it);

#endif
