// SPDX-License-Identifier: Apache-2.0
/* Lists of exceptions of gitleaks, of one rule or of all, as patterns that are looked for in a secret. */
#include "userspace/redact/gitleaks_import.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

struct allow *allows_new_list(struct allows *a)
{
	if (a->n == LISTS_MAX) {
		a->too_many = true;
		return &a->v[LISTS_MAX - 1];
	}
	return &a->v[a->n++];
}

void allows_reset(struct allows *a)
{
	for (size_t i = 0; i < a->n; i++)
		buf_done(&a->v[i].patterns);
	*a = (struct allows){ 0 };
}

static bool is_pattern(struct str p)
{
	PCRE2_SIZE where;
	pcre2_code *code;
	int e;

	/* An empty one would except everything. */
	if (!p.n || p.n > REDACT_PATTERN_MAX - 8)
		return false;
	code = pcre2_compile((PCRE2_SPTR)p.p, p.n, PCRE2_NEVER_BACKSLASH_C, &e, &where, NULL);
	pcre2_code_free(code);
	return code != NULL;
}

static int add_pattern(struct allow *a, struct str p)
{
	uint32_t n = (uint32_t)p.n;

	if (!is_pattern(p)) {
		a->has_bad = true;
		return 0;
	}
	buf_add(&a->patterns, &n, sizeof(n));
	buf_add(&a->patterns, p.p, p.n);
	return a->patterns.failed ? -ENOMEM : 0;
}

/* A word, in any case. */
static int add_stopword(struct import *m, struct allow *a, struct str word)
{
	buf_reset(&m->one);
	buf_addz(&m->one, "(?i)");
	for (size_t i = 0; i < word.n; i++) {
		if (word.p[i] && strchr("\\^$.[]|()?*+{}-#", word.p[i]))
			buf_addc(&m->one, '\\');
		buf_addc(&m->one, word.p[i]);
	}
	return m->one.failed ? -ENOMEM : add_pattern(a, (struct str){ m->one.p, m->one.n });
}

static bool is_word(struct str v, const char *word)
{
	return v.n == strlen(word) && !strncasecmp(v.p, word, v.n);
}

static void set_condition(struct allow *a, struct str v)
{
	a->is_and = is_word(v, "and") || str_eqz(v, "&&");
	if (!a->is_and && !is_word(v, "or") && !str_eqz(v, "||"))
		a->is_strange = true;
}

int allows_item(struct import *m, struct allows *of, struct str key, const struct toml_item *it)
{
	struct allow *a = of->n ? &of->v[of->n - 1] : allows_new_list(of);

	if (str_eqz(key, "regexes") || str_eqz(key, "stopwords")) {
		if (it->type != TOML_STRING)
			a->has_bad = true;
		else
			return str_eqz(key, "regexes") ? add_pattern(a, it->text)
						       : add_stopword(m, a, it->text);
		return 0;
	}
	if (str_eqz(key, "paths") || str_eqz(key, "commits"))
		a->has_places = true;
	else if (str_eqz(key, "condition"))
		set_condition(a, it->text);
	else if (str_eqz(key, "regexTarget"))
		a->is_of_match = !str_eqz(it->text, "secret");
	else if (str_eqz(key, "targetRules"))
		a->is_limited = true;
	else if (!str_eqz(key, "description"))
		a->is_strange = true;
	return 0;
}

/* NULL, or why such a list cannot be had: without it more is taken out, and nothing that should not be seen. */
static const char *cannot_carry(const struct allow *a)
{
	if (a->is_strange)
		return "exceptions with a key or a condition that is not known: not carried";
	if (a->is_limited)
		return "exceptions for some rules only (targetRules): not carried";
	if (a->is_and && a->has_places)
		return "exceptions that hold for some files or commits only: not carried";
	if (a->is_and)
		return "exceptions that hold only together (condition AND): not carried";
	if (a->is_of_match)
		return "exceptions by the whole match or line (regexTarget): not carried";
	return NULL;
}

void allows_tell(struct import *m, const struct allow *a)
{
	const char *why = cannot_carry(a);

	if (why)
		gitleaks_tell(m, why, false);
	else if (a->has_places)
		gitleaks_tell(m, "exceptions by file or commit: a record has none, not carried",
			      false);
	if (!why && a->has_bad)
		gitleaks_tell(m, "an exception that is no pattern of PCRE2: not carried", false);
}

static void close_group(struct import *m, struct json *j)
{
	if (m->one.n)
		json_str(j, (struct str){ m->one.p, m->one.n });
	buf_reset(&m->one);
}

/* As few patterns as there is room for in each: a rule has few exceptions, gitleaks' may have a thousand words. */
static void add_list(struct import *m, struct json *j, const struct allow *a)
{
	uint32_t n;

	for (size_t at = 0; at < a->patterns.n; at += sizeof(n) + n) {
		memcpy(&n, a->patterns.p + at, sizeof(n));
		if (m->one.n && m->one.n + n + 8 > REDACT_PATTERN_MAX)
			close_group(m, j);
		if (m->one.n)
			buf_addc(&m->one, '|');
		buf_addz(&m->one, "(?:");
		buf_add(&m->one, a->patterns.p + at + sizeof(n), n);
		buf_addc(&m->one, ')');
	}
}

static void add_lists(struct import *m, struct json *j, const struct allows *lists, bool notes)
{
	if (lists->too_many && notes)
		gitleaks_tell(m, "more than 64 lists of exceptions: not all carried", false);
	for (size_t i = 0; i < lists->n; i++) {
		if (notes)
			allows_tell(m, &lists->v[i]);
		if (!cannot_carry(&lists->v[i]))
			add_list(m, j, &lists->v[i]);
	}
}

void allows_make_nots(struct import *m)
{
	struct json j;

	buf_reset(&m->nots);
	buf_reset(&m->one);
	json_init(&j, &m->nots);
	json_array_begin(&j);
	add_lists(m, &j, &m->own, true);
	add_lists(m, &j, &m->all, false);
	close_group(m, &j);
	json_array_end(&j);
}
