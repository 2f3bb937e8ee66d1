// SPDX-License-Identifier: Apache-2.0
/* Where a text was cut before it came here, a part of a secret may stand: the beginning of a known value at its end,
 * the end of one at its beginning, and a shape that is not whole yet. */
#include <string.h>

#include "userspace/redact/internal.h"

#define EDGE_LOOK  4096 /* bytes before a cut in which a shape begins that may go over it */
#define TOKEN_MIN  8	/* bytes of what looks random and goes over a cut */
#define TOKEN_MAX  512
#define TOKEN_BITS 3 /* of entropy a byte */

static void add_edge(struct redact *x, size_t from, size_t to, uint16_t rule, uint16_t value)
{
	if (add_span(x, from, to, rule, value))
		x->any = true;
}

/* A match that ends at the cut, or would only end behind it. How long it is, and how random, nobody knows. */
static void rule_at_end(struct redact *x, size_t index, struct str s)
{
	const struct redact_rule *rule = &x->r->rules[index];
	size_t at = s.n > EDGE_LOOK ? s.n - EDGE_LOOK : 0;

	while (at < s.n) {
		int n = pcre2_match(rule->code, (PCRE2_SPTR)s.p, s.n, at,
				    PCRE2_NOTEMPTY | PCRE2_PARTIAL_SOFT, x->md, x->mc);
		const PCRE2_SIZE *v = pcre2_get_ovector_pointer(x->md);
		PCRE2_SIZE from = v[0];

		if (n == PCRE2_ERROR_NOMATCH)
			return;
		if (n < 0 && n != PCRE2_ERROR_PARTIAL) {
			x->whole = true;
			return;
		}
		if (n == PCRE2_ERROR_PARTIAL || v[1] == s.n) {
			for (uint32_t g = 1; n > 0 && g < (uint32_t)n; g++)
				if (v[2 * g] != PCRE2_UNSET && v[2 * g + 1] == s.n)
					from = v[2 * g];
			if (from < s.n && !is_in_mark(s, from, s.n))
				add_edge(x, from, s.n, (uint16_t)index, 0);
			return;
		}
		at = MAX(v[1], at + 1);
	}
}

/* Of a shape whose beginning is missing nobody can say what it was: what looks random is taken for one. */
static void token_at_begin(struct redact *x, struct str s)
{
	size_t n = 0;

	while (n < s.n && n <= TOKEN_MAX && is_of_token(s.p[n]))
		n++;
	if (n >= TOKEN_MIN && n <= TOKEN_MAX && entropy_of((struct str){ s.p, n }) >= TOKEN_BITS)
		add_edge(x, 0, n, RULE_OF_CUT, 0);
}

void find_at_edges(struct redact *x, struct str s)
{
	uint16_t value;
	size_t n;

	if (x->edges & EDGE_END) {
		n = prefilter_edge(x->r, s, true, &value);
		if (n >= EDGE_MIN)
			add_edge(x, s.n - n, s.n, 0, value);
		for (size_t w = 0; x->any && w < RULE_WORDS && !x->whole; w++)
			for (uint64_t bits = x->hit[w]; bits && !x->whole; bits &= bits - 1) {
				size_t i = w * 64 + (size_t)__builtin_ctzll(bits);

				if (!x->r->rules[i].off)
					rule_at_end(x, i, s);
			}
	}
	if (x->edges & EDGE_BEGIN) {
		n = prefilter_edge(x->r, s, false, &value);
		if (n >= EDGE_MIN)
			add_edge(x, 0, n, 0, value);
	}
	if (x->edges & EDGE_TOKEN)
		token_at_begin(x, s);
}
