/* SPDX-License-Identifier: Apache-2.0 */
/* What parse.c and parse_words.c share. */
#ifndef WARDER_RULES_PARSE_H
#define WARDER_RULES_PARSE_H

#include "rules/internal.h"

struct parser {
	struct ruleset *rs;
	const struct text *t;
	const char *s;
	size_t n, i;
	int depth;
	bool failed;
};

static inline bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\b';
}

static inline bool is_alpha(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline bool is_word(char c)
{
	return is_alpha(c) || (c >= '0' && c <= '9') || c == '_';
}

extern const char *const op_names[OP_COUNT];

void parser_blanks(struct parser *p);
/* The character at the cursor, 0 at the end. */
char parser_cur(const struct parser *p);
/* The first error counts; where: at byte `at` of the text. */
void parser_fail(struct parser *p, size_t at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* What stands at `at`, for a message. */
const char *parser_token(const struct parser *p, size_t at, char out[48]);
struct expr *parser_expr(struct parser *p, enum expr_type type, size_t pos);
/* An identifier at the cursor, dots included; n == 0 when there is none. Not taken. */
struct str parser_name(const struct parser *p);
/* Takes the word if it is there. */
bool parser_keyword(struct parser *p, const char *word);
/* Number of the transformer of this name; -1 when it is none. */
int parser_transformer(const struct parser *p, struct str name);
bool parser_add_value(struct parser *p, struct expr *e, size_t *cap, const struct word *w);
/* What stands at the cursor as a value, a list of them in parentheses, a field. False after an error. */
bool parse_value(struct parser *p, enum rule_op op, struct word *w);
bool parse_list(struct parser *p, struct expr *e);
bool parse_field(struct parser *p, struct lhs *l);

#endif
