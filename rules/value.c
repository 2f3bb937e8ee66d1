// SPDX-License-Identifier: Apache-2.0
/* Constants of a check: parsed once, by the type of the field. */
#include "rules/internal.h"

#include <ctype.h>
#include "userspace/base/option.h"

static struct pos word_pos(const struct expr *e, const struct word *w)
{
	return text_pos(e->text, w->pos);
}

#define SHOW(s) (int)MIN((s).n, (size_t)80), (s).p

/* ---- numbers ---- */

/* Signed numbers are biased so that they compare as unsigned ones. */
static bool parse_number(struct ruleset *rs, const struct expr *e, const struct word *w,
			 enum rtype type, uint64_t *ret)
{
	struct str s = w->s;
	uint64_t base = 10, v = 0;
	bool neg = s.n && s.p[0] == '-', ok;
	size_t i = s.n && (s.p[0] == '-' || s.p[0] == '+');

	if (s.n - i > 2 && s.p[i] == '0' && (s.p[i + 1] == 'x' || s.p[i + 1] == 'X')) {
		base = 16;
		i += 2;
	}
	ok = i < s.n;
	for (; ok && i < s.n; i++) {
		int c = (unsigned char)s.p[i];
		uint64_t d = 99;

		if (isdigit(c))
			d = (uint64_t)(c - '0');
		else if (isxdigit(c))
			d = (uint64_t)(tolower(c) - 'a') + 10;
		ok = d < base && !__builtin_mul_overflow(v, base, &v) &&
		     !__builtin_add_overflow(v, d, &v);
	}
	if (!ok) {
		rule_error(rs, word_pos(e, w), "field '%.*s' is a number, '%.*s' is not",
			   SHOW(e->lhs.name), SHOW(s));
		return false;
	}
	if (type != RT_I64) {
		if (neg && v) {
			rule_error(rs, word_pos(e, w), "field '%.*s' is never negative",
				   SHOW(e->lhs.name));
			return false;
		}
		*ret = v;
		return true;
	}
	if (v > (uint64_t)INT64_MAX + neg) {
		rule_error(rs, word_pos(e, w), "number '%.*s' is too large", SHOW(s));
		return false;
	}
	*ret = (neg ? -v : v) ^ (1ull << 63);
	return true;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static bool bind_numbers(struct ruleset *rs, const struct expr *e, struct atom *a)
{
	uint64_t *v = rs_alloc(rs, e->val_n * sizeof(*v));

	if (!v)
		return false;
	for (size_t i = 0; i < e->val_n; i++)
		if (!parse_number(rs, e, &e->val[i], a->a->type, &v[i]))
			return false;
	if (e->val_n)
		qsort(v, e->val_n, sizeof(*v), by_number);
	a->num = v;
	a->num_n = e->val_n;
	return true;
}

static bool bind_bools(struct ruleset *rs, const struct expr *e, struct atom *a)
{
	uint64_t *v = rs_alloc(rs, e->val_n * sizeof(*v));

	if (!v)
		return false;
	for (size_t i = 0; i < e->val_n; i++) {
		struct str s = e->val[i].s;

		v[i] = str_eqz(s, "true") || str_eqz(s, "1");
		if (!v[i] && !str_eqz(s, "false") && !str_eqz(s, "0")) {
			rule_error(rs, word_pos(e, &e->val[i]),
				   "field '%.*s' is true or false, not '%.*s'", SHOW(e->lhs.name),
				   SHOW(s));
			return false;
		}
	}
	if (e->val_n)
		qsort(v, e->val_n, sizeof(*v), by_number);
	a->num = v;
	a->num_n = e->val_n;
	return true;
}

/* ---- addresses ---- */

static bool parse_net(struct ruleset *rs, const struct expr *e, const struct word *w,
		      struct net *ret)
{
	const char *slash = w->s.n ? memchr(w->s.p, '/', w->s.n) : NULL;
	struct str addr = { w->s.p, slash ? (size_t)(slash - w->s.p) : w->s.n };
	struct ip_addr ip = { 0 };
	unsigned max, bits, min = 0;

