// SPDX-License-Identifier: Apache-2.0
#include "userspace/base/option.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"

int parse_u64(const char *text, uint64_t *ret)
{
	uint64_t v = 0;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	for (; isdigit((unsigned char)*text); text++)
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*text - '0'), &v))
			return -ERANGE;
	if (*text)
		return -EINVAL;
	*ret = v;
	return 0;
}

/* Digits with an optional fraction, in thousandths, rounded up: a small limit must not become 0, which
 * often means none. *ret_end is what follows. */
static int parse_milli(const char *text, uint64_t *ret, const char **ret_end)
{
	uint64_t v = 0, scale = 1000;
	bool digits = false, finer = false;

	for (; isdigit((unsigned char)*text); text++, digits = true)
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*text - '0'), &v))
			return -ERANGE;
	if (__builtin_mul_overflow(v, 1000, &v))
		return -ERANGE;
	if (*text == '.') {
		for (text++; isdigit((unsigned char)*text); text++, digits = true) {
			scale /= 10;
			finer |= !scale && *text != '0';
			if (__builtin_add_overflow(v, (uint64_t)(*text - '0') * scale, &v))
				return -ERANGE;
		}
		if (__builtin_add_overflow(v, finer, &v))
			return -ERANGE;
	}
	if (!digits)
		return -EINVAL;
	*ret = v;
	*ret_end = text;
	return 0;
}

struct unit {
	const char *name;
	uint64_t factor;
};

static int parse_with_unit(const char *text, const struct unit *units, size_t n, uint64_t *ret)
{
	const char *end;
	uint64_t milli, v;
	int r = parse_milli(text, &milli, &end);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		if (strcasecmp(end, units[i].name))
			continue;
		if (units[i].factor % 1000 == 0) {
			if (__builtin_mul_overflow(milli, units[i].factor / 1000, &v))
				return -ERANGE;
		} else {
			if (__builtin_mul_overflow(milli, units[i].factor, &v))
				return -ERANGE;
			v = v / 1000 + (v % 1000 != 0);
		}
		*ret = v;
		return 0;
	}
	return -EINVAL;
}

int parse_size(const char *text, uint64_t *ret)
{
	static const struct unit units[] = {
		{ "", 1 },
		{ "b", 1 },
		{ "k", 1ull << 10 },
		{ "kb", 1ull << 10 },
		{ "kib", 1ull << 10 },
		{ "m", 1ull << 20 },
		{ "mb", 1ull << 20 },
		{ "mib", 1ull << 20 },
		{ "g", 1ull << 30 },
		{ "gb", 1ull << 30 },
		{ "gib", 1ull << 30 },
		{ "t", 1ull << 40 },
		{ "tb", 1ull << 40 },
		{ "tib", 1ull << 40 },
	};

	return parse_with_unit(text, units, ARRAY_SIZE(units), ret);
}

int parse_duration_ns(const char *text, uint64_t *ret)
{
	static const struct unit units[] = {
		{ "", 1000000000 },	{ "ns", 1 },
		{ "us", 1000 },		{ "ms", 1000000 },
		{ "s", 1000000000 },	{ "m", 60000000000 },
		{ "h", 3600000000000 }, { "d", 86400000000000 },
	};

	return parse_with_unit(text, units, ARRAY_SIZE(units), ret);
}

int parse_fraction(const char *text, uint64_t *ret_milli)
{
	const char *end;
	uint64_t v;
	int r = parse_milli(text, &v, &end);

	if (r < 0)
		return r;
	if (*end)
		return -EINVAL;
	*ret_milli = v;
	return 0;
}

