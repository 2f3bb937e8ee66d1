/* SPDX-License-Identifier: Apache-2.0 */
/* Takes secrets out of what is recorded. A redactor is made once: rules (rules/redact/ and files like them)
 * and exact values that the runtime knows. It is not changed after that, so threads share it; each has a
 * struct redact of its own, which holds the working memory and counts.
 *
 * In place of a secret stands [redacted:RULE:TAG]. The tag is a keyed hash, cut to 48 bits: the same secret has
 * the same tag on one host, and who has only the record cannot try passwords against it. */
#ifndef WARDER_REDACT_REDACT_H
#define WARDER_REDACT_REDACT_H

#include <stdbool.h>
#include <stdint.h>
#include "userspace/base/auto.h"
#include "userspace/base/buf.h"
#include "userspace/base/err.h"
#include "userspace/base/str.h"

#define REDACT_KEY_LEN	   32
#define REDACT_TAG_LEN	   6	/* bytes */
#define REDACT_NAME_MAX	   48	/* of a rule */
#define REDACT_RULES_MAX   1024 /* in all files of a set */
#define REDACT_VALUES_MAX  256
#define REDACT_VALUE_MIN   6	       /* bytes; shorter ones would be found everywhere */
#define REDACT_VALUE_MAX   (16 * 1024) /* bytes */
#define REDACT_FILE_MAX	   (1 << 20)
#define REDACT_PATTERN_MAX 8192
#define REDACT_MARK	   "[redacted:"
#define REDACT_MARK_MAX	   (sizeof(REDACT_MARK) + REDACT_NAME_MAX + 2 * REDACT_TAG_LEN + 2)
#define REDACT_LIMIT_RULE \
	"limit" /* in a mark: a whole field, since a match would have cost too much */

#define REDACT_CUT_RULE \
	"cut" /* in a mark: what looks random behind a place where the text was cut */

struct redactor;
struct redact;
struct redact_escrow;
struct arena;
struct event;

int redactor_new(struct redactor **ret, const uint8_t key[REDACT_KEY_LEN], struct err *err);
void redactor_free(struct redactor *r);
DEFINE_AUTO(redactor, redactor_free)

/* The rules of one file, as rules/redact/README.md has them. `name` is for errors: "name:line:col: ...". Of two
 * rules with one name the later counts. */
int redactor_add_rules(struct redactor *r, const char *name, struct str yaml, struct err *err);
/* The rules that are built in. */
int redactor_add_builtin(struct redactor *r, struct err *err);
/* A secret that is known, with the name that its marks show ("env.DB_PASSWORD"), without blanks and a byte order mark
 * around it: found as it is, as JSON, URLs, HTML and Python have it, in hex, in UTF-16, in base64 (of that, too) however
 * it lies in what was encoded, all without regard to case; of more than one line also line by line, and of one that is
 * JSON its first 64 strings of 8 bytes and more (fewer if there are many such values). Other encodings and parts of it
 * are not found, but for a part at a place where a text was cut. -ERANGE: shorter than REDACT_VALUE_MIN or longer than
 * REDACT_VALUE_MAX; -ENOMEM; -E2BIG: more than REDACT_VALUES_MAX, or too many forms of all. */
int redactor_add_value(struct redactor *r, const char *name, struct str value);
/* Originals are sealed for this key (escrow.h). */
void redactor_set_escrow_key(struct redactor *r, const uint8_t key[REDACT_KEY_LEN]);
/* NULL: they are not kept. */
const uint8_t *redactor_escrow_key(const struct redactor *r);
/* Long output goes through Hyperscan, where it is to be had, once there were so many bytes of it; default: as many as
 * its making costs. 0: at once; UINT64_MAX: never. For tests and measurements: what is found is the same. */
void redactor_set_hyperscan_after(struct redactor *r, uint64_t bytes);
/* It has come to that. */
bool redactor_uses_hyperscan(const struct redactor *r);
/* Is Hyperscan there, by the build and on this machine? *ret_what: its version, or why not; lives for ever. */
bool redact_has_hyperscan(const char **ret_what);
/* Ends the making; needed before the first use. */
int redactor_finish(struct redactor *r, struct err *err);

size_t redactor_rules(const struct redactor *r);
size_t redactor_values(const struct redactor *r);
const char *redactor_rule_name(const struct redactor *r, size_t i);
/* SHA-256 over all rules in order, hex: which set it was. Known values are not in it. */
const char *redactor_hash(const struct redactor *r);

/* Does a variable of this name usually hold a secret? Names of files, sockets and ids do not. */
bool redact_is_secret_name(struct str name);

/* ---- one thread's use of it ---- */

int redact_new(struct redact **ret, const struct redactor *r);
void redact_free(struct redact *x);
DEFINE_AUTO(redact, redact_free)

struct redact_counts {
	uint64_t places;	 /* marks that were set */
	uint64_t limited;	 /* of them, whole fields because of a limit */
	const uint64_t *by_rule; /* [redactor_rules()], and behind them */
	uint64_t values;	 /* of known values */
};
void redact_counts(const struct redact *x, struct redact_counts *ret);
/* Originals go there (escrow.h); borrowed. */
void redact_set_escrow(struct redact *x, struct redact_escrow *escrow);

/* How many places: 0 leaves `out` alone, else the text with its marks is appended to it. -ENOMEM,
 * -EMSGSIZE (the buffer's maximum): nothing of `in` may be kept. */
int redact_text(struct redact *x, struct str in, struct buf *out);

/* Words that belong together: an option and its value are two of them. */
enum words {
	WORDS_NONE,
	WORDS_ARGS, /* an argument vector */
	WORDS_ENV,  /* NAME=VALUE, or only a name */
};

struct words_in {
	const struct str *v;
	size_t n;
};

/* The same for words; *ret: as many, those with marks in `arena`; or one, when a limit was hit. */
int redact_words(struct redact *x, enum words words, struct words_in in, struct arena *arena,
		 struct words_in *ret);
/* All strings of an event that come from the sandbox or quote it. 0: there is nothing; else *ret is a copy in the
 * event's arena, whose F_REDACTIONS says how many. -ENOMEM. */
int redact_event(struct redact *x, const struct event *ev, struct event **ret);
/* There was no memory for that: the event loses all these strings, and can be recorded. */
void redact_bare(struct redact *x, struct event *ev);
/* A text of ours that may quote them (messages), in place; cut if the marks do not fit in `size`. */
void redact_in_place(struct redact *x, char *text, size_t size);

#endif
