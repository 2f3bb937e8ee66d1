// SPDX-License-Identifier: Apache-2.0
/* Building the look-ups: which checks guard which rules, then a table a field and way of comparing. */
#include "rules/index.h"

#define GUARD_MAX      1024		 /* checks in one guard */
#define TRIE_CELLS_MAX ((size_t)8 << 20) /* of one trie; larger ones are not built */
#define HEAVY_MIN      4		 /* rules that must share a costly look-up */
#define NO_GUARD       UINT32_MAX

struct pair {
	uint32_t atom; /* local */
	uint32_t to;   /* program, or the rest of a chain: its index + 1 */
};

struct builder {
	struct ruleset *rs;
	struct bucket *b;
	struct bucket_index *ix;
	uint32_t *local;	   /* atom -> local + 1 */
	const struct atom **stack; /* guard being put together */
	size_t stack_n, stack_cap;
	struct pair *guard_of;
	size_t guards_n, guards_cap;
	uint32_t group_of[RULE_ACCESS_MAX]; /* first group of an access + 1, chained */
	uint32_t *group_next;
	size_t groups_cap;
	struct pair *node; /* chains of hits */
	size_t nodes_n, nodes_cap;
	size_t hits_n, hits_cap;
	struct arena tmp; /* what is not needed any more when the index is made */
	bool failed;
};

static void *tmp_alloc(struct builder *g, size_t n)
{
	void *p = arena_zalloc(&g->tmp, n ? n : 1);

	if (!p)
		g->failed = g->rs->oom = true;
	return p;
}

/* As rs_grow, for what is still growing. */
static int tmp_grow(struct builder *g, void *pv, size_t *cap, size_t n, size_t elem)
{
	size_t want = *cap ? *cap * 2 : 16;
	void **v = pv, *p;

	if (n < *cap)
		return 0;
	p = tmp_alloc(g, want * elem);
	if (!p)
		return -ENOMEM;
	if (n)
		memcpy(p, *v, n * elem);
	*v = p;
	*cap = want;
	return 0;
}

/* What has its final size, into the memory of the rules. */
static void keep(struct builder *g, void *pv, size_t n, size_t elem)
{
	void **v = pv, *p = rs_alloc(g->rs, n * elem);

	g->failed |= !p;
	if (p && n)
		memcpy(p, *v, n * elem);
	if (p)
		*v = p;
}

/* ---- which checks can be looked up ---- */

/* `in` on a list of ours wants all of its values: no look-up of one value decides it. */
static bool wants_all(const struct atom *a)
{
	return a->op == OP_IN && a->a->list && (a->a->row->flags & FR_LIST);
}

enum index_family index_family_of(const struct atom *a)
{
	if (a->rhs || (a->a->row->flags & FR_LOW) || wants_all(a))
		return IX_NONE;
	switch (a->op) {
	case OP_EQ:
	case OP_IN:
	case OP_INTERSECTS:
		if (a->a->type == RT_STR)
			return IX_STR;
		if (a->a->type == RT_IP)
			return IX_NET;
		return a->a->type == RT_BOOL ? IX_NONE : IX_NUM;
	case OP_PMATCH:
		return a->set ? IX_PATH : IX_NONE;
	case OP_STARTSWITH:
		return a->s.n ? IX_PREFIX : IX_NONE;
	case OP_ENDSWITH:
		return a->s.n ? IX_SUFFIX : IX_NONE;
	case OP_CONTAINS:
		return a->s.n ? IX_SUB : IX_NONE;
	case OP_ICONTAINS:
		return a->s.n ? IX_ISUB : IX_NONE;
	default:
		return IX_NONE;
	}
}

static bool is_heavy(const struct atom *a)
{
	enum index_family f = index_family_of(a);

	return a->a->memo >= 0 || f == IX_SUB || f == IX_ISUB;
}

static uint32_t weight(const struct atom *a)
{
	static const uint32_t w[] = {
		[IX_STR] = 4,	 [IX_NUM] = 5,	  [IX_NET] = 6,	 [IX_PATH] = 8,
		[IX_PREFIX] = 5, [IX_SUFFIX] = 5, [IX_SUB] = 12, [IX_ISUB] = 14
	};

	return w[index_family_of(a)] + (a->a->memo >= 0 ? 40 : 0);
}

/* ---- guards ---- */

static uint32_t guard(struct builder *g, const struct pred *p, bool neg);

