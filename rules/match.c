// SPDX-License-Identifier: Apache-2.0
/* String operators. All take counted bytes: values come from a sandbox and may hold NUL. */
#include "rules/internal.h"

static unsigned char lower(unsigned char c)
{
	return c >= 'A' && c <= 'Z' ? c + 32 : c;
}

bool str_contains(struct str hay, struct str needle)
{
	if (!needle.n)
		return true;
	return needle.n <= hay.n && memmem(hay.p, hay.n, needle.p, needle.n);
}

bool str_icontains(struct str hay, struct str needle)
{
	if (!needle.n)
		return true;
	for (size_t i = 0; i + needle.n <= hay.n; i++) {
		size_t k = 0;

		while (k < needle.n &&
		       lower((unsigned char)hay.p[i + k]) == lower((unsigned char)needle.p[k]))
			k++;
		if (k == needle.n)
			return true;
	}
	return false;
}

/* One bracket expression at p[*i] == '['. Returns whether c is in it and moves *i behind it. A '['
 * without its ']' is an ordinary character, as in fnmatch. */
static bool glob_set(struct str p, size_t *i, unsigned char c, bool icase, bool *ret_is_set)
{
	size_t k = *i + 1;
	bool negate = k < p.n && (p.p[k] == '!' || p.p[k] == '^'), hit = false, first = true;

	k += negate;
	for (; k < p.n && (first || p.p[k] != ']'); first = false) {
		unsigned char lo, hi;

		if (p.p[k] == '\\' && k + 1 < p.n)
			k++;
		lo = hi = (unsigned char)p.p[k++];
		if (k + 1 < p.n && p.p[k] == '-' && p.p[k + 1] != ']') {
			hi = (unsigned char)p.p[k + 1];
			k += 2;
		}
		if (icase) {
			lo = lower(lo);
			hi = lower(hi);
		}
		hit = hit || (c >= lo && c <= hi);
	}
	*ret_is_set = k < p.n;
	if (*ret_is_set)
		*i = k + 1;
	return hit != negate;
}

/* fnmatch(3) without flags: * and ? match '/', too. Backtracks to the last * only: O(n * m). */
bool str_glob(struct str p, struct str s, bool icase)
{
	size_t i = 0, k = 0, star = SIZE_MAX, mark = 0;

	while (k < s.n) {
		unsigned char c = icase ? lower((unsigned char)s.p[k]) : (unsigned char)s.p[k];
		bool is_set = false, ok = false;
		size_t next = i;

		if (i < p.n && p.p[i] == '*') {
			star = i++;
			mark = k;
			continue;
		}
		if (i < p.n && p.p[i] == '?') {
			ok = true;
			next = i + 1;
		} else if (i < p.n && p.p[i] == '[') {
			ok = glob_set(p, &next, c, icase, &is_set);
		}
		if (i < p.n && p.p[i] != '?' && !is_set) {
			size_t at = p.p[i] == '\\' && i + 1 < p.n ? i + 1 : i;
			unsigned char want = (unsigned char)p.p[at];

			ok = (icase ? lower(want) : want) == c;
			next = at + 1;
		}
		if (ok) {
			i = next;
			k++;
		} else if (star != SIZE_MAX) {
			i = star + 1;
			k = ++mark;
		} else {
			return false;
		}
	}
	while (i < p.n && p.p[i] == '*')
		i++;
	return i == p.n;
}

/* ---- sets ---- */

struct strset {
	size_t n, cap;
	struct str *v;	/* as written */
	uint32_t *slot; /* index + 1 */
};

static uint64_t hash_str(struct str s)
{
	const uint64_t k = 0x9e3779b97f4a7c15ull;
	uint64_t h = s.n * k, x;
	const char *p = s.p;
	size_t n = s.n;

	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&x, p, 8);
		h = (h ^ x) * k;
		h ^= h >> 32;
	}
	if (n) {
		x = 0;
		memcpy(&x, p, n);
		h = (h ^ x) * k;
		h ^= h >> 32;
	}
	return h;
}

const struct strset *strset_make(struct ruleset *rs, const struct str *v, size_t n)
{
	struct strset *set = rs_alloc(rs, sizeof(*set));

	if (!set)
		return NULL;
	set->cap = 8;
	while (set->cap < n * 2)
		set->cap *= 2;
	set->v = rs_alloc(rs, n * sizeof(*set->v));
	set->slot = rs_alloc(rs, set->cap * sizeof(*set->slot));
	if (!set->v || !set->slot)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		size_t at = hash_str(v[i]) & (set->cap - 1);

		while (set->slot[at] && !str_eq(set->v[set->slot[at] - 1], v[i]))
			at = (at + 1) & (set->cap - 1);
		if (!set->slot[at]) {
			set->v[set->n] = v[i];
			set->slot[at] = (uint32_t)++set->n;
		}
	}
	return set;
}

bool strset_has(const struct strset *set, struct str s)
{
	size_t at = hash_str(s) & (set->cap - 1);

	for (; set->slot[at]; at = (at + 1) & (set->cap - 1))
		if (str_eq(set->v[set->slot[at] - 1], s))
			return true;
	return false;
}

size_t strset_count(const struct strset *set)
{
	return set->n;
}

struct str strset_at(const struct strset *set, size_t i)
{
	return set->v[i];
}

/* Is one of the set the path itself or a directory above it? */
bool pathset_match(const struct strset *set, struct str path)
{
	if (strset_has(set, path))
		return true;
	for (size_t i = path.n; i-- > 1;)
		if (path.p[i] == '/' && strset_has(set, (struct str){ path.p, i }))
			return true;
	return path.n && path.p[0] == '/' && strset_has(set, STR("/"));
}
