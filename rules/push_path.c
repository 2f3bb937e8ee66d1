// SPDX-License-Identifier: Apache-2.0
/* Push-down by path. A range is "all paths with this prefix and none of the longer ones that are named":
 * what the kernel's trie tells apart. Renames and hard links have two paths, and the kernel looks at each by
 * itself: it decides for a range when the condition is true with either of them in it. */
#include "rules/push_internal.h"

#include <stdlib.h>

#define PATH_KINDS                                                       \
	(ENFORCE_KIND(WIRE_FILE_OPEN) | ENFORCE_KIND(WIRE_FILE_RENAME) | \
	 ENFORCE_KIND(WIRE_FILE_DELETE) | ENFORCE_KIND(WIRE_FILE_LINK) | \
	 ENFORCE_KIND(WIRE_FILE_ATTR) | ENFORCE_KIND(WIRE_FILE_MKDIR) |  \
	 ENFORCE_KIND(WIRE_FILE_MMAP) | ENFORCE_KIND(WIRE_EXEC))

/* ---- one rule, one kind, one range ---- */

/* Several values of one act: true for all, false for all, or neither. */
struct both {
	bool all_true, all_false;
};

static void ask(struct push *p, struct push_rule *r, struct push_known *k, struct both *b)
{
	int v = push_ask(p, r, k);

	b->all_true &= v == TRI_TRUE;
	b->all_false &= v == TRI_FALSE;
}

static struct both ask_attr(struct push *p, struct push_rule *r, struct push_known *k)
{
	static const char *const ops[] = { "chmod", "chown", "truncate", "setxattr" };
	struct both b = { true, true };
	size_t n = r->verdict == ENFORCE_DENY ? 3 : 4;

	for (size_t i = 0; i < n; i++) {
		k->file_op = ops[i];
		ask(p, r, k, &b);
	}
	if (r->verdict == ENFORCE_DENY) {
		k->file_op = ops[3];
		if (push_ask(p, r, k) != TRI_FALSE)
			push_short(r, WIRE_FILE_ATTR,
				   "extended attributes cannot be denied: add 'and not file.op = "
				   "setxattr'");
	}
	return b;
}

/* Is it decided in this range, by either path alone where there are two? */
static struct both ask_range(struct push *p, struct push_rule *r, uint16_t kind,
			     const struct push_text *t)
{
	struct push_known k = push_known(p, kind), old = k;
	struct both b = { true, true };

	if (kind == WIRE_EXEC)
		k.exe = t;
	else
		k.path = t;
	old.old_path = t;
	switch (kind) {
	case WIRE_FILE_ATTR:
		b = ask_attr(p, r, &k);
		break;
	case WIRE_FILE_LINK:
		k.file_op = "symbolic";
		ask(p, r, &k, &b);
		k.file_op = old.file_op = "hard";
		ask(p, r, &k, &b);
		ask(p, r, &old, &b);
		break;
	case WIRE_FILE_RENAME:
		ask(p, r, &k, &b);
		ask(p, r, &old, &b);
		break;
	default:
		ask(p, r, &k, &b);
		break;
	}
	if (!b.all_true && !b.all_false && k.unknown && kind != WIRE_FILE_RENAME &&
	    kind != WIRE_FILE_LINK)
		push_short(r, kind, "the kernel does not know '%s'", k.unknown);
	return b;
}

/* With two paths: is there a pair for which the condition may hold and neither path decides? */
static bool pairs_are_decided(struct push *p, struct push_rule *r, uint16_t kind,
			      const struct push_ranges *all, const bool *decided)
{
	if (all->n > PUSH_PAIRS_MAX)
		return false;
	for (size_t i = 0; i < all->n; i++) {
		struct push_known k = push_known(p, kind);

		k.path = &all->v[i].t;
		if (kind == WIRE_FILE_LINK) {
			k.file_op = "symbolic";
			if (!decided[i] && push_ask(p, r, &k) != TRI_FALSE)
				return false;
			k.file_op = "hard";
		}
		for (size_t j = 0; j < all->n && !decided[i]; j++) {
			k.old_path = &all->v[j].t;
			if (!decided[j] && push_ask(p, r, &k) != TRI_FALSE)
				return false;
		}
	}
	return true;
}

