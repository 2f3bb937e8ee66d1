// SPDX-License-Identifier: Apache-2.0
#include <ctype.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/redact/internal.h"

/* What one rule may cost in one text. PCRE2 counts differently with and without its compiler; both end in well
 * under 100 ms. */
#define MATCH_LIMIT 1000000
#define DEPTH_LIMIT 10000
#define HEAP_LIMIT  4096 /* KiB */
#define JIT_STACK   (512 * 1024)

int redact_new(struct redact **ret, const struct redactor *r)
{
	AUTO(redact) struct redact *x = calloc(1, sizeof(*x));

	if (!x)
		return -ENOMEM;
	x->r = r;
	x->md = pcre2_match_data_create(64, NULL);
	x->mc = pcre2_match_context_create(NULL);
	x->stack = pcre2_jit_stack_create(32 * 1024, JIT_STACK, NULL);
	x->by_rule = calloc(r->rules_n + 1, sizeof(*x->by_rule));
	if (!x->md || !x->mc || !x->by_rule)
		return -ENOMEM;
	pcre2_set_match_limit(x->mc, MATCH_LIMIT);
	pcre2_set_depth_limit(x->mc, DEPTH_LIMIT);
	pcre2_set_heap_limit(x->mc, HEAP_LIMIT);
	if (x->stack)
		pcre2_jit_stack_assign(x->mc, NULL, x->stack);
	buf_init(&x->joined, 0);
	buf_init(&x->made, 0);
	*ret = take_ptr(x);
	return 0;
}

void redact_free(struct redact *x)
{
	if (!x)
		return;
	pcre2_match_data_free(x->md);
	pcre2_match_context_free(x->mc);
	pcre2_jit_stack_free(x->stack);
	buf_done(&x->joined);
	buf_done(&x->made);
	free(x->by_rule);
	free(x->clean);
	scan_done(x);
	free(x);
}

void redact_counts(const struct redact *x, struct redact_counts *ret)
{
	*ret = x->counts;
	ret->by_rule = x->by_rule;
}

void redact_set_escrow(struct redact *x, struct redact_escrow *escrow)
{
	x->escrow = escrow;
}

/* ---- matches ---- */

static struct str part(struct str s, size_t from, size_t to)
{
	return (struct str){ s.p + from, to - from };
}

static bool is_excepted(struct redact *x, const struct redact_rule *rule, struct str secret)
{
	for (uint32_t i = 0; i < rule->not_n; i++)
		if (pcre2_match(rule->not [i], (PCRE2_SPTR)secret.p, secret.n, 0, 0, x->md,
				x->mc) >= 0)
			return true;
	return false;
}

static bool is_secret(struct redact *x, const struct redact_rule *rule, struct str s, size_t from,
		      size_t to)
{
	struct str secret = part(s, from, to);

	if (secret.n < rule->min || is_in_mark(s, from, to))
		return false;
	if (!rule->is_secret && is_placeholder(secret))
		return false;
	if (rule->check == CHECK_LUHN && !luhn_is_good(secret))
		return false;
	if (rule->entropy > 0 && entropy_of(secret) < rule->entropy)
		return false;
	return !is_excepted(x, rule, secret);
}

static size_t word_end(struct str s, size_t from)
{
	const char *end = memchr(s.p + from, 0, s.n - from);

	return end ? (size_t)(end - s.p) : s.n;
}

static bool begins_word(struct str s, size_t at)
{
	return at == 0 || s.p[at - 1] == 0 || s.p[at] == 0;
}

static bool is_of_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-_.", c));
}

/* ... or only a part of a name stands before it. */
static bool begins_name(struct str s, size_t at)
{
	while (at && s.p[at] && is_of_name(s.p[at - 1]))
		at--;
	return begins_word(s, at);
}

/* A word behind an option is its value, whatever is in it; so is all that follows NAME= in an environment. What
 * begins like that in an argument may be a script, and what it does must not be hidden by its first assignment. */
static size_t secret_end(struct str s, size_t match, size_t from, size_t to, enum words words)
{
	size_t end = word_end(s, from);

	if (begins_word(s, from) || (words == WORDS_ENV && begins_name(s, match)))
		return end;
	if (begins_name(s, match)) {
		for (size_t i = to; i < end; i++)
			if (strchr(";|&`(<>\n", s.p[i]))
				return to;
		return end;
	}
	return to;
}

/* Which group of the match is the secret; `n` of them were set. */
static uint32_t group_of(const struct redact_rule *rule, const PCRE2_SIZE *v, uint32_t n)
{
	for (uint32_t g = 1; rule->any_group && g < n; g++)
		if (v[2 * g] != PCRE2_UNSET && v[2 * g + 1] > v[2 * g])
			return g;
	return rule->group;
}

