// SPDX-License-Identifier: Apache-2.0
/* One pass over a text for all keywords and known values. Nearly every text has none of them, so what counts is
 * the cost of finding that out: three bytes at every second place are looked up in a table of 8 KiB, and no step
 * waits for the one before it, as every step of an automaton does. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/redact/internal.h"

#define FOLD3 0x202020u /* sets the bit that tells upper case from lower */
#define MASK3 0xffffffu

static inline uint32_t gram_hash(uint32_t three)
{
	return ((three & MASK3) | FOLD3) * 0x9e3779b1u >> (32 - GRAM_BITS);
}

static inline uint32_t gram_at(const char *p)
{
	return (uint32_t)(unsigned char)p[0] | (uint32_t)(unsigned char)p[1] << 8 |
	       (uint32_t)(unsigned char)p[2] << 16;
}

static inline unsigned char lower(char c)
{
	return (unsigned char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == 0;
}

/* Where gram_hash() sees one: NUL and ' ' are the same to it. */
static bool is_plain_blank(char c)
{
	return c == ' ' || c == 0;
}

/* A value with blanks in it may have become several words. */
bool literal_is_at(const struct literal *l, const char *p)
{
	for (size_t i = 0; i < l->n; i++) {
		if (lower(l->p[i]) == lower(p[i]))
			continue;
		if (!l->value || !(l->blank_window ? is_plain_blank(l->p[i]) && is_plain_blank(p[i])
						   : is_blank(l->p[i]) && is_blank(p[i])))
			return false;
	}
	return true;
}

/* ---- making ---- */

/* How often three bytes are seen in paths and words: roughly, from a few letters that fill them. */
static unsigned commonness(const char *p)
{
	static const char common[] = "etaoinsrlcd/.- ";
	unsigned sum = 0;

	for (int i = 0; i < 3; i++) {
		const char *at = strchr(common, lower(p[i]));

		sum += at && *at ? 16 - (unsigned)(at - common) : 0;
		if (is_blank(p[i]))
			sum += 100;
	}
	return sum;
}

static uint16_t best_window(const char *p, size_t n)
{
	unsigned best = UINT32_MAX;
	size_t at = 0;

	for (size_t i = 0; i + LITERAL_MIN <= n && i < 256; i++) {
		unsigned a = commonness(p + i), b = commonness(p + i + 1);

		if (MAX(a, b) < best) {
			best = MAX(a, b);
			at = i;
		}
	}
	return (uint16_t)at;
}

static int add_one(struct prefilter *f, struct str text, uint16_t rule, uint16_t value)
{
	struct literal *l;
	uint32_t h;

	if (f->n == LITERALS_MAX)
		return -E2BIG;
	if (f->n == f->cap) {
		size_t cap = f->cap ? 2 * f->cap : 256;
		struct literal *v = realloc(f->v, cap * sizeof(*v));

		if (!v)
			return -ENOMEM;
		f->v = v;
		f->cap = cap;
	}
	l = &f->v[f->n++];
	*l = (struct literal){ .p = text.p, .n = (uint16_t)text.n, .rule = rule, .value = value };
	l->at = best_window(l->p, l->n);
	l->has_lines = memchr(l->p, '\n', l->n) != NULL;
	for (size_t i = 0; value && i < LITERAL_MIN; i++)
		l->blank_window |= is_blank(l->p[l->at + i]);
	for (int i = 0; i < 2; i++) {
		uint16_t *head;

		h = gram_hash(gram_at(l->p + l->at + i));
		f->bits[h / 64] |= 1ull << (h % 64);
		head = &f->bucket[i][h % BUCKETS];
		*(i ? &l->next2 : &l->next) = *head;
		*head = (uint16_t)f->n;
	}
	return 0;
}

int prefilter_add(struct prefilter *f, struct str text, uint16_t rule, uint16_t value)
{
	if (text.n < LITERAL_MIN || text.n > UINT16_MAX)
		return -EINVAL;
	/* UTF-16 has NULs everywhere, and cannot have become words. */
	for (size_t i = 0; value && i < text.n && (text.p[1] || text.p[3]); i++)
		f->blanks |= is_blank(text.p[i]);
	return add_one(f, text, rule, value);
}

int prefilter_add_three(struct prefilter *f, struct arena *mem, struct str text, uint16_t rule)
{
	char four[LITERAL_MIN];

	if (text.n != sizeof(four) - 1)
		return -EINVAL;
	memcpy(four, text.p, text.n);
	for (char c = 0x20; c < 0x7f; c++) {
		struct str s;
		int e;

		if (c >= 'A' && c <= 'Z')
			continue;
		four[text.n] = c;
		s = arena_strndup(mem, four, sizeof(four));
		e = s.p ? add_one(f, s, rule, 0) : -ENOMEM;
		if (e < 0)
			return e;
		f->v[f->n - 1].of_three = true;
	}
	return 0;
}

/* ---- looking ---- */

bool add_span(struct redact *x, size_t from, size_t to, uint16_t rule, uint16_t value)
{
	if (x->n == SPANS_MAX) {
		x->whole = true;
		return false;
	}
	x->span[x->n++] = (struct span){
		.from = (uint32_t)from, .to = (uint32_t)to, .rule = rule, .value = value
	};
	return true;
}

void literal_found(struct redact *x, const struct literal *l, size_t from)
{
	if (l->value)
		add_span(x, from, from + l->n, 0, l->value);
	else
		x->hit[l->rule / 64] |= 1ull << (l->rule % 64);
}

/* `step`: 0 or 1, which of a literal's two windows begins at `at`. */
static bool look_closer(struct redact *x, const struct prefilter *f, struct str s, size_t at,
			uint32_t h, int step)
{
	bool found = false;

	for (uint16_t i = f->bucket[step][h % BUCKETS]; i;) {
		const struct literal *l = &f->v[i - 1];
		size_t back = (size_t)l->at + (size_t)step;

		i = step ? l->next2 : l->next;
		if (at < back || s.n - (at - back) < l->n || !literal_is_at(l, s.p + at - back))
			continue;
		found = true;
		if (!x)
			return true;
		literal_found(x, l, at - back);
	}
	return found;
}

static bool look_at(struct redact *x, const struct prefilter *f, struct str s, size_t at,
		    uint32_t three)
{
	uint32_t h = gram_hash(three);
	bool a, b;

	if (!(f->bits[h / 64] >> (h % 64) & 1))
		return false;
	a = look_closer(x, f, s, at, h, 0);
	b = look_closer(x, f, s, at, h, 1);
	return a || b;
}

static inline uint64_t load64(const char *p)
{
	uint64_t w;

	memcpy(&w, p, sizeof(w));
	return w;
}

/* A card's number has 13 digits and more, perhaps with blanks or dashes between: eight bytes at every fourth place
 * cannot miss it. First a test that most texts fail, then digits are counted. */
static bool has_digits(struct str s)
{
	for (size_t i = 0; i + 8 <= s.n; i += 4) {
		unsigned digits = 0;

		if ((load64(s.p + i) & 0xe0e0e0e0e0e0e0e0ull) != 0x2020202020202020ull)
			continue;
		for (size_t k = 0; k < 8; k++)
			digits += s.p[i + k] >= '0' && s.p[i + k] <= '9';
		if (digits >= 6)
			return true;
	}
	return false;
}

static void hit_digits(struct redact *x)
{
	for (size_t i = 0; i < x->r->rules_n; i++)
		if (x->r->rules[i].digits && !x->r->rules[i].off)
			x->hit[i / 64] |= 1ull << (i % 64);
}

static bool run(struct redact *x, const struct prefilter *f, struct str s)
{
	bool found = false;
	size_t i = 0;

	for (; i + 4 <= s.n; i += 2) {
		uint32_t three;

		memcpy(&three, s.p + i, sizeof(three));
		if (__builtin_expect(look_at(x, f, s, i, three), 0)) {
			found = true;
			if (!x)
				return true;
		}
	}
	if (i + 3 <= s.n && look_at(x, f, s, i, gram_at(s.p + i)))
		found = true;
	return found;
}

static void forget(struct redact *x)
{
	if (x->any)
		memset(x->hit, 0, sizeof(x->hit));
	x->any = false;
	x->n = 0;
	x->whole = false;
}

bool prefilter_run(struct redact *x, struct str s)
{
	const struct prefilter *f = &x->r->pre;
	enum scan_result scanned;
	bool found;

	forget(x);
	scanned = scan_run(x, s);
	found = scanned == SCAN_FOUND;
	if (scanned == SCAN_NOT) {
		forget(x);
		found = run(x, f, s);
	}
	if (f->digits && s.n >= 13 && has_digits(s)) {
		hit_digits(x);
		found = true;
	}
	x->any = found;
	return found;
}

bool prefilter_any(const struct redactor *r, struct str s)
{
	return run(NULL, &r->pre, s) || (r->pre.digits && s.n >= 13 && has_digits(s));
}

/* How many bytes `l` has in common with the end (the beginning) of `s`, if more than `most`. */
static size_t common(const struct literal *l, struct str s, bool end, size_t most)
{
	struct literal part = *l;

	for (size_t n = MIN((size_t)l->n - 1, s.n); n > most; n--) {
		const char *at = end ? s.p + s.n - n : s.p;

		part.n = (uint16_t)n;
		part.p = end ? l->p : l->p + l->n - n;
		if ((lower(*at) == lower(*part.p) || is_blank(*at)) && literal_is_at(&part, at))
			return n;
	}
	return most;
}

size_t prefilter_begun(const struct redactor *r, struct str s, bool lines)
{
	size_t most = 0;

	for (size_t i = 0; i < r->pre.n; i++) {
		const struct literal *l = &r->pre.v[i];

		if (l->value && (!lines || l->has_lines))
			most = common(l, s, true, most);
	}
	return most;
}

size_t prefilter_edge(const struct redactor *r, struct str s, bool end, uint16_t *ret_value)
{
	size_t most = 0, n;

	*ret_value = 0;
	for (size_t i = 0; i < r->pre.n; i++) {
		const struct literal *l = &r->pre.v[i];

		if (!l->value)
			continue;
		n = common(l, s, end, most);
		if (n > most)
			*ret_value = l->value;
		most = n;
	}
	return most;
}