const char *closest_name(const char *word, const char *const *names, size_t n)
{
	size_t len = strlen(word), best = MIN(len / 3 + 2, len); /* not another letter altogether */
	const char *ret = NULL;

	if (len > 63)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		size_t row[64], k = strlen(names[i]);

		for (size_t a = 0; a <= len; a++)
			row[a] = a;
		for (size_t b = 1; b <= k; b++) { /* Levenshtein, one row */
			size_t diag = row[0];

			row[0] = b;
			for (size_t a = 1; a <= len; a++) {
				size_t up = row[a], cost = diag + (word[a - 1] != names[i][b - 1]);

				row[a] = MIN(MIN(up + 1, row[a - 1] + 1), cost);
				diag = up;
			}
		}
		if (row[len] < best) {
			best = row[len];
			ret = names[i];
		}
	}
	return ret;
}

static const struct option_def *find_option(const struct option_def *defs, const char *name,
					    size_t n, char letter)
{
	for (; defs->name; defs++)
		if (letter ? defs->letter == letter
			   : strlen(defs->name) == n && !memcmp(defs->name, name, n))
			return defs;
	return NULL;
}

static int store_value(const struct option_def *d, void *target, const char *value, struct err *err)
{
	void *slot = (char *)target + d->offset;
	static const char *const expected[] = {
		[OPT_U64] = "a number",
		[OPT_SIZE] = "a size such as 64M",
		[OPT_DURATION] = "a duration such as 30s or 250ms",
		[OPT_FRACTION] = "a number such as 1.5",
	};
	uint64_t v = 0;
	int r = 0;

	switch (d->type) {
	case OPT_FLAG:
		*(bool *)slot = true;
		return 0;
	case OPT_STR:
		*(const char **)slot = value;
		return 0;
	case OPT_STRLIST: {
		struct option_list *list = slot;

		if (list->n == OPTION_LIST_MAX)
			return err_set(err, E2BIG, "option '--%s' given more than %d times",
				       d->name, OPTION_LIST_MAX);
		list->v[list->n++] = value;
		return 0;
	}
	case OPT_U64:
		r = parse_u64(value, &v);
		break;
	case OPT_SIZE:
		r = parse_size(value, &v);
		break;
	case OPT_DURATION:
		r = parse_duration_ns(value, &v);
		break;
	case OPT_FRACTION:
		r = parse_fraction(value, &v);
		break;
	}
	if (r == -ERANGE)
		return err_set(err, EINVAL, "option '--%s': '%s' is too large", d->name, value);
	if (r < 0)
		return err_set(err, EINVAL, "option '--%s': '%s' is not %s", d->name, value,
			       expected[d->type]);
	*(uint64_t *)slot = v;
	return 0;
}

static int unknown_option(const struct option_def *defs, const char *word, struct err *err)
{
	const char *names[128], *near;
	size_t n = 0, len = strcspn(word + 2, "=");
	char name[64];

	for (; defs->name && n < ARRAY_SIZE(names); defs++)
		names[n++] = defs->name;
	snprintf(name, sizeof(name), "%.*s", (int)MIN(len, sizeof(name) - 1), word + 2);
	near = word[1] == '-' ? closest_name(name, names, n) : NULL;
	if (near)
		return err_set(err, EINVAL, "unknown option '%s': did you mean '--%s'?", word,
			       near);
	return err_set(err, EINVAL, "unknown option '%s'", word);
}

enum word_kind { WORD_OPTION, WORD_PLAIN, WORD_END };

#define OPTIONS_MAX 128

/* Words that were given so far: of two that contradict each other neither is what was meant. A number may be given
 * again, by who wraps a command. */
struct given {
	const char *v[OPTIONS_MAX];
};

static int check_again(struct given *g, const struct option_def *defs, const struct option_def *d,
		       const char *value, struct err *err)
{
	const size_t i = (size_t)(d - defs);

	if (d->type != OPT_STR || i >= OPTIONS_MAX)
		return 0;
	if (g->v[i] && strcmp(g->v[i], value) != 0)
		return err_set(err, EINVAL, "option '--%s' is given twice: '%s' and '%s'", d->name,
			       g->v[i], value);
	g->v[i] = value;
	return 0;
}

