// SPDX-License-Identifier: Apache-2.0
/* Keys of rules that remember: count, window, distinct, sum, by, sequence, within. */
#include "rules/load.h"
#include "rules/state.h"

#include "userspace/base/option.h"

static bool read_time(struct ruleset *rs, const struct ynode *n, const char *key, uint64_t *ret)
{
	struct str s;

	if (!load_scalar(rs, n, key, &s))
		return false;
	if (parse_duration_ns(s.p, ret) < 0 || !*ret || *ret > STATE_TIME_MAX) {
		rule_error(rs, ynode_pos(n), "'%s' must be a time up to 24h, like 500ms, 30s or 5m",
			   key);
		return false;
	}
	return true;
}

static bool read_count(struct ruleset *rs, const struct ynode *n, struct stateful *s)
{
	struct str text;

	if (!load_scalar(rs, n, "count", &text))
		return false;
	if (s->mode == STATE_SUM) {
		if (parse_size(text.p, &s->count) == 0 && s->count)
			return true;
		rule_error(rs, ynode_pos(n),
			   "'count' of a sum must be a number like 500, 64K or 100M");
		return false;
	}
	if (parse_u64(text.p, &s->count) == 0 && s->count >= 1 && s->count <= STATE_COUNT_MAX)
		return true;
	rule_error(rs, ynode_pos(n), "'count' must be a number from 1 to %d", STATE_COUNT_MAX);
	return false;
}

static const struct access *read_field(struct ruleset *rs, struct rule *r, const struct ynode *n,
				       const char *key)
{
	const struct access *a;
	struct lhs l = { 0 };
	struct text t;
	struct str s;

	if (!load_scalar(rs, n, key, &s) || text_from_node(rs, n, &t) < 0 ||
	    !field_parse(rs, &t, &l))
		return NULL;
	a = bind_access(rs, r, &t, &l, r->falco);
	if (a && (a->row->flags & FR_ABSENT)) {
		rule_error(rs, ynode_pos(n), "field '%s' is not known here", s.p);
		return NULL;
	}
	return a;
}

static bool read_by(struct ruleset *rs, struct rule *r, const struct ynode *n, struct stateful *s)
{
	size_t n_fields = n->type == Y_SEQ ? n->n : 1;

	if (!n_fields || n_fields > STATE_FIELDS) {
		rule_error(rs, ynode_pos(n), "'by' takes one to %d fields", STATE_FIELDS);
		return false;
	}
	for (size_t i = 0; i < n_fields; i++) {
		s->by[i] = read_field(rs, r, n->type == Y_SEQ ? n->kid[i] : n, "by");
		if (!s->by[i])
			return false;
	}
	s->by_n = n_fields;
	return true;
}

static struct pred *read_step(struct ruleset *rs, struct rule *r, const struct ynode *n)
{
	struct text raw, t;
	struct expr *e;
	struct str s;

	if (!load_scalar(rs, n, "sequence", &s) || text_from_node(rs, n, &raw) < 0 ||
	    text_subst_lists(rs, &raw, &t) < 0)
		return NULL;
	e = expr_parse(rs, &t);
	return e ? bind_expr(rs, r, e, r->falco) : NULL;
}

static bool read_sequence(struct ruleset *rs, struct rule *r, const struct ynode *n,
			  struct stateful *s)
{
	if (n->type != Y_SEQ || !n->n || n->n > STATE_STEPS_MAX) {
		rule_error(
			rs, ynode_pos(n),
			"'sequence' is a list of 1 to %d conditions; 'condition' is the last step",
			STATE_STEPS_MAX);
		return false;
	}
	for (size_t i = 0; i < n->n; i++) {
		s->step[i] = read_step(rs, r, n->kid[i]);
		if (!s->step[i])
			return false;
	}
	s->steps_n = n->n;
	return true;
}

/* Keys that need each other, or exclude each other. */
static bool check_keys(struct ruleset *rs, const struct rule *r)
{
	const struct state_keys *k = &r->keys;
	const struct ynode *any = k->count ? k->count : k->sequence;
	struct pos at;

	for (size_t i = 0; !any && i < sizeof(*k) / sizeof(struct ynode *); i++)
		any = ((const struct ynode *const *)k)[i];
	at = ynode_pos(any);
	if (!rs->has_state) {
		rule_error(rs, at, "rule '%s' counts or orders events, which is not available here",
			   r->info.name);
	} else if (k->sequence && (k->count || k->window || k->distinct || k->sum)) {
		rule_error(rs, at, "'sequence' excludes 'count', 'window', 'distinct' and 'sum'");
	} else if (k->sequence && !k->within) {
		rule_error(rs, at, "'sequence' needs 'within': how long it may take");
	} else if (k->within && !k->sequence) {
		rule_error(rs, at, "'within' belongs to 'sequence'; 'count' has 'window'");
	} else if (k->distinct && k->sum) {
		rule_error(rs, at, "'distinct' and 'sum' exclude each other");
	} else if (!k->sequence && (!k->count || !k->window)) {
		rule_error(rs, at, "rule '%s' needs both 'count' and 'window'", r->info.name);
	} else {
		return true;
	}
	return false;
}

static bool read_keys(struct ruleset *rs, struct rule *r, struct stateful *s)
{
	const struct state_keys *k = &r->keys;

	if (k->sequence)
		return read_sequence(rs, r, k->sequence, s) &&
		       read_time(rs, k->within, "within", &s->window_ns);
	if (!read_time(rs, k->window, "window", &s->window_ns) || !read_count(rs, k->count, s))
		return false;
	if (k->distinct)
		return (s->of = read_field(rs, r, k->distinct, "distinct")) != NULL;
	if (!k->sum)
		return true;
	s->of = read_field(rs, r, k->sum, "sum");
	if (s->of && (s->of->list || (s->of->type != RT_U64 && s->of->type != RT_I64))) {
		rule_error(rs, ynode_pos(k->sum), "'sum' needs a number field");
		return false;
	}
	return s->of != NULL;
}

bool stateful_bind(struct ruleset *rs, struct rule *r)
{
	const struct state_keys *k = &r->keys;
	static const struct state_keys none;
	struct stateful *s;

	if (!memcmp(k, &none, sizeof(none)))
		return true;
	s = rs_alloc(rs, sizeof(*s));
	if (!s || !check_keys(rs, r))
		return false;
	s->mode = k->sequence	? STATE_SEQUENCE
		  : k->distinct ? STATE_DISTINCT
		  : k->sum	? STATE_SUM
				: STATE_COUNT;
	if (!read_keys(rs, r, s) || (k->by && !read_by(rs, r, k->by, s)))
		return false;
	s->slots = s->by_n ? STATE_BY_MAX : 1;
	s->slot_size = stateful_slot_size(s);
	s->off = rs->state_size;
	rs->state_size += s->slots * s->slot_size;
	if (rs->state_size > STATE_BYTES_MAX) {
		rule_error(rs, ynode_pos(r->node),
			   "rules would remember more than %zu MiB a sandbox",
			   STATE_BYTES_MAX >> 20);
		return false;
	}
	r->st = s;
	return true;
}