static void run_rule(struct redact *x, size_t index, struct str s, enum words words)
{
	const struct redact_rule *rule = &x->r->rules[index];
	size_t at = 0;

	while (at < s.n && !x->whole) {
		PCRE2_SIZE *v;
		size_t from, to;
		uint32_t group;
		int n;

		n = pcre2_match(rule->code, (PCRE2_SPTR)s.p, s.n, at, PCRE2_NOTEMPTY, x->md, x->mc);
		if (n == PCRE2_ERROR_NOMATCH)
			return;
		if (n < 0) {
			x->whole = true;
			return;
		}
		v = pcre2_get_ovector_pointer(x->md);
		group = group_of(rule, v, (uint32_t)n);
		from = (uint32_t)n > group || n == 0 ? v[2 * group] : PCRE2_UNSET;
		to = from == PCRE2_UNSET ? from : v[2 * group + 1];
		at = MAX(v[1], at + 1);
		if (from == PCRE2_UNSET || to <= from)
			continue;
		if (words != WORDS_NONE && rule->whole_word)
			to = secret_end(s, v[0], from, to, words);
		at = MAX(at, to);
		if (!is_secret(x, rule, s, from, to))
			continue;
		if (!add_span(x, from, to, (uint16_t)index, 0))
			return;
	}
}

static int by_place(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->to != y->to)
		return x->to > y->to ? -1 : 1;
	/* Of two rules the later one, which is the more special or the operator's own. */
	if (x->rule != y->rule)
		return (int)y->rule - (int)x->rule;
	return (int)x->value - (int)y->value;
}

#define PUNCTUATION_MAX 4

/* Anything that could be a part of a secret, and not only what stands around one. */
static bool says_something(struct str s, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (isalnum((unsigned char)s.p[i]) || (unsigned char)s.p[i] >= 0x80)
			return true;
	return to > from + PUNCTUATION_MAX;
}

/* A rule that found known values, and nothing besides them but punctuation: what that says must not be hidden. */
static bool is_only_values(const struct redact *x, struct str s, const struct span *rule)
{
	size_t at = rule->from;
	bool any = false;

	for (size_t i = 0; i < x->n; i++) {
		const struct span *v = &x->span[i];

		if (!v->value || v->from < rule->from || v->to > rule->to)
			continue;
		any = true;
		if (says_something(s, at, v->from))
			return false;
		at = MAX(at, v->to);
	}
	return any && !says_something(s, at, rule->to);
}

static void drop_only_values(struct redact *x, struct str s)
{
	size_t n = 0;

	/* Values are compared with from what is behind as well: nothing moves before all is known. */
	for (size_t i = 0; i < x->n; i++)
		if (!x->span[i].value && is_only_values(x, s, &x->span[i]))
			x->span[i].to = x->span[i].from;
	for (size_t i = 0; i < x->n; i++)
		if (x->span[i].to > x->span[i].from)
			x->span[n++] = x->span[i];
	x->n = n;
}

/* Of two that overlap one is left, over both. It is named after the known value, else after the longer. */
static void merge(struct redact *x, struct str s)
{
	size_t n = 0;

	qsort(x->span, x->n, sizeof(x->span[0]), by_place);
	drop_only_values(x, s);
	for (size_t i = 0; i < x->n; i++) {
		struct span *p = &x->span[i], *last = n ? &x->span[n - 1] : NULL;
		bool better;

		p->secret_from = p->all_from = p->from;
		p->secret_to = p->all_to = p->to;
		if (!last || p->from >= last->to) {
			x->span[n++] = *p;
			continue;
		}
		better = p->value ? !last->value ||
					    p->to - p->from > last->secret_to - last->secret_from
				  : !last->value &&
					    p->to - p->from > last->secret_to - last->secret_from;
		if (better) {
			last->rule = p->rule;
			last->value = p->value;
			last->secret_from = p->secret_from;
			last->secret_to = p->secret_to;
		}
		last->to = last->all_to = MAX(last->to, p->to);
	}
	x->n = n;
}

void find_secrets(struct redact *x, struct str s, enum words words)
{
	if (!prefilter_run(x, s) && !x->edges)
		return;
	if (s.n > UINT32_MAX / 2)
		x->whole = true;
	for (size_t w = 0; x->any && w < RULE_WORDS && !x->whole; w++)
		for (uint64_t bits = x->hit[w]; bits && !x->whole; bits &= bits - 1) {
			size_t i = w * 64 + (size_t)__builtin_ctzll(bits);

			if (!x->r->rules[i].off)
				run_rule(x, i, s, words);
		}
	/* Words end with NUL, and what was cut before it. */
	if (x->edges && !x->whole)
		find_at_edges(x, part(s, 0, words != WORDS_NONE && s.n ? s.n - 1 : s.n));
	if (!x->whole)
		merge(x, s);
}

/* ---- marks ---- */

/* The tag is about `secret`; `original` is all that the mark stands in place of. */
static void mark(struct redact *x, const char *rule, struct str secret, struct str original,
		 struct buf *out)
{
	uint8_t full[crypto_auth_hmacsha256_BYTES];
	char hex[2 * REDACT_TAG_LEN + 1];
	crypto_auth_hmacsha256_state st;

