/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of push-down share. */
#ifndef WARDER_RULES_PUSH_INTERNAL_H
#define WARDER_RULES_PUSH_INTERNAL_H

#include "rules/push.h"
#include "rules/push_fold.h"

#define PUSH_RULES_MAX	1024  /* rules that deny or kill */
#define PUSH_TERMS_MAX	4096  /* checks of one such rule */
#define PUSH_RANGES_MAX 2048  /* of paths, or of networks of one family */
#define PUSH_PAIRS_MAX	256   /* of paths, where both of an act are looked at */
#define PUSH_PORTS_MAX	512   /* ranges of ports */
#define PUSH_CELLS_MAX	65536 /* networks times ranges of ports */
#define PUSH_KINDS_MAX	16
#define PUSH_ARENA_MAX	(8u << 20)
#define PUSH_FOLDS_MAX	20000000 /* checks made for a set; what is left is unknown */

/* A rule that takes part. */
struct push_rule {
	uint32_t at; /* in the rule set */
	const struct rule *r;
	struct push_result *out;
	uint16_t verdict;
	uint64_t kinds; /* by id, as ENFORCE_KIND */
	bool out_of_room;
};

/* Who decides in a range, for one kind: 0 = nobody. */
struct push_choice {
	uint16_t id, verdict;
};

struct push {
	const struct ruleset *rs;
	const struct rule_session *session;
	const struct push_means *means;
	struct push_plan *plan;
	size_t cap;
	struct push_rule rule[PUSH_RULES_MAX];
	size_t rules_n;
	struct event ev;
	uint64_t folds;
	struct push_choice *grid; /* scratch: range by kind */
};

/* A condition with `k` known; PUSH_FOLDS_MAX is watched: beyond it all is unknown. */
int push_ask(struct push *p, const struct push_rule *r, struct push_known *k);
struct push_known push_known(struct push *p, uint16_t kind);
/* The stricter, then the earlier. */
void push_choose(struct push_choice *c, const struct push_rule *r);
/* Says of `r` that it is not complete, once. */
void push_short(struct push_rule *r, uint16_t kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int push_add(struct push *p, const struct enforce_entry *e);
/* The kinds of `set`, as ids; returns their number. */
size_t push_kinds(uint64_t set, uint16_t *ret);

int push_paths(struct push *p);
int push_nets(struct push *p);

#endif
