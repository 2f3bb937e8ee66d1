// SPDX-License-Identifier: Apache-2.0
/* The ranges of paths that rules tell apart: of files, and of programs. */
#include "rules/push_internal.h"

void push_range_add(struct push_ranges *all, struct str s, bool exact)
{
	size_t key_n = s.n + exact;

	if (s.n > ENFORCE_PATH_MAX - 2 || (s.n && memchr(s.p, 0, s.n)))
		return;
	for (size_t i = 0; i < all->n; i++)
		if (all->v[i].key_n == key_n && all->v[i].t.exact == exact &&
		    !memcmp(all->v[i].t.text.p, s.p, s.n))
			return;
	if (all->n == PUSH_RANGES_MAX) {
		all->full = true;
		return;
	}
	all->v[all->n++] = (struct push_range){ .t = { s, exact }, .key_n = key_n };
}

static void add_constant(struct arena *arena, struct push_ranges *all, const struct atom *a,
			 struct str s)
{
	struct str dir;

	switch (a->op) {
	case OP_STARTSWITH:
	case OP_BSTARTSWITH:
		push_range_add(all, s, false);
		return;
	case OP_PMATCH:
		if (str_eqz(s, "/")) {
			push_range_add(all, s, false);
			return;
		}
		dir = arena_printf(arena, "%.*s/", (int)s.n, s.p);
		if (dir.p && s.n < ENFORCE_PATH_MAX)
			push_range_add(all, dir, false);
		break;
	default:
		break;
	}
	push_range_add(all, s, true);
}

void push_ranges_collect(struct arena *arena, struct push_ranges *all, const struct pred *p,
			 bool (*wanted)(const struct atom *a))
{
	const struct atom *a = p->atom;

	if (p->type == P_ATOM && wanted(a)) {
		for (size_t i = 0; a->set && i < strset_count(a->set); i++)
			add_constant(arena, all, a, strset_at(a->set, i));
		if (!a->set)
			add_constant(arena, all, a, a->s);
	}
	for (size_t i = 0; i < p->n; i++)
		push_ranges_collect(arena, all, p->kid[i], wanted);
}

static bool covers(const struct push_range *wide, const struct push_range *in)
{
	return !wide->t.exact && wide->key_n < in->key_n && str_starts(in->t.text, wide->t.text);
}

void push_ranges_parents(struct push_ranges *all)
{
	for (size_t i = 0; i < all->n; i++) {
		struct push_range *r = &all->v[i];

		r->parent = i;
		for (size_t j = 0; j < all->n; j++)
			if (covers(&all->v[j], r) &&
			    (r->parent == i || all->v[j].key_n > all->v[r->parent].key_n))
				r->parent = j;
	}
}
