// SPDX-License-Identifier: Apache-2.0
/* One rule of gitleaks. It is tried by itself before it is taken, so that one which cannot be compiled takes no other
 * with it. */
#include "userspace/redact/gitleaks_import.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define GROUP_MAX	      63 /* what a rule of ours takes */
#define ABOUT_MAX	      400
#define GITLEAKS_KEYWORDS_MAX 256 /* what a rule of ours takes */

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
			gitleaks_tell(m, rows[i].text, false);
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
	allows_make_nots(m);
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

int gitleaks_rule_end(struct import *m)
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
		gitleaks_tell(m, why, true);
	} else {
		tell_differences(m);
		buf_add(m->yaml, out.p, out.n);
	}
	m->in_rule = false;
	return m->yaml->failed ? -ENOMEM : 0;
}

int gitleaks_rule_begin(struct import *m)
{
	int e = gitleaks_rule_end(m);

	buf_reset(&m->about);
	buf_reset(&m->regex);
	buf_reset(&m->keywords);
	allows_reset(&m->own);
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

int gitleaks_rule_item(struct import *m, struct str key, const struct toml_item *it)
{
	const struct rule_key *k = rule_key(key);

	if (!k) {
		if (str_starts(key, STR("required")))
			gitleaks_tell(
				m,
				"it wants other rules to match as well (required): that is not asked "
				"here",
				false);
		else
			gitleaks_tell_unknown(m, key);
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