static uint32_t guard_atom(struct builder *g, const struct pred *p, bool neg)
{
	if (neg || index_family_of(p->atom) == IX_NONE || !g->local[p->atom->idx])
		return NO_GUARD;
	if (tmp_grow(g, &g->stack, &g->stack_cap, g->stack_n, sizeof(*g->stack)) < 0) {
		g->failed = true;
		return NO_GUARD;
	}
	g->stack[g->stack_n++] = p->atom;
	return weight(p->atom);
}

/* All of the kids must hold: the best one's guard will do. It is left on top of the stack. */
static uint32_t guard_all(struct builder *g, const struct pred *p, bool neg)
{
	size_t base = g->stack_n, best_n = 0;
	uint32_t best = NO_GUARD;

	for (size_t i = 0; i < p->n; i++) {
		size_t from = base + best_n, n;
		uint32_t score;

		g->stack_n = from;
		score = guard(g, p->kid[i], neg);
		n = g->stack_n - from;
		if (score >= best)
			continue;
		memmove(g->stack + base, g->stack + from, n * sizeof(*g->stack));
		best = score;
		best_n = n;
	}
	g->stack_n = base + best_n;
	return best;
}

/* One of the kids holds: every kid needs a guard. */
static uint32_t guard_any(struct builder *g, const struct pred *p, bool neg)
{
	size_t base = g->stack_n;
	uint32_t sum = 0;

	for (size_t i = 0; i < p->n; i++) {
		uint32_t score = guard(g, p->kid[i], neg);

		if (score == NO_GUARD || g->stack_n - base > GUARD_MAX) {
			g->stack_n = base;
			return NO_GUARD;
		}
		sum += score;
	}
	return sum;
}

static uint32_t guard(struct builder *g, const struct pred *p, bool neg)
{
	if (p->fold >= 0) /* never true: the empty guard; always true: none */
		return p->fold == (int)neg ? 0 : NO_GUARD;
	switch (p->type) {
	case P_NOT:
		return guard(g, p->kid[0], !neg);
	case P_AND:
		return neg ? guard_any(g, p, neg) : guard_all(g, p, neg);
	case P_OR:
		return neg ? guard_all(g, p, neg) : guard_any(g, p, neg);
	case P_ATOM:
		return guard_atom(g, p, neg);
	default:
		return NO_GUARD;
	}
}

/* ---- groups ---- */

static uint32_t group_find(struct builder *g, const struct atom *a, bool make)
{
	enum index_family fam = index_family_of(a);
	struct bucket_index *ix = g->ix;
	size_t cap = g->groups_cap;

	for (uint32_t i = g->group_of[a->a->idx]; i; i = g->group_next[i - 1])
		if (ix->group[i - 1].fam == fam)
			return i;
	if (!make)
		return 0;
	if (tmp_grow(g, &g->group_next, &cap, ix->groups_n, sizeof(*g->group_next)) < 0 ||
	    tmp_grow(g, &ix->group, &g->groups_cap, ix->groups_n, sizeof(*ix->group)) < 0) {
		g->failed = true;
		return 0;
	}
	ix->group[ix->groups_n] = (struct group){ .fam = fam, .a = a->a };
	g->group_next[ix->groups_n] = g->group_of[a->a->idx];
	return g->group_of[a->a->idx] = ++ix->groups_n;
}

static bool guard_pair(struct builder *g, uint32_t atom, uint32_t prog)
{
	if (tmp_grow(g, &g->guard_of, &g->guards_cap, g->guards_n, sizeof(*g->guard_of)) < 0)
		return false;
	g->guard_of[g->guards_n++] = (struct pair){ atom, prog };
	return true;
}

static void set_bit(uint64_t *v, uint32_t i)
{
	v[i / 64] |= 1ull << (i % 64);
}

/* A program's guard into pairs, or the program into `always`. `count`: how many programs would use a
 * heavy access; below HEAVY_MIN its look-up costs more than the rules it saves. */
static void guard_program(struct builder *g, uint32_t i, uint32_t *count, bool counting)
{
	uint32_t score;

	g->stack_n = 0;
	score = guard(g, g->b->prog[i].pred, false);
	for (size_t k = 0; k < g->stack_n && score != NO_GUARD; k++) {
		const struct atom *a = g->stack[k];

		if (counting)
			count[a->a->idx] += is_heavy(a);
		else if (is_heavy(a) && count[a->a->idx] < HEAVY_MIN)
			score = NO_GUARD;
	}
	if (counting)
		return;
	if (score == NO_GUARD) {
		set_bit(g->ix->always, i);
		return;
	}
	for (size_t k = 0; k < g->stack_n; k++) {
		if (!guard_pair(g, g->local[g->stack[k]->idx] - 1, i) ||
		    !group_find(g, g->stack[k], true))
			g->failed = true;
	}
}

