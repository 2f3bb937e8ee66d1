// SPDX-License-Identifier: Apache-2.0
/* Rules from YAML: a list of maps whose values are texts or lists of texts. Read event by event, nothing nested
 * deeper, no anchors, no tags; what is not plain is an error with its place. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "userspace/redact/internal.h"

#define KEYWORDS_MAX 256 /* of one rule */
#define KEYS_MAX     16	 /* more than there are */

struct reader {
	struct redactor *r;
	const char *name;
	struct err *err;
	yaml_parser_t parser;
	struct redact_rule rule;
	struct str keyword[KEYWORDS_MAX];
	size_t keywords_n;
	int line;		 /* of the rule */
	char seen[KEYS_MAX][16]; /* keys of this rule */
	size_t seen_n;
};

static int bad(struct reader *f, const yaml_mark_t *at, const char *text)
{
	return err_set(f->err, EINVAL, "%s:%zu:%zu: %s", f->name, at->line + 1, at->column + 1,
		       text);
}

static int next(struct reader *f, yaml_event_t *ret)
{
	if (yaml_parser_parse(&f->parser, ret))
		return 0;
	return bad(f, &f->parser.problem_mark, f->parser.problem ? f->parser.problem : "no YAML");
}

static int compile(struct reader *f, const yaml_mark_t *at, struct str pattern, pcre2_code **ret)
{
	char text[160], why[128];
	PCRE2_SIZE where = 0;
	pcre2_code *code;
	int e = 0;

	if (pattern.n > REDACT_PATTERN_MAX)
		return bad(f, at, "regex longer than 8192 bytes");
	code = pcre2_compile((PCRE2_SPTR)pattern.p, pattern.n, PCRE2_NEVER_BACKSLASH_C, &e, &where,
			     NULL);
	if (!code) {
		pcre2_get_error_message(e, (PCRE2_UCHAR *)why, sizeof(why));
		snprintf(text, sizeof(text), "regex, byte %zu: %.100s", where, why);
		return bad(f, at, text);
	}
	/* Where there is no compiler for this machine, it is interpreted. */
	(void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
	*ret = code;
	return 0;
}

static bool matches_nothing(const pcre2_code *code)
{
	pcre2_match_data *md = pcre2_match_data_create(1, NULL);
	int n = md ? pcre2_match(code, (PCRE2_SPTR) "", 0, 0, 0, md, NULL) : 0;

	pcre2_match_data_free(md);
	return n >= 0;
}

static int set_number(struct reader *f, const yaml_mark_t *at, struct str v, double max,
		      double *ret)
{
	char text[32], *end;

	snprintf(text, sizeof(text), "%.*s", (int)MIN(v.n, sizeof(text) - 1), v.p);
	*ret = strtod(text, &end);
	if (!v.n || *end || !(*ret >= 0 && *ret <= max))
		return bad(f, at, "not such a number");
	return 0;
}

static int set_yes(struct reader *f, const yaml_mark_t *at, struct str v, bool *ret)
{
	if (!str_eqz(v, "true") && !str_eqz(v, "false"))
		return bad(f, at, "true or false");
	*ret = str_eqz(v, "true");
	return 0;
}

static bool name_is_good(struct str v)
{
	for (size_t i = 0; i < v.n; i++)
		if (!((v.p[i] >= 'a' && v.p[i] <= 'z') || (v.p[i] >= 'A' && v.p[i] <= 'Z') ||
		      (v.p[i] >= '0' && v.p[i] <= '9') || strchr("-_.+", v.p[i])))
			return false;
	return v.n && v.n <= REDACT_NAME_MAX;
}

static int set_name(struct reader *f, const yaml_mark_t *at, struct str v)
{
	if (!name_is_good(v))
		return bad(f, at, "a rule's name is 1 to 48 of A-Z a-z 0-9 . + - _");
	memcpy(f->rule.name, v.p, v.n);
	f->rule.name[v.n] = 0;
	return 0;
}

static int set_keyword(struct reader *f, const yaml_mark_t *at, struct str v)
{
	struct str s;

	if (f->keywords_n == KEYWORDS_MAX)
		return bad(f, at, "more than 256 keywords");
	if (v.n < LITERAL_MIN - 1 || v.n > 256)
		return bad(f, at, "a keyword has 3 to 256 bytes");
	s = arena_strndup(&f->r->mem, v.p, v.n);
	if (!s.p)
		return -ENOMEM;
	f->keyword[f->keywords_n++] = s;
	return 0;
}

static int set_not(struct reader *f, const yaml_mark_t *at, struct str v)
{
	int e;

	if (f->rule.not_n == NOT_MAX)
		return bad(f, at, "more than 16 exceptions");
	e = compile(f, at, v, &f->rule.not [f->rule.not_n]);
	if (e == 0)
		f->rule.not_n++;
	return e;
}

/* One `key: value`, or one member of `key: [ ... ]`. */
static int set(struct reader *f, const yaml_mark_t *at, const char *key, struct str v, bool list)
{
	double n;
	int e;

	if (!strcmp(key, "keywords"))
		return set_keyword(f, at, v);
	if (!strcmp(key, "not"))
		return set_not(f, at, v);
	if (list)
		return bad(f, at, "this key has one value");
	if (!strcmp(key, "rule"))
		return set_name(f, at, v);
	if (!strcmp(key, "about"))
		return 0;
	if (!strcmp(key, "regex"))
		return compile(f, at, v, &f->rule.code);
	if (!strcmp(key, "argument"))
		return set_yes(f, at, v, &f->rule.whole_word);
	if (!strcmp(key, "digits"))
		return set_yes(f, at, v, &f->rule.digits);
	if (!strcmp(key, "off"))
		return set_yes(f, at, v, &f->rule.off);
	if (!strcmp(key, "placeholders"))
		return set_yes(f, at, v, &f->rule.is_secret);
	if (!strcmp(key, "check")) {
		f->rule.check = CHECK_LUHN;
		return str_eqz(v, "luhn") ? 0 : bad(f, at, "check: luhn is what there is");
	}
	if (strcmp(key, "entropy") && strcmp(key, "min") && strcmp(key, "group"))
		return bad(f, at, "unknown key");
	e = set_number(f, at, v, strcmp(key, "entropy") ? 10000 : 8, &n);
	if (e < 0)
		return e;
	if (!strcmp(key, "entropy"))
		f->rule.entropy = n;
	else if (!strcmp(key, "min"))
		f->rule.min = (uint32_t)n;
	else
		f->rule.group = (uint32_t)n;
	return 0;
}

static int read_list(struct reader *f, const char *key)
{
	yaml_event_t ev;
	int e;

	for (;;) {
		e = next(f, &ev);
		if (e < 0)
			return e;
		if (ev.type == YAML_SEQUENCE_END_EVENT)
			break;
		if (ev.type != YAML_SCALAR_EVENT || ev.data.scalar.anchor || ev.data.scalar.tag)
			e = bad(f, &ev.start_mark, "a plain text is wanted");
		else
			e = set(f, &ev.start_mark, key,
				(struct str){ (char *)ev.data.scalar.value, ev.data.scalar.length },
				true);
		yaml_event_delete(&ev);
		if (e < 0)
			return e;
	}
	yaml_event_delete(&ev);
	return 0;
}

static int add_keyword(struct reader *f, struct str k, uint16_t rule)
{
	if (k.n >= LITERAL_MIN)
		return prefilter_add(&f->r->pre, k, rule, 0);
	return prefilter_add_three(&f->r->pre, &f->r->mem, k, rule);
}

static int check_rule(struct reader *f, const yaml_mark_t *at)
{
	struct redact_rule *rule = &f->rule;
	uint32_t groups = 0;

	if (!rule->name[0])
		return bad(f, at, "a rule without a name (rule: ...)");
	if (rule->off)
		return 0;
	if (!rule->code)
		return bad(f, at, "a rule without a regex");
	if (!f->keywords_n && !rule->digits)
		return bad(f, at,
			   "a rule without keywords: texts would have to be searched with it "
			   "one by one. Name a text that stands in every match");
	pcre2_pattern_info(rule->code, PCRE2_INFO_CAPTURECOUNT, &groups);
	rule->any_group = rule->group == UINT32_MAX && groups > 1;
	if (rule->group == UINT32_MAX)
		rule->group = groups ? 1 : 0;
	if (rule->group > groups || rule->group > 63)
		return bad(f, at, "the regex has no such group");
	if (matches_nothing(rule->code))
		return bad(f, at, "the regex matches an empty text");
	return 0;
}

static int add_rule(struct reader *f, const yaml_mark_t *at)
{
	struct redactor *r = f->r;
	bool there = false;
	int e = check_rule(f, at);

	for (size_t i = 0; e == 0 && i < r->rules_n; i++)
		if (!strcmp(r->rules[i].name, f->rule.name))
			there = r->rules[i].off = true;
	if (e < 0)
		return e;
	if (f->rule.off && !there && !f->rule.code)
		return bad(f, at, "there is no rule of this name before it to switch off");
	if (r->rules_n == REDACT_RULES_MAX)
		return bad(f, at, "more than 1024 rules");
	if (r->rules_n == r->rules_cap) {
		size_t cap = r->rules_cap ? 2 * r->rules_cap : 64;
		struct redact_rule *p = realloc(r->rules, cap * sizeof(*p));

		if (!p)
			return err_set(f->err, ENOMEM, "%s: %m", f->name);
		r->rules = p;
		r->rules_cap = cap;
	}
	for (size_t i = 0; e == 0 && i < f->keywords_n && !f->rule.off; i++)
		e = add_keyword(f, f->keyword[i], (uint16_t)r->rules_n);
	if (e < 0)
		return err_set(f->err, e, "%s: too many keywords: %m", f->name);
	r->rules[r->rules_n++] = f->rule;
	memset(&f->rule, 0, sizeof(f->rule));
	return 0;
}

static void drop_rule(struct redact_rule *rule)
{
	pcre2_code_free(rule->code);
	for (uint32_t i = 0; i < rule->not_n; i++)
		pcre2_code_free(rule->not [i]);
	memset(rule, 0, sizeof(*rule));
}

/* Of two values of one key the last would win. */
static int see_key(struct reader *f, const yaml_mark_t *at, const char *key)
{
	for (size_t i = 0; i < f->seen_n; i++)
		if (!strcmp(f->seen[i], key))
			return bad(f, at, "duplicate key");
	if (f->seen_n == KEYS_MAX || strlen(key) >= sizeof(f->seen[0]))
		return bad(f, at, "unknown key");
	snprintf(f->seen[f->seen_n++], sizeof(f->seen[0]), "%s", key);
	return 0;
}

static int read_map(struct reader *f, const yaml_mark_t *at)
{
	yaml_event_t ev;
	char key[32];
	int e = 0;

	f->rule = (struct redact_rule){ .group = UINT32_MAX };
	f->keywords_n = 0;
	f->seen_n = 0;
	while (e == 0) {
		e = next(f, &ev);
		if (e < 0)
			break;
		if (ev.type == YAML_MAPPING_END_EVENT) {
			yaml_event_delete(&ev);
			return add_rule(f, at);
		}
		if (ev.type != YAML_SCALAR_EVENT) {
			e = bad(f, &ev.start_mark, "a key is wanted");
			yaml_event_delete(&ev);
			break;
		}
		snprintf(key, sizeof(key), "%s", (char *)ev.data.scalar.value);
		e = see_key(f, &ev.start_mark, key);
		yaml_event_delete(&ev);
		if (e < 0)
			break;
		e = next(f, &ev);
		if (e < 0)
			break;
		if (ev.type == YAML_SCALAR_EVENT && !ev.data.scalar.anchor && !ev.data.scalar.tag)
			e = set(f, &ev.start_mark, key,
				(struct str){ (char *)ev.data.scalar.value, ev.data.scalar.length },
				false);
		else if (ev.type == YAML_SEQUENCE_START_EVENT && !ev.data.sequence_start.anchor &&
			 (!strcmp(key, "keywords") || !strcmp(key, "not")))
			e = read_list(f, key);
		else
			e = bad(f, &ev.start_mark, "a plain text is wanted");
		yaml_event_delete(&ev);
	}
	return e;
}

static int read_rules(struct reader *f)
{
	yaml_event_t ev;
	int e = 0, depth = 0;
	bool done = false;

	while (e == 0 && !done) {
		e = next(f, &ev);
		if (e < 0)
			break;
		switch (ev.type) {
		case YAML_STREAM_START_EVENT:
		case YAML_DOCUMENT_START_EVENT:
		case YAML_DOCUMENT_END_EVENT:
			break;
		case YAML_STREAM_END_EVENT:
			done = true;
			break;
		case YAML_SEQUENCE_START_EVENT:
			if (depth++ || ev.data.sequence_start.anchor)
				e = bad(f, &ev.start_mark, "a rule (- rule: ...) is wanted");
			break;
		case YAML_SEQUENCE_END_EVENT:
			depth--;
			break;
		case YAML_MAPPING_START_EVENT:
			if (depth != 1 || ev.data.mapping_start.anchor) {
				e = bad(f, &ev.start_mark,
					"a list of rules (- rule: ...) is wanted");
				break;
			}
			e = read_map(f, &ev.start_mark);
			drop_rule(&f->rule);
			break;
		case YAML_SCALAR_EVENT:
			if (ev.data.scalar.length)
				e = bad(f, &ev.start_mark,
					"a list of rules (- rule: ...) is wanted");
			break;
		default:
			e = bad(f, &ev.start_mark, "a list of rules (- rule: ...) is wanted");
		}
		yaml_event_delete(&ev);
	}
	return e;
}

int rules_read(struct redactor *r, const char *name, struct str yaml, struct err *err)
{
	struct reader f = { .r = r, .name = name, .err = err };
	int e;

	if (yaml.n > REDACT_FILE_MAX)
		return err_set(err, EFBIG, "%s: larger than 1 MiB", name);
	if (!yaml_parser_initialize(&f.parser))
		return err_set(err, ENOMEM, "%s: %m", name);
	/* libyaml aborts on a text that is NULL, which one of no bytes may be. */
	yaml_parser_set_input_string(&f.parser, (const unsigned char *)(yaml.n ? yaml.p : ""),
				     yaml.n);
	e = read_rules(&f);
	yaml_parser_delete(&f.parser);
	return e;
}
