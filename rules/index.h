/* SPDX-License-Identifier: Apache-2.0 */
/* Shared look-ups of one event kind: a value is looked up once for all rules that compare it with
 * constants, and only rules that can still be true are run.
 * A rule's guard is a set of checks of which one must be true for the rule to be true. */
#ifndef WARDER_RULES_INDEX_H
#define WARDER_RULES_INDEX_H

#include "rules/internal.h"

/* How a group finds the checks that a value satisfies. */
enum index_family {
	IX_NONE,
	IX_STR,	   /* equality of text: hash */
	IX_NUM,	   /* equality of numbers: hash */
	IX_NET,	   /* addresses: a hash look-up for each prefix length in use */
	IX_PATH,   /* pmatch: a hash look-up for each directory above */
	IX_PREFIX, /* trie */
	IX_SUFFIX, /* trie, from the end */
	IX_SUB,	   /* substrings: Aho-Corasick */
	IX_ISUB,   /* the same, case folded */
};

/* Keys are bytes; values are runs in `hit`. */
struct bytemap {
	struct mapslot {
		struct str key;
		uint32_t hash;
		uint32_t first, n; /* in hit[] */
		uint32_t chain;	   /* while building: last node + 1 */
	} * slot;
	uint32_t cap, n;
};

struct trie {
	uint8_t cls[256]; /* byte -> class; 0 = in no pattern */
	uint32_t classes;
	uint32_t *next;	     /* [node * classes + class]; 0 = none (trie) or the root (automaton) */
	uint32_t *first, *n; /* [node] run in hit[] */
	uint32_t *dict;	     /* [node] next shorter suffix with hits, 0 = none */
	uint32_t nodes;
};

#define INDEX_MASKS_MAX 64

struct group {
	enum index_family fam;
	const struct access *a;
	struct bytemap map;
	struct trie trie;
	struct net mask[INDEX_MASKS_MAX]; /* family and bits only */
	uint32_t masks_n;
};

struct bucket_index {
	struct group *group;
	uint32_t groups_n;
	uint32_t *hit;	       /* local atoms, runs named by maps and tries */
	uint64_t *known;       /* [atom] checks that groups decide */
	uint64_t *always;      /* [prog] rules without a guard */
	uint32_t *guard_first; /* [atom] run in guard[] */
	uint32_t *guard;       /* programs */
};

/* Working memory of one evaluation. */
struct index_run {
	uint64_t *value; /* [atom] */
	uint64_t *cand;	 /* [prog] */
};

enum index_family index_family_of(const struct atom *a);
uint32_t map_hash(struct str key);
const struct mapslot *map_get(const struct bytemap *m, struct str key);
struct str net_key(const struct net *n, const uint8_t *addr, char out[18]);
/* Looks every group's value up: sets the bits of true checks and of rules to run. */
void index_run(const struct bucket_index *ix, struct eval *e, struct index_run *run);

#endif