/* Pairs to runs by atom. */
static void guard_runs(struct builder *g)
{
	struct bucket_index *ix = g->ix;
	uint32_t n = g->b->atoms_n;

	ix->guard_first = rs_alloc(g->rs, (n + 2) * sizeof(*ix->guard_first));
	ix->guard = rs_alloc(g->rs, g->guards_n * sizeof(*ix->guard));
	if (!ix->guard_first || !ix->guard) {
		g->failed = true;
		return;
	}
	for (size_t i = 0; i < g->guards_n; i++)
		ix->guard_first[g->guard_of[i].atom + 2]++;
	for (uint32_t i = 0; i < n; i++)
		ix->guard_first[i + 2] += ix->guard_first[i + 1];
	for (size_t i = 0; i < g->guards_n; i++)
		ix->guard[ix->guard_first[g->guard_of[i].atom + 1]++] = g->guard_of[i].to;
}

/* ---- chains of hits while building, runs afterwards ---- */

static uint32_t chain_add(struct builder *g, uint32_t chain, uint32_t atom)
{
	if (tmp_grow(g, &g->node, &g->nodes_cap, g->nodes_n, sizeof(*g->node)) < 0) {
		g->failed = true;
		return chain;
	}
	g->node[g->nodes_n++] = (struct pair){ atom, chain };
	return (uint32_t)g->nodes_n;
}

static void chain_to_run(struct builder *g, uint32_t chain, uint32_t *first, uint32_t *n)
{
	*first = (uint32_t)g->hits_n;
	*n = 0;
	for (; chain && !g->failed; chain = g->node[chain - 1].to) {
		if (tmp_grow(g, &g->ix->hit, &g->hits_cap, g->hits_n, sizeof(*g->ix->hit)) < 0) {
			g->failed = true;
			return;
		}
		g->ix->hit[g->hits_n++] = g->node[chain - 1].atom;
		(*n)++;
	}
}

/* ---- byte maps ---- */

uint32_t map_hash(struct str key)
{
	const uint64_t k = 0x9e3779b97f4a7c15ull;
	uint64_t h = key.n * k, x;
	const char *p = key.p;
	size_t n = key.n;

	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&x, p, 8);
		h = (h ^ x) * k;
		h ^= h >> 32;
	}
	x = 0;
	if (n)
		memcpy(&x, p, n);
	h = (h ^ x) * k;
	return (uint32_t)(h >> 32);
}

static struct mapslot *map_slot(const struct bytemap *m, struct str key, uint32_t hash)
{
	uint32_t i = hash & (m->cap - 1);

	while (m->slot[i].chain && !(m->slot[i].hash == hash && str_eq(m->slot[i].key, key)))
		i = (i + 1) & (m->cap - 1);
	return &m->slot[i];
}

const struct mapslot *map_get(const struct bytemap *m, struct str key)
{
	const struct mapslot *s;

	if (!m->cap)
		return NULL;
	s = map_slot(m, key, map_hash(key));
	return s->chain ? s : NULL;
}

static void map_add(struct builder *g, struct bytemap *m, struct str key, uint32_t atom)
{
	uint32_t hash = map_hash(key);
	struct mapslot *s;

	if (m->n * 2 >= m->cap) {
		struct bytemap bigger = { .cap = m->cap ? m->cap * 4 : 64, .n = m->n };

		bigger.slot = tmp_alloc(g, bigger.cap * sizeof(*bigger.slot));
		if (!bigger.slot) {
			g->failed = true;
			return;
		}
		for (uint32_t i = 0; i < m->cap; i++)
			if (m->slot[i].chain)
				*map_slot(&bigger, m->slot[i].key, m->slot[i].hash) = m->slot[i];
		*m = bigger;
	}
	s = map_slot(m, key, hash);
	m->n += !s->chain;
	s->key = key;
	s->hash = hash;
	s->chain = chain_add(g, s->chain, atom);
}

struct str net_key(const struct net *n, const uint8_t *addr, char out[18])
{
	unsigned size = n->family == 4 ? 4 : 16;

	out[0] = (char)n->family;
	out[1] = (char)n->bits;
	for (unsigned i = 0; i < size; i++) {
		unsigned keep = n->bits >= 8 * (i + 1) ? 8 : n->bits > 8 * i ? n->bits - 8 * i : 0;

		out[2 + i] = (char)(addr[i] & (0xff00u >> keep));
	}
	return (struct str){ out, size + 2 };
}

