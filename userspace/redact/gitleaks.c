// SPDX-License-Identifier: Apache-2.0
/* The file is read twice: exceptions for all rules may stand behind the rules. Each rule is tried by itself before it is
 * taken, so that one which cannot be compiled takes no other with it. */
#include "userspace/redact/gitleaks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "userspace/base/json.h"
#include "userspace/base/toml.h"
#include "userspace/redact/internal.h"

#define LISTS_MAX	      64 /* lists of exceptions of one rule, or of all */
#define ID_MAX		      (REDACT_NAME_MAX - (sizeof(GITLEAKS_PREFIX) - 1))
#define GROUP_MAX	      63 /* what a rule of ours takes */
#define ABOUT_MAX	      400
#define GITLEAKS_KEYWORDS_MAX 256 /* what a rule of ours takes */

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

/* ---- exceptions ---- */

static struct allow *new_list(struct allows *a)
{
	if (a->n == LISTS_MAX) {
		a->too_many = true;
		return &a->v[LISTS_MAX - 1];
	}
	return &a->v[a->n++];
}

static void reset_lists(struct allows *a)
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

static int allow_item(struct import *m, struct allows *of, struct str key,
		      const struct toml_item *it)
{
	struct allow *a = of->n ? &of->v[of->n - 1] : new_list(of);

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

static void tell(struct import *m, const char *text, bool out)
{
	if (m->note && !m->globals)
		m->note(m->arg, m->in_rule ? m->id : "", text, out);
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

static void tell_list(struct import *m, const struct allow *a)
{
	const char *why = cannot_carry(a);

	if (why)
		tell(m, why, false);
	else if (a->has_places)
		tell(m, "exceptions by file or commit: a record has none, not carried", false);
	if (!why && a->has_bad)
		tell(m, "an exception that is no pattern of PCRE2: not carried", false);
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
		tell(m, "more than 64 lists of exceptions: not all carried", false);
	for (size_t i = 0; i < lists->n; i++) {
		if (notes)
			tell_list(m, &lists->v[i]);
		if (!cannot_carry(&lists->v[i]))
			add_list(m, j, &lists->v[i]);
	}
}

/* ---- a rule ---- */

/* In RE2 these mean something else, or are about characters, where ours are about bytes. */
static void tell_differences(struct import *m)
{
	static const struct {
		const char *what, *text;
	} rows[] = {
		{ "\\v", "\\v is any vertical space here, and a vertical tab alone there" },
		{ "\\p", "\\p is about bytes here, and about characters there" },
		{ "\\P", "\\P is about bytes here, and about characters there" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (m->regex.n && memmem(m->regex.p, m->regex.n, rows[i].what, 2))
			tell(m, rows[i].text, false);
}

static void list_member(struct buf *out, const char *key, const struct buf *members)
{
	if (members->n) {
		buf_printf(out, "  %s: [", key);
		buf_add(out, members->p, members->n);
		buf_addz(out, "]\n");
	}
}

static void text_member(struct buf *out, const char *key, struct str text)
{
	struct json j;

	buf_printf(out, "  %s: ", key);
	json_init(&j, out);
	json_str(&j, text);
	buf_addc(out, '\n');
}

static void make_nots(struct import *m)
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

static int make_yaml(struct import *m, struct buf *out)
{
	/* With a name of ours it would take the place of that rule, which may find more. */
	buf_printf(out, "- rule: " GITLEAKS_PREFIX "%s\n", m->id);
	if (m->about.n)
		text_member(out, "about", (struct str){ m->about.p, m->about.n });
	list_member(out, "keywords", &m->keywords);
	text_member(out, "regex", (struct str){ m->regex.p, m->regex.n });
	if (m->group > 0)
		buf_printf(out, "  group: %.0f\n", m->group);
	if (m->entropy > 0)
		buf_printf(out, "  entropy: %.4g\n", m->entropy);
	make_nots(m);
	if (m->nots.n > 2) {
		buf_addz(out, "  not: ");
		buf_add(out, m->nots.p, m->nots.n);
		buf_addc(out, '\n');
	}
	return out->failed || m->nots.failed || m->one.failed ? -ENOMEM : 0;
}

/* Is it one that would be taken? Else `ret_why`, without the place in a file that nobody sees. */
static int try_rule(struct str yaml, struct err *ret_why)
{
	static const uint8_t key[REDACT_KEY_LEN];
	AUTO(redactor) struct redactor *r = NULL;
	const char *text;
	int e = redactor_new(&r, key, ret_why);

	if (e == 0)
		e = redactor_add_rules(r, "", yaml, ret_why);
	if (e == 0 || e == -ENOMEM)
		return e;
	text = strchr(ret_why->text, ' ');
	if (ret_why->text[0] == ':' && text)
		memmove(ret_why->text, text + 1, strlen(text));
	return e;
}

/* Texts in it are quoted: none of them is such a line. */
static bool is_there(const struct import *m)
{
	char line[sizeof("- rule: ") + REDACT_NAME_MAX + 1];
	int n = snprintf(line, sizeof(line), "- rule: " GITLEAKS_PREFIX "%s\n", m->id);

	return m->yaml->n && memmem(m->yaml->p, m->yaml->n, line, (size_t)n) != NULL;
}

/* NULL, or why it is none of ours. */
static const char *cannot_take(const struct import *m)
{
	if (!m->id[0])
		return "a rule without an id, or with one that is not 1 to 39 of A-Z a-z 0-9 . + - _";
	if (m->wrong)
		return m->wrong;
	if (m->has_path && !m->has_regex)
		return "it is about names of files, not about what is in a text";
	if (m->has_path)
		return "it holds for some files only (path), and a record has none";
	if (!m->has_regex)
		return "it has no regex";
	if (m->regex.n > REDACT_PATTERN_MAX)
		return "regex longer than 8192 bytes";
	if (!m->keywords.n)
		return "it has no keywords: every text would have to be searched with it";
	if (m->keywords_n > GITLEAKS_KEYWORDS_MAX)
		return "more than 256 keywords";
	if (is_there(m))
		return "another rule has this id";
	if (m->result->rules - m->result->left_out > REDACT_RULES_MAX)
		return "more than 1024 rules";
	return NULL;
}

static int end_rule(struct import *m)
{
	auto_buf struct buf out = { 0 };
	const char *why;
	struct err err = { 0 };
	int e = 0;

	if (!m->in_rule)
		return 0;
	m->result->rules++;
	why = cannot_take(m);
	if (!why) {
		/* More than try_rule takes, so that it says so. */
		buf_init(&out, 2 * REDACT_FILE_MAX);
		e = make_yaml(m, &out);
		if (e == 0)
			e = try_rule((struct str){ out.p, out.n }, &err);
		if (e == -ENOMEM)
			return e;
		why = e < 0 ? err_text(&err) : NULL;
		if (!why && m->yaml->max && out.n > m->yaml->max - m->yaml->n)
			why = "the rules before it are all that fits into 1 MiB";
	}
	if (why) {
		if (!m->result->left_out++)
			snprintf(m->first, sizeof(m->first), "%s%s%s", m->id, m->id[0] ? ": " : "",
				 why);
		tell(m, why, true);
	} else {
		tell_differences(m);
		buf_add(m->yaml, out.p, out.n);
	}
	m->in_rule = false;
	return m->yaml->failed ? -ENOMEM : 0;
}

static int begin_rule(struct import *m)
{
	int e = end_rule(m);

	buf_reset(&m->about);
	buf_reset(&m->regex);
	buf_reset(&m->keywords);
	reset_lists(&m->own);
	m->id[0] = 0;
	m->entropy = m->group = 0;
	m->keywords_n = 0;
	m->wrong = NULL;
	m->seen = 0;
	m->has_regex = m->has_path = false;
	m->in_rule = true;
	return e;
}

static bool is_name(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!s.p[i] || !strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				       "0123456789-_.+",
				       s.p[i]))
			return false;
	return s.n && s.n <= ID_MAX;
}

static int add_keyword(struct import *m, struct str word)
{
	struct json j;

	if (++m->keywords_n > GITLEAKS_KEYWORDS_MAX)
		return 0;
	if (m->keywords.n)
		buf_addz(&m->keywords, ", ");
	json_init(&j, &m->keywords);
	json_str(&j, word);
	return m->keywords.failed ? -ENOMEM : 0;
}

/* The keys of a rule there, and what is said when its value is of another type. */
static const struct rule_key {
	const char *name;
	enum toml_type type; /* TOML_OTHER: any, it does not matter here */
	const char *wrong;
} RULE_KEYS[] = {
	{ "id", TOML_STRING, "its id is no text, or is there twice" },
	{ "description", TOML_STRING, "its description is no text, or is there twice" },
	{ "keywords", TOML_STRING, "a keyword is no text" },
	{ "path", TOML_STRING, "its path is no text, or is there twice" },
	{ "regex", TOML_STRING, "its regex is no text, or is there twice" },
	{ "entropy", TOML_NUMBER, "its entropy is no number from 0 to 8, or is there twice" },
	{ "secretGroup", TOML_NUMBER, "its secretGroup is no group's number, or is there twice" },
	{ "tags", TOML_OTHER, NULL },
	{ "skipReport", TOML_OTHER, NULL },
};

static const struct rule_key *rule_key(struct str key)
{
	for (size_t i = 0; i < ARRAY_SIZE(RULE_KEYS); i++)
		if (str_eqz(key, RULE_KEYS[i].name))
			return &RULE_KEYS[i];
	return NULL;
}

static bool is_number(const struct toml_item *it, double max, bool whole)
{
	return it->number >= 0 && it->number <= max &&
	       (!whole || it->number == (double)(unsigned)it->number);
}

/* Is the value one that the key can have, and the first of it in this rule? */
static bool fits(struct import *m, const struct rule_key *k, const struct toml_item *it)
{
	unsigned bit = 1u << (k - RULE_KEYS);
	bool again = m->seen & bit && strcmp(k->name, "keywords") != 0;

	m->seen |= bit;
	if (k->type == TOML_OTHER)
		return true;
	if (again || it->type != k->type)
		return false;
	if (!strcmp(k->name, "entropy"))
		return is_number(it, 8, false);
	return strcmp(k->name, "secretGroup") != 0 || is_number(it, GROUP_MAX, true);
}

static void tell_unknown(struct import *m, struct str key)
{
	char text[128];

	m->result->unknown++;
	snprintf(text, sizeof(text), "the key '%.*s' is not known: not carried",
		 (int)MIN(key.n, (size_t)64), key.p);
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	tell(m, text, false);
}

static int rule_item(struct import *m, struct str key, const struct toml_item *it)
{
	const struct rule_key *k = rule_key(key);

	if (!k) {
		if (str_starts(key, STR("required")))
			tell(m,
			     "it wants other rules to match as well (required): that is not asked "
			     "here",
			     false);
		else
			tell_unknown(m, key);
		return 0;
	}
	if (!fits(m, k, it)) {
		m->wrong = m->wrong ? m->wrong : k->wrong;
		return 0;
	}
	if (str_eqz(key, "id") && is_name(it->text))
		snprintf(m->id, sizeof(m->id), "%.*s", (int)it->text.n, it->text.p);
	else if (str_eqz(key, "description"))
		buf_add(&m->about, it->text.p, MIN(it->text.n, (size_t)ABOUT_MAX));
	else if (str_eqz(key, "keywords"))
		return add_keyword(m, it->text);
	else if (str_eqz(key, "path"))
		m->has_path = true;
	else if (str_eqz(key, "entropy"))
		m->entropy = it->number;
	else if (str_eqz(key, "secretGroup"))
		m->group = it->number;
	else if (str_eqz(key, "regex")) {
		buf_add(&m->regex, it->text.p, it->text.n);
		m->has_regex = true;
	}
	return m->about.failed || m->regex.failed ? -ENOMEM : 0;
}

/* ---- the file ---- */

static bool behind(struct str path, const char *prefix, struct str *ret)
{
	size_t n = strlen(prefix);

	if (path.n < n || memcmp(path.p, prefix, n) != 0)
		return false;
	*ret = (struct str){ path.p + n, path.n - n };
	return true;
}

static int on_table(struct import *m, struct str path)
{
	if (str_eqz(path, "rules"))
		return m->globals ? 0 : begin_rule(m);
	if (str_eqz(path, "rules.allowlist") || str_eqz(path, "rules.allowlists")) {
		if (!m->globals)
			new_list(&m->own);
	} else if (str_eqz(path, "allowlist") || str_eqz(path, "allowlists")) {
		if (m->globals)
			new_list(&m->all);
	}
	return 0;
}

static void tell_file(struct import *m, const char *text)
{
	if (m->note && !m->globals)
		m->note(m->arg, "", text, false);
}

/* What stands in no rule, and is no list of exceptions. */
static void top_item(struct import *m, const struct toml_item *it)
{
	static const char *const known[] = { "title",  "description", "minVersion", "version",
					     "extend", "rules",	      "allowlist",  "allowlists" };
	struct str key;
	bool was = m->in_rule;

	if (behind(it->path, "extend.disabledRules", &key)) {
		if (!m->no_disabled)
			tell_file(m,
				  "extend.disabledRules: not carried, they are rules of files that "
				  "are not read; switch them off by name (off: true)");
		m->no_disabled = true;
		return;
	}
	if (behind(it->path, "extend.", &key)) {
		if (it->type != TOML_BOOL || str_eqz(it->text, "true"))
			tell_file(m, "extend: other files are not read, import them as well");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (str_eqz(it->path, known[i]))
			return;
	if (memchr(it->path.p, '.', it->path.n))
		return;
	m->in_rule = false;
	tell_unknown(m, it->path);
	m->in_rule = was;
}

static int on_item(void *arg, const struct toml_item *it, struct err *err)
{
	struct import *m = arg;
	struct str key;

	(void)err;
	if (it->type == TOML_TABLE) {
		if (!m->globals)
			top_item(m, it);
		return on_table(m, it->path);
	}
	if (behind(it->path, "allowlist.", &key) || behind(it->path, "allowlists.", &key))
		return m->globals ? allow_item(m, &m->all, key, it) : 0;
	if (m->globals)
		return 0;
	if (behind(it->path, "rules.allowlist.", &key) ||
	    behind(it->path, "rules.allowlists.", &key))
		return allow_item(m, &m->own, key, it);
	if (behind(it->path, "rules.", &key))
		return m->in_rule ? rule_item(m, key, it) : 0;
	top_item(m, it);
	return 0;
}

/* Exceptions for all rules that cannot be had are told once. */
static void tell_of_all(struct import *m)
{
	for (size_t i = 0; i < m->all.n; i++)
		tell_list(m, &m->all.v[i]);
}

static void done(struct import *m)
{
	buf_done(&m->about);
	buf_done(&m->regex);
	buf_done(&m->keywords);
	buf_done(&m->one);
	buf_done(&m->nots);
	reset_lists(&m->own);
	reset_lists(&m->all);
}

int gitleaks_import(const char *name, struct str toml, struct buf *yaml, gitleaks_note_fn note,
		    void *arg, struct gitleaks_result *ret, struct err *err)
{
	auto_free struct import *m = calloc(1, sizeof(*m));
	int e;

	*ret = (struct gitleaks_result){ 0 };
	if (!m)
		return err_set(err, ENOMEM, "%s: %m", name);
	if (toml.n > GITLEAKS_FILE_MAX)
		return err_set(err, EFBIG, "%s: larger than 1 MiB", name);
	m->yaml = yaml;
	m->note = note;
	m->arg = arg;
	m->result = ret;
	m->globals = true;
	e = toml_read(name, toml, on_item, m, err);
	m->globals = false;
	if (e == 0) {
		tell_of_all(m);
		e = toml_read(name, toml, on_item, m, err);
	}
	if (e == 0)
		e = end_rule(m);
	done(m);
	if (e == 0 && ret->rules == 0)
		return err_set(err, EINVAL, "%s: no rules of gitleaks are in it ([[rules]])", name);
	/* Whoever names a file of rules counts on it: with none of them it must not begin. */
	if (e == 0 && ret->rules == ret->left_out)
		return err_set(err, EINVAL, "%s: of its %zu rule%s none can be used: %s", name,
			       ret->rules, ret->rules == 1 ? "" : "s", m->first);
	return e == -ENOMEM ? err_set(err, ENOMEM, "%s: %m", name) : e;
}