	if (!addr.n || ip_addr_parse(addr, &ip) < 0) {
		rule_error(rs, word_pos(e, w),
			   "'%.*s' is no address or network: like 10.0.0.1, 10.0.0.0/8 or fd00::/8",
			   SHOW(w->s));
		return false;
	}
	max = ip.family == 4 ? 32 : 128;
	if (ip.family == 4 && memchr(addr.p, ':', addr.n)) {
		max = 128; /* as IPv6: ::ffff:10.0.0.0/104 is 10.0.0.0/8 */
		min = 96;
	}
	bits = max;
	if (slash) {
		size_t n = w->s.n - addr.n - 1;

		bits = 0;
		for (size_t i = 0; i < n && bits <= 128; i++)
			bits = isdigit((unsigned char)slash[1 + i])
				       ? bits * 10 + (unsigned)(slash[1 + i] - '0')
				       : 999;
		if (!n || n > 3 || bits < min || bits > max) {
			rule_error(rs, word_pos(e, w),
				   min ? "prefix length in '%.*s' must be a number from 96 up to %u"
				       : "prefix length in '%.*s' must be a number up to %u",
				   SHOW(w->s), max);
			return false;
		}
	}
	bits -= min;
	max -= min;
	*ret = (struct net){ .family = ip.family, .bits = (uint8_t)bits };
	memcpy(ret->b, ip.b, sizeof(ret->b));
	/* Host bits are dropped, as Falco does. */
	for (unsigned i = bits; i < max; i++)
		ret->b[i / 8] &= (uint8_t) ~(0x80u >> (i % 8));
	return true;
}

static bool bind_nets(struct ruleset *rs, const struct expr *e, struct atom *a)
{
	struct net *v = rs_alloc(rs, e->val_n * sizeof(*v));

	if (!v)
		return false;
	for (size_t i = 0; i < e->val_n; i++)
		if (!parse_net(rs, e, &e->val[i], &v[i]))
			return false;
	a->net = v;
	a->net_n = e->val_n;
	return true;
}

/* ---- strings ---- */

/* bcontains and bstartswith: the value is written in hex. */
static bool parse_hex(struct ruleset *rs, const struct expr *e, const struct word *w,
		      struct str *ret)
{
	char *out = rs_alloc(rs, w->s.n / 2 + 1);
	bool ok = out && w->s.n && w->s.n % 2 == 0;