static bool add_mask(struct group *gr, const struct net *n)
{
	for (uint32_t i = 0; i < gr->masks_n; i++)
		if (gr->mask[i].family == n->family && gr->mask[i].bits == n->bits)
			return true;
	if (gr->masks_n == INDEX_MASKS_MAX)
		return false;
	gr->mask[gr->masks_n++] = (struct net){ .family = n->family, .bits = n->bits };
	return true;
}

/* ---- tries ---- */

static unsigned char fold_case(unsigned char c, enum index_family fam)
{
	return fam == IX_ISUB && c >= 'A' && c <= 'Z' ? c + 32 : c;
}

static unsigned char pattern_byte(const struct group *gr, struct str s, size_t i)
{
	return fold_case((unsigned char)s.p[gr->fam == IX_SUFFIX ? s.n - 1 - i : i], gr->fam);
}

static void trie_classes(struct trie *t, const struct group *gr, const struct atom *const *v,
			 const uint32_t *member, size_t n, size_t *ret_bytes)
{
	t->classes = 1;
	*ret_bytes = 1;
	for (size_t i = 0; i < n; i++) {
		struct str s = v[member[i]]->s;

		*ret_bytes += s.n;
		for (size_t k = 0; k < s.n; k++) {
			unsigned char c = pattern_byte(gr, s, k);

			if (!t->cls[c])
				t->cls[c] = (uint8_t)MIN(t->classes++, 255u);
		}
	}
	for (int c = 'A'; c <= 'Z' && gr->fam == IX_ISUB; c++)
		t->cls[c] = t->cls[c + 32];
}

/* Aho-Corasick: complete the transitions, and link each node to its longest suffix with hits. */
static bool trie_automaton(struct builder *g, struct trie *t)
{
	uint32_t *fail = tmp_alloc(g, t->nodes * sizeof(*fail));
	uint32_t *queue = tmp_alloc(g, t->nodes * sizeof(*queue));
	uint32_t head = 0, tail = 0;

	t->dict = rs_alloc(g->rs, t->nodes * sizeof(*t->dict));
	if (!fail || !queue || !t->dict)
		return false;
	for (uint32_t c = 1; c < t->classes; c++)
		if (t->next[c])
			queue[tail++] = t->next[c];
	while (head < tail) {
		uint32_t node = queue[head++];
		uint32_t *row = t->next + (size_t)node * t->classes;
		const uint32_t *back = t->next + (size_t)fail[node] * t->classes;

		t->dict[node] = t->n[fail[node]] ? fail[node] : t->dict[fail[node]];
		for (uint32_t c = 1; c < t->classes; c++) {
			if (row[c]) {
				fail[row[c]] = back[c];
				queue[tail++] = row[c];
			} else {
				row[c] = back[c];
			}
		}
	}
	return true;
}

/* False when the group is too large to build: its checks then run one by one. */
static bool trie_build(struct builder *g, struct group *gr, const uint32_t *member, size_t n)
{
	struct trie *t = &gr->trie;
	uint32_t *chain;
	size_t bytes;

	trie_classes(t, gr, g->b->atom, member, n, &bytes);
	if (t->classes > 255 || bytes * t->classes > TRIE_CELLS_MAX)
		return false;
	t->next = tmp_alloc(g, bytes * t->classes * sizeof(*t->next));
	chain = tmp_alloc(g, bytes * sizeof(*chain));
	if (!t->next || !chain)
		return false;
	t->nodes = 1;
	for (size_t i = 0; i < n; i++) {
		struct str s = g->b->atom[member[i]]->s;
		uint32_t node = 0;

		for (size_t k = 0; k < s.n; k++) {
			uint32_t *cell = &t->next[(size_t)node * t->classes +
						  t->cls[pattern_byte(gr, s, k)]];

			if (!*cell)
				*cell = t->nodes++;
			node = *cell;
		}
		chain[node] = chain_add(g, chain[node], member[i]);
	}
	keep(g, &t->next, (size_t)t->nodes * t->classes,
	     sizeof(*t->next)); /* beginnings are shared */
	t->first = rs_alloc(g->rs, t->nodes * sizeof(*t->first));
	t->n = rs_alloc(g->rs, t->nodes * sizeof(*t->n));
	if (g->failed || !t->first || !t->n)
		return false;
	for (uint32_t i = 0; i < t->nodes; i++)
		chain_to_run(g, chain[i], &t->first[i], &t->n[i]);
	return (gr->fam != IX_SUB && gr->fam != IX_ISUB) || trie_automaton(g, t);
}

