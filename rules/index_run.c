// SPDX-License-Identifier: Apache-2.0
/* Looking an event's values up. */
#include "rules/index.h"

static void hit(const struct bucket_index *ix, struct index_run *run, uint32_t atom)
{
	uint64_t bit = 1ull << (atom % 64);

	if (run->value[atom / 64] & bit)
		return;
	run->value[atom / 64] |= bit;
	for (uint32_t i = ix->guard_first[atom]; i < ix->guard_first[atom + 1]; i++)
		run->cand[ix->guard[i] / 64] |= 1ull << (ix->guard[i] % 64);
}

static void hits(const struct bucket_index *ix, struct index_run *run, uint32_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		hit(ix, run, ix->hit[first + i]);
}

static void look_up(const struct bucket_index *ix, const struct group *gr, struct index_run *run,
		    struct str key)
{
	const struct mapslot *s = map_get(&gr->map, key);

	if (s)
		hits(ix, run, s->first, s->n);
}

static void walk_trie(const struct bucket_index *ix, const struct group *gr, struct index_run *run,
		      struct str s)
{
	const struct trie *t = &gr->trie;
	uint32_t node = 0;

	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[gr->fam == IX_SUFFIX ? s.n - 1 - i : i];

		node = t->cls[c] ? t->next[(size_t)node * t->classes + t->cls[c]] : 0;
		if (!node)
			return;
		if (t->n[node])
			hits(ix, run, t->first[node], t->n[node]);
	}
}

static void walk_automaton(const struct bucket_index *ix, const struct trie *t,
			   struct index_run *run, struct str s)
{
	uint32_t node = 0;

	for (size_t i = 0; i < s.n; i++) {
		/* Class 0 leads to the root: its column is never filled. */
		node = t->next[(size_t)node * t->classes + t->cls[(unsigned char)s.p[i]]];
		for (uint32_t k = t->n[node] ? node : t->dict[node]; k; k = t->dict[k])
			hits(ix, run, t->first[k], t->n[k]);
	}
}

static void one_value(const struct bucket_index *ix, const struct group *gr, struct index_run *run,
		      const struct val *v)
{
	char key[18];
	uint64_t n;

	switch (gr->fam) {
	case IX_STR:
		look_up(ix, gr, run, v->s);
		return;
	case IX_PATH:
		look_up(ix, gr, run, v->s);
		for (size_t i = v->s.n; i-- > 1;)
			if (v->s.p[i] == '/')
				look_up(ix, gr, run, (struct str){ v->s.p, i });
		if (v->s.n > 1 && v->s.p[0] == '/')
			look_up(ix, gr, run, STR("/"));
		return;
	case IX_NUM:
		n = val_num_key(v, gr->a->type);
		look_up(ix, gr, run, (struct str){ (const char *)&n, 8 });
		return;
	case IX_NET:
		for (uint32_t i = 0; i < gr->masks_n; i++)
			if (gr->mask[i].family == v->ip->family)
				look_up(ix, gr, run, net_key(&gr->mask[i], v->ip->b, key));
		return;
	case IX_SUB:
	case IX_ISUB:
		walk_automaton(ix, &gr->trie, run, v->s);
		return;
	default:
		walk_trie(ix, gr, run, v->s);
	}
}

static bool fits(const struct group *gr, enum vtype t)
{
	if (gr->fam == IX_NUM)
		return t == V_U64 || t == V_I64;
	return t == (gr->fam == IX_NET ? V_IP : V_STR);
}

void index_run(const struct bucket_index *ix, struct eval *e, struct index_run *run)
{
	for (uint32_t k = 0; k < ix->groups_n; k++) {
		const struct group *gr = &ix->group[k];
		struct val tmp, one;
		const struct val *v = eval_value(e, gr->a, &tmp);

		if (v->t == V_LIST) {
			for (uint32_t i = 0; i < v->list.n; i++)
				if (val_list_at(v, i, &one) && fits(gr, one.t))
					one_value(ix, gr, run, &one);
		} else if (fits(gr, v->t)) {
			one_value(ix, gr, run, v);
		}
	}
}