	for (size_t i = 0; ok && i < w->s.n; i++) {
		unsigned char c = (unsigned char)w->s.p[i];

		ok = isxdigit(c);
		if (ok) {
			int d = isdigit(c) ? c - '0' : tolower(c) - 'a' + 10;

			out[i / 2] = (char)(i % 2 ? (unsigned char)out[i / 2] << 4 | d : d);
		}
	}
	if (!ok) {
		rule_error(rs, word_pos(e, w), "operator '%s' takes bytes in hex, not '%.*s'",
			   op_name(e->op), SHOW(w->s));
		return false;
	}
	*ret = (struct str){ out, w->s.n / 2 };
	return true;
}

static bool bind_regex(struct ruleset *rs, const struct expr *e, struct atom *a)
{
	pcre2_compile_context *cc = pcre2_compile_context_create(NULL);
	PCRE2_SIZE off = 0;
	int code = 0;

	if (!cc) {
		rs->oom = true;
		return false;
	}
	pcre2_set_max_pattern_length(cc, 8192);
	a->re = pcre2_compile((PCRE2_SPTR)a->s.p, a->s.n,
			      PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_DOLLAR_ENDONLY |
				      PCRE2_NEVER_UTF | PCRE2_NEVER_BACKSLASH_C,
			      &code, &off, cc);
	pcre2_compile_context_free(cc);
	if (!a->re) {
		char text[128] = "";

		pcre2_get_error_message(code, (PCRE2_UCHAR *)text, sizeof(text));
		rule_error(rs, word_pos(e, &e->val[0]), "regex '%.*s': %s (at %zu)", SHOW(a->s),
			   text, (size_t)off);
		return false;
	}
	/* Without JIT the interpreter runs it: slower, same limits. */
	pcre2_jit_compile(a->re, PCRE2_JIT_COMPLETE);
	return true;
}

static bool check_string(struct ruleset *rs, const struct expr *e, const struct atom *a,
			 const struct word *w)
{
	bool whole = e->op == OP_EQ || e->op == OP_NE || e->op == OP_IN || e->op == OP_INTERSECTS;

	char text[256];

	/* By our own name: what Falco calls a value of its field is its business. */
	if (whole && !a->a->tr_n && a->a->slot >= 0 &&
	    (a->a->slot == F_KIND || a->a->slot == F_ESCAPE_TYPE ||
	     str_eqz(e->lhs.name, event_fields[a->a->slot].name)) &&
	    !closed_has(a->a->slot, w->s, text, sizeof(text))) {
		rule_error(rs, word_pos(e, w), "%s", text);
		return false;
	}
	if (whole && a->a->slot == F_PROC_COMM && w->s.n > RULE_COMM_MAX)
		rule_warn(rs, word_pos(e, w),
			  "'%.*s' never equals '%.*s': a task name has at most 15 bytes",
			  SHOW(w->s), SHOW(e->lhs.name));
	return true;
}

static struct str strip_slashes(struct str s)
{
	while (s.n > 1 && s.p[s.n - 1] == '/')
		s.n--;
	return s;
}

static bool bind_strings(struct ruleset *rs, const struct expr *e, struct atom *a)
{
	struct str *v = rs_alloc(rs, e->val_n * sizeof(*v));

	if (!v)
		return false;
	for (size_t i = 0; i < e->val_n; i++) {
		const struct word *w = &e->val[i];

		v[i] = e->op == OP_PMATCH ? strip_slashes(w->s) : w->s;
		if (!check_string(rs, e, a, w))
			return false;
		if ((e->op == OP_BCONTAINS || e->op == OP_BSTARTSWITH) &&
		    !parse_hex(rs, e, w, &v[i]))
			return false;
	}
	if (e->op == OP_IN || e->op == OP_INTERSECTS || e->op == OP_PMATCH) {
		a->set = strset_make(rs, v, e->val_n);
		return a->set != NULL;
	}
	a->s = v[0];
	return e->op != OP_REGEX || bind_regex(rs, e, a);
}

/* ---- operators and types ---- */

static const char *type_name(enum rtype t)
{
	switch (t) {
	case RT_STR:
		return "text";
	case RT_BOOL:
		return "true or false";
	case RT_IP:
		return "an address";
	case RT_TIME:
		return "a time";
	default:
		return "a number";
	}
}

static bool op_fits(enum rule_op op, enum rtype t)
{
	switch (op) {
	case OP_EXISTS:
	case OP_EQ:
	case OP_NE:
	case OP_IN:
	case OP_INTERSECTS:
		return true;
	case OP_LT:
	case OP_LE:
	case OP_GT:
	case OP_GE:
		return t == RT_U64 || t == RT_I64 || t == RT_TIME;
	default:
		return t == RT_STR;
	}
}

static bool check_op(struct ruleset *rs, const struct expr *e, const struct atom *a)
{
	if (!op_fits(e->op, a->a->type)) {
		rule_error(rs, text_pos(e->text, e->op_pos),
			   "operator '%s' does not fit field '%.*s', which is %s", op_name(e->op),
			   SHOW(e->lhs.name), type_name(a->a->type));
		return false;
	}
	/* Of addresses and ports neither may be equal; of names Falco wants one that differs. */
	if (e->op == OP_NE && a->a->list && a->a->type == RT_STR && (a->a->row->flags & FR_ANY)) {
		rule_warn(rs, text_pos(e->text, e->op_pos),
			  "field '%.*s' has several values: '!=' is true when one of them differs, "
			  "'not %.*s = ...' when none is equal",
			  SHOW(e->lhs.name), SHOW(e->lhs.name));
		return true;
	}
	if (e->op == OP_NE && a->a->list && a->a->type == RT_STR) {
		rule_error(rs, text_pos(e->text, e->op_pos),
			   "field '%.*s' has several values: write 'not %.*s = ...' or "
			   "'not %.*s in (...)'",
			   SHOW(e->lhs.name), SHOW(e->lhs.name), SHOW(e->lhs.name));
		return false;
	}
	return true;
}

static bool bind_rhs_field(struct ruleset *rs, const struct expr *e, struct atom *a)
{
	bool same = a->rhs->type == a->a->type || (a->rhs->type != RT_STR && a->a->type != RT_STR &&
						   a->rhs->type != RT_IP && a->a->type != RT_IP);

	if (!same) {
		rule_error(rs, text_pos(e->text, e->rhs_field->pos),
			   "field '%.*s' is %s, but '%.*s' is %s", SHOW(e->lhs.name),
			   type_name(a->a->type), SHOW(e->rhs_field->name),
			   type_name(a->rhs->type));
		return false;
	}
	if (e->op == OP_REGEX || e->op == OP_BCONTAINS || e->op == OP_BSTARTSWITH) {
		rule_error(rs, text_pos(e->text, e->op_pos),
			   "operator '%s' needs a constant, not a field", op_name(e->op));
		return false;
	}
	return true;
}

bool bind_values(struct ruleset *rs, const struct expr *e, struct atom *a)
{
	if (!check_op(rs, e, a))
		return false;
	if (e->op == OP_EXISTS)
		return true;
	if (a->rhs)
		return bind_rhs_field(rs, e, a);
	switch (a->a->type) {
	case RT_STR:
		return bind_strings(rs, e, a);
	case RT_BOOL:
		return bind_bools(rs, e, a);
	case RT_IP:
		return bind_nets(rs, e, a);
	default:
		return bind_numbers(rs, e, a);
	}
}
