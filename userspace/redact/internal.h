/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the redactor. */
#ifndef WARDER_REDACT_INTERNAL_H
#define WARDER_REDACT_INTERNAL_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "userspace/base/arena.h"
#include "userspace/redact/escrow.h"
#include "userspace/redact/redact.h"

#define LITERAL_MIN	  4
#define LITERALS_MAX	  32000 /* of rules and values together */
#define NOT_MAX		  16	/* exceptions of one rule */
#define SPANS_MAX	  256	/* in one text; more: all of it */
#define REDACT_MEMORY_MAX (128u << 20)
#define GRAM_BITS	  16
#define GRAM_WORDS	  ((1u << GRAM_BITS) / 64)
#define BUCKETS		  4096u
#define RULE_WORDS	  (REDACT_RULES_MAX / 64)
#define RULE_OF_CUT	  UINT16_MAX /* no rule: what looks random behind a cut */
#define EDGE_MIN	  4	     /* bytes of a known value at a cut; fewer tell nothing */
#define SCAN_AFTER	  (16u << 20) /* bytes of long texts that are looked through without scan.c */

/* Where a text was cut, before it is looked through. */
enum {
	EDGE_BEGIN = 1,
	EDGE_END = 2,
	EDGE_TOKEN = 4, /* with EDGE_BEGIN: what looks random there is no path */
};

enum check {
	CHECK_NONE,
	CHECK_LUHN,
};

struct redact_rule {
	char name[REDACT_NAME_MAX + 1];
	pcre2_code *code;
	pcre2_code * not [NOT_MAX]; /* looked for in the secret */
	uint32_t not_n;
	uint32_t group;
	bool any_group;	 /* the first that took part in the match */
	double entropy;	 /* bits a byte that the secret has at least; 0 = any */
	bool whole_word; /* in a list the secret ends with its word */
	bool digits;	 /* no keyword: long runs of digits */
	bool off;	 /* replaced by a later one of its name */
	bool is_secret;	 /* placeholders are secrets as well: what is matched cannot be one */
	enum check check;
	uint32_t min; /* bytes of the secret */
};

/* What the one pass over a text looks for: a keyword of a rule, or one form of a known value. */
struct literal {
	const char *p;
	uint16_t n;
	uint16_t rule;	/* or */
	uint16_t value; /* index + 1 */
	uint16_t at;	/* of its window */
	uint16_t next;	/* in the bucket: index + 1 */
	uint16_t next2; /* the same for the window one byte further */
	bool has_lines;
	bool blank_window; /* of a value: its blanks are NUL or ' ', no others */
	bool of_three;	   /* a keyword of three bytes, with one of those that may follow */
};

#define VALUE_HASHES 4 /* as it was given and without blanks around it, each also as a line */

struct value {
	char name[REDACT_NAME_MAX + 1];
	struct str text;	       /* what is hashed for the tag */
	char sha256[VALUE_HASHES][65]; /* of files that hold nothing else */
};

/* 64 K bits say which three bytes, without case, a literal's window may begin with. A window is looked for at every
 * second byte, so each literal has two, one byte apart. */
struct prefilter {
	uint64_t bits[GRAM_WORDS];
	uint16_t bucket[2][BUCKETS]; /* literal + 1; of windows at `at`, and one further */
	struct literal *v;
	size_t n, cap;
	bool digits; /* some rule wants long runs of digits */
	bool blanks; /* some value has them */
};

struct redactor {
	struct arena mem;
	struct redact_rule *rules;
	size_t rules_n, rules_cap;
	struct value values[REDACT_VALUES_MAX];
	size_t values_n;
	struct prefilter pre;
	struct scan *scan; /* threads share it, with a lock of its own; NULL: there is none */
	uint8_t key[REDACT_KEY_LEN];
	uint8_t escrow_key[REDACT_KEY_LEN];
	bool has_escrow;
	uint8_t digest[32];
	char hash[65];
	bool finished;
};

struct span {
	uint32_t from, to;
	uint32_t secret_from, secret_to; /* what the tag is about; of a value: nothing */
	uint32_t all_from, all_to;	 /* from and to, before a stream's colours are put back */
	uint16_t rule;
	uint16_t value; /* index + 1 */
	uint8_t view;	/* of a stream: which reading of it secret_from and the like are about */
};