/* ---- filling a group ---- */

static void map_member(struct builder *g, struct group *gr, uint32_t local)
{
	const struct atom *a = g->b->atom[local];

	if (gr->fam == IX_NUM) {
		for (size_t i = 0; i < a->num_n; i++)
			map_add(g, &gr->map, (struct str){ (const char *)&a->num[i], 8 }, local);
	} else if (gr->fam == IX_NET) {
		for (size_t i = 0; i < a->net_n; i++) {
			char *key = rs_alloc(g->rs, 18);

			if (!key || !add_mask(gr, &a->net[i])) {
				g->failed = true;
				return;
			}
			map_add(g, &gr->map, net_key(&a->net[i], a->net[i].b, key), local);
		}
	} else if (a->set) {
		for (size_t i = 0; i < strset_count(a->set); i++)
			map_add(g, &gr->map, strset_at(a->set, i), local);
	} else {
		map_add(g, &gr->map, a->s, local);
	}
}

static bool group_fill(struct builder *g, struct group *gr, const uint32_t *member, size_t n)
{
	if (gr->fam >= IX_PREFIX)
		return trie_build(g, gr, member, n);
	for (size_t i = 0; i < n; i++)
		map_member(g, gr, member[i]);
	keep(g, &gr->map.slot, gr->map.cap, sizeof(*gr->map.slot));
	for (uint32_t i = 0; i < gr->map.cap && !g->failed; i++)
		if (gr->map.slot[i].chain)
			chain_to_run(g, gr->map.slot[i].chain, &gr->map.slot[i].first,
				     &gr->map.slot[i].n);
	return !g->failed;
}

static void fill_groups(struct builder *g)
{
	uint32_t *member = tmp_alloc(g, g->b->atoms_n * sizeof(*member));

	for (uint32_t k = 0; member && k < g->ix->groups_n && !g->failed; k++) {
		struct group *gr = &g->ix->group[k];
		size_t n = 0;

		for (uint32_t i = 0; i < g->b->atoms_n; i++) {
			const struct atom *a = g->b->atom[i];

			if (a->a == gr->a && index_family_of(a) == gr->fam) {
				member[n++] = i;
				set_bit(g->ix->known, i);
			}
		}
		if (!group_fill(g, gr, member, n))
			g->failed = true;
	}
	if (!member)
		g->failed = true;
}

/* Without an index every rule runs: slower, and as right. */
static void drop_index(struct bucket *b, struct bucket_index *ix)
{
	memset(ix->known, 0, (b->atoms_n + 63) / 64 * sizeof(*ix->known));
	memset(ix->always, 0xff, (b->progs_n + 63) / 64 * sizeof(*ix->always));
	if (b->progs_n % 64)
		ix->always[b->progs_n / 64] = (1ull << (b->progs_n % 64)) - 1;
	ix->groups_n = 0;
}

void bucket_index(struct ruleset *rs, struct bucket *b, uint32_t *local)
{
	struct bucket_index *ix = rs_alloc(rs, sizeof(*ix));
	struct builder *g = calloc(1, sizeof(*g));
	uint32_t *count;

	rs->oom |= !g;
	if (!ix || !g || !b->progs_n)
		goto out;
	*g = (struct builder){ .rs = rs, .b = b, .ix = ix, .local = local };
	arena_init(&g->tmp, RULE_ARENA_MAX);
	ix->known = rs_alloc(rs, (b->atoms_n / 64 + 1) * sizeof(*ix->known));
	ix->always = rs_alloc(rs, (b->progs_n / 64 + 1) * sizeof(*ix->always));
	count = tmp_alloc(g, RULE_ACCESS_MAX * sizeof(*count));
	if (!ix->known || !ix->always || !count)
		goto out;
	for (uint32_t i = 0; i < b->progs_n; i++)
		guard_program(g, i, count, true);
	for (uint32_t i = 0; i < b->progs_n; i++)
		guard_program(g, i, count, false);
	guard_runs(g);
	fill_groups(g);
	keep(g, &ix->group, ix->groups_n, sizeof(*ix->group));
	keep(g, &ix->hit, g->hits_n, sizeof(*ix->hit));
	if (g->failed)
		drop_index(b, ix);
	b->index = ix;
out:
	if (g)
		arena_done(&g->tmp);
	free(g);
}