static void judge_rule(struct push *p, struct push_rule *r, uint16_t kind,
		       const struct push_ranges *all, size_t column)
{
	bool decided[PUSH_RANGES_MAX], any = false, whole = true;

	for (size_t i = 0; i < all->n; i++) {
		struct both b = ask_range(p, r, kind, &all->v[i].t);

		decided[i] = b.all_true;
		any |= decided[i];
		whole &= b.all_true || b.all_false;
		if (decided[i])
			push_choose(&p->grid[i * PUSH_KINDS_MAX + column], r);
	}
	if (kind == WIRE_FILE_RENAME || kind == WIRE_FILE_LINK) {
		whole = pairs_are_decided(p, r, kind, all, decided);
		if (!whole)
			push_short(
				r, kind,
				"it has two paths: name both, 'file.path ... or file.old_path ...'");
	}
	if (whole)
		r->out->whole |= ENFORCE_KIND(kind);
	else if (any)
		r->out->part |= ENFORCE_KIND(kind);
}

/* ---- the table ---- */

static int put_range(struct push *p, const struct push_range *at, const struct push_choice *row,
		     const uint16_t *kinds, size_t kinds_n)
{
	const char *path = arena_strndup(&p->plan->arena, at->t.text.p, at->t.text.n).p;
	uint64_t done = 0;
	int r;

	if (!path)
		return -ENOMEM;
	for (size_t k = 0; k < kinds_n; k++) {
		struct enforce_entry e = {
			.id = row[k].id ? row[k].id : 1,
			.verdict = row[k].verdict,
			.by = ENFORCE_BY_PATH,
			.path = { .path = path, .exact = at->t.exact, .bytes = true },
		};

		if (done >> k & 1)
			continue;
		for (size_t j = k; j < kinds_n; j++)
			if (row[j].id == row[k].id && row[j].verdict == row[k].verdict) {
				e.kinds |= ENFORCE_KIND(kinds[j]);
				done |= 1ull << j;
			}
		/* What cannot be told must not get past a rule that forbids. */
		e.path.cut = e.verdict == ENFORCE_DENY;
		r = push_add(p, &e);
		if (r < 0)
			return r;
	}
	return 0;
}

static int put_table(struct push *p, const struct push_ranges *all, const uint16_t *kinds,
		     size_t kinds_n)
{
	static const struct push_choice nobody[PUSH_KINDS_MAX];
	int r;

	for (size_t i = 0; i < all->n; i++) {
		const struct push_choice *row = p->grid + i * PUSH_KINDS_MAX;
		const struct push_choice *above =
			all->v[i].parent == i ? nobody
					      : p->grid + all->v[i].parent * PUSH_KINDS_MAX;

		if (!memcmp(row, above, kinds_n * sizeof(*row)))
			continue; /* says the same as what is wider */
		r = put_range(p, &all->v[i], row, kinds, kinds_n);
		if (r < 0)
			return r;
	}
	return 0;
}

static uint16_t first_kind(uint64_t kinds)
{
	return kinds ? (uint16_t)__builtin_ctzll(kinds) : 0;
}

int push_paths(struct push *p)
{
	auto_free struct push_ranges *all = calloc(1, sizeof(*all));
	uint16_t kinds[PUSH_KINDS_MAX];
	uint64_t used = 0;
	size_t kinds_n;

	if (!all)
		return -ENOMEM;
	push_range_add(all, STR(""), false);
	for (size_t i = 0; i < p->rules_n; i++) {
		const struct push_rule *r = &p->rule[i];
		uint64_t can = r->verdict == ENFORCE_KILL ? p->means->kill : p->means->deny;

		if (!(r->kinds & can & PATH_KINDS & ~r->out->whole))
			continue;
		used |= r->kinds & can & PATH_KINDS & ~r->out->whole;
		push_ranges_collect(&p->plan->arena, all, r->r->pred, push_is_text);
	}
	if (all->full) { /* user space kills for them; a deny is refused */
		for (size_t i = 0; i < p->rules_n; i++)
			if (p->rule[i].kinds & used & ~p->rule[i].out->whole)
				push_short(&p->rule[i], first_kind(p->rule[i].kinds & used),
					   "more than %d paths and prefixes in all rules",
					   PUSH_RANGES_MAX);
		return 0;
	}
	push_ranges_parents(all);
	kinds_n = push_kinds(used, kinds);
	memset(p->grid, 0, all->n * PUSH_KINDS_MAX * sizeof(*p->grid));
	for (size_t k = 0; k < kinds_n; k++)
		for (size_t i = 0; i < p->rules_n; i++) {
			struct push_rule *r = &p->rule[i];
			uint64_t can = r->verdict == ENFORCE_KILL ? p->means->kill : p->means->deny;

			if (r->kinds & can & ~r->out->whole & ENFORCE_KIND(kinds[k]))
				judge_rule(p, r, kinds[k], all, k);
		}
	return put_table(p, all, kinds, kinds_n);
}