struct redact {
	const struct redactor *r;
	pcre2_match_data *md;
	pcre2_match_context *mc;
	pcre2_jit_stack *stack;
	struct span span[SPANS_MAX];
	size_t n;
	bool whole; /* a limit was hit */
	uint64_t hit[RULE_WORDS];
	bool any;
	unsigned edges; /* of the texts that are looked through next */
	struct buf joined, made;
	uint64_t *by_rule;
	struct redact_counts counts;
	struct redact_clean *clean;   /* event.c */
	struct redact_escrow *escrow; /* borrowed; NULL: originals are not kept */
	struct hs_scratch *scratch;   /* scan.c: working memory; NULL: not yet */
	bool no_scan;		      /* it cannot be had */
};

/* ---- prefilter.c ---- */
/* -ENOMEM, -E2BIG. Texts live as long as the filter. */
int prefilter_add(struct prefilter *f, struct str text, uint16_t rule, uint16_t value);
/* The same for a rule's keyword of three bytes, which are too few for the filter: with each that may follow. */
int prefilter_add_three(struct prefilter *f, struct arena *mem, struct str text, uint16_t rule);
/* Does `l` stand at `p`, where there are as many bytes as it has? */
bool literal_is_at(const struct literal *l, const char *p);
/* It does, at `from` of the text: notes its rule, or a span. */
void literal_found(struct redact *x, const struct literal *l, size_t from);
/* Sets x->hit, and spans of known values. False: there is nothing to find. */
bool prefilter_run(struct redact *x, struct str s);
/* The same, and tells nothing more: for who only wants to know. */
bool prefilter_any(const struct redactor *r, struct str s);
/* Bytes at the end of `s` that may be the beginning of a known value; `lines`: of one with several lines. */
size_t prefilter_begun(const struct redactor *r, struct str s, bool lines);
/* Bytes at the end of `s` with which a known value begins, or at its beginning with which one ends: of the longest. */
size_t prefilter_edge(const struct redactor *r, struct str s, bool end, uint16_t *ret_value);

/* Adds a span of a rule's secret, or of a known value if `value` is not 0. False: one too many, all is taken out. */
bool add_span(struct redact *x, size_t from, size_t to, uint16_t rule, uint16_t value);

/* ---- scan.c ---- */
enum scan_result {
	SCAN_NOT, /* it is not done this way: nothing was looked at, or not all */
	SCAN_NOTHING,
	SCAN_FOUND,
};

/* *ret NULL: built without. */
int scan_new(struct scan **ret);
void scan_free(struct scan *s);
void scan_set_after(struct scan *s, uint64_t bytes);
bool scan_is_used(const struct scan *s);
/* As prefilter_run does, for a long text. */
enum scan_result scan_run(struct redact *x, struct str text);
/* Ends x's part of it. */
void scan_done(struct redact *x);

/* ---- edge.c ---- */
/* Adds to x->span what stands at x->edges. */
void find_at_edges(struct redact *x, struct str s);

/* ---- redactor.c ---- */
bool is_hash_of_value(const struct redactor *r, struct str hex);

/* ---- value.c ---- */
int value_forms(struct redactor *r, struct str v, uint16_t value);

/* ---- check.c ---- */
double entropy_of(struct str s);
bool luhn_is_good(struct str s);
bool is_placeholder(struct str s);
/* Letters, digits and what else stands in keys: nothing that ends a word. */
bool is_of_token(char c);
/* Is [from, to) in one of our own marks, but for punctuation behind it? */
bool is_in_mark(struct str s, size_t from, size_t to);

/* ---- rule_file.c ---- */
struct rule_text;
int rules_read(struct redactor *r, const char *name, struct str yaml, struct err *err);

/* ---- find.c ---- */
/* Leaves x->span, by place and without overlaps; x->whole: all of `s`. Words end with NUL. */
void find_secrets(struct redact *x, struct str s, enum words words);
/* Appends the mark of a span of `s`. */
void add_mark(struct redact *x, struct str s, const struct span *p, struct buf *out);
void add_whole_mark(struct redact *x, struct str s, struct buf *out);

#endif