	crypto_auth_hmacsha256_init(&st, x->r->key, REDACT_KEY_LEN);
	crypto_auth_hmacsha256_update(&st, (const unsigned char *)secret.p, secret.n);
	crypto_auth_hmacsha256_final(&st, full);
	sodium_bin2hex(hex, sizeof(hex), full, REDACT_TAG_LEN);
	buf_printf(out, REDACT_MARK "%s:%s]", rule, hex);
	x->counts.places++;
	if (x->escrow)
		redact_escrow_take(x->escrow, rule, full, original);
}

void add_mark(struct redact *x, struct str s, const struct span *p, struct buf *out)
{
	struct str original = part(s, p->all_from, p->all_to);

	if (p->value) {
		const struct value *v = &x->r->values[p->value - 1];

		x->counts.values++;
		mark(x, v->name, v->text, original, out);
		return;
	}
	if (p->rule == RULE_OF_CUT) {
		mark(x, REDACT_CUT_RULE, part(s, p->secret_from, p->secret_to), original, out);
		return;
	}
	x->by_rule[p->rule]++;
	mark(x, x->r->rules[p->rule].name, part(s, p->secret_from, p->secret_to), original, out);
}

void add_whole_mark(struct redact *x, struct str s, struct buf *out)
{
	x->counts.limited++;
	mark(x, REDACT_LIMIT_RULE, s, s, out);
}

int redact_text(struct redact *x, struct str in, struct buf *out)
{
	size_t was = out->n, at = 0;

	find_secrets(x, in, WORDS_NONE);
	if (x->whole) {
		add_whole_mark(x, in, out);
		x->n = 1;
		at = in.n;
	}
	if (!x->n)
		return 0;
	for (size_t i = 0; i < x->n && !x->whole; i++) {
		buf_add(out, in.p + at, x->span[i].from - at);
		add_mark(x, in, &x->span[i], out);
		at = x->span[i].to;
	}
	buf_add(out, in.p + at, in.n - at);
	if (out->failed) {
		out->n = was;
		out->failed = false;
		return -ENOMEM;
	}
	return (int)x->n;
}

/* ---- words ---- */

/* The word [from, to) of the joined text with its marks; p == NULL: no memory. */
static struct str marked_word(struct redact *x, struct str joined, size_t from, size_t to,
			      struct arena *arena)
{
	struct buf *out = &x->made;
	size_t at = from;

	buf_reset(out);
	for (size_t i = 0; i < x->n; i++) {
		const struct span *p = &x->span[i];

		if (p->to <= from || p->from >= to)
			continue;
		if (p->from > at)
			buf_add(out, joined.p + at, p->from - at);
		add_mark(x, joined, p, out);
		at = MIN((size_t)p->to, to);
	}
	buf_add(out, joined.p + at, to - at);
	return out->failed ? (struct str){ 0 } : arena_strndup(arena, out->p, out->n);
}

static bool is_touched(const struct redact *x, size_t from, size_t to)
{
	for (size_t i = 0; i < x->n; i++)
		if (x->span[i].from < to && x->span[i].to > from)
			return true;
	return false;
}

static int all_marked(struct redact *x, struct str joined, struct arena *arena,
		      struct words_in *ret)
{
	struct str *one = arena_alloc(arena, sizeof(*one));

	buf_reset(&x->made);
	add_whole_mark(x, joined, &x->made);
	if (one)
		*one = arena_strndup(arena, x->made.p, x->made.n);
	if (!one || !one->p)
		return -ENOMEM;
	*ret = (struct words_in){ one, 1 };
	return 1;
}

/* Each word by itself first: hardly any needs to be joined. A value with blanks may be several of them. */
static bool has_hit(const struct redact *x, const struct str *v, size_t n)
{
	if (x->r->pre.blanks)
		return true;
	for (size_t i = 0; i < n; i++)
		if (v[i].n >= LITERAL_MIN && prefilter_any(x->r, v[i]))
			return true;
	return false;
}

int redact_words(struct redact *x, enum words words, struct words_in in, struct arena *arena,
		 struct words_in *ret)
{
	uint64_t before = x->counts.places;
	const struct str *v = in.v;
	struct str joined, *made;
	size_t at = 0, n = in.n;

	if (!x->edges && !has_hit(x, v, n))
		return 0;
	buf_reset(&x->joined);
	for (size_t i = 0; i < n; i++) {
		buf_add(&x->joined, v[i].p, v[i].n);
		buf_addc(&x->joined, 0);
	}
	if (x->joined.failed)
		return -ENOMEM;
	joined = (struct str){ x->joined.p, x->joined.n };
	find_secrets(x, joined, words);
	if (x->whole)
		return all_marked(x, joined, arena, ret);
	if (!x->n)
		return 0;
	made = arena_alloc(arena, n * sizeof(*made));
	if (!made)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		size_t end = at + v[i].n;

		made[i] = is_touched(x, at, end) ? marked_word(x, joined, at, end, arena) : v[i];
		if (v[i].n && !made[i].p)
			return -ENOMEM;
		at = end + 1;
	}
	*ret = (struct words_in){ made, n };
	return (int)(x->counts.places - before);
}
