// SPDX-License-Identifier: Apache-2.0
/* Condition text. Falco substitutes lists and appends conditions as text, before it parses, so a
 * parse error may stand in text that no file contains: pieces lead back to where it came from. */
#include "rules/internal.h"

struct maker {
	struct ruleset *rs;
	struct buf b;
	struct piece *piece;
	size_t n, cap;
	bool failed;
};

static void add_piece(struct maker *m, struct piece p)
{
	p.off = (uint32_t)m->b.n;
	if (rs_grow(m->rs, &m->piece, &m->cap, m->n, sizeof(*m->piece)) < 0) {
		m->failed = true;
		return;
	}
	m->piece[m->n++] = p;
}

static const struct piece *piece_at(const struct text *t, size_t off)
{
	size_t lo = 0, hi = t->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (t->piece[mid].off <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? &t->piece[lo - 1] : NULL;
}

struct pos text_pos(const struct text *t, size_t off)
{
	const struct piece *p = piece_at(t, off);

	if (!p)
		return (struct pos){ t->made, 1, (int)off + 1 };
	if (!p->node)
		return p->at;
	return ynode_pos_at(p->node, p->node_off + (p->fixed ? 0 : off - p->off));
}

int text_from_node(struct ruleset *rs, const struct ynode *n, struct text *ret)
{
	struct piece *p = rs_alloc(rs, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->node = n;
	*ret = (struct text){ .s = n->text, .piece = p, .n = 1 };
	return 0;
}

/* Bytes [from, to) of t with their positions. */
static void copy_run(struct maker *m, const struct text *t, size_t from, size_t to)
{
	const struct piece *p = piece_at(t, from);

	if (from >= to)
		return;
	for (; p && p < t->piece + t->n && p->off < to; p++) {
		size_t start = MAX((size_t)p->off, from);
		size_t end = p + 1 < t->piece + t->n ? MIN((size_t)p[1].off, to) : to;
		struct piece q = *p;

		if (!p->fixed)
			q.node_off += (uint32_t)(start - p->off);
		add_piece(m, q);
		buf_add(&m->b, t->s.p + start, end - start);
		from = end;
	}
	if (from < to)
		buf_add(&m->b, t->s.p + from, to - from);
}

static int finish(struct maker *m, const struct text *like, struct text *ret)
{
	struct str s = { m->b.p, m->b.n };

	if (m->b.failed || m->failed) {
		bool big = m->b.n >= RULE_COND_MAX / 2;

		if (big)
			rule_error(m->rs, text_pos(like, 0), "condition longer than %zu bytes",
				   RULE_COND_MAX);
		else
			m->rs->oom = true;
		buf_done(&m->b);
		return -EINVAL;
	}
	*ret = (struct text){
		.s = rs_dup(m->rs, s), .piece = m->piece, .n = m->n, .made = like->made
	};
	buf_done(&m->b);
	return ret->s.p ? 0 : -ENOMEM;
}

static void maker_init(struct maker *m, struct ruleset *rs)
{
	*m = (struct maker){ .rs = rs };
	buf_init(&m->b, RULE_COND_MAX);
}

int text_append(struct ruleset *rs, struct text *a, const struct text *b)
{
	size_t n = a->s.n + 1 + b->s.n;
	char *s;

	if (n > RULE_COND_MAX) {
		rule_error(rs, text_pos(a, 0), "condition longer than %zu bytes", RULE_COND_MAX);
		return -EINVAL;
	}
	s = rs_extend(rs, a->s.p, &a->s_cap, a->s.n, n + 1 - a->s.n, 1);
	if (!s)
		return -ENOMEM;
	s[a->s.n] = ' ';
	memcpy(s + a->s.n + 1, b->s.p, b->s.n);
	s[n] = 0;
	for (size_t i = 0; i < b->n; i++) {
		if (rs_grow(rs, &a->piece, &a->piece_cap, a->n, sizeof(*a->piece)) < 0)
			return -ENOMEM;
		a->piece[a->n] = b->piece[i];
		a->piece[a->n++].off += (uint32_t)a->s.n + 1;
	}
	a->s = (struct str){ s, n };
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_delim(char c)
{
	return is_blank(c) || c == '(' || c == ')' || c == ',' || c == '=';
}

static bool needs_quotes(struct str s)
{
	if (!s.n)
		return true;
	if (s.p[0] == '"' || s.p[0] == '\'')
		return false;
	for (size_t i = 0; i < s.n; i++)
		if (is_blank(s.p[i]) || strchr("()\"'=", s.p[i]))
			return true;
	return false;
}

static void add_item(struct maker *m, struct str s)
{
	if (!needs_quotes(s)) {
		buf_add(&m->b, s.p, s.n);
		return;
	}
	buf_addc(&m->b, '"');
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '"' && (i == 0 || s.p[i - 1] != '\\'))
			buf_addc(&m->b, '\\');
		buf_addc(&m->b, s.p[i]);
	}
	buf_addc(&m->b, '"');
}

/* Items separated by commas; a nested list has to stand earlier, which also rules out cycles. */
static void add_items(struct maker *m, struct list *l, bool *any, int depth)
{
	l->used = true;
	for (size_t i = 0; i < l->n && !m->b.failed; i++) {
		struct list *inner =
			depth < RULE_MACRO_DEPTH ? ruleset_list(m->rs, l->item[i]) : NULL;

		if (inner && inner != l && inner->index < l->index) {
			add_items(m, inner, any, depth + 1);
			continue;
		}
		if (*any)
			buf_addz(&m->b, ", ");
		*any = true;
		add_item(m, l->item[i]);
	}
}

/* An empty list takes a comma with it, the one on its left or else the one on its right. */
static size_t drop_comma(struct maker *m, const struct text *in, size_t end)
{
	size_t n = m->b.n;

	while (n && is_blank(m->b.p[n - 1]))
		n--;
	if (n && m->b.p[n - 1] == ',') {
		m->b.p[n - 1] = ' ';
		return end;
	}
	for (n = end; n < in->s.n && is_blank(in->s.p[n]); n++)
		;
	return n < in->s.n && in->s.p[n] == ',' ? n + 1 : end;
}

int text_subst_lists(struct ruleset *rs, const struct text *in, struct text *ret)
{
	struct maker m;
	size_t i = 0, done = 0;

	if (in->s.n > RULE_COND_MAX / 2) {
		rule_error(rs, text_pos(in, 0), "condition longer than %zu bytes",
			   RULE_COND_MAX / 2);
		return -EINVAL;
	}
	maker_init(&m, rs);
	while (i < in->s.n) {
		size_t start = i;
		struct list *l;
		bool any = false;
		char c = in->s.p[i];

		if (c == '"' || c == '\'') {
			for (i++; i < in->s.n && in->s.p[i] != c; i++)
				i += in->s.p[i] == '\\';
			i = MIN(i + 1, in->s.n);
			continue;
		}
		while (i < in->s.n && !is_delim(in->s.p[i]) && in->s.p[i] != '"' &&
		       in->s.p[i] != '\'')
			i++;
		if (i == start) {
			i++;
			continue;
		}
		l = ruleset_list(rs, (struct str){ in->s.p + start, i - start });
		if (!l || (i < in->s.n && !is_delim(in->s.p[i])))
			continue;
		copy_run(&m, in, done, start);
		if (piece_at(in, start)) {
			struct piece p = *piece_at(in, start);

			if (!p.fixed)
				p.node_off += (uint32_t)(start - p.off);
			p.fixed = true;
			add_piece(&m, p);
		}
		add_items(&m, l, &any, 0);
		if (!any)
			i = drop_comma(&m, in, i);
		done = i;
		if (m.b.failed)
			break;
	}
	copy_run(&m, in, done, in->s.n);
	return finish(&m, in, ret);
}
