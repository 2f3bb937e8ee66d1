/* SPDX-License-Identifier: Apache-2.0 */
/* Command-line options as a table: parsing, --help and man page tables come from the same rows. */
#ifndef WARDER_BASE_OPTION_H
#define WARDER_BASE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "userspace/base/err.h"

enum option_type {
	OPT_FLAG,     /* bool = true */
	OPT_STR,      /* const char * into argv; two different ones are an error */
	OPT_STRLIST,  /* struct option_list, repeatable */
	OPT_U64,      /* uint64_t, decimal */
	OPT_SIZE,     /* uint64_t bytes: 512, 64K, 256M, 2G (binary) */
	OPT_DURATION, /* uint64_t nanoseconds: 250ms, 30s, 5m, 2h; a bare number is seconds */
	OPT_FRACTION, /* uint64_t thousandths: 0.5 = 500 */
};

#define OPTION_LIST_MAX 64

struct option_list {
	const char *v[OPTION_LIST_MAX];
	size_t n;
};

struct option_def {
	const char *name; /* long name without dashes; NULL ends the table */
	char letter;	  /* 0 = none */
	enum option_type type;
	size_t offset;	 /* in the target struct */
	const char *arg; /* placeholder for help; NULL for flags */
	const char *help;
};

/* Does it take several values? -ENOENT when there is no such option. */
int option_is_list(const struct option_def *defs, const char *name);
/* Parse argv[1..]; stops at "--" or the first word that is no option. `ret_rest` is the index of the
 * first argument left over. --help is not handled here: give it a row. Errors name the option and the
 * bad value, unknown options suggest the closest name. -EINVAL. */
int options_parse(const struct option_def *defs, void *target, int argc, char **argv, int *ret_rest,
		  struct err *err);
/* The same, options and plain words in any order: argv[1..*ret_n] are the plain words afterwards. */
int options_parse_mixed(const struct option_def *defs, void *target, int argc, char **argv,
			int *ret_n, struct err *err);
/* Set one option by name from another source (a policy file): same checks, same errors. -ENOENT when
 * there is no such option. `value` must outlive the target. Flags take "true" or "false". */
int options_set(const struct option_def *defs, void *target, const char *name, const char *value,
		struct err *err);
void options_help(const struct option_def *defs, FILE *out);

int parse_u64(const char *text, uint64_t *ret);
int parse_size(const char *text, uint64_t *ret);
int parse_duration_ns(const char *text, uint64_t *ret);
int parse_fraction(const char *text, uint64_t *ret_milli);

/* Closest of `names` to `word` by edit distance, or NULL when none is near: for "did you mean". */
const char *closest_name(const char *word, const char *const *names, size_t n);

#endif