/* Take argv[*i] (and its value, *i moves on) if it is an option. */
static int take_word(const struct option_def *defs, void *target, struct given *given, int argc,
		     char **argv, int *i, enum word_kind *ret, struct err *err)
{
	int r;
	const char *word = argv[*i], *value;
	const struct option_def *d;

	*ret = WORD_PLAIN;
	if (word[0] != '-' || !word[1])
		return 0;
	*ret = WORD_END;
	if (!strcmp(word, "--"))
		return 0;
	*ret = WORD_OPTION;
	if (word[1] == '-') {
		size_t n = strcspn(word + 2, "=");

		d = find_option(defs, word + 2, n, 0);
		value = word[2 + n] ? word + 2 + n + 1 : NULL;
	} else {
		d = find_option(defs, NULL, 0, word[1]);
		value = word[2] ? word + 2 : NULL;
	}
	if (!d)
		return unknown_option(defs, word, err);
	if (d->type == OPT_FLAG && value)
		return err_set(err, EINVAL, "option '--%s' takes no value, got '%s'", d->name,
			       value);
	if (d->type != OPT_FLAG && !value) {
		if (*i + 1 >= argc || !strcmp(argv[*i + 1], "--"))
			return err_set(err, EINVAL, "option '--%s' needs a value (%s)", d->name,
				       d->arg);
		value = argv[++*i];
	}
	r = check_again(given, defs, d, value, err);
	return r < 0 ? r : store_value(d, target, value, err);
}

int options_parse(const struct option_def *defs, void *target, int argc, char **argv, int *ret_rest,
		  struct err *err)
{
	struct given given = { 0 };
	enum word_kind kind;
	int i;

	for (i = 1; i < argc; i++) {
		int r = take_word(defs, target, &given, argc, argv, &i, &kind, err);

		if (r < 0)
			return r;
		if (kind != WORD_OPTION) {
			i += kind == WORD_END;
			break;
		}
	}
	*ret_rest = i;
	return 0;
}

int options_parse_mixed(const struct option_def *defs, void *target, int argc, char **argv,
			int *ret_n, struct err *err)
{
	struct given given = { 0 };
	enum word_kind kind = WORD_OPTION;
	int n = 0;

	for (int i = 1; i < argc; i++) {
		int r = 0;

		if (kind == WORD_END) {
			argv[1 + n++] = argv[i];
			continue;
		}
		r = take_word(defs, target, &given, argc, argv, &i, &kind, err);
		if (r < 0)
			return r;
		if (kind == WORD_PLAIN)
			argv[1 + n++] = argv[i];
	}
	*ret_n = n;
	return 0;
}

int option_is_list(const struct option_def *defs, const char *name)
{
	const struct option_def *d = find_option(defs, name, strlen(name), 0);

	return d ? d->type == OPT_STRLIST : -ENOENT;
}

int options_set(const struct option_def *defs, void *target, const char *name, const char *value,
		struct err *err)
{
	const struct option_def *d = find_option(defs, name, strlen(name), 0);

	if (!d)
		return -ENOENT;
	if (d->type == OPT_FLAG) {
		bool yes = !strcmp(value, "true");

		if (!yes && strcmp(value, "false"))
			return err_set(err, EINVAL, "'%s' is neither true nor false", value);
		*(bool *)((char *)target + d->offset) = yes;
		return 0;
	}
	return store_value(d, target, value, err);
}

void options_help(const struct option_def *defs, FILE *out)
{
	for (; defs->name; defs++) {
		char left[64];
		int n;

		if (defs->letter)
			n = snprintf(left, sizeof(left), "-%c, --%s", defs->letter, defs->name);
		else
			n = snprintf(left, sizeof(left), "    --%s", defs->name);
		if (defs->arg && n > 0 && (size_t)n < sizeof(left))
			n += snprintf(left + n, sizeof(left) - (size_t)n, " %s", defs->arg);
		if (n > 26)
			fprintf(out, "  %s\n  %-26s %s\n", left, "", defs->help);
		else
			fprintf(out, "  %-26s %s\n", left, defs->help);
	}
}
