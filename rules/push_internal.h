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
#define PUSH_PATHS_FIT \
	(ENFORCE_PATHS_MAX / 2) /* two sets are in the kernel while one replaces another */
#define PUSH_ADDRS_FIT (ENFORCE_ADDRS_MAX / 2)
#define PUSH_EXES_FIT  (ENFORCE_EXES_MAX / 2)
#define PUSH_INOS_MAX  256 /* inodes and devices of executables in all rules */
#define PUSH_DEVS_MAX  16
#define PUSH_FOLDS_MAX 20000000 /* checks made for a set; what is left is unknown */

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

/* In a key an exact path ends with its NUL. */
struct push_range {
	struct push_text t;
	size_t key_n;
	size_t parent; /* the nearest wider one; its own number: none */
};

struct push_ranges {
	struct push_range v[PUSH_RANGES_MAX];
	size_t n;
	bool full;
};

/* Programs that no rule tells apart: one of their ranges stands for all. */
struct push_class {
	struct push_text t;
	uint8_t *said; /* by each check of an executable: its value, as TRI_ + 1 */
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
	struct push_choice *grid;		      /* scratch: range by kind */
	struct push_class class[ENFORCE_CLASSES + 1]; /* from 1 on */
	size_t classes_n;			      /* 0: programs make no difference */
	size_t at_class; /* whose entries are made; 0: of programs that are not known */
	size_t paths_n, addrs_n, exes_n; /* entries */
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

void push_range_add(struct push_ranges *all, struct str s, bool exact);
/* Of the constants that checks which are `wanted` compare with. */
void push_ranges_collect(struct arena *arena, struct push_ranges *all, const struct pred *p,
			 bool (*wanted)(const struct atom *a));
void push_ranges_parents(struct push_ranges *all);

int push_files(struct push *p);
int push_files(struct push *p);
int push_paths(struct push *p);
int push_nets(struct push *p);

/* Which classes of programs the rules tell apart, and by which paths. -E2BIG: too many. */
int push_classes(struct push *p, struct push_ranges *all, uint16_t *ret_class_of);
void push_classes_done(struct push *p);
bool push_tells_programs(const struct push_rule *r);
/* The entries that say so. */
int push_names(struct push *p, struct push_ranges *all, const uint16_t *class_of);

#endif
